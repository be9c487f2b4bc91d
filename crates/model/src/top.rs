//! The record of `hosepipe top` (docs/RECORD.md): processes that are joined by pipes, FIFOs and socket pairs, sampled from /proc.

use serde::{Deserialize, Serialize};

use crate::{HeldBack, PipeQuota, RecordHead, SlowCopies, WhyAnswer};

/// The record of `hosepipe top`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// The state of the machine.
    #[serde(flatten)]
    pub seen: TopSnapshot,
}

/// The chains of the machine, from two samples.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopSnapshot {
    /// Time between the samples, over which all rates are computed.
    pub elapsed_ns: u64,
    /// Every chain, once.
    pub chains: Vec<Chain>,
    /// Number of processes of other users that do not permit reading their open files.
    pub foreign_processes: usize,
    /// Number of socket pairs with an unknown direction: they are in no chain.
    pub two_way_sockets: usize,
    /// The jobservers of make(1); their pipes are not links of chains. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobservers: Vec<Jobserver>,
    /// The most used quota of pipe pages; `null` if no pipe is visible; absent in earlier records.
    pub pipe_quota: Option<PipeQuota>,
}

/// The pipe of a make(1) with `-j`, in which each byte is the right to run one more job at once.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Jobserver {
    /// The pipe, or the path of the FIFO.
    pub name: String,
    /// Unused tokens in it; `null` if it may not be read.
    pub free_tokens: Option<u64>,
    /// Every make that has it open. It may run one job without a token, and holds one token for each further job.
    pub makes: Vec<JobserverMake>,
}

/// A make(1) with a jobserver.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobserverMake {
    /// Its PID.
    pub pid: i32,
    /// Tokens that it holds: one less than the children that it runs.
    pub held_tokens: u64,
}

/// Stages that are joined by links.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chain {
    /// Its stages, in the direction of the bytes.
    pub stages: Vec<ChainStage>,
    /// Its links.
    pub links: Vec<ChainLink>,
    /// The index of the stage that limits the chain; `null` if no single stage does, or the chain is idle.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<usize>"))]
    pub held_up_by: Option<usize>,
    /// Why nothing flows in it, if a cause was found; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyAnswer>,
}

/// One stage: a process, or several that have the same ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainStage {
    /// Its index in the chain; in JSON from 1, as all indices here.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "usize"))]
    pub stage: usize,
    /// Its processes; those with a parent outside of the stage come first.
    pub processes: Vec<ChainProcess>,
    /// Number of its processes with a parent outside of the stage.
    pub leaders: usize,
    /// Bytes per second that they read by read(2) and similar calls from all files (proc_pid_io(5), `rchar`); `null` if unknown.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes per second that they wrote (`wchar`).
    pub write_bytes_per_s: Option<f64>,
    /// Whether both may be too large: a child that ended counts with all bytes since its start.
    pub at_most: bool,
    /// CPU time per second: 1 is one CPU all the time.
    pub cpus: f64,
    /// Share of the time for which they were ready to run and had no CPU, 0 to 1.
    pub queued: f64,
    /// Their state.
    pub doing: StageActivity,
    /// The index of the link for which they wait.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<usize>"))]
    pub waits_at: Option<usize>,
    /// Share of the latest samples in which the chain waited for this stage, 0 to 1.
    pub held_up: f64,
    /// Page offset, 0 to 4095, of the buffer for its reads of 4 KiB or more; `null` if no sample shows it, or if it changes.
    pub read_buffer_offset: Option<u64>,
    /// The same for its writes.
    pub write_buffer_offset: Option<u64>,
    /// Copies that are slow on this machine because of the offset; absent if they cost little time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_copies: Option<SlowCopies>,
    /// Output that one of its processes keeps in a buffer; absent if no sample shows any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

/// A process of a stage.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainProcess {
    /// Its PID.
    pub pid: i32,
    /// The first 15 bytes of its program's name (proc_pid_comm(5)).
    pub name: String,
    /// Its command line, with spaces between the arguments.
    pub command: String,
    /// Its user, if it is not the user of `hosepipe top`: the name, or the number if the name is unknown; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its container, found by its control group (cgroups(7)), if it is not the container of `hosepipe top`; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChainLink {
    /// Its type.
    pub kind: ChainLinkKind,
    /// Its identity: the inode, and the path of a FIFO.
    pub name: String,
    /// The indices of the stages that can write to it; empty if no visible process can.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<usize>"))]
    pub writers: Vec<usize>,
    /// The indices of the stages that can read from it.
    #[serde(with = "crate::one_based")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<usize>"))]
    pub readers: Vec<usize>,
    /// Bytes per second that went through it; `null` if unknown.
    pub bytes_per_s: Option<f64>,
    /// Whether that is a lower bound: only one end is known, and spliced bytes are not counted.
    pub at_least: bool,
    /// Bytes in it (FIONREAD); `null` if they may not be read.
    pub held_bytes: Option<u64>,
    /// Its capacity (F_GETPIPE_SZ); `null` for sockets, which count memory, not bytes.
    pub capacity_bytes: Option<u64>,
    /// Its fill level, 0 to 1; a pipe with partly used pages is full with fewer bytes than its capacity.
    pub fullness: Option<f64>,
    /// Whether it is empty and has no writer any more.
    pub over: bool,
}

crate::words! {
    /// The state of a stage.
    pub recorded enum StageActivity {
        /// It used a CPU for more than half of the time.
        Computes = "computes",
        /// It was ready to run for more than half of the time, and had no CPU.
        Queues = "waits for a CPU",
        /// It waits for a disk.
        Disk = "waits for a disk",
        /// It waits until there is room in a link.
        WaitsToWrite = "waits to write",
        /// It waits until there is something in a link.
        WaitsToRead = "waits to read",
        /// It waits for one of several files, of which one may be a link.
        MayWait = "may wait for a link",
        /// It waits for a timer.
        Sleeps = "sleeps",
        /// It runs, but for less than half of the time.
        Works = "at work",
        /// It waits for something outside of the chain.
        Elsewhere = "waits for something else",
        /// It waits for a child.
        Children = "waits for its children",
        /// A signal has stopped it.
        Stopped = "is stopped",
        /// It has ended, and its parent has not waited for it.
        Ended = "has ended",
    }
}
crate::words! {
    /// The type of a link.
    pub recorded enum ChainLinkKind {
        /// A pipe.
        Pipe = "pipe",
        /// A FIFO.
        Fifo = "fifo",
        /// A pair of UNIX sockets, in one direction.
        Socketpair = "socketpair",
        /// A UNIX socket with a name and a socket that is connected to it, in one direction.
        UnixSocket = "unix-socket",
        /// A TCP connection with both ends on this machine, in one direction.
        Tcp = "tcp",
        /// A pseudoterminal, in one direction.
        Pty = "pty",
    }
}
