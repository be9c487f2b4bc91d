//! Figures of cases, for comparisons: one list of values for each figure of each case.

use std::collections::BTreeMap;

use model::{
    BenchRecord, CaseRecord, CompareRecord, CompareResult, DiffFigure, Role, Workload, decode_histogram,
};

use crate::figure;

/// Fewest round trips of a trial for its 99th percentile.
const TRIPS_FOR_P99: u64 = 100;

/// One figure of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFigures {
    /// The properties that identify the case, by name.
    pub case: BTreeMap<String, String>,
    /// Which figure.
    pub figure: DiffFigure,
    /// Whether it is a floor or a ceiling.
    pub control: bool,
    /// The round and the figure of each trial that has one.
    pub values: Vec<(u32, f64)>,
    /// Why there are no figures, or fewer than requested.
    pub problem: Option<String>,
    /// Whether a measurement failed; an expected error is not a failure.
    pub failed: bool,
    /// Whether trials were too short for this figure.
    pub short: bool,
    /// Properties that were found, not requested, by name: a difference between the records is shown to the user.
    pub found: BTreeMap<&'static str, String>,
}

impl CaseFigures {
    /// Identifies it among the figures of a record.
    pub fn key(&self) -> (&BTreeMap<String, String>, DiffFigure) {
        (&self.case, self.figure)
    }

    /// Adds the figures of another run.
    pub fn absorb(&mut self, further: Self) {
        self.values.extend(further.values);
        self.problem = self.problem.take().or(further.problem);
        self.failed |= further.failed;
        self.short |= further.short;
        self.found = further.found;
    }

    fn of_case(case: &CaseRecord, figure: DiffFigure, values: Vec<(u32, f64)>) -> Self {
        let granted: Vec<String> =
            case.granted.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
        let mut found = BTreeMap::from([("granted", granted.join(", "))]);
        found.extend(case.congestion_control.clone().map(|name| ("congestion control", name)));
        if let Some(worker) = &case.worker {
            let toolchains =
                [&worker.writer, &worker.reader].map(|end| end.toolchain.clone().unwrap_or_default());
            found.insert("toolchain", toolchains[0].clone());
            found.insert("the reader's toolchain", toolchains[1].clone());
        }
        let lacking = case.samples.len() - values.len();
        let problem = case.error.as_ref().map(|error| error.message.clone());
        let unreadable =
            || (lacking > 0).then(|| format!("{lacking} of {} trials lack this figure", case.samples.len()));
        Self {
            case: case.identity(),
            figure,
            control: matches!(case.role, Role::Floor | Role::Ceiling),
            values,
            problem: problem.or_else(unreadable),
            failed: case.error.as_ref().is_some_and(|error| !error.expected),
            short: false,
            found,
        }
    }
}

/// The figures of a bench. If all cases are floors and ceilings, they were requested as ordinary cases.
pub fn of_bench(record: &BenchRecord) -> Vec<CaseFigures> {
    let of_case =
        |case| of_case(case).into_iter().map(|one| CaseFigures { case: record.identity(case), ..one });
    let mut all: Vec<CaseFigures> = record.cases.iter().flat_map(of_case).collect();
    if all.iter().all(|one| one.control) {
        all.iter_mut().for_each(|one| one.control = false);
    }
    number_repeats(all)
}

/// The times of a comparison of pipelines.
pub fn of_comparison(record: &CompareRecord) -> Vec<CaseFigures> {
    let of_result = |result| CaseFigures { case: record.identity(result), ..of_result(result) };
    number_repeats(record.results.iter().map(of_result).collect())
}

/// The figures of one case.
pub fn of_case(case: &CaseRecord) -> Vec<CaseFigures> {
    if case.workload == Workload::Stream {
        let value =
            |sample| figure::throughput_bytes_per_s(sample).filter(|value| crate::changes::usable(*value));
        let values = case.samples.iter().filter_map(|sample| Some((sample.round, value(sample)?)));
        return vec![CaseFigures::of_case(case, DiffFigure::Throughput, values.collect())];
    }
    let (mut middle, mut tail) = (Vec::new(), Vec::new());
    for sample in &case.samples {
        let histogram = sample.latency_histogram.as_deref().and_then(|text| decode_histogram(text).ok());
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else { continue };
        let at = |quantile| (sample.round, histogram.value_at_quantile(quantile) as f64);
        middle.extend(Some(at(0.5)).filter(|(_, value)| *value > 0.0));
        tail.extend(Some(at(0.99)).filter(|(_, value)| histogram.len() >= TRIPS_FOR_P99 && *value > 0.0));
    }
    let short = tail.len() < middle.len();
    let mut tail = CaseFigures::of_case(case, DiffFigure::RoundTripP99, tail);
    if short {
        tail.values.clear();
        tail.short = true;
        if case.error.is_none() {
            tail.problem = Some(format!("fewer than {TRIPS_FOR_P99} round trips in a trial"));
        }
    }
    vec![CaseFigures::of_case(case, DiffFigure::RoundTripP50, middle), tail]
}

/// The times of one pipeline over one link.
pub fn of_result(result: &CompareResult) -> CaseFigures {
    let times = result.times_s.iter().zip(0..).filter(|(time, _)| crate::changes::usable(**time));
    let status = result.status.map(|status| status.to_string()).unwrap_or_default();
    CaseFigures {
        case: result.identity(),
        figure: DiffFigure::WallTime,
        control: false,
        values: times.map(|(time, round)| (round, *time)).collect(),
        problem: result.error.clone(),
        failed: result.error.is_some(),
        short: false,
        found: BTreeMap::from([
            ("status", status),
            ("hash of the output", result.output_hash.clone().unwrap_or_default()),
        ]),
    }
}

/// Numbers repeated cases of a record: the second of one record is compared with the second of the other.
pub fn number_repeats(mut all: Vec<CaseFigures>) -> Vec<CaseFigures> {
    let mut seen = BTreeMap::new();
    for one in &mut all {
        let times = seen.entry((one.case.clone(), one.figure)).or_insert(0);
        *times += 1;
        if *times > 1 {
            one.case.insert("repeat".to_owned(), times.to_string());
        }
    }
    all
}
