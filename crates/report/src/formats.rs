//! The output formats: their type, and their registry. Each is an option of every command that makes records.

use model::Record;
use thiserror::Error;

use crate::assemble::{page, text};
use crate::document::Medium;
use crate::read::Loaded;
use crate::show::kind_of;
use crate::study::ViewOf;
use crate::{json, render};

/// Every format, in the order of the help text.
pub const FORMATS: &[Format] = &[json::FORMAT, CSV, MARKDOWN, HTML];

const CSV: Format = Format {
    name: "CSV",
    flag: "csv",
    summary: "one row per case, stage or result",
    render: |records, _| kind_of(only("CSV", records)?).data().csv(),
};

const MARKDOWN: Format = Format {
    name: "Markdown",
    flag: "md",
    summary: "the tables for an issue or a README",
    render: |records, view_of| {
        let text = |loaded: &Loaded| {
            let several = records.len() > 1;
            let title = several.then(|| format!("## {}\n\n", render::escaped(&loaded.name)));
            title.unwrap_or_default() + &text(&loaded.record, Medium::Markdown, view_of).markdown()
        };
        Ok(records.iter().map(text).collect::<Vec<String>>().join("\n"))
    },
};

const HTML: Format = Format {
    name: "HTML",
    flag: "html",
    summary: "one page with charts, for a browser",
    render: |records, view_of| Ok(page(records, view_of).html()),
};

/// Why records could not be put into a format.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The JSON writer refused it.
    #[error("the record cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The CSV writer refused it.
    #[error("the record cannot be written as CSV: {0}")]
    Csv(String),
    /// The format can hold only one record.
    #[error("{format} holds one record, and there are {count}: give one at a time, or use --html")]
    OneRecord {
        /// The format.
        format: &'static str,
        /// How many records there are.
        count: usize,
    },
}

/// One way of writing records.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name in sentences.
    pub name: &'static str,
    /// The option that requests it, without the dashes.
    pub flag: &'static str,
    /// What is in it, for the help text.
    pub summary: &'static str,
    /// Turns summarised records into text that ends with a newline. `ViewOf` makes the view of a study.
    pub render: fn(&[Loaded], ViewOf) -> Result<String, FormatError>,
}

/// The only record, for a format that can hold one.
pub(crate) fn only<'a>(format: &'static str, records: &'a [Loaded]) -> Result<&'a Record, FormatError> {
    match records {
        [one] => Ok(&one.record),
        several => Err(FormatError::OneRecord { format, count: several.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_formats_share_an_option() {
        for (index, format) in FORMATS.iter().enumerate() {
            assert!(FORMATS[..index].iter().all(|other| other.flag != format.flag), "--{}", format.flag);
        }
    }
}
