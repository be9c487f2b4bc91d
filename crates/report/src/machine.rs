//! What the figures of a machine mean for programs that are coupled on it: a table that a newcomer understands, and the same for
//! programs.

use model::MachineFigureKind::{
    Clock, ClockStep, CopyCached, CopyMemory, PageFault, SystemCall, WakeUpCross, WakeUpSame,
};
use model::{MachineFigure, MachineFigureKind, MachineUnit};
use serde::Serialize;
use stats::Estimate;

use crate::numbers;
use crate::table::{Column, Fit, Table};

/// A block of the default size, in bytes.
const BLOCK_BYTES: f64 = 65536.0;
/// Pages of 4 KiB in 1 MiB.
const PAGES_IN_MIB: f64 = 256.0;
/// From here on one figure is worth calling larger than another.
const WORTH_TELLING: f64 = 1.5;

/// A figure among the findings of the doctor, with the same fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredFinding {
    /// Which figure.
    pub name: &'static str,
    /// `measured`, or `unknown` where it could not be.
    pub state: &'static str,
    /// The figure as a sentence without a full stop, or why there is none.
    pub what: String,
    /// What it means.
    pub why: String,
    /// Always null: a figure is no fault.
    pub remedy: Option<String>,
    /// The figure itself.
    pub figure: Option<MeasuredFigure>,
}

/// A median and how far to trust it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredFigure {
    /// What it is measured in.
    pub unit: MachineUnit,
    /// The median of the repeats.
    pub median: f64,
    /// Lower end of its 95 % interval; of fewer than six repeats the smallest.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often it was measured.
    pub repeats: usize,
}

/// The figures as findings.
pub fn measured_findings(figures: &[MachineFigure]) -> Vec<MeasuredFinding> {
    let finding = |figure: &MachineFigure| {
        let estimate = Estimate::of(&figure.values);
        let unit = figure.kind.unit();
        let found = estimate.map(|of| MeasuredFigure {
            unit,
            median: of.median,
            low: of.low,
            high: of.high,
            repeats: of.count,
        });
        let what = match found {
            Some(found) => format!(
                "{}: {} ({} to {} in {} repeats)",
                label(figure.kind),
                text(unit, found.median),
                text(unit, found.low),
                text(unit, found.high),
                found.repeats
            ),
            None => format!("{}: {}", label(figure.kind), why_not(figure)),
        };
        MeasuredFinding {
            name: figure.kind.word(),
            state: if found.is_some() { "measured" } else { "unknown" },
            what,
            why: meaning(figure.kind, found.map(|found| found.median)),
            remedy: None,
            figure: found,
        }
    };
    figures.iter().map(finding).collect()
}

/// The figures as a table, with what follows from them below it.
pub fn machine_table(figures: &[MachineFigure]) -> Table {
    let row = |figure: &MachineFigure| {
        let estimate = Estimate::of(&figure.values);
        let spread = estimate.and_then(|of| of.relative_half_width());
        vec![
            label(figure.kind).to_owned(),
            estimate
                .map_or_else(|| crate::table::ABSENT.to_owned(), |of| text(figure.kind.unit(), of.median)),
            spread.map(|share| format!("±{}", numbers::percent(share))).unwrap_or_default(),
            match estimate {
                Some(of) => meaning(figure.kind, Some(of.median)),
                None => why_not(figure),
            },
        ]
    };
    let columns = [
        Column::left("this machine"),
        Column::right("median"),
        Column::right("±95 %").drop(1),
        Column::left("what it means").fit(Fit::Wrap),
    ];
    let mut table = Table::new("", columns, figures.iter().map(row));
    table.notes = consequences(figures);
    table
}

fn text(unit: MachineUnit, value: f64) -> String {
    match unit {
        MachineUnit::Ns => numbers::time(value),
        MachineUnit::BytesPerS => numbers::throughput(value),
    }
}

fn why_not(figure: &MachineFigure) -> String {
    figure.missing.clone().unwrap_or_else(|| "there was no time for it".to_owned())
}

fn label(kind: MachineFigureKind) -> &'static str {
    match kind {
        SystemCall => "a system call",
        Clock => "a look at the clock",
        ClockStep => "a step of the clock",
        WakeUpSame => "waking an end, same CPU",
        WakeUpCross => "waking an end, other CPU",
        CopyCached => "copying in the cache",
        CopyMemory => "copying beyond the cache",
        PageFault => "first touch of a page",
    }
}

/// What a figure means, with the figure where there is one.
fn meaning(kind: MachineFigureKind, median: Option<f64>) -> String {
    let times =
        |factor: f64| median.map_or(String::new(), |median| format!(": {}", numbers::time(factor * median)));
    match kind {
        SystemCall => format!("a message takes one to send and one to receive, at least{}", times(2.0)),
        Clock => "each timed round trip has one in it".to_owned(),
        ClockStep => "no shorter difference between two times can be seen".to_owned(),
        WakeUpSame => format!("a round trip of ends that sleep is two of these, at least{}", times(2.0)),
        WakeUpCross => {
            format!("the same on two CPUs{}; ends that spin save it, and keep both CPUs busy", times(2.0))
        }
        CopyCached => {
            let block = median.filter(|rate| *rate > 0.0).map(|rate| 2.0 * BLOCK_BYTES / rate * 1e9);
            let cost = block.map_or(String::new(), |ns| format!(": {} for 64 KiB", numbers::time(ns)));
            format!("pipes and sockets copy every byte twice{cost}")
        }
        CopyMemory => "the same for buffers that do not fit in the cache".to_owned(),
        PageFault => format!(
            "1 MiB of fresh memory has 256 of them{}; buffers that are used again have none",
            times(PAGES_IN_MIB)
        ),
    }
}

/// What follows from several figures together.
fn consequences(figures: &[MachineFigure]) -> Vec<String> {
    let median = |kind: MachineFigureKind| {
        let figure = figures.iter().find(|figure| figure.kind == kind)?;
        Estimate::of(&figure.values).map(|of| of.median).filter(|median| *median > 0.0)
    };
    let (same, cross) = (median(WakeUpSame), median(WakeUpCross));
    let mut lines = Vec::new();
    if let Some((same, cross)) = same.zip(cross).filter(|(same, cross)| *cross > WORTH_TELLING * same) {
        lines.push(format!(
            "Ends that sleep answer {} times as fast on one CPU as on two: for questions and answers, let them share one.",
            numbers::ratio(cross / same)
        ));
    }
    if let Some((wake_ns, rate)) = cross.or(same).zip(median(CopyCached)) {
        // Twice copied, a byte takes two over the rate.
        let bytes = (wake_ns * rate / 2e9).max(1.0).log2().floor().exp2();
        lines.push(format!(
            "In the time of one wake-up {} and more could be sent: smaller blocks are bound by waking, larger ones by copying.",
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
        assert!(text.contains("two of these, at least: 5.00 µs"), "{text}");
        assert!(text.contains("the same on two CPUs: 40.0 µs"), "{text}");
        assert!(text.contains("copy every byte twice: 3.28 µs for 64 KiB"), "{text}");
        assert!(
            table.notes[0].starts_with("Ends that sleep answer 8.0 times as fast on one CPU"),
            "{:?}",
            table.notes
        );
        assert!(table.notes[1].contains("256 KiB and more could be sent"), "{:?}", table.notes);
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
