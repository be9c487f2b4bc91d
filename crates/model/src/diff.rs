//! The record of `hosepipe diff` (docs/RECORD.md): the figures of the same cases in an old and a new run, and how they changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{BenchRecord, CaseRecord, CompareRecord, CompareResult, OtherLoad, RecordHead};

/// The record of `hosepipe diff`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The old run, with which the new one is compared.
    pub old: DiffSide,
    /// The new run.
    pub new: DiffSide,
    /// Whether trials of both alternated, so that old and new figures are paired; else they are of two runs, one after the other.
    pub paired: bool,
    /// Number of interim analyses, at each of which the comparison could have stopped.
    #[serde(rename = "looks")]
    pub analyses: u32,
    /// Facts in which the hosts differ, each as "name: old, new"; empty if both are one host.
    pub hosts_differ: Vec<String>,
    /// The share by which a figure may become worse (`--fail-over`), in percent; 0 or absent: every change that is found is a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_over_percent: Option<f64>,
    /// Whether a signal or the budget ended it, or one of the two runs, before every trial was made.
    pub interrupted: bool,
    /// One entry for each figure of each case in either run.
    pub changes: Vec<CaseChange>,
}

/// The old or the new run of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffSide {
    /// Its name: a file, or a command.
    pub name: String,
    /// The hosepipe that measured it: its version, and its revision if known.
    pub tool: String,
    /// The command line of its run; of alternating trials, that of each trial.
    pub arguments: Vec<String>,
    /// When its run began (RFC 3339).
    pub started: String,
    /// What else used the CPUs during its run; absent if that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_load: Option<OtherLoad>,
    /// The further runs of this side (`diff OLD… -- NEW…`), in the order given; absent if there is one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_runs: Vec<DiffSide>,
}

/// What a comparison takes as independent figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffUnit {
    /// The trials of one run of each side, or of too few for [`Self::Run`].
    Trial,
    /// Pairs of alternating trials.
    Pair,
    /// The medians of at least [`RUNS_MIN`] runs of each side.
    Run,
}

/// Fewest runs of each side that show how much runs differ.
pub const RUNS_MIN: usize = 3;

/// The change of one figure of one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseChange {
    /// The properties that identify the case, by name.
    pub case: BTreeMap<String, String>,
    /// Which figure.
    pub figure: DiffFigure,
    /// Whether it is a floor or a ceiling, which shows changes of the machine and is not judged.
    pub control: bool,
    /// The raw figures of the old run, in the figure's unit.
    pub old: Vec<f64>,
    /// Those of the new run.
    pub new: Vec<f64>,
    /// The median of each old run, if the unit is the run ([`DiffUnit::Run`]); absent else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old_runs: Vec<f64>,
    /// The same of the new runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_runs: Vec<f64>,
    /// Median of the old figures; of several runs the median of their medians.
    pub old_median: Option<f64>,
    /// Median of the new figures.
    pub new_median: Option<f64>,
    /// New as a multiple of old (Hodges and Lehmann; of few runs the quotient of their geometric means).
    pub ratio: Option<f64>,
    /// Its lower bound; the bounds of a comparison have a simultaneous confidence of 95 %.
    pub low: Option<f64>,
    /// Its upper bound.
    pub high: Option<f64>,
    /// The p-value: the probability of a difference at least as large if nothing has changed.
    pub p: Option<f64>,
    /// The p-value, corrected for all cases and interim analyses.
    pub p_corrected: Option<f64>,
    /// The verdict.
    pub kind: ChangeKind,
    /// Why there is no figure, or what else differs between the runs.
    pub remark: Option<String>,
}

crate::words! {
    /// A figure that is compared.
    #[derive(Default)]
    pub recorded enum DiffFigure {
        /// Bytes per second of a stream.
        #[default]
        Throughput = "throughput",
        /// The median round trip of a trial, in nanoseconds.
        RoundTripP50 = "round trip p50",
        /// The 99th percentile of a trial's round trips, in nanoseconds.
        RoundTripP99 = "round trip p99",
        /// Wall time of a command or a pipeline, in seconds.
        WallTime = "wall time",
    }
}
crate::words! {
    /// The verdict on a case, the worst first.
    #[derive(Default)]
    pub recorded enum ChangeKind {
        /// It has figures in the old run, and failed in the new one, completely or in part.
        Failed = "failed",
        /// Significantly worse.
        Slower = "slower",
        /// Significantly better.
        Faster = "faster",
        /// Too few figures to find any change.
        TooFew = "too few",
        /// One of the runs has no figures.
        Incomparable = "incomparable",
        /// No change was found.
        #[default]
        NoChange = "no change",
    }
}

impl DiffSide {
    /// Its runs, the first one included.
    pub fn runs(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.further_runs)
    }
}

impl DiffFigure {
    /// Whether larger figures are better.
    pub fn larger_is_better(self) -> bool {
        self == Self::Throughput
    }

    /// The unit of the raw figures.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "bytes/s",
            Self::RoundTripP50 | Self::RoundTripP99 => "ns",
            Self::WallTime => "s",
        }
    }
}

impl CaseChange {
    /// Whether it failed or became slower; with a share, only if the whole interval is beyond it.
    pub fn is_regression(&self, fail_over_percent: Option<f64>) -> bool {
        let slower = self.kind == ChangeKind::Slower && self.is_beyond(fail_over_percent);
        !self.control && (self.kind == ChangeKind::Failed || slower)
    }

    /// How many times as fast it became if `direction` is [`ChangeKind::Faster`], else how many times as slow. `ratio` is new / old.
    fn factor(&self, ratio: f64, direction: ChangeKind) -> f64 {
        let is_inverse = self.figure.larger_is_better() != (direction == ChangeKind::Faster);
        if is_inverse { 1.0 / ratio } else { ratio }
    }

    /// The smallest factor in its interval, in the direction in which it changed; `None` without an interval.
    fn least_factor(&self) -> Option<f64> {
        Some(self.factor(self.low?, self.kind).min(self.factor(self.high?, self.kind)))
    }

    /// Whether the whole interval is beyond a share, up or down. An interval may reach just beyond "no change" although a change was
    /// found: a share of 0 and no share ask only for what was found.
    pub fn is_beyond(&self, percent: Option<f64>) -> bool {
        let limit = percent.unwrap_or_default() / 100.0;
        limit == 0.0
            || self.low.is_some_and(|low| low > 1.0 + limit)
            || self.high.is_some_and(|high| high < 1.0 - limit)
    }
}

/// Smallest difference of the other load of two runs that forbids conclusions on the program, as a share of all CPUs.
const LOADS_DIFFER_FROM: f64 = 0.10;

/// The margin of a tail, as a multiple of that of other figures: of runs of one program on a quiet machine the 99th percentiles differed by
/// up to a factor of 2, the medians by a third of that.
pub const TAIL_MARGINS: f64 = 10.0;

/// Largest p at which a floor or a ceiling counts as changed; between two runs it is not corrected for their number, as a changed one only asks
/// for larger changes of other figures.
const CONTROL_P: f64 = 0.05;

impl DiffRecord {
    /// The regressions that `--fail-over` does not allow.
    pub fn regressions(&self) -> impl Iterator<Item = &CaseChange> {
        self.changes.iter().filter(|change| self.is_regression(change))
    }

    /// Whether a change is one of [`Self::regressions`].
    pub fn is_regression(&self, change: &CaseChange) -> bool {
        change.is_regression(self.fail_over_percent) && !self.is_between_runs(change)
    }

    /// What is taken as independent.
    pub fn unit(&self) -> DiffUnit {
        let has_runs = |side: &DiffSide| side.runs().count() >= RUNS_MIN;
        if self.paired {
            DiffUnit::Pair
        } else if has_runs(&self.old) && has_runs(&self.new) {
            DiffUnit::Run
        } else {
            DiffUnit::Trial
        }
    }

    /// Whether a change that was found may be one from run to run of one program: the runs are too few to show those, and the whole
    /// interval is not beyond the margin for that, and beyond what a floor or a ceiling changed by.
    pub fn is_between_runs(&self, change: &CaseChange) -> bool {
        let is_found = matches!(change.kind, ChangeKind::Slower | ChangeKind::Faster);
        if self.unit() != DiffUnit::Trial || !is_found {
            return false;
        }
        let Some(margin) = self.fail_over_percent.filter(|percent| *percent > 0.0) else { return false };
        if !change.is_beyond(Some(margin)) || self.loads_differ() {
            return true;
        }
        change.least_factor().is_none_or(|least| least <= self.machine_factor(change, margin))
    }

    /// The largest factor between two runs of one program that this change may have without a change of the program: that of a floor or a
    /// ceiling in the same direction, and of a 99th percentile at least its own margin. `margin_percent` is that of other figures.
    fn machine_factor(&self, change: &CaseChange, margin_percent: f64) -> f64 {
        let is_tail = change.figure == DiffFigure::RoundTripP99;
        let tail_factor = if is_tail { 1.0 + margin_percent * TAIL_MARGINS / 100.0 } else { 1.0 };
        let control_factors =
            self.moved_controls().filter_map(|control| Some(control.factor(control.ratio?, change.kind)));
        control_factors.fold(tail_factor, f64::max)
    }

    /// The floors and ceilings that changed: the machine was in another state.
    pub fn moved_controls(&self) -> impl Iterator<Item = &CaseChange> {
        let p = |control: &CaseChange| {
            if self.unit() == DiffUnit::Trial { control.p } else { control.p_corrected }
        };
        self.changes.iter().filter(move |change| change.control && p(change).is_some_and(|p| p <= CONTROL_P))
    }

    /// Whether something else used much more of the CPUs during one of two runs, so that nothing counts as a change of the program.
    pub fn loads_differ(&self) -> bool {
        let share = |side: &DiffSide| {
            let loads: Vec<&OtherLoad> = side.runs().filter_map(|run| run.other_load.as_ref()).collect();
            let sum: f64 = loads.iter().map(|load| load.programs_share + load.stolen_share).sum();
            (!loads.is_empty()).then(|| sum / loads.len() as f64)
        };
        let shares = share(&self.old).zip(share(&self.new));
        let has_margin = self.fail_over_percent.is_some_and(|percent| percent > 0.0);
        let is_asked = has_margin && self.unit() == DiffUnit::Trial;
        is_asked && shares.is_some_and(|(old, new)| (old - new).abs() >= LOADS_DIFFER_FROM)
    }
}

impl CompareRecord {
    /// The identity of one of its pipelines over a link.
    pub fn identity(&self, result: &CompareResult) -> BTreeMap<String, String> {
        let conditions = self.conditions.iter().map(|(name, word)| (name.clone(), word.clone()));
        result.identity().into_iter().chain(conditions).collect()
    }
}

impl CompareResult {
    /// The identity of a pipeline over a link, without the conditions of the whole comparison.
    pub fn identity(&self) -> BTreeMap<String, String> {
        let words = [("spec", &self.via), ("pipeline", &self.pipeline)];
        let owned_words = words.into_iter().map(|(name, word)| (name.to_owned(), word.clone()));
        let parameters = self.parameters.iter().map(|(name, value)| (format!("-P {name}"), value.clone()));
        owned_words.chain(parameters).collect()
    }
}

impl BenchRecord {
    /// The identity of one of its cases; if one end was on another host, with that host.
    pub fn identity(&self, case: &CaseRecord) -> BTreeMap<String, String> {
        let peer = self.peer.as_ref().filter(|_| case.direction.is_some());
        let peer_field = peer.map(|peer| ("peer".to_owned(), peer.name.clone()));
        case.identity().into_iter().chain(peer_field).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, Host, PeerRecord, Settings, Spec, Tool};

    fn change(figure: DiffFigure, kind: ChangeKind, low: f64, high: f64) -> CaseChange {
        CaseChange { figure, kind, low: Some(low), high: Some(high), ..CaseChange::default() }
    }

    #[test]
    fn a_failure_or_a_slower_case_is_a_regression_but_not_that_of_a_control() {
        for kind in ChangeKind::ALL {
            let change = change(DiffFigure::WallTime, *kind, 1.5, 2.0);
            let is_worse = [ChangeKind::Failed, ChangeKind::Slower].contains(kind);
            assert_eq!(change.is_regression(None), is_worse, "{kind}");
            assert!(!CaseChange { control: true, ..change }.is_regression(None), "{kind}");
        }
    }

    /// A share of 25 % and these bounds are exact in binary.
    #[test]
    fn with_a_share_the_whole_interval_is_beyond_it() {
        let slower =
            |figure, low, high| change(figure, ChangeKind::Slower, low, high).is_regression(Some(25.0));
        let time = |low| slower(DiffFigure::WallTime, low, 9.0);
        assert_eq!([1.0, 1.25, 1.26, 9.0].map(time), [false, false, true, true]);
        let speed = |high| slower(DiffFigure::Throughput, 0.01, high);
        assert_eq!([0.1, 0.74, 0.75, 0.99].map(speed), [true, true, false, false]);
        let failed = change(DiffFigure::WallTime, ChangeKind::Failed, 1.0, 1.0);
        assert!(failed.is_regression(Some(25.0)), "whatever the share");
        let found = change(DiffFigure::WallTime, ChangeKind::Slower, 0.99, 1.2);
        assert_eq!(
            [Some(0.0), None, Some(1e-9)].map(|share| found.is_regression(share)),
            [true, true, false]
        );
        let unknown = CaseChange { low: None, ..change(DiffFigure::WallTime, ChangeKind::Slower, 9.0, 9.0) };
        assert!(!unknown.is_regression(Some(25.0)));
    }

    #[test]
    fn a_record_lists_the_regressions_that_its_share_does_not_allow() {
        let change = |low| change(DiffFigure::RoundTripP50, ChangeKind::Slower, low, 3.0);
        let changes = vec![change(1.1), change(2.0)];
        let record = DiffRecord { fail_over_percent: Some(50.0), changes, ..DiffRecord::default() };
        assert_eq!(record.regressions().collect::<Vec<_>>(), [&record.changes[1]]);
    }

    /// Expected: other programs that ran beside one of two runs are no change of the program. Happened: two of three pairs of runs of one
    /// program, made beside a compiler, ended with status 1.
    #[test]
    fn what_other_programs_did_beside_one_run_is_no_regression() {
        let side = |programs_share| DiffSide {
            other_load: Some(OtherLoad {
                programs_share,
                stolen_share: 0.0,
                programs: Vec::new(),
                frequency_fell: None,
            }),
            ..DiffSide::default()
        };
        let unknown = DiffSide::default;
        for (old, new, fail_over_percent, regressions) in [
            (side(0.0), side(0.44), Some(10.0), 1),
            (side(0.44), side(0.0), Some(10.0), 1),
            (side(0.40), side(0.44), Some(10.0), 2),
            (side(0.0), side(0.44), Some(0.0), 3),
            (side(0.0), side(0.44), None, 3),
            (unknown(), side(0.44), Some(10.0), 2),
        ] {
            let changes = vec![
                change(DiffFigure::RoundTripP50, ChangeKind::Failed, 1.0, 1.0),
                change(DiffFigure::RoundTripP50, ChangeKind::Slower, 2.0, 3.0),
                change(DiffFigure::RoundTripP50, ChangeKind::Slower, 1.05, 1.2),
            ];
            let record = DiffRecord { old, new, fail_over_percent, changes, ..DiffRecord::default() };
            assert_eq!(record.regressions().count(), regressions, "{record:?}");
        }
    }

    /// Expected: what a machine does that runs faster for a while is no regression, nor a tail that differs from run to run.
    /// Happened: of 78 pairs of quiet runs of one program 17 ended with status 1 although there was a margin.
    #[test]
    fn a_machine_in_another_state_and_tails_need_larger_changes() {
        use ChangeKind::{Faster, Slower};
        let floor = |kind, ratio| CaseChange {
            control: true,
            ratio: Some(ratio),
            p: Some(if kind == ChangeKind::NoChange { 0.06 } else { 0.05 }),
            ..change(DiffFigure::Throughput, kind, ratio * 0.9, 1.0)
        };
        let cases = [
            change(DiffFigure::RoundTripP50, Slower, 1.2, 1.4),
            change(DiffFigure::Throughput, Slower, 0.3, 0.55),
            change(DiffFigure::RoundTripP99, Slower, 2.1, 9.0),
            change(DiffFigure::RoundTripP99, Slower, 1.9, 9.0),
            change(DiffFigure::RoundTripP99, Faster, 0.1, 0.3),
        ];
        // No floor; one that became faster, hardly changed, became 1.7 and 3 times as slow; and trials in turns.
        for (controls, paired, expected) in [
            (vec![], false, [true, true, true, false]),
            (vec![floor(Faster, 3.0)], false, [true, true, true, false]),
            (vec![floor(ChangeKind::NoChange, 0.1)], false, [true, true, true, false]),
            (vec![floor(Slower, 0.6)], false, [false, true, true, false]),
            (vec![floor(Slower, 0.9), floor(Slower, 0.33)], false, [false; 4]),
            (vec![floor(Slower, 0.33)], true, [true; 4]),
        ] {
            let changes = [cases.to_vec(), controls].concat();
            let record =
                DiffRecord { paired, fail_over_percent: Some(10.0), changes, ..DiffRecord::default() };
            let found: Vec<bool> =
                record.changes[..4].iter().map(|change| record.is_regression(change)).collect();
            assert!(!record.is_between_runs(&record.changes[4]));
            assert_eq!(found, expected, "{:?}", &record.changes[5..]);
        }
    }

    #[test]
    fn figures_have_a_unit_and_a_direction() {
        let facts = |figure: &DiffFigure| (figure.larger_is_better(), figure.unit());
        let all: Vec<_> = DiffFigure::ALL.iter().map(facts).collect();
        assert_eq!(all, [(true, "bytes/s"), (false, "ns"), (false, "ns"), (false, "s")]);
    }

    fn words(identity: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
        identity.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    #[test]
    fn a_pipeline_is_identified_by_its_text_link_parameters_and_conditions() {
        let mut result = CompareResult::new("cat f | wc", "pipe");
        result.parameters = [("size".to_owned(), "4".to_owned())].into();
        let alone = [("-P size", "4"), ("pipeline", "cat f | wc"), ("spec", "pipe")];
        assert_eq!(words(&result.identity()), alone);
        let conditions = [("shell".to_owned(), "zsh".to_owned())].into();
        let record = CompareRecord { conditions, ..CompareRecord::default() };
        let with_conditions = [alone[0], alone[1], ("shell", "zsh"), alone[2]];
        assert_eq!(words(&record.identity(&result)), with_conditions);
    }

    #[test]
    fn a_case_with_an_end_on_another_host_is_identified_by_that_host() {
        let peer = PeerRecord {
            name: "box".to_owned(),
            address: String::new(),
            tool: Tool::default(),
            host: Host::default(),
        };
        let record = BenchRecord {
            head: RecordHead::default(),
            peer: Some(Box::new(peer)),
            recommendation: None,
            settings: Settings::default(),
            cases: Vec::new(),
        };
        let here = CaseRecord::new(Spec::plain("tcp"));
        assert_eq!(record.identity(&here), here.identity());
        let there = CaseRecord { direction: Some(Direction::Peer), ..here };
        let identity = record.identity(&there);
        assert_eq!((identity["peer"].as_str(), identity["spec"].as_str()), ("box", "tcp"));
    }
}
