//! Go's benchmark format, a line for each sample, for programs such as benchstat
//! (https://go.dev/design/14313-benchmark-format).

use model::{CaseChange, DiffFigure, DiffRecord};

use super::{SPEC, WORKLOAD, name, time_ns};

model::words! {
    /// Which sides are written.
    pub enum Sides {
        /// Both, distinguished by the key `side`: `benchstat -col side FILE`.
        Both = "both",
        /// The old one.
        Old = "old",
        /// The new one.
        New = "new",
    }
}

/// The samples of the sides as text.
pub fn text(record: &DiffRecord, sides: Sides) -> String {
    let mut text = format!("goos: linux\ngoarch: {}\n", word(&record.head.host.architecture));
    if record.hosts_differ.is_empty() {
        text.push_str(&format!("cpu: {}\n", line(&record.head.host.cpu_model)));
    } else {
        text.push_str(&format!("hosts: differ ({})\n", line(&record.hosts_differ.join("; "))));
    }
    for side in ["old", "new"] {
        if matches!((side, sides), ("old", Sides::New) | ("new", Sides::Old)) {
            continue;
        }
        // benchstat does not compare two files of which only one has a key.
        if sides == Sides::Both {
            text.push_str(&format!("side: {side}\n"));
        }
        for change in &record.changes {
            let benchmark = benchmark(change);
            for figure in if side == "old" { &change.old } else { &change.new } {
                text.push_str(&format!("{benchmark} 1 {}\n", measured(change, *figure)));
            }
        }
    }
    text
}

/// `BenchmarkStream/spec=pipe/block=64KiB…`: every field that identifies the case, also for floors and ceilings.
fn benchmark(change: &CaseChange) -> String {
    let what = match change.figure {
        DiffFigure::Throughput => "Stream",
        DiffFigure::RoundTripP50 | DiffFigure::RoundTripP99 => "RoundTrip",
        DiffFigure::WallTime => "Command",
    };
    let fields = change.case.iter().filter(|(name, _)| !matches!(name.as_str(), SPEC | WORKLOAD));
    let path: String = fields.map(|(name, value)| format!("/{}={}", word(name), word(value))).collect();
    format!("Benchmark{what}/spec={}{path}", word(name(change)))
}

/// The figure in a unit for which benchstat knows whether larger or smaller is better.
fn measured(change: &CaseChange, figure: f64) -> String {
    let time = time_ns(change, figure).map(|ns| format!("{ns} ns/op")).unwrap_or_default();
    match change.figure {
        DiffFigure::Throughput => format!("{time} {} MB/s", figure / 1e6).trim_start().to_owned(),
        DiffFigure::RoundTripP99 => format!("{figure} p99-ns/op"),
        DiffFigure::RoundTripP50 | DiffFigure::WallTime => time,
    }
}

/// A part of a benchmark's name. Blanks and slashes, which would end it, are replaced.
fn word(text: &str) -> String {
    let plain = |character: char| match character {
        '/' => '|',
        character if character.is_whitespace() || character.is_control() => '_',
        character => character,
    };
    text.chars().map(plain).collect()
}

/// The value of a key in one line.
fn line(text: &str) -> String {
    model::visible(text).replace('\n', " ")
}
