//! The record of a run, as JSON of schema `hosepipe/1` (docs/RECORD.md): every summary can be recomputed from its raw samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Alignment, Case, Check, DataLevel, Direction, Host, Load, PayloadKind, Placement, Recommendation, Role,
    Sample, Spec, Tasks, Wait, WorkerCase, Workload,
};

/// The name and version of the record format.
pub const SCHEMA: &str = "hosepipe/1";

/// The hosepipe that made the record.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// The version, such as "0.1.0".
    pub version: String,
    /// The revision from which it was built, if known.
    pub revision: Option<String>,
}

/// The fields that every record has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordHead {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The hosepipe that made it.
    pub tool: Tool,
    /// The machine; for `diff` that of the new run, for `fleet` that of the node that collected the results.
    pub host: Host,
    /// The command line, after the program's name.
    pub arguments: Vec<String>,
    /// When the run began (RFC 3339).
    pub started: String,
    /// What else used the CPUs during the run; absent if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_load: Option<OtherLoad>,
}

/// What else used the CPUs during a run, as shares (0 to 1) of the time of all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherLoad {
    /// Share of other programs on this machine, including kernel threads.
    pub programs_share: f64,
    /// Share that the hypervisor gave to other guests.
    pub stolen_share: f64,
    /// The programs that used the most CPU time and still ran at the end, the largest first: "cc1 (4711)".
    pub programs: Vec<String>,
    /// By what share (0 to 1) the frequency of a busy CPU fell from the beginning to the end; absent if the machine does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_fell: Option<f64>,
}

impl Default for RecordHead {
    fn default() -> Self {
        let (schema, started) = (SCHEMA.to_owned(), String::new());
        let (tool, host, arguments, other_load) = Default::default();
        Self { schema, tool, host, arguments, started, other_load }
    }
}

/// The record of `hosepipe bench`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The host that ran the other end of each case (`--peer`); absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Box<PeerRecord>>,
    /// The answer of `hosepipe recommend`; absent in other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Box<Recommendation>>,
    /// The settings of the run.
    pub settings: Settings,
    /// One entry for each case, in the order of the plan.
    pub cases: Vec<CaseRecord>,
}

impl BenchRecord {
    /// Whether nothing that was asked for has a sample: no mechanism, and no floor or ceiling among `named`. (A run adds floors and
    /// ceilings by itself.)
    pub fn is_without_samples(&self, named: &[Spec]) -> bool {
        let is_asked = |case: &&CaseRecord| case.role == Role::Ranked || named.contains(&case.spec);
        let asked = || self.cases.iter().filter(is_asked);
        asked().next().is_some() && asked().all(|case| case.samples.is_empty())
    }
}

/// Another host that ran one end of each case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeerRecord {
    /// The argument of `--peer`.
    pub name: String,
    /// The address at which the ends connected, such as "10.0.0.2:4711".
    pub address: String,
    /// The hosepipe that ran the other ends.
    pub tool: Tool,
    /// That machine.
    pub host: Host,
}

/// Settings of a run, which all its cases share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settings {
    /// Seed of the trial order and of random payloads.
    pub seed: u64,
    /// Requested trials; a case that was stopped early has fewer samples. If no number was requested, the largest number of samples of
    /// a case.
    pub trials: u32,
    /// Whether Ctrl-C, SIGTERM or the time budget ended the run before every trial was made.
    pub interrupted: bool,
    /// What ended it then; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StopReason>,
    /// The half width of the interval, in percent of the median, at which a case ended early (`--precision`); absent without that
    /// option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// Duration of the run, in seconds; absent in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_s: Option<f64>,
    /// The suite to which the cases belong (`--suite`); absent without that option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
    /// Rounds that were repeated because other programs used the CPUs; absent without `--precision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_rounds: Option<u32>,
}

crate::words! {
    /// What ended a run before every trial was made.
    pub recorded enum StopReason {
        /// Its time (`--time`) was over.
        Time = "time",
        /// SIGINT, as Ctrl-C sends it.
        Interrupt = "interrupt",
        /// SIGTERM.
        Terminate = "terminate",
        /// SIGHUP.
        HangUp = "hang-up",
    }
}

/// A fixed set of cases; another version is another set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Incremented when its cases change.
    pub version: u32,
}

/// One case: the request, the sizes that the system granted, the raw samples, and their summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseRecord {
    /// The mechanism's name.
    pub mechanism: String,
    /// The mechanism with its options.
    pub spec: Spec,
    /// The purpose of the row.
    pub role: Role,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// The tasks that ran the ends.
    pub tasks: Tasks,
    /// Their placement, as requested.
    pub placement: Placement,
    /// Their CPUs: for each pair the sender's, then the receiver's; for several senders all senders', then the receiver's; for several
    /// receivers the sender's, then all receivers'. Empty if the scheduler chose.
    pub cpus: Vec<u32>,
    /// How they waited.
    pub wait: Wait,
    /// What they did with the data.
    pub data: DataLevel,
    /// How the receiver checked; `null` below `verify`.
    pub check: Option<Check>,
    /// The contents of the data.
    pub payload: PayloadKind,
    /// Bytes handed over in one call.
    pub block_bytes: u64,
    /// Page offsets of the ends' buffers (`--align`); absent if both began at the start of a page.
    #[serde(default, skip_serializing_if = "Alignment::are_usual")]
    pub align: Alignment,
    /// Copying tasks between the two ends (`--chain`).
    #[serde(default)]
    pub relays: u32,
    /// The direction if one end was on another host (`--peer`); absent if both were on this host.
    #[serde(rename = "toward", skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The sender's congestion control (tcp(7)), if one end was on another host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Pairs of ends at the same time; absent without `--pairs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// Senders on one channel; absent without `--senders`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<u32>,
    /// Receivers on one channel; absent without `--receivers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<u32>,
    /// Messages that each sender had to send, or round trips that each client had to begin, in a second (`--rate`); absent if each began when
    /// the last one had been sent, or had ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u32>,
    /// The longest block, up to `block_bytes`, that the mechanism promises to keep in one piece where several senders or receivers share an
    /// end; 0 if it promises nothing. Absent if none shares an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_bytes: Option<u64>,
    /// The proof that bytes passed by reference, and how often they were copied on the way; `null` if nothing passed by reference.
    pub zero_copy: Option<ZeroCopy>,
    /// The programs that ran the ends (`--workers`); absent if hosepipe ran them itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerCase>,
    /// Actual sizes in bytes, by name (`pipe_bytes`, `sndbuf_bytes`…).
    pub granted: BTreeMap<String, u64>,
    /// The raw figures, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// The samples of rounds that were repeated because other programs used the CPUs; no summary uses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<Sample>,
    /// Summary of a stream; `null` for ping-pong or without samples.
    pub throughput: Option<Throughput>,
    /// Summary of round trips; `null` for a stream or without samples.
    pub latency_ns: Option<Latency>,
    /// The noise level of this case.
    pub noise: Option<NoiseLevel>,
    /// Samples far from the others (counted, never dropped).
    pub outliers: u32,
    /// Why the case has no figures, or fewer than requested.
    pub error: Option<CaseError>,
}

impl CaseRecord {
    /// The record of [`Case::stream`], without figures.
    pub fn new(spec: Spec) -> Self {
        Case::stream(spec).into()
    }

    /// Its load, as one value.
    pub fn load(&self) -> Load {
        let Self { pairs, senders, receivers, rate_per_s, .. } = *self;
        Load { pairs, senders, receivers, rate_per_s }
    }
}

impl From<Case> for CaseRecord {
    /// A case without figures yet.
    fn from(case: Case) -> Self {
        Self {
            mechanism: case.spec.mechanism.clone(),
            check: (case.data == DataLevel::Verify).then_some(case.check),
            spec: case.spec,
            role: case.role,
            workload: case.workload,
            tasks: case.tasks,
            placement: case.placement,
            cpus: Vec::new(),
            wait: case.wait,
            data: case.data,
            payload: case.payload,
            block_bytes: case.block_bytes,
            align: case.align,
            relays: case.relays,
            direction: case.direction,
            congestion_control: None,
            pairs: case.load.pairs,
            senders: case.load.senders,
            receivers: case.load.receivers,
            rate_per_s: case.load.rate_per_s,
            atomic_bytes: None,
            zero_copy: None,
            worker: None,
            granted: BTreeMap::new(),
            samples: Vec::new(),
            disturbed: Vec::new(),
            throughput: None,
            latency_ns: None,
            noise: None,
            outliers: 0,
            error: None,
        }
    }
}

/// The proof that a row's bytes passed by reference, at least part of the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZeroCopy {
    /// Number of copies of each byte on its way from the sender's memory to the receiver's; a plain pipe has 2. Absent in records of
    /// hosepipe 0.1.
    pub copies_per_byte: Option<u32>,
    /// Whether an experiment on this machine proved it; else it is only a claim.
    pub proven: bool,
    /// The experiment and its result, or why there is no proof.
    pub how: String,
}

/// Summary of a stream's samples; every field is in bytes per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// The median, in bytes per second.
    pub median_bytes_per_s: f64,
    /// Lower end of the 95 % interval of the median, in bytes per second.
    pub low: f64,
    /// Upper end of the 95 % interval of the median, in bytes per second.
    pub high: f64,
    /// Arithmetic mean, in bytes per second.
    pub mean: f64,
    /// Standard deviation of the samples, in bytes per second.
    pub stddev: f64,
}

/// The 95 % intervals of percentiles of round trips, in nanoseconds: the lower and the upper end, which is `null` where the interval may
/// reach beyond the longest round trip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tails {
    /// Of the 90th percentile; absent, as the others, with fewer than ten round trips beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<(u64, Option<u64>)>,
    /// Of the 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<(u64, Option<u64>)>,
    /// Of the 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<(u64, Option<u64>)>,
}

/// Summary of the round trip times of all trials, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Median of the trials' median round trips, in nanoseconds.
    pub p50: u64,
    /// 90th percentile, in nanoseconds.
    pub p90: u64,
    /// 99th percentile, in nanoseconds.
    pub p99: u64,
    /// 99.9th percentile, in nanoseconds.
    pub p999: u64,
    /// Longest round trip, in nanoseconds.
    pub max: u64,
    /// Lower end of the 95 % interval of the trials' medians, in nanoseconds.
    pub p50_low: u64,
    /// Upper end of the 95 % interval of the trials' medians, in nanoseconds.
    pub p50_high: u64,
    /// The 95 % intervals of the percentiles beyond the median, which the differences between trials give; absent with too few trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tails: Option<Tails>,
    /// Round trips in all trials.
    pub count: u64,
}

/// The noise level of a case, by the 95 % interval of its median.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NoiseLevel {
    /// Within 5 % of the median on either side.
    Quiet,
    /// Within 15 %: smaller differences may be chance.
    Noisy,
    /// Wider: repeat it on a quieter machine.
    Wild,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// This machine does not have it.
    Unavailable,
    /// The case exceeds a limit of this machine.
    Limit,
    /// The combination has no meaning for this mechanism (a stream workload over an event counter…).
    Unsupported,
    /// The system refused to open it.
    Open,
    /// An end died.
    Died,
    /// A system call failed during a trial.
    Failed,
    /// Bytes were lost or changed.
    Corrupt,
    /// No progress for too long.
    Hung,
    /// The run's time was used up before its first trial ended.
    Time,
}

/// Why a case has no figures: what happened, and what to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// What was tried and the system's error (errno by name).
    pub message: String,
    /// What to try next.
    pub remedy: Option<String>,
    /// Whether this is a fact about the machine or the request that was found before anything was measured. An error while measuring
    /// makes the exit status 1.
    pub expected: bool,
}

impl CaseError {
    /// An error while a case was measured.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), remedy: None, expected: false }
    }

    /// A fact that was found before anything was measured.
    pub fn stated(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { expected: true, ..Self::new(kind, message) }
    }

    /// Sets what to try next.
    pub fn with_remedy(self, remedy: impl Into<Option<String>>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }
}

/// Why a trial gave no sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSample {
    /// The user ended the run.
    Stopped,
    /// The case cannot be measured.
    Failed(CaseError),
}

impl From<CaseError> for NoSample {
    fn from(error: CaseError) -> Self {
        Self::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_load_of_its_case() {
        let load = Load { pairs: Some(2), senders: None, receivers: Some(3), rate_per_s: Some(4) };
        let case = Case { load, ..Case::stream(Spec::plain("pipe")) };
        assert_eq!(CaseRecord::from(case).load(), load);
    }

    #[test]
    fn an_error_is_a_fact_or_an_event_and_may_have_a_remedy() {
        let event = CaseError::new(ErrorKind::Died, "it died");
        assert_eq!((event.expected, event.remedy.as_deref()), (false, None));
        let fact = CaseError::stated(ErrorKind::Limit, "too many").with_remedy("fewer".to_owned());
        assert_eq!((fact.expected, fact.remedy.as_deref()), (true, Some("fewer")));
    }
}
