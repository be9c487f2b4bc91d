//! The registry of output formats: each is an option of every command that makes records.

use crate::assemble::{page, text};
use crate::document::Medium;
use crate::format::Format;
use crate::read::Loaded;
use crate::{csv, json, render};

/// Every format, in the order of the help text.
pub const FORMATS: &[Format] = &[json::FORMAT, csv::FORMAT, MARKDOWN, HTML];

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
