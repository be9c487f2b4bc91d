//! The JSON that github-action-benchmark reads as `customSmallerIsBetter` (its README, "Custom benchmarks"): figures of the new
//! side. In one file smaller values are always better, so the figure of streams is the time per block.

use model::{CaseChange, DiffFigure, DiffRecord};
use serde::Serialize;

use super::{SPEC, name, time_ns, verdict};
use crate::formats::FormatError;
use crate::json::to_text;
use crate::numbers::{self, fixed};
use crate::words::count;

/// One figure, as the action reads it.
#[derive(Debug, Serialize)]
struct ActionFigure {
    name: String,
    unit: &'static str,
    value: f64,
    range: String,
    extra: String,
}

/// The new side as text, without floors, ceilings and cases without figures.
///
/// # Errors
/// A figure that is no number in JSON.
pub fn text(record: &DiffRecord) -> Result<String, FormatError> {
    let judged = record.changes.iter().filter(|change| !change.control);
    to_text(&judged.filter_map(|change| entry(record, change)).collect::<Vec<ActionFigure>>())
}

fn entry(record: &DiffRecord, change: &CaseChange) -> Option<ActionFigure> {
    let found = stats::Estimate::of(&change.new)?;
    let fields = change.case.iter().filter(|(name, _)| name.as_str() != SPEC);
    let fields: Vec<String> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    let against = change
        .ratio
        .map(|ratio| format!("{} against {}: {}", change.figure, record.old.name, numbers::change(ratio)));
    let hosts = (!record.hosts_differ.is_empty())
        .then(|| format!("different hosts or settings: {}", record.hosts_differ.join("; ")));
    let trials = format!("{}, {}", verdict(record, change), count(change.new.len(), "trial"));
    let extra: Vec<String> = [Some(trials), against, hosts].into_iter().flatten().collect();
    let spread = found.relative_half_width().map(|share| format!("± {} %", fixed(share * 100.0, 1)));
    Some(ActionFigure {
        name: format!("{} {} ({})", name(change), change.figure, fields.join(" ")),
        unit: if change.figure == DiffFigure::Throughput { "ns/block" } else { "ns" },
        value: time_ns(change, found.median).filter(|value| value.is_finite())?,
        range: spread.unwrap_or_default(),
        extra: extra.join("\n"),
    })
}
