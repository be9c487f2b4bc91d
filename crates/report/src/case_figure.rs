//! The figure of a case, for tables and charts.

use model::{CaseRecord, Workload};
use stats::{TrialGroup, TrialsByCpus, figure, round_trips_by_cpus, trials_by_cpus};

use crate::figure::{Cell, Unit};
use crate::interval::plus_minus;
use crate::numbers;
use crate::reason::reason;

/// On one CPU and on two a case has two figures where one is this many times the other.
const MIXTURE_FROM: f64 = 1.25;
/// A figure below this part of a column's unit is shown in its own.
const OWN_UNIT_BELOW: f64 = 0.0995;

/// The figure of a case and the ends of its interval.
pub(crate) fn estimated(case: &CaseRecord) -> Option<[f64; 3]> {
    match case.workload {
        Workload::Stream => {
            case.throughput.as_ref().map(|found| [found.median_bytes_per_s, found.low, found.high])
        }
        Workload::PingPong => {
            let found = case.latency_ns.as_ref()?;
            Some([found.p50, found.p50_low, found.p50_high].map(|ns| ns as f64))
        }
    }
}

/// The same as a bar or a cell of a matrix; without a figure, with the reason.
pub(crate) fn figure_cell(case: &CaseRecord, interrupted: bool) -> Cell {
    Cell::new(estimated(case), case.samples.len(), reason(case, interrupted).unwrap_or_default())
}

/// The unit of a workload's figures.
pub(crate) fn unit_of(workload: Workload) -> Unit {
    match workload {
        Workload::Stream => Unit::BytesPerS,
        Workload::PingPong => Unit::Ns,
    }
}

/// What the figure of a case was on one CPU and on two.
pub(crate) fn seats_of(case: &CaseRecord) -> Option<TrialsByCpus> {
    match case.workload {
        Workload::Stream => trials_by_cpus(case, figure::throughput_bytes_per_s),
        Workload::PingPong => round_trips_by_cpus(case),
    }
}

/// The trials on one CPU and those on two, where the scheduler chose now the one and now the other and the figures differ.
pub(crate) fn mixture(seats: Option<TrialsByCpus>) -> Option<[TrialGroup; 2]> {
    let (one, two) = seats.and_then(|seats| seats.one_cpu.zip(seats.two_cpus))?;
    let times = one.median.max(two.median) / one.median.min(two.median);
    (times > MIXTURE_FROM).then_some([one, two])
}

/// A case's figure with its interval, as a table shows it.
#[derive(Debug, Clone)]
pub(crate) struct FigureText {
    /// The median, or the two figures of a mixture, the smaller one first.
    values: Vec<f64>,
    /// The interval; empty of a mixture and of a single trial.
    spread: String,
    unit: Unit,
}

impl FigureText {
    /// `None` where the case has no figure.
    pub(crate) fn new(case: &CaseRecord, seats: Option<TrialsByCpus>) -> Option<Self> {
        let found = estimated(case)?;
        let unit = unit_of(case.workload);
        Some(match mixture(seats) {
            Some(groups) => {
                let mut values = groups.map(|group| group.median).to_vec();
                values.sort_by(f64::total_cmp);
                Self { values, spread: String::new(), unit }
            }
            None => Self { values: vec![found[0]], spread: plus_minus(found, case.samples.len()), unit },
        })
    }

    fn largest(&self) -> f64 {
        self.values.iter().copied().fold(0.0, f64::max)
    }

    /// "10.5 ±12 %", or "0.60–4.9", in a unit that the column's heading names; a figure that is too small or too large for it has its own.
    pub(crate) fn in_unit(&self, (factor, _): &(f64, String)) -> String {
        if !self.is_readable_in(*factor) || self.largest() >= 1000.0 * factor {
            return self.in_own_unit();
        }
        self.digits(*factor) + &self.spread
    }

    /// "10.5 GB/s ±12 %", "0.60–4.9 GB/s", "830 ns–15 ms".
    pub(crate) fn in_own_unit(&self) -> String {
        let (factor, name) = self.unit.step(self.largest());
        if !self.is_readable_in(factor) {
            let texts = self.values.iter().map(|value| self.unit.text(*value));
            return texts.collect::<Vec<String>>().join("–") + &self.spread;
        }
        format!("{} {name}{}", self.digits(factor), self.spread)
    }

    fn is_readable_in(&self, factor: f64) -> bool {
        self.values.iter().all(|value| *value >= OWN_UNIT_BELOW * factor)
    }

    /// Three digits of one figure, two of each of two.
    fn digits(&self, factor: f64) -> String {
        let digits = if self.values.len() == 1 { 3 } else { 2 };
        let texts = self.values.iter().map(|value| numbers::significant(value / factor, digits));
        texts.collect::<Vec<String>>().join("–")
    }
}

/// The largest unit that a quarter of these figures have.
pub(crate) fn common_unit(texts: impl Iterator<Item = FigureText>) -> Option<(f64, String)> {
    let mut units: Vec<(f64, String)> = texts.map(|text| text.unit.step(text.largest())).collect();
    units.sort_by(|one, other| other.0.total_cmp(&one.0));
    let has_quarter =
        |unit: &&(f64, String)| 4 * units.iter().filter(|one| one == unit).count() >= units.len();
    units.iter().find(has_quarter).cloned()
}

/// The figure of a case with its interval and unit: "10.5 GB/s ±12 %".
pub fn figure_text(case: &CaseRecord) -> Option<String> {
    Some(FigureText::new(case, seats_of(case))?.in_own_unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(values: &[f64]) -> FigureText {
        FigureText { values: values.to_vec(), spread: " ±12 %".to_owned(), unit: Unit::Ns }
    }

    #[test]
    fn a_column_has_the_largest_unit_that_is_not_rare_and_what_is_far_from_it_has_its_own() {
        let (common, rare) = ([830.0, 4_100.0, 52_000.0, 9_996.0], [15e6]);
        let texts = |values: &[f64]| values.iter().map(|value| text(&[*value])).collect::<Vec<FigureText>>();
        let unit = common_unit(texts(&common).into_iter().chain(texts(&rare))).expect("figures");
        assert_eq!(unit, (1e3, "µs".to_owned()));
        let shown = |values: &[f64]| text(values).in_unit(&unit);
        assert_eq!(shown(&[830.0]), "0.830 ±12 %");
        assert_eq!(shown(&[52_000.0]), "52.0 ±12 %");
        assert_eq!(shown(&[30.0]), "30.0 ns ±12 %");
        assert_eq!(shown(&[15e6]), "15.0 ms ±12 %");
        assert_eq!(common_unit(std::iter::empty()), None);
    }

    #[test]
    fn two_figures_are_a_range_in_one_unit_where_it_suits_both() {
        let two = |values: &[f64]| FigureText { spread: String::new(), ..text(values) };
        assert_eq!(two(&[604.0, 4_850.0]).in_own_unit(), "0.60–4.8 µs");
        assert_eq!(two(&[604.0, 4_850.0]).in_unit(&(1e3, "µs".to_owned())), "0.60–4.8");
        assert_eq!(two(&[830.0, 15e6]).in_unit(&(1e3, "µs".to_owned())), "830 ns–15.0 ms");
        assert_eq!(text(&[0.0]).in_own_unit(), "0 ns ±12 %");
        assert!(text(&[f64::INFINITY]).in_own_unit().starts_with('–'));
    }
}
