//! The record: what a run leaves behind, as JSON of schema `hosepipe/1` (docs/RECORD.md).
//! Raw samples are always kept; every summary here can be recomputed from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Case, Check, DataLevel, Host, Load, PayloadKind, Placement, Role, Spec, Tasks, Toward, Wait, WorkerCase,
    Workload,
};

/// The name and version of the record format.
pub const SCHEMA: &str = "hosepipe/1";

/// Which hosepipe made the record.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The version, as in "0.1.0".
    pub version: String,
    /// The revision it was built from, where known.
    pub revision: Option<String>,
}

/// What every record begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordHead {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which hosepipe made it.
    pub tool: Tool,
    /// The machine: of a difference that of the new side, of a fleet that of the node that brought all together.
    pub host: Host,
    /// The command line, after the program's name.
    pub arguments: Vec<String>,
    /// When the run began (RFC 3339).
    pub started: String,
}

impl Default for RecordHead {
    fn default() -> Self {
        let (schema, started) = (SCHEMA.to_owned(), String::new());
        Self { schema, tool: Tool::default(), host: Host::default(), arguments: Vec::new(), started }
    }
}

/// The record of `hosepipe bench`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The host that held the other end of each case (`--peer`); absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Box<PeerRecord>>,
    /// How the run was made.
    pub settings: Settings,
    /// One entry for each case, in the order of the plan.
    pub cases: Vec<CaseRecord>,
}

/// Another host that held one end of each case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// What was typed after `--peer`.
    pub name: String,
    /// Where the ends met, as in "10.0.0.2:4711".
    pub address: String,
    /// Which hosepipe held the other ends.
    pub tool: Tool,
    /// That machine.
    pub host: Host,
}

/// What holds for all cases of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Seed of the trial order and of random payloads.
    pub seed: u64,
    /// Trials asked for; a case that was stopped early has fewer samples.
    pub trials: u32,
    /// True where Ctrl-C, SIGTERM or the time budget ended the run before every trial was made.
    pub interrupted: bool,
    /// The half width in percent of the median at which a case was ended early (`--precision`); absent where every trial asked
    /// for was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// The suite whose cases these are (`--suite`); absent where they were asked for one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<Suite>,
    /// Rounds that were repeated because something else used the CPUs; absent without `--precision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated_rounds: Option<u32>,
}

/// A fixed set of cases. Records of different versions do not hold the same cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Raised whenever its cases change.
    pub version: u32,
}

/// One case: what was asked, what the system granted, the raw samples, and their summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// The mechanism's name.
    pub mechanism: String,
    /// The mechanism with its options.
    pub spec: Spec,
    /// What the row is for.
    pub role: Role,
    /// Stream or ping-pong.
    pub workload: Workload,
    /// Who held the ends.
    pub tasks: Tasks,
    /// Where they sat, as asked.
    pub placement: Placement,
    /// Where they sat: the sender's CPU, then the receiver's, pair after pair (of many senders each one's, then the receiver's);
    /// empty where the scheduler chose.
    pub cpus: Vec<u32>,
    /// How they waited.
    pub wait: Wait,
    /// What they did with the data.
    pub data: DataLevel,
    /// How the receiver checked; `null` below `verify`.
    pub check: Option<Check>,
    /// What the data was.
    pub payload: PayloadKind,
    /// Bytes handed over in one call.
    pub block_bytes: u64,
    /// Copying tasks between the two ends (`--chain`).
    #[serde(default)]
    pub relays: u32,
    /// Which way it went where one end was on another host (`--peer`); absent where both were here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<Toward>,
    /// The sender's congestion control (tcp(7)), where one end was on another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Pairs of ends at once; absent where nobody asked (`--pairs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// Senders on one channel; absent where nobody asked (`--senders`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<u32>,
    /// Round trips that each asker was to begin in a second; absent where each began when the last had ended (`--rate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<u32>,
    /// What shows that bytes passed by reference, and how often they were copied all the same; `null` where nothing passed by
    /// reference.
    #[serde(default)]
    pub zero_copy: Option<ZeroCopy>,
    /// The programs that held the ends (`--workers`); absent where hosepipe held them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerCase>,
    /// Sizes the system really gave, in bytes, by name (`pipe_bytes`, `sndbuf_bytes`…).
    pub granted: BTreeMap<String, u64>,
    /// The raw figures, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Those of rounds that were repeated because something else used the CPUs: they are kept, and count in no summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<Sample>,
    /// Summary of a stream; `null` for ping-pong or without samples.
    pub throughput: Option<Throughput>,
    /// Summary of round trips; `null` for a stream or without samples.
    pub latency_ns: Option<Latency>,
    /// How quiet the machine was while this case ran.
    pub noise: Option<NoiseLevel>,
    /// Samples far from the others (counted, never dropped).
    pub outliers: u32,
    /// Why the case has no figures, or fewer than asked for.
    pub error: Option<CaseError>,
}

impl CaseRecord {
    /// The record of [`Case::stream`]. Whoever means another one changes what differs.
    pub fn new(spec: Spec) -> Self {
        Case::stream(spec).into()
    }

    /// How much was asked of it at once.
    pub fn load(&self) -> Load {
        let Self { pairs, senders, rate_per_s, .. } = *self;
        Load { pairs, senders, rate_per_s }
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
            relays: case.relays,
            toward: case.toward,
            congestion_control: None,
            pairs: case.load.pairs,
            senders: case.load.senders,
            rate_per_s: case.load.rate_per_s,
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

/// What shows that a row's bytes passed by reference, at least part of the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZeroCopy {
    /// Times each byte is copied all the same on its way from the sender's memory to the receiver's; a plain pipe has 2. Absent in
    /// records of hosepipe 0.1.
    #[serde(default)]
    pub copies_per_byte: Option<u32>,
    /// True where an experiment on this machine showed it; false where it is claimed only.
    pub proven: bool,
    /// What was done and seen, or why nothing could be shown.
    pub how: String,
}

/// One trial's raw figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The round in which it was taken; samples of one round are compared pair by pair.
    pub round: u32,
    /// From the barrier until the receiver had the last byte (checked, under `verify`).
    pub elapsed_ns: u64,
    /// Opening the mechanism and starting the tasks, before the clock.
    pub setup_ns: u64,
    /// Bytes that arrived; for ping-pong the bytes that came back.
    pub bytes: u64,
    /// Blocks sent, or round trips made.
    pub messages: u64,
    /// What the receiver computed over every byte, in hexadecimal; `null` below `verify`.
    pub checksum: Option<String>,
    /// Data-moving and waiting system calls of both ends, counted where they are made; `null` where unknown.
    pub syscalls: Option<u64>,
    /// Times an end gave the CPU up to wait (both ends, getrusage(2)).
    pub voluntary_switches: u64,
    /// Times an end was preempted (both ends).
    pub involuntary_switches: u64,
    /// CPU time in user mode (both ends).
    pub user_ns: u64,
    /// CPU time in the kernel (both ends).
    pub system_ns: u64,
    /// The same figures end by end: the sender (or the only end) first.
    pub ends: Vec<EndUsage>,
    /// Round trip times of a ping-pong: an HdrHistogram of nanoseconds, V2+DEFLATE, base64; `null` for a stream.
    pub latency_histogram: Option<String>,
    /// The share of looks, made all through the trial, at which both ends ran on one CPU (0 to 1); absent where there are
    /// no two ends, or nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_cpu_share: Option<f64>,
    /// What each pair, or each sender, did; absent where there is but one that nobody asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// From the barrier until the first of them was done: so long all of them ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_ran_ns: Option<u64>,
    /// Blocks of many senders that did not arrive in one piece (`--senders`, under `verify`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torn_blocks: Option<u64>,
    /// Segments (TCP_INFO, tcp(7)) or datagrams that the sender, or the asker, sent again; absent where both ends were on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Of paced round trips (`--rate`) the times from the real question, as `latency_histogram`, which then counts from the instant
    /// at which the question was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_histogram: Option<String>,
    /// True of a sample whose round was repeated; absent where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
}

/// What one of several pairs, or of several senders, did in a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// From the barrier until it was done.
    pub elapsed_ns: u64,
    /// Bytes that it moved; for ping-pong those that came back.
    pub bytes: u64,
    /// Bytes of these that it had moved when the first of all was done (of small round trips up to 63 fewer).
    pub bytes_while_all_ran: u64,
}

impl Sample {
    /// A sample of nothing but what its ends used, end by end and added up.
    pub fn of_ends(ends: Vec<EndUsage>) -> Self {
        let sum = |of: fn(&EndUsage) -> u64| ends.iter().map(of).sum();
        Self {
            syscalls: ends.iter().map(|end| end.syscalls).sum(),
            voluntary_switches: sum(|end| end.voluntary_switches),
            involuntary_switches: sum(|end| end.involuntary_switches),
            user_ns: sum(|end| end.user_ns),
            system_ns: sum(|end| end.system_ns),
            ends,
            ..Self::default()
        }
    }
}

impl EndUsage {
    /// What was used since an earlier look at the same end.
    pub fn since(&self, before: &Self) -> Self {
        let grown = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        Self {
            syscalls: self.syscalls.zip(before.syscalls).map(|(now, before)| now.saturating_sub(before)),
            voluntary_switches: grown(|usage| usage.voluntary_switches),
            involuntary_switches: grown(|usage| usage.involuntary_switches),
            minor_faults: grown(|usage| usage.minor_faults),
            blocks_stored: grown(|usage| usage.blocks_stored),
            user_ns: grown(|usage| usage.user_ns),
            system_ns: grown(|usage| usage.system_ns),
        }
    }
}

/// What one end used between barrier and clock stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndUsage {
    /// System calls, counted where they are made; `null` where unknown.
    pub syscalls: Option<u64>,
    /// Times it gave the CPU up to wait.
    pub voluntary_switches: u64,
    /// Times it was preempted.
    pub involuntary_switches: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Blocks of 512 bytes handed to a file system for writing (`ru_oublock`); 0 where nothing was stored.
    #[serde(default)]
    pub blocks_stored: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
}

/// Summary of a stream's samples; every field is in bytes per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// The headline.
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

/// Summary of round trip times, over all trials' histograms merged; every time is in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Median of the trials' median round trips, in nanoseconds.
    pub p50: u64,
    /// 90th percentile, in nanoseconds.
    pub p90: u64,
    /// 99th percentile, in nanoseconds.
    pub p99: u64,
    /// 99.9th percentile, in nanoseconds.
    pub p999: u64,
    /// The longest seen, in nanoseconds.
    pub max: u64,
    /// Lower end of the 95 % interval of the trials' medians, in nanoseconds.
    pub p50_low: u64,
    /// Upper end of the 95 % interval of the trials' medians, in nanoseconds.
    pub p50_high: u64,
    /// Round trips in all trials.
    pub count: u64,
}

/// A verdict on the spread of a case's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseLevel {
    /// The interval is within 5 % of the median on either side: rank by it.
    Quiet,
    /// Within 15 %: a difference below that may be chance.
    Noisy,
    /// Wider: repeat on a quieter machine before believing.
    Wild,
}

/// What kind of trouble a case met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// This machine does not have it.
    Unavailable,
    /// It has a limit that the case exceeds.
    Limit,
    /// The combination has no meaning for this mechanism (a stream workload over an event counter…).
    Unsupported,
    /// The system refused to set it up.
    Open,
    /// An end died.
    Died,
    /// A system call failed on the way.
    Failed,
    /// Fewer bytes arrived than were sent, or others.
    Corrupt,
    /// No progress for too long.
    Hung,
    /// The run's time was spent before its first trial had ended.
    Time,
}

/// Why a case has no figures: what happened, and what to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseError {
    /// The kind of trouble.
    pub kind: ErrorKind,
    /// What was asked and what the system answered (errno by name).
    pub message: String,
    /// What to try next.
    pub remedy: Option<String>,
    /// True where this is a fact about the machine or the request, stated before anything was measured,
    /// and not something that went wrong while measuring (which makes the exit status 1).
    pub expected: bool,
}

impl CaseError {
    /// What went wrong while a case was measured.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), remedy: None, expected: false }
    }

    /// A fact that stood before anything was measured.
    pub fn stated(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { expected: true, ..Self::new(kind, message) }
    }

    /// With what to try, where something is known.
    pub fn with_remedy(self, remedy: impl Into<Option<String>>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }
}

/// Why a trial gave no sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSample {
    /// The user wants to stop.
    Stopped,
    /// The case cannot be measured.
    Failed(CaseError),
}

impl From<CaseError> for NoSample {
    fn from(error: CaseError) -> Self {
        Self::Failed(error)
    }
}
