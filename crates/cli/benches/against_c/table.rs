//! The table: one line per row, and what is to be said about the machine. Knows figures, runs nothing.

use crate::reference::OPTIMISATION;
use crate::rounds::{median, median_interval, range};

/// Spread of the judged figures, as a share of their median, above which a remark is due.
const NOISY_SPREAD: f64 = 0.10;

/// What the figures of a row are.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    BytesPerSecond,
    Bytes,
    Nanoseconds,
    Seconds,
    Percent,
    /// A number, or a share.
    Count,
}

/// What a target asks of the judged figure: of the ratio where there is a reference, else of ours.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    /// Shown for what it tells, not judged.
    Nothing,
}

/// How a row came out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    NotJudged,
}

/// One line of the table: the figures of every round.
#[derive(Clone)]
pub(crate) struct BenchRow {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) ours: Vec<f64>,
    /// In the order of `ours`, so that figures of one round have the same index; empty if nothing is compared.
    pub(crate) reference: Vec<f64>,
    pub(crate) wanted: Wanted,
}

impl BenchRow {
    /// A row of ours and a reference, in turns.
    pub(crate) fn beside(
        name: impl Into<String>,
        unit: Unit,
        [ours, reference]: [Vec<f64>; 2],
        wanted: Wanted,
    ) -> Self {
        Self { name: name.into(), unit, ours, reference, wanted }
    }

    /// A row that is compared with nothing.
    pub(crate) fn alone(name: impl Into<String>, unit: Unit, ours: Vec<f64>, wanted: Wanted) -> Self {
        Self::beside(name, unit, [ours, Vec::new()], wanted)
    }

    /// The figures that are judged: ratios pair by pair, or ours alone.
    fn judged(&self) -> Vec<f64> {
        if self.reference.is_empty() {
            return self.ours.clone();
        }
        self.ours.iter().zip(&self.reference).map(|(ours, reference)| ours / reference).collect()
    }

    /// How the median compares with what is wanted. A figure that is no number misses.
    pub(crate) fn verdict(&self) -> Verdict {
        let median = median(&self.judged());
        let met = match self.wanted {
            Wanted::AtLeast(least) => median >= least,
            Wanted::AtMost(most) => median <= most,
            Wanted::Nothing => return Verdict::NotJudged,
        };
        if met { Verdict::Met } else { Verdict::Missed }
    }

    /// Whether another run might have the other verdict: the 95 % interval of the median reaches to both sides.
    pub(crate) fn is_unsure(&self) -> bool {
        let (low, high) = median_interval(&self.judged());
        match self.wanted {
            Wanted::AtLeast(wanted) | Wanted::AtMost(wanted) => low < wanted && wanted < high,
            Wanted::Nothing => false,
        }
    }

    /// A judged figure as it is printed: a ratio without a unit, any other figure with its unit.
    fn judged_text(&self, figure: f64) -> String {
        if self.reference.is_empty() { text(self.unit, figure) } else { format!("{figure:.3}") }
    }
}

/// The lines above the table.
pub(crate) fn heading(compiler: &str, seed: u64) -> String {
    let optimisation = OPTIMISATION.join(" ");
    format!(
        "hosepipe against C ({compiler}, {optimisation}) · medians over rounds, interleaved by seed {seed} · ratio pair by pair\n\n{}\n",
        columns("target", "ours", "reference", "ratio (median, min..max)", "wanted", "verdict"),
    )
}

/// The line of a row.
pub(crate) fn line(row: &BenchRow) -> String {
    let judged = row.judged();
    let (low, high) = range(&judged);
    let figures = match judged.len() {
        1 => row.judged_text(high),
        _ => format!(
            "{} ({}..{})",
            row.judged_text(median(&judged)),
            row.judged_text(low),
            row.judged_text(high)
        ),
    };
    let reference = match row.reference.as_slice() {
        [] => "–".to_owned(),
        figures => text(row.unit, median(figures)),
    };
    let wanted = match row.wanted {
        Wanted::AtLeast(least) => format!("≥ {}", row.judged_text(least)),
        Wanted::AtMost(most) => format!("≤ {}", row.judged_text(most)),
        Wanted::Nothing => "–".to_owned(),
    };
    let verdict = match (row.verdict(), row.is_unsure()) {
        (Verdict::Met, false) => "met",
        (Verdict::Met, true) => "met, unsure",
        (Verdict::Missed, false) => "MISSED",
        (Verdict::Missed, true) => "MISSED, unsure",
        (Verdict::NotJudged, _) => "–",
    };
    columns(&row.name, &text(row.unit, median(&row.ours)), &reference, &figures, &wanted, verdict)
}

/// The line of a target that has no figures, with the reason.
pub(crate) fn line_without_figures(name: &str, skipped: bool, reason: &anyhow::Error) -> String {
    let how = if skipped { "skipped" } else { "FAILED" };
    format!(" {name:<27} {how}: {reason:#}")
}

/// What a reader should know before believing a row; nothing where its figures lie close together.
pub(crate) fn remark(row: &BenchRow) -> Option<String> {
    let judged = row.judged();
    let (low, high) = range(&judged);
    let spread = (high - low) / median(&judged);
    (spread > NOISY_SPREAD).then(|| {
        let rounds = judged.len();
        format!("{}: noisy, {rounds} rounds spread over {:.0} % of their median", row.name, spread * 100.0)
    })
}

/// The lines below the table.
pub(crate) fn remarks(remarks: &[String]) -> String {
    if remarks.is_empty() {
        return String::new();
    }
    let advice = "unsure: the 95 % interval of the median reaches to both sides of what is wanted. More --rounds, and a\n\
                  machine that does nothing else, make it narrower.";
    format!("\n{}\n{advice}\n", remarks.join("\n"))
}

fn columns(target: &str, ours: &str, reference: &str, ratio: &str, wanted: &str, verdict: &str) -> String {
    format!(" {target:<27} {ours:>11} {reference:>11}   {ratio:<32} {wanted:<12} {verdict}")
}

/// A figure with its unit.
fn text(unit: Unit, figure: f64) -> String {
    match unit {
        Unit::BytesPerSecond => format!("{:.2} GB/s", figure / 1e9),
        Unit::Bytes => format!("{:.1} MiB", figure / f64::from(1 << 20)),
        Unit::Nanoseconds if figure >= 1000.0 => format!("{:.2} µs", figure / 1e3),
        Unit::Nanoseconds => format!("{figure:.2} ns"),
        Unit::Percent => format!("{figure:.2} %"),
        Unit::Count => format!("{figure}"),
        Unit::Seconds if figure < 1.0 => format!("{:.2} ms", figure * 1e3),
        Unit::Seconds => format!("{figure:.2} s"),
    }
}
