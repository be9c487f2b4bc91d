//! JSON: the record itself, one object, raw samples and all (docs/RECORD.md).

use serde::Serialize;

use crate::format::{Format, FormatError, only};
use crate::read::AnyRecord;

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "JSON",
    flag: "json",
    summary: "the whole record with its raw samples",
    render: |records, _| match only("JSON", records)? {
        AnyRecord::Bench(record) => to_text(record),
        AnyRecord::Run(record) => to_text(record),
        AnyRecord::Compare(record) => to_text(record),
        AnyRecord::Study(record) => to_text(record),
        AnyRecord::Diff(record) => to_text(record),
        AnyRecord::Boost(record) => to_text(record),
        AnyRecord::Top(record) => to_text(record),
        AnyRecord::Fleet(record) => to_text(record),
    },
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
