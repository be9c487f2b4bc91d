//! The main figure of a case, for tables and charts: throughput for streams, the median round trip for round trips.

use model::{CaseRecord, Sample, Workload};
use stats::{TrialGroup, TrialsByCpus, figure, paired_ratios, round_trips_by_cpus, trials_by_cpus};

use crate::figure::{Axis, Bar, Cell, Scale, SeriesStyle, Unit};
use crate::interval::plus_minus;
use crate::numbers;
use crate::reason::reason;

/// A case is shown with two figures, one for one CPU and one for two, if they differ by more than this factor.
const MIXTURE_FROM: f64 = 1.25;
/// A figure below this share of a column's unit is shown in its own unit.
const OWN_UNIT_BELOW: f64 = 0.0995;

/// How the figures of a workload are named and shown.
pub(crate) struct Quantity {
    /// The workload, for the start of a sentence.
    pub(crate) subject: &'static str,
    /// The figure.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// The figure of one trial of a case.
    pub(crate) of_sample: fn(&CaseRecord, &Sample) -> Option<f64>,
    scale: Scale,
    /// The words before and after the ratio in a comparison.
    faster: [&'static str; 2],
}

/// The quantity by which cases of a workload are compared.
pub(crate) fn quantity(workload: Workload) -> &'static Quantity {
    match workload {
        Workload::Stream => &Quantity {
            subject: "Streams",
            name: "throughput",
            unit: Unit::BytesPerS,
            of_sample: figure::case_bytes_per_s,
            scale: Scale::Linear,
            faster: ["moves", "much"],
        },
        // Round trips of a spinning ring are hundreds of times shorter than those of a pipe.
        Workload::PingPong => &Quantity {
            subject: "Round trips",
            name: "median round trip",
            unit: Unit::Ns,
            of_sample: |_, sample| figure::round_trip_p50_ns(sample),
            scale: Scale::Log,
            faster: ["answers", "fast"],
        },
    }
}

impl Quantity {
    pub(crate) fn axis(&self) -> Axis {
        Axis::new(self.name, self.unit, self.scale)
    }

    /// "streams", "round trips"
    pub(crate) fn name_of_several(&self) -> String {
        self.subject.to_lowercase()
    }

    /// "moves 3.0 times as much", or "answers 3.0 times as fast".
    pub(crate) fn faster(&self, times: f64) -> String {
        let [verb, end] = self.faster;
        format!("{verb} {} times as {end}", numbers::ratio(times))
    }
}

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

/// Bytes, or round trips, per second. A larger value is better for both workloads.
pub(crate) fn speed(case: &CaseRecord) -> Option<f64> {
    let [median, ..] = estimated(case)?;
    Some(match case.workload {
        Workload::Stream => median,
        Workload::PingPong => 1e9 / median.max(1.0),
    })
}

/// How many times as fast one case is as another of its workload, in each round that has both.
pub(crate) fn paired_speeds(one: &CaseRecord, other: &CaseRecord) -> Vec<f64> {
    let of_sample = |sample: &Sample| (quantity(one.workload).of_sample)(one, sample);
    match one.workload {
        Workload::Stream => paired_ratios(&one.samples, &other.samples, of_sample),
        Workload::PingPong => paired_ratios(&other.samples, &one.samples, of_sample),
    }
}

/// The figure for a bar or a cell of a matrix; without a figure, the reason.
pub(crate) fn figure_cell(case: &CaseRecord, interrupted: bool) -> Cell {
    Cell::new(estimated(case), case.samples.len(), reason(case, interrupted).unwrap_or_default())
}

/// A bar for a case, with a dot for each trial; `note` is a remark on its figure.
pub(crate) fn figure_bar(name: String, case: &CaseRecord, interrupted: bool, note: String) -> Bar {
    let mut cell = figure_cell(case, interrupted);
    if cell.value.is_some() {
        cell.note = note;
    }
    let of_sample = |sample| (quantity(case.workload).of_sample)(case, sample);
    let samples = case.samples.iter().filter_map(of_sample).collect();
    Bar { name, style: SeriesStyle::Measured, cell, samples }
}

/// The figure of a case on one CPU and on two.
pub(crate) fn figures_by_cpus(case: &CaseRecord) -> Option<TrialsByCpus> {
    match case.workload {
        Workload::Stream => trials_by_cpus(case, |sample| figure::case_bytes_per_s(case, sample)),
        Workload::PingPong => round_trips_by_cpus(case),
    }
}

/// The trials on one CPU and those on two, if the scheduler chose both and the figures differ.
pub(crate) fn mixture(by_cpus: Option<TrialsByCpus>) -> Option<[TrialGroup; 2]> {
    let (one, two) = by_cpus.and_then(|by_cpus| by_cpus.one_cpu.zip(by_cpus.two_cpus))?;
    let times = one.median.max(two.median) / one.median.min(two.median);
    (times > MIXTURE_FROM).then_some([one, two])
}

/// A case's figure with its interval, as a table shows it.
#[derive(Debug, Clone)]
pub(crate) struct FigureText {
    /// The median and its interval.
    found: [f64; 3],
    trials: usize,
    /// The two figures of a mixture, the smaller one first: they are shown instead.
    mixture: Option<[f64; 2]>,
    unit: Unit,
}

impl FigureText {
    /// `None` if the case has no figure.
    pub(crate) fn new(case: &CaseRecord, by_cpus: Option<TrialsByCpus>) -> Option<Self> {
        let mixture = mixture(by_cpus).map(|groups| {
            let [one, two] = groups.map(|group| group.median);
            [one.min(two), one.max(two)]
        });
        let unit = quantity(case.workload).unit;
        Some(Self { found: estimated(case)?, trials: case.samples.len(), mixture, unit })
    }

    fn values(&self) -> &[f64] {
        self.mixture.as_ref().map_or(&self.found[..1], |two| two)
    }

    fn largest(&self) -> f64 {
        self.values().iter().copied().fold(0.0, f64::max)
    }

    /// "10.5 ±12 %", or "0.60–4.9", in the unit of the column's heading. A figure that is too small or too large for it is in
    /// its own unit.
    pub(crate) fn in_unit(&self, (factor, _): &(f64, String)) -> String {
        if !self.is_readable_in(*factor) || self.largest() >= 1000.0 * factor {
            return self.in_own_unit();
        }
        self.digits(*factor) + &self.spread(|value| numbers::significant(value / factor, 2))
    }

    /// "10.5 GB/s ±12 %", "0.60–4.9 GB/s", "830 ns–15 ms".
    pub(crate) fn in_own_unit(&self) -> String {
        self.parts().concat()
    }

    /// The figure in its own unit, and its interval: "10.5 GB/s" and " ±12 %".
    fn parts(&self) -> [String; 2] {
        let (factor, name) = self.unit.step(self.largest());
        let figure = if self.is_readable_in(factor) {
            format!("{} {name}", self.digits(factor))
        } else {
            joined(self.values(), |value| self.unit.text(value))
        };
        [figure, self.spread(|value| self.unit.text(value))]
    }

    fn is_readable_in(&self, factor: f64) -> bool {
        self.values().iter().all(|value| *value >= OWN_UNIT_BELOW * factor)
    }

    /// Three digits of one figure, two of each of two.
    fn digits(&self, factor: f64) -> String {
        let digits = if self.mixture.is_none() { 3 } else { 2 };
        joined(self.values(), |value| numbers::significant(value / factor, digits))
    }

    fn spread(&self, text: impl Fn(f64) -> String) -> String {
        if self.mixture.is_some() { String::new() } else { plus_minus(self.found, self.trials, text) }
    }
}

fn joined(values: &[f64], text: impl Fn(f64) -> String) -> String {
    values.iter().map(|value| text(*value)).collect::<Vec<String>>().join("–")
}

/// The largest unit of at least a quarter of these figures.
pub(crate) fn common_unit(texts: impl Iterator<Item = FigureText>) -> Option<(f64, String)> {
    let mut units: Vec<(f64, String)> = texts.map(|text| text.unit.step(text.largest())).collect();
    model::sort_by(&mut units, |one, other| other.0.total_cmp(&one.0));
    let has_quarter =
        |unit: &&(f64, String)| 4 * units.iter().filter(|one| one == unit).count() >= units.len();
    units.iter().find(has_quarter).cloned()
}

/// The figure of a case with its interval and unit: "10.5 GB/s ±12 %".
pub fn figure_text(case: &CaseRecord) -> Option<String> {
    Some(figure_and_interval(case)?.concat())
}

/// The figure of a case with its unit, and its interval: "10.5 GB/s" and " ±12 %".
pub(crate) fn figure_and_interval(case: &CaseRecord) -> Option<[String; 2]> {
    Some(FigureText::new(case, figures_by_cpus(case))?.parts())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> FigureText {
        FigureText { found: [value, 0.9 * value, 1.12 * value], trials: 9, mixture: None, unit: Unit::Ns }
    }

    #[test]
    fn a_column_has_the_largest_unit_that_is_not_rare_and_what_is_far_from_it_has_its_own() {
        let unit = common_unit([830.0, 4_100.0, 52_000.0, 9_996.0, 15e6].into_iter().map(text));
        let unit = unit.expect("figures");
        assert_eq!(unit, (1e3, "µs".to_owned()));
        let shown = |value: f64| text(value).in_unit(&unit);
        assert_eq!(shown(830.0), "0.830 ±12 %");
        assert_eq!(shown(52_000.0), "52.0 ±12 %");
        assert_eq!(shown(30.0), "30.0 ns ±12 %");
        assert_eq!(shown(15e6), "15.0 ms ±12 %");
        assert_eq!(common_unit(std::iter::empty()), None);
    }

    #[test]
    fn two_figures_are_a_range_in_one_unit_where_it_suits_both() {
        let two = |values: [f64; 2]| FigureText { mixture: Some(values), ..text(1.0) };
        assert_eq!(two([604.0, 4_850.0]).in_own_unit(), "0.60–4.8 µs");
        assert_eq!(two([604.0, 4_850.0]).in_unit(&(1e3, "µs".to_owned())), "0.60–4.8");
        assert_eq!(two([830.0, 15e6]).in_unit(&(1e3, "µs".to_owned())), "830 ns–15.0 ms");
        assert!(text(0.0).in_own_unit().starts_with("0 ns"));
        assert!(text(f64::INFINITY).in_own_unit().starts_with('–'));
    }

    /// Expected: an interval that a reader can use. Happened: `52.0 µs ±9275 %`.
    #[test]
    fn an_interval_wider_than_its_median_is_a_range() {
        let wide = FigureText { found: [52_000.0, 4_000.0, 4.875e6], ..text(1.0) };
        assert_eq!(wide.in_own_unit(), "52.0 µs (4.00 µs–4.88 ms)");
        assert_eq!(wide.in_unit(&(1e3, "µs".to_owned())), "52.0 (4.0–4875)");
    }
}
