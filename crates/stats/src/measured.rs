//! Figures of cases, for comparisons: one list of values for each figure of each case.

use std::collections::BTreeMap;

use model::{
    BenchRecord, CaseRecord, CompareRecord, CompareResult, DiffFigure, Role, WorkerEnd, Workload,
    decode_histogram,
};

use crate::estimate::median;
use crate::figure;
use crate::tail::Tail;

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
    /// The median of each run that has figures; empty for a single run.
    pub run_medians: Vec<f64>,
    /// Why there are no figures, or fewer than requested.
    pub problem: Option<String>,
    /// Whether a measurement failed; an expected error is not a failure.
    pub failed: bool,
    /// Whether trials were too short for this figure.
    pub short: bool,
    /// Blocks, or round trips, of each trial; empty for commands.
    pub amounts: Vec<f64>,
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
        // What the system granted is shown once: that of the last run.
        self.found = further.found;
        self.amounts.extend(further.amounts);
    }

    fn with_values(case: &CaseRecord, figure: DiffFigure, values: Vec<(u32, f64)>) -> Self {
        let granted: Vec<String> =
            case.granted.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
        let mut found = BTreeMap::from([("granted", granted.join(", "))]);
        found.extend(case.congestion_control.clone().map(|name| ("congestion control", name)));
        if let Some(worker) = &case.worker {
            let toolchain = |end: &WorkerEnd| end.toolchain.clone().unwrap_or_default();
            found.insert("toolchain", toolchain(&worker.writer));
            found.insert("the reader's toolchain", toolchain(&worker.reader));
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
            run_medians: Vec::new(),
            problem: problem.or_else(unreadable),
            failed: case.error.as_ref().is_some_and(|error| !error.expected),
            short: false,
            amounts: case.samples.iter().map(|sample| sample.messages as f64).collect(),
            found,
        }
    }
}

/// The figures of a bench. If all cases are floors and ceilings, they were requested as ordinary cases.
pub fn of_bench(record: &BenchRecord) -> Vec<CaseFigures> {
    let with_identity =
        |case| of_case(case).into_iter().map(|one| CaseFigures { case: record.identity(case), ..one });
    let mut all: Vec<CaseFigures> = record.cases.iter().flat_map(with_identity).collect();
    if all.iter().all(|one| one.control) {
        all.iter_mut().for_each(|one| one.control = false);
    }
    number_repeats(all)
}

/// The times of a comparison of pipelines.
pub fn of_comparison(record: &CompareRecord) -> Vec<CaseFigures> {
    let with_identity = |result| CaseFigures { case: record.identity(result), ..of_result(result) };
    number_repeats(record.results.iter().map(with_identity).collect())
}

/// The figures of one case.
pub fn of_case(case: &CaseRecord) -> Vec<CaseFigures> {
    if case.workload == Workload::Stream {
        let value =
            |sample| figure::case_bytes_per_s(case, sample).filter(|value| crate::changes::usable(*value));
        let values = case.samples.iter().filter_map(|sample| Some((sample.round, value(sample)?)));
        return vec![CaseFigures::with_values(case, DiffFigure::Throughput, values.collect())];
    }
    let (mut middle, mut beyond) = (Vec::new(), Vec::new());
    for sample in &case.samples {
        let histogram = sample.latency_histogram.as_deref().and_then(|text| decode_histogram(text).ok());
        let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else { continue };
        let at = |quantile| (sample.round, histogram.value_at_quantile(quantile) as f64);
        middle.extend(Some(at(0.5)).filter(|(_, value)| *value > 0.0));
        beyond.extend(
            Some(at(0.99)).filter(|(_, value)| histogram.len() >= Tail::P99.trips_min() && *value > 0.0),
        );
    }
    let short = beyond.len() < middle.len();
    let mut tail = CaseFigures::with_values(case, DiffFigure::RoundTripP99, beyond);
    if short {
        tail.values.clear();
        tail.short = true;
        if case.error.is_none() {
            tail.problem = Some(format!("fewer than {} round trips in a trial", Tail::P99.trips_min()));
        }
    }
    vec![CaseFigures::with_values(case, DiffFigure::RoundTripP50, middle), tail]
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
        run_medians: Vec::new(),
        problem: result.error.clone(),
        failed: result.error.is_some(),
        short: false,
        amounts: Vec::new(),
        found: BTreeMap::from([
            ("status", status),
            ("hash of the output", result.output_hash.clone().unwrap_or_default()),
        ]),
    }
}

/// The figures of several runs of one side, case by case.
pub fn of_runs(runs: impl IntoIterator<Item = Vec<CaseFigures>>) -> Vec<CaseFigures> {
    let (mut all, mut places) = (Vec::<CaseFigures>::new(), BTreeMap::new());
    for one in runs.into_iter().flatten() {
        let values: Vec<f64> = one.values.iter().map(|(_, value)| *value).collect();
        let own = median(&values);
        let place = *places.entry((one.case.clone(), one.figure)).or_insert(all.len());
        match all.get_mut(place) {
            Some(known) => known.absorb(one),
            None => all.push(one),
        }
        all[place].run_medians.extend(own);
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use model::{CaseError, ErrorKind, Sample};

    fn failing(expected: bool) -> Option<CaseError> {
        Some(CaseError { expected, ..CaseError::new(ErrorKind::Died, "killed") })
    }

    #[test]
    fn a_stream_has_the_throughput_of_each_trial() {
        let trials =
            vec![mock::stream(3, 8), Sample { elapsed_ns: 0, ..mock::stream(4, 8) }, mock::stream(5, 0)];
        let whole = mock::case(Workload::Stream, trials[..1].to_vec());
        let found = of_case(&whole).remove(0);
        assert_eq!((found.figure, found.control, found.failed), (DiffFigure::Throughput, false, false));
        assert_eq!((found.values, found.problem), (vec![(3, 8.0)], None));
        let partial = mock::case(Workload::Stream, trials);
        let found = of_case(&partial).remove(0);
        assert_eq!(found.values, [(3, 8.0)]);
        assert_eq!(found.problem.as_deref(), Some("2 of 3 trials lack this figure"));
        for expected in [false, true] {
            let found = of_case(&CaseRecord { error: failing(expected), ..partial.clone() }).remove(0);
            assert_eq!((found.problem.as_deref(), found.failed), (Some("killed"), !expected));
        }
        for (role, control) in [(Role::Floor, true), (Role::Ceiling, true)] {
            assert_eq!(of_case(&CaseRecord { role, ..whole.clone() })[0].control, control, "{role:?}");
        }
    }

    #[test]
    fn a_tail_needs_a_thousand_round_trips_in_each_trial() {
        let case = |counts: &[usize], error| {
            let trials =
                counts.iter().zip(0..).map(|(count, round)| mock::round_trips(round, &vec![500; *count]));
            CaseRecord { error, ..mock::case(Workload::PingPong, trials.collect()) }
        };
        let short = Some("fewer than 1000 round trips in a trial");
        for (counts, error, middles, tails, problem) in [
            (&[1000, 1000][..], None, 2, 2, None),
            (&[1000, 999], None, 2, 0, short),
            (&[1000, 999], failing(true), 2, 0, Some("killed")),
            (&[1000, 0], None, 1, 1, Some("1 of 2 trials lack this figure")),
        ] {
            let [middle, tail] = &of_case(&case(counts, error))[..] else { panic!("two figures") };
            assert_eq!((middle.values.len(), tail.values.len()), (middles, tails), "{counts:?}");
            assert_eq!((tail.problem.as_deref(), tail.short), (problem, tails == 0), "{counts:?}");
            assert!(middle.values.iter().all(|(_, value)| *value == 500.0) && !middle.short);
        }
        let of_zero = mock::case(Workload::PingPong, vec![mock::round_trips(0, &[0; 1000])]);
        assert!(of_case(&of_zero).iter().all(|one| one.values.is_empty()), "no factor of zero");
    }

    #[test]
    fn the_times_of_a_pipeline_keep_their_rounds() {
        let mut result = CompareResult::new("a | b", "pipe");
        result.times_s = vec![1.0, f64::NAN, 3.0];
        let found = of_result(&result);
        assert_eq!(found.values, [(0, 1.0), (2, 3.0)]);
        assert_eq!((found.figure, found.control, found.failed), (DiffFigure::WallTime, false, false));
        result.error = Some("no".to_owned());
        let found = of_result(&result);
        assert_eq!((found.problem.as_deref(), found.failed), (Some("no"), true));
    }

    #[test]
    fn a_comparison_has_the_times_of_each_pipeline() {
        let results = ["a | b", "c | d", "a | b"].map(|pipeline| CompareResult::new(pipeline, "pipe"));
        let all = of_comparison(&CompareRecord { results: results.to_vec(), ..CompareRecord::default() });
        let repeats: Vec<bool> = all.iter().map(|one| one.case.contains_key("repeat")).collect();
        assert_eq!(repeats, [false, false, true]);
        assert!(all[0].case != all[1].case && all.iter().all(|one| one.figure == DiffFigure::WallTime));
    }

    #[test]
    fn repeated_cases_are_numbered_from_the_second_on() {
        let one = |name: &str| CaseFigures {
            case: BTreeMap::from([("mechanism".to_owned(), name.to_owned())]),
            ..of_result(&CompareResult::default())
        };
        let tail = CaseFigures { figure: DiffFigure::RoundTripP99, ..one("pipe") };
        let all = number_repeats(vec![one("pipe"), one("tcp"), one("pipe"), tail, one("pipe")]);
        let repeats: Vec<Option<&str>> =
            all.iter().map(|one| one.case.get("repeat").map(String::as_str)).collect();
        assert_eq!(repeats, [None, None, Some("2"), None, Some("3")]);
    }

    #[test]
    fn figures_of_another_run_are_added() {
        let of = |values: &[(u32, f64)], problem: Option<&str>, [failed, short]: [bool; 2]| CaseFigures {
            values: values.to_vec(),
            problem: problem.map(str::to_owned),
            failed,
            short,
            ..of_result(&CompareResult::default())
        };
        for (first, second, problem, flags) in [
            ((None, [false, false]), (None, [false, false]), None, (false, false)),
            ((Some("a"), [true, false]), (Some("b"), [false, true]), Some("a"), (true, true)),
            ((None, [true, true]), (Some("b"), [true, true]), Some("b"), (true, true)),
        ] {
            let mut all = of(&[(0, 1.0)], first.0, first.1);
            all.absorb(of(&[(1, 2.0)], second.0, second.1));
            assert_eq!((&all.values[..], all.problem.as_deref()), (&[(0, 1.0), (1, 2.0)][..], problem));
            assert_eq!((all.failed, all.short), flags);
        }
    }
}
