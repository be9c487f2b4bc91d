//! The JSON that github-action-benchmark reads as `customSmallerIsBetter` (its README, "Custom benchmarks"): figures of the new
//! side. One file has one direction, so that streams are told as time per block.

use model::{CaseChange, DiffFigure, DiffRecord};
use serde::Serialize;

use super::{SPEC, moved};
use crate::format::FormatError;
use crate::json::to_text;

/// One figure, as the action has it.
#[derive(Debug, Serialize)]
struct ActionFigure {
    name: String,
    unit: &'static str,
    value: f64,
    range: String,
    extra: String,
}

/// The new side as text; floors and ceilings, and cases without figures, are left out.
///
/// # Errors
/// A figure that JSON has no number for.
pub fn text(record: &DiffRecord) -> Result<String, FormatError> {
    let judged = record.changes.iter().filter(|change| !change.control);
    to_text(&judged.filter_map(|change| entry(record, change)).collect::<Vec<ActionFigure>>())
}

fn entry(record: &DiffRecord, change: &CaseChange) -> Option<ActionFigure> {
    let found = stats::Estimate::of(&change.new)?;
    let block = change.case.get("block").and_then(|block| model::parse_size(block).ok());
    let (value, unit) = match change.figure {
        DiffFigure::Throughput => (block?.0 as f64 / found.median * 1e9, "ns/block"),
        DiffFigure::RoundTripP50 | DiffFigure::RoundTripP99 => (found.median, "ns"),
        DiffFigure::WallTime => (found.median * 1e9, "ns"),
    };
    let fields = change.case.iter().filter(|(name, _)| name.as_str() != SPEC);
    let fields: Vec<String> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    let spec = change.case.get(SPEC).map(String::as_str).unwrap_or_default();
    let mut extra = vec![format!("{}, {}", change.kind, crate::words::count(change.new.len(), "trial"))];
    extra.extend(
        change.ratio.map(|ratio| format!("{} against {}: {}", change.figure, record.old.name, moved(ratio))),
    );
    extra.extend(
        (!record.hosts_differ.is_empty())
            .then(|| format!("different hosts: {}", record.hosts_differ.join("; "))),
    );
    let spread =
        found.relative_half_width().map(|share| format!("± {} %", crate::numbers::fixed(share * 100.0, 1)));
    Some(ActionFigure {
        name: format!("{spec} {} ({})", change.figure, fields.join(" ")),
        unit,
        value: Some(value).filter(|value| value.is_finite())?,
        range: spread.unwrap_or_default(),
        extra: extra.join("\n"),
    })
}
