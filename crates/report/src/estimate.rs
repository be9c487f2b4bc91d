//! The main figure of a case, for tables and charts: throughput for streams, the median round trip for round trips.

use model::{CaseRecord, Sample, Workload};
use stats::{TrialGroup, TrialsByCpus, figure, paired_ratios, round_trips_by_cpus, trials_by_cpus};

use crate::chart::{Bar, ChartAxis, ChartCell, Scale, SeriesStyle};
use crate::interval::Estimated;
use crate::numbers;
use crate::reason::reason;
use crate::unit::Unit;
use crate::value::Value;

/// A case is shown with two figures, one for one CPU and one for two, if they differ by more than this factor.
const MIXTURE_FROM: f64 = 1.25;

/// How the figures of a workload are named and shown.
pub(crate) struct Quantity {
    /// The workload, for the start of a sentence.
    pub(crate) subject: &'static str,
    /// The figure.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// The figure of one trial.
    pub(crate) of_sample: fn(&CaseRecord, &Sample) -> Option<f64>,
    scale: Scale,
    /// The verb of a comparison, and its last word: "moves 3.0 times as much".
    faster_verb: &'static str,
    faster_end: &'static str,
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
            faster_verb: "moves",
            faster_end: "much",
        },
        // Round trips of a spinning ring are hundreds of times shorter than those of a pipe.
        Workload::PingPong => &Quantity {
            subject: "Round trips",
            name: "median round trip",
            unit: Unit::Ns,
            of_sample: |_, sample| figure::round_trip_p50_ns(sample),
            scale: Scale::Log,
            faster_verb: "answers",
            faster_end: "fast",
        },
    }
}

impl Quantity {
    pub(crate) fn axis(&self) -> ChartAxis {
        ChartAxis::new(self.name, self.unit, self.scale)
    }

    /// "streams", "round trips"
    pub(crate) fn name_of_several(&self) -> String {
        self.subject.to_lowercase()
    }

    /// "moves 3.0 times as much", or "answers 3.0 times as fast".
    pub(crate) fn faster(&self, times: f64) -> String {
        format!("{} {} times as {}", self.faster_verb, numbers::ratio(times), self.faster_end)
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

/// The median of a number that trials have, with its unit; `None` if none has it.
pub(crate) fn median_value(
    case: &CaseRecord,
    of: impl Fn(&Sample) -> Option<f64>,
    unit: Unit,
) -> Option<Value> {
    figure::median_of(case, of).map(|value| unit.of(value))
}

/// The figure for a bar or a cell of a matrix; without a figure, the reason.
pub(crate) fn estimate_cell(case: &CaseRecord, interrupted: bool) -> ChartCell {
    ChartCell::new(estimated(case), case.samples.len(), reason(case, interrupted).unwrap_or_default())
}

/// A bar for a case, with a dot for each trial; `note` is a remark on its figure.
pub(crate) fn estimate_bar(name: String, case: &CaseRecord, interrupted: bool, note: String) -> Bar {
    let mut cell = estimate_cell(case, interrupted);
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

/// The estimate of a case as tables show it; `None` without one. Of a mixture it has both medians.
pub(crate) fn shown(case: &CaseRecord, by_cpus: Option<TrialsByCpus>) -> Option<Estimated> {
    let modes = mixture(by_cpus).map(|groups| groups.map(|group| group.median));
    let unit = quantity(case.workload).unit;
    Some(Estimated::new(unit, estimated(case)?, case.samples.len()).with_modes(modes))
}

/// The estimate of a case in a cell: "10.5 GB/s ±12 %".
pub fn estimate_value(case: &CaseRecord) -> Option<Value> {
    shown(case, figures_by_cpus(case)).map(Value::Estimate)
}

/// The estimate of a case with its unit, and its interval: "10.5 GB/s" and " ±12 %".
pub(crate) fn estimate_and_interval(case: &CaseRecord) -> Option<[String; 2]> {
    Some(shown(case, figures_by_cpus(case))?.parts())
}
