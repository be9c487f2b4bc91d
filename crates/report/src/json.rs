//! JSON: the record itself, one object, raw samples and all (docs/RECORD.md).

use serde::Serialize;

use crate::formats::{Format, FormatError, only};

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "JSON",
    flag: "json",
    summary: "the whole record with its raw samples",
    render: |records, _| to_text(only("JSON", records)?),
};

/// Any record as text.
///
/// # Errors
/// A figure that JSON has no number for.
pub fn to_text(record: &impl Serialize) -> Result<String, FormatError> {
    let mut text = serde_json::to_string_pretty(record)?;
    text.push('\n');
    Ok(text)
}
