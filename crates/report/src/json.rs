//! JSON: the record itself, one object, raw samples and all (docs/RECORD.md).

use model::BenchRecord;

use crate::format::{Format, FormatError};

/// The registry entry.
pub const FORMAT: Format =
    Format { name: "JSON", flag: "json", summary: "the whole record with its raw samples", render };

fn render(record: &BenchRecord) -> Result<String, FormatError> {
    let mut text = serde_json::to_string_pretty(record)?;
    text.push('\n');
    Ok(text)
}
