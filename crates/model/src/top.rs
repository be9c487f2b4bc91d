//! The record of `hosepipe top` (docs/RECORD.md): processes that pipes, FIFOs and socket pairs join, as they were seen from outside.

use serde::{Deserialize, Serialize};

use crate::{PipeQuota, RecordHead};

/// The record of `hosepipe top`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopRecord {
    /// What every record begins with.
    #[serde(flatten)]
    pub head: RecordHead,
    /// What was seen.
    #[serde(flatten)]
    pub seen: Seen,
}

/// Everything that was seen between two looks.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The time between them, of which all rates are.
    pub elapsed_ns: u64,
    /// What is joined, each chain once.
    pub chains: Vec<Chain>,
    /// Processes of other users, of which cannot be seen what they hold.
    pub foreign_processes: usize,
    /// Pairs of sockets between processes that do not say which way bytes go: they are in no chain.
    pub two_way_sockets: usize,
    /// `null` where no pipe can be seen; absent in earlier records.
    #[serde(default)]
    pub pipe_quota: Option<PipeQuota>,
}

/// Stages that links join.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Its stages, those before the others' first.
    pub stages: Vec<ChainStage>,
    /// Its links.
    pub links: Vec<ChainLink>,
    /// The place of the stage that holds the chain up; `null` where it is none in particular, or nothing is to be done.
    pub held_up_by: Option<usize>,
}

/// One stage: a process, or several that hold the same ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainStage {
    /// Who they are: first those that no other one of them has started.
    pub processes: Vec<ChainProcess>,
    /// How many of them no other one has started.
    pub leaders: usize,
    /// Bytes a second that they read by read(2) and its kin, from whatever file (proc_pid_io(5), `rchar`); `null` where unknown.
    pub read_bytes_per_s: Option<f64>,
    /// The same written (`wchar`).
    pub write_bytes_per_s: Option<f64>,
    /// Whether both may be less: children that ended count with all that they ever did.
    pub at_most: bool,
    /// CPUs that they used: 1 is one CPU all the time.
    pub cpus: f64,
    /// The share of the time for which they were ready to run and had no CPU, 0 to 1.
    pub queued: f64,
    /// What they do.
    pub doing: Doing,
    /// The link that they wait for, by its place in the chain.
    pub waits_at: Option<usize>,
    /// The share of the last looks at which the chain waited for this stage, 0 to 1.
    pub held_up: f64,
}

/// A process of a stage.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainProcess {
    /// Its number.
    pub pid: i32,
    /// The name of its program, the first 15 bytes of it (proc_pid_comm(5)).
    pub name: String,
    /// Its words, with blanks between.
    pub command: String,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainLink {
    /// What it is.
    pub kind: ChainLinkKind,
    /// What tells it from others: its inode, and of a FIFO its path.
    pub name: String,
    /// The stages that can write to it, by their places; empty where nobody who can be seen does.
    pub writers: Vec<usize>,
    /// Those that can read from it.
    pub readers: Vec<usize>,
    /// Bytes a second that went through it; `null` where that cannot be told.
    pub bytes_per_s: Option<f64>,
    /// Whether that is a lower bound: one side alone says so, and spliced bytes are counted nowhere.
    pub at_least: bool,
    /// Bytes that lie in it (FIONREAD); `null` where nobody may look.
    pub held_bytes: Option<u64>,
    /// What it can hold (F_GETPIPE_SZ); `null` for sockets, which count memory and not bytes.
    pub capacity_bytes: Option<u64>,
    /// How full it is, 0 to 1; a writer finds a pipe of half-used pages full before its bytes say so.
    pub fullness: Option<f64>,
    /// Nothing is in it, and nobody is left who could write.
    pub over: bool,
}

crate::words! {
    /// What a stage does.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Doing {
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
        /// It waits for one of several files, which may be a link.
        MayWait = "may wait for a link",
        /// It waits until time has passed.
        Sleeps = "sleeps",
        /// It runs, and does not compute for long.
        Works = "at work",
        /// It waits for something that is no link of the chain.
        Elsewhere = "waits for something else",
        /// It waits for a child.
        Children = "waits for its children",
        /// A signal has stopped it.
        Stopped = "is stopped",
        /// Only its status is left.
        Ended = "has ended",
    }
}
crate::words! {
    /// What kind of file a link is.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ChainLinkKind {
        /// A pipe.
        Pipe = "pipe",
        /// A pipe with a name.
        Fifo = "fifo",
        /// A pair of UNIX sockets, in one direction.
        Socketpair = "socketpair",
    }
}
