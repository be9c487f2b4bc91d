//! What the figures of a machine mean for programs that communicate on it: a table for people, and the same as JSON.

use model::MachineFigureKind::{
    Clock, ClockStep, CopyCached, CopyMemory, PageFault, SystemCall, WakeUpCross, WakeUpSame,
};
use model::{MachineFigure, MachineFigureKind, MachineUnit};
use serde::Serialize;
use stats::Estimate;

use crate::numbers;
use crate::sheet::{Sheet, col};
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::Value;

/// A block of the default size, in bytes.
const BLOCK_BYTES: f64 = 65536.0;
/// Pages of 4 KiB in 1 MiB.
const PAGES_IN_MIB: f64 = 256.0;
/// Smallest ratio of two wake-ups that is reported.
const RATIO_MIN: f64 = 1.5;

/// A figure as a finding of the doctor, with the same fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredFinding {
    /// The name of the figure.
    pub name: &'static str,
    /// `measured`, or `unknown` if it could not be measured.
    pub state: &'static str,
    /// The figure in words, or why there is none.
    pub what: String,
    /// What it means.
    pub why: String,
    /// Always null: a figure needs no remedy.
    pub remedy: Option<String>,
    /// The figure itself.
    pub figure: Option<MeasuredFigure>,
}

/// A median and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredFigure {
    /// Its unit.
    pub unit: MachineUnit,
    /// The median of the repeats.
    pub median: f64,
    /// Lower end of its 95 % interval; of fewer than six repeats the smallest value.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The number of measurements.
    pub repeats: usize,
}

/// The figures as findings.
pub fn measured_findings(figures: &[MachineFigure]) -> Vec<MeasuredFinding> {
    let finding = |figure: &MachineFigure| {
        let unit = figure.kind.unit();
        let found = Estimate::of(&figure.values).map(|found| {
            let Estimate { median, low, high, count: repeats, .. } = found;
            MeasuredFigure { unit, median, low, high, repeats }
        });
        let what = match found {
            Some(MeasuredFigure { median, low, high, repeats, .. }) => {
                let [median, low, high] = [median, low, high].map(|value| self::unit(unit).text(value));
                format!("{median} ({low} to {high} in {repeats} repeats)")
            }
            None => why_not(figure),
        };
        MeasuredFinding {
            name: figure.kind.word(),
            state: if found.is_some() { "measured" } else { "unknown" },
            what: format!("{}: {what}", label(figure.kind)),
            why: meaning(figure.kind, found.map(|found| found.median)),
            remedy: None,
            figure: found,
        }
    };
    figures.iter().map(finding).collect()
}

/// The figures as a table, and conclusions from several figures below it.
pub fn machine_table(figures: &[MachineFigure]) -> Table {
    let rows: Vec<(&MachineFigure, Option<Estimate>)> =
        figures.iter().map(|figure| (figure, Estimate::of(&figure.values))).collect();
    let mut sheet = Sheet::new(&rows);
    sheet.add("this machine", |(figure, _)| Some(label(figure.kind).into()));
    sheet.add("median", |(figure, found)| Some(unit(figure.kind.unit()).of(found.as_ref()?.median)));
    sheet.add(col("±95 %").drop(1), |(_, found)| {
        let share = Unit::Share.of(found.as_ref()?.relative_half_width()?);
        Some(Value::EMPTY.and("±", share))
    });
    sheet.add(col("what it means").left().fit(Fit::Wrap), |(figure, found)| match found {
        Some(found) => Some(meaning(figure.kind, Some(found.median)).into()),
        None => Some(why_not(figure).into()),
    });
    Table { notes: consequences(figures), ..sheet.table() }
}

fn unit(unit: MachineUnit) -> Unit {
    match unit {
        MachineUnit::Ns => Unit::Ns,
        MachineUnit::BytesPerS => Unit::BytesPerS,
    }
}

fn why_not(figure: &MachineFigure) -> String {
    figure.missing.clone().unwrap_or_else(|| "there was no time for it".to_owned())
}

fn label(kind: MachineFigureKind) -> &'static str {
    explained(kind).0
}

/// What a figure means, with its cost if it is known.
fn meaning(kind: MachineFigureKind, median: Option<f64>) -> String {
    let (_, meaning, times) = explained(kind);
    let cost = median.filter(|median| *median > 0.0).map(|median| match kind.unit() {
        MachineUnit::Ns => format!(": {}", numbers::time(times * median)),
        MachineUnit::BytesPerS => {
            format!(": {} for 64 KiB", numbers::time(times * BLOCK_BYTES / median * 1e9))
        }
    });
    meaning.replace("{}", &cost.unwrap_or_default())
}

/// The name of a figure; what it means, with `{}` for a cost; and that cost as a multiple of the figure, or of the time for one block.
fn explained(kind: MachineFigureKind) -> (&'static str, &'static str, f64) {
    match kind {
        SystemCall => ("a system call", "a message takes at least one to send and one to receive{}", 2.0),
        Clock => ("reading the clock", "the time of each round trip includes one", 1.0),
        ClockStep => ("clock resolution", "a shorter difference between two times cannot be measured", 1.0),
        WakeUpSame => {
            ("waking an end, same CPU", "a round trip of ends that sleep is at least two of these{}", 2.0)
        }
        WakeUpCross => (
            "waking an end, other CPU",
            "the same on two CPUs{}; ends that spin avoid it, and keep both CPUs busy",
            2.0,
        ),
        CopyCached => ("copying in the cache", "pipes and sockets copy every byte twice{}", 2.0),
        CopyMemory => ("copying beyond the cache", "the same for buffers that do not fit in the cache", 2.0),
        PageFault => (
            "first touch of a page",
            "1 MiB of new memory has 256 of them{}; buffers that are used again have none",
            PAGES_IN_MIB,
        ),
    }
}

/// Conclusions from several figures.
fn consequences(figures: &[MachineFigure]) -> Vec<String> {
    let median = |kind: MachineFigureKind| {
        let figure = figures.iter().find(|figure| figure.kind == kind)?;
        Estimate::of(&figure.values).map(|of| of.median).filter(|median| *median > 0.0)
    };
    let (same, cross) = (median(WakeUpSame), median(WakeUpCross));
    let mut lines = Vec::new();
    if let Some((same, cross)) = same.zip(cross).filter(|(same, cross)| *cross > RATIO_MIN * same) {
        lines.push(format!(
            "Ends that sleep answer {} times as fast on one CPU as on two: for requests and replies, let them share one.",
            numbers::ratio(cross / same)
        ));
    }
    if let Some((wake_ns, rate)) = cross.or(same).zip(median(CopyCached)) {
        // A byte is copied twice.
        let bytes = (wake_ns * rate / 2e9).max(1.0).log2().floor().exp2();
        lines.push(format!(
            "In the time of one wake-up {} or more could be sent: smaller blocks are limited by waking, larger ones by copying.",
            numbers::size(bytes as u64)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Style;
    use proptest::prelude::*;

    fn figures(value: impl Fn(MachineFigureKind) -> Vec<f64>) -> Vec<MachineFigure> {
        let figure =
            |kind: &MachineFigureKind| MachineFigure { kind: *kind, values: value(*kind), missing: None };
        MachineFigureKind::ALL.iter().map(figure).collect()
    }

    #[test]
    fn a_round_trip_is_two_wake_ups() {
        let of = |kind| match kind {
            WakeUpCross => vec![20_000.0; 9],
            WakeUpSame => vec![2500.0; 9],
            CopyCached => vec![40e9; 9],
            _ => vec![100.0; 9],
        };
        let table = machine_table(&figures(of));
        let text = table.terminal(&Style { width: 160, ..Style::default() });
        assert!(text.contains("at least two of these: 5.00 µs"), "{text}");
        assert!(text.contains("the same on two CPUs: 40.0 µs"), "{text}");
        assert!(text.contains("copy every byte twice: 3.28 µs for 64 KiB"), "{text}");
        assert!(
            table.notes[0].starts_with("Ends that sleep answer 8.0 times as fast on one CPU"),
            "{:?}",
            table.notes
        );
        assert!(table.notes[1].contains("256 KiB or more could be sent"), "{:?}", table.notes);
        assert!(text.lines().count() + table.notes.len() <= 11, "ten lines below a heading: {text}");
    }

    #[test]
    fn one_cpu_says_so() {
        let mut some = figures(|kind| if kind == WakeUpCross { Vec::new() } else { vec![100.0; 9] });
        let cross = some.iter_mut().find(|figure| figure.kind == WakeUpCross).expect("listed");
        cross.missing = Some("this process may use only one CPU (0)".to_owned());
        let text = machine_table(&some).terminal(&Style { width: 160, ..Style::default() });
        assert!(text.contains("– ") && text.contains("only one CPU (0)"), "{text}");
        let entry = measured_findings(&some).into_iter().find(|entry| entry.name == "wake-up-other-cpu");
        let entry = entry.expect("listed");
        assert_eq!((entry.state, entry.figure), ("unknown", None));
    }

    proptest! {
        #[test]
        fn any_figures_have_words(values in prop::collection::vec(0f64..1e18, 0..12)) {
            let figures = figures(|_| values.clone());
            let text = format!("{}{:?}", machine_table(&figures).markdown(), machine_table(&figures).notes);
            prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
            prop_assert_eq!(measured_findings(&figures).len(), MachineFigureKind::ALL.len());
        }
    }
}
