//! The type of an output format.

use thiserror::Error;

use crate::read::Loaded;
use crate::study::ViewOf;
use model::Record;

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
