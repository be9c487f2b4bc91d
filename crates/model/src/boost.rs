//! The record of `hosepipe boost` (docs/RECORD.md).

use serde::{Deserialize, Serialize};

use crate::{PipeQuota, RecordHead};

/// The record of `hosepipe boost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoostRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The process; its pipes and those of its descendants were watched.
    pub pid: i32,
    /// Duration of watching.
    pub wall_ns: u64,
    /// The command's status as a shell shows it; `null` with `--pid`.
    pub status: Option<i32>,
    /// Number of samples of processes and pipes.
    #[serde(rename = "looks")]
    pub samples: u64,
    /// CPU time that watching took.
    pub cpu_ns: u64,
    /// Every pipe that was enlarged.
    pub boosted: Vec<BoostedPipe>,
    /// Why other full pipes were not enlarged; `null` if there are none.
    pub refused: Option<String>,
    /// The quota as it was when the first of them was refused; absent in earlier records.
    pub pipe_quota: Option<PipeQuota>,
    /// Processes that could not be read: set-user-ID programs and processes of other users.
    pub unseen: u64,
    /// The value of `GLIBC_TUNABLES` with which the command was started, because this CPU copies slowly into some addresses; absent
    /// on other CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunables: Option<String>,
    /// Processes that run already and keep a large buffer where this CPU copies slowly (`--pid`); absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_buffers: Vec<SlowBuffer>,
}

/// A process with a large buffer at an address into which this CPU copies slowly.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowBuffer {
    /// Its PID.
    pub pid: i32,
    /// Its command line.
    pub command: String,
    /// Page offset, 0 to 4095, of its buffer for large reads; `null` if no sample shows it, or if it changes.
    pub read_buffer_offset: Option<u64>,
    /// The same for its writes.
    pub write_buffer_offset: Option<u64>,
}

/// A pipe that was enlarged.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoostedPipe {
    /// Its inode, as in /proc: `pipe:[INODE]`.
    pub inode: u64,
    /// Its writer when it was enlarged; `null` if that was not a watched process.
    pub writer: Option<NamedProcess>,
    /// The process that had it as standard input; `null` as for `writer`.
    pub reader: Option<NamedProcess>,
    /// Its size before.
    pub before_bytes: u64,
    /// Its size afterwards.
    pub after_bytes: u64,
    /// Time for which it was sampled: while its writer ran, or waited for its output.
    pub watched_ns: u64,
    /// Time for which it was full. If it cannot grow further, only the time for which its writer slept because of that.
    pub full_ns: u64,
    /// Bytes per second that its writer wrote to all files (proc_pid_io(5), `wchar`), or else that its first reader read, while it was
    /// full and not yet enlarged; `null` if that time was too short, or if the counters cannot be read.
    pub before_bytes_per_s: Option<u64>,
    /// The same after it was enlarged.
    pub after_bytes_per_s: Option<u64>,
    /// Whether it still existed at the end and could not be made small again, because it contained too many bytes.
    pub left: bool,
}

/// A process: PID and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedProcess {
    /// Its PID.
    pub pid: i32,
    /// Its name (proc_pid_comm(5)).
    pub command: String,
}
