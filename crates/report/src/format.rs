//! The registry of output formats: options and help of `bench` come from here.

use model::BenchRecord;
use thiserror::Error;

/// Why a record could not be put into a format.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The JSON writer refused it.
    #[error("the record cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The CSV writer refused it.
    #[error("the record cannot be written as CSV: {0}")]
    Csv(String),
}

/// One way of writing a record.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// What people call it.
    pub name: &'static str,
    /// The option that asks for it, without the dashes.
    pub flag: &'static str,
    /// What is in it, for the help text.
    pub summary: &'static str,
    /// Turns a summarised record into text that ends with a newline.
    pub render: fn(&BenchRecord) -> Result<String, FormatError>,
}

/// Every format, in the order of the help text.
pub const FORMATS: &[Format] =
    &[crate::json::FORMAT, crate::csv::FORMAT, crate::markdown::FORMAT, crate::page::FORMAT];

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
