//! The record of `hosepipe diff` (docs/RECORD.md): the figures of the same cases on two sides, and what became of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{BenchRecord, CaseRecord, CompareRecord, CompareResult, RecordHead};

/// The record of `hosepipe diff`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiffRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// What is compared with.
    pub old: DiffSide,
    /// What is compared.
    pub new: DiffSide,
    /// Whether both sides took turns, so that figures at the same place make a pair; else they are of two runs, one after the other.
    pub paired: bool,
    /// How often one looked, each time with the choice to stop.
    pub looks: u32,
    /// Facts in which the hosts differ, each as "name: old, new"; empty where it is one host.
    pub hosts_differ: Vec<String>,
    /// The share by which a figure may become worse (`--fail-over`), in percent; absent where it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_over_percent: Option<f64>,
    /// True where a signal or the budget ended it, or one of the two runs, before every trial was made.
    pub interrupted: bool,
    /// One entry for each figure of each case of either side.
    pub changes: Vec<CaseChange>,
}

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiffSide {
    /// Its name: a file, or a command.
    pub name: String,
    /// The hosepipe that measured it: its version, and its revision where known.
    pub tool: String,
    /// The command line of its run; of a comparison in turns that of each turn.
    pub arguments: Vec<String>,
    /// When its run began (RFC 3339).
    pub started: String,
}

/// What became of one figure of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseChange {
    /// Everything that decides what the case is, by name.
    pub case: BTreeMap<String, String>,
    /// Which figure.
    pub figure: DiffFigure,
    /// True for a floor or a ceiling, which shows what the machine did and is not judged.
    pub control: bool,
    /// The raw figures of the old side, in the figure's unit.
    pub old: Vec<f64>,
    /// Those of the new side.
    pub new: Vec<f64>,
    /// Median of the old figures.
    pub old_median: Option<f64>,
    /// Median of the new figures.
    pub new_median: Option<f64>,
    /// New as a multiple of old (Hodges and Lehmann).
    pub ratio: Option<f64>,
    /// Its lower bound; all bounds of a comparison hold at once with 95 %.
    pub low: Option<f64>,
    /// Its upper bound.
    pub high: Option<f64>,
    /// The chance to see the sides so far apart if nothing had changed.
    pub p: Option<f64>,
    /// The same corrected for all cases and looks.
    pub p_corrected: Option<f64>,
    /// What came of it.
    pub kind: ChangeKind,
    /// What a reader has to know of it: why there is no figure, or what else is not the same.
    pub remark: Option<String>,
}

crate::words! {
    /// A figure that is compared.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DiffFigure {
        /// Bytes per second of a stream.
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
    /// What came of a case, the worst first.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ChangeKind {
        /// It has figures on the old side, and failed on the new one, wholly or in part.
        Failed = "failed",
        /// Worse, and no chance.
        Slower = "slower",
        /// Better, and no chance.
        Faster = "faster",
        /// There are too few figures for any change to be found.
        TooFew = "too few",
        /// One of the sides has no figures.
        Incomparable = "incomparable",
        /// No change was found.
        NoChange = "no change",
    }
}

impl DiffFigure {
    /// Whether a larger figure is the better one.
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
    /// Whether it became worse: it failed, or is slower; where a share is given, so that the whole interval is beyond it.
    pub fn is_regression(&self, fail_over_percent: Option<f64>) -> bool {
        let beyond = |percent: f64| {
            let limit = percent / 100.0;
            if self.figure.larger_is_better() {
                self.high.is_some_and(|high| high < 1.0 - limit)
            } else {
                self.low.is_some_and(|low| low > 1.0 + limit)
            }
        };
        let slower = self.kind == ChangeKind::Slower && fail_over_percent.is_none_or(beyond);
        !self.control && (self.kind == ChangeKind::Failed || slower)
    }
}

impl DiffRecord {
    /// What became worse than it may.
    pub fn regressions(&self) -> impl Iterator<Item = &CaseChange> {
        self.changes.iter().filter(|change| change.is_regression(self.fail_over_percent))
    }
}

impl CompareRecord {
    /// The same of one of its pipelines over a link.
    pub fn identity(&self, result: &CompareResult) -> BTreeMap<String, String> {
        let conditions = self.conditions.iter().map(|(name, word)| (name.clone(), word.clone()));
        result.identity().into_iter().chain(conditions).collect()
    }
}

impl CompareResult {
    /// The same of a pipeline over a link, whatever else held for the whole comparison.
    pub fn identity(&self) -> BTreeMap<String, String> {
        let words = [("spec", &self.via), ("pipeline", &self.pipeline)];
        let words = words.into_iter().map(|(name, word)| (name.to_owned(), word.clone()));
        let parameters = self.parameters.iter().map(|(name, value)| (format!("-P {name}"), value.clone()));
        words.chain(parameters).collect()
    }
}

impl BenchRecord {
    /// The same of one of its cases: where one end was on another host, that host is part of it.
    pub fn identity(&self, case: &CaseRecord) -> BTreeMap<String, String> {
        let peer = self.peer.as_ref().filter(|_| case.toward.is_some());
        let peer = peer.map(|peer| ("peer".to_owned(), peer.name.clone()));
        case.identity().into_iter().chain(peer).collect()
    }
}
