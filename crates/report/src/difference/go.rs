//! Go's benchmark format, a line for each sample, for benchstat and its kin
//! (https://go.dev/design/14313-benchmark-format).

use model::{CaseChange, DiffFigure, DiffRecord};

use super::{SPEC, WORKLOAD};

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
    for (side, wanted) in [("old", sides != Sides::New), ("new", sides != Sides::Old)] {
        if !wanted {
            continue;
        }
        // A key that only one of two files has would keep benchstat from comparing them.
        if sides == Sides::Both {
            text.push_str(&format!("side: {side}\n"));
        }
        for change in &record.changes {
            let figures = if side == "old" { &change.old } else { &change.new };
            let benchmark = benchmark(change);
            for figure in figures {
                text.push_str(&format!("{benchmark} 1 {}\n", measured(change, *figure)));
            }
        }
    }
    text
}

/// `BenchmarkStream/spec=pipe/block=64KiB…`: every field that decides what the case is, floors and ceilings too.
fn benchmark(change: &CaseChange) -> String {
    let what = match change.figure {
        DiffFigure::Throughput => "Stream",
        DiffFigure::RoundTripP50 | DiffFigure::RoundTripP99 => "RoundTrip",
        DiffFigure::WallTime => "Command",
    };
    let fields = change.case.iter().filter(|(name, _)| !matches!(name.as_str(), SPEC | WORKLOAD));
    let fields: String = fields.map(|(name, value)| format!("/{}={}", word(name), word(value))).collect();
    let spec = change.case.get(SPEC).map(String::as_str).unwrap_or_default();
    format!("Benchmark{what}/spec={}{fields}", word(spec))
}

/// The figure in a unit that benchstat knows the better direction of.
fn measured(change: &CaseChange, figure: f64) -> String {
    match change.figure {
        DiffFigure::Throughput => {
            let block: Option<f64> = change
                .case
                .get("block")
                .and_then(|block| model::parse_size(block).ok())
                .map(|size| size.0 as f64);
            let per_block = block.map(|block| format!("{} ns/op ", block / figure * 1e9)).unwrap_or_default();
            format!("{per_block}{} MB/s", figure / 1e6)
        }
        DiffFigure::RoundTripP50 => format!("{figure} ns/op"),
        DiffFigure::RoundTripP99 => format!("{figure} p99-ns/op"),
        DiffFigure::WallTime => format!("{} ns/op", figure * 1e9),
    }
}

/// A word of a name: blanks and slashes would end it.
fn word(text: &str) -> String {
    let plain = |character: char| match character {
        '/' => '|',
        character if character.is_whitespace() || character.is_control() => '_',
        character => character,
    };
    text.chars().map(plain).collect()
}

/// One line of a key's value.
fn line(text: &str) -> String {
    model::visible(text).replace('\n', " ")
}
