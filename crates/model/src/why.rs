//! The record of `hosepipe why` (docs/RECORD.md): what processes wait for, whose fault it is, and what ends it.

use serde::{Deserialize, Serialize};

use crate::{NamedProcess, RecordHead};

/// The record of `hosepipe why`.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyRecord {
    /// The fields that every record has.
    #[serde(flatten)]
    pub head: RecordHead,
    /// An answer for each process that was asked about, or those that have waited longest.
    pub answers: Vec<WhyAnswer>,
    /// More processes have the name that was asked for, and are not among the answers; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Processes of other users whose open files may not be read: an end that one of them holds is not seen.
    pub unseen_processes: usize,
}

/// Why a process, or what it has started, does not go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyAnswer {
    /// The process that was asked about.
    pub asked: NamedProcess,
    // Whether something is wrong, and what.
    pub verdict: WhyVerdict,
    pub cause: WhyCause,
    /// The process that waits, or the one that works.
    pub who: NamedProcess,
    /// The processes that could end it and do not.
    pub by: Vec<NamedProcess>,
    /// What it waits for, as in "pipe:[4711]" or the path of a file; empty if it has no name.
    pub what: String,
    /// How it is seen, in numbers or names: "64 KiB, full", "SIGTTOU", "fd 5".
    pub detail: String,
    /// Since when it has waited, at least; `null` if the kernel does not show it.
    pub for_ns: Option<u64>,
    /// Which process waits for which, from the process that was asked about to the root.
    pub edges: Vec<WhyEdge>,
}

/// One process that waits for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyEdge {
    pub from: NamedProcess,
    /// What it does: "reads stdin (pipe:[4711], empty)".
    pub does: String,
    /// Those that could end it, with the descriptors by which they can; empty if that is nothing on this machine.
    pub to: Vec<WhyHolder>,
}

/// A process that could end a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyHolder {
    #[serde(flatten)]
    pub process: NamedProcess,
    /// The descriptor by which it can; `null` for another way.
    pub fd: Option<i32>,
}

/// The usual name of a descriptor.
pub fn descriptor_name(fd: i32) -> String {
    match fd {
        0 => "stdin".to_owned(),
        1 => "stdout".to_owned(),
        2 => "stderr".to_owned(),
        fd => format!("fd {fd}"),
    }
}

/// Whether something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WhyVerdict {
    /// A cause was found for which it does not go on.
    Stuck,
    /// It works, or waits as it should.
    NotStuck,
    /// It waits, and the cause is not known.
    Unknown,
}

/// Each cause: its variant, its name, and its verdict. The order is that in which they outrank each other: the earlier one is the answer.
macro_rules! causes {
    ($($name:ident $text:literal $verdict:ident),+ $(,)?) => {
        /// What it waits for, or does. Sentences and remedies are those of `report` (docs/WHY.md).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum WhyCause { $(#[serde(rename = $text)] #[allow(missing_docs)] $name),+ }

        impl WhyCause {
            /// All causes, those first that outrank others.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name in records.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// Whether a process with this cause is stuck.
            pub fn verdict(self) -> WhyVerdict {
                match self { $(Self::$name => WhyVerdict::$verdict),+ }
            }
        }
    };
}
causes! {
    Ended "ended" Stuck,
    Stopped "stopped" Stuck,
    StoppedInBackground "stopped-in-background" Stuck,
    Traced "traced" Stuck,
    Frozen "frozen" Stuck,
    FifoOpen "fifo-open" Stuck,
    Lock "lock" Stuck,
    MutexLeft "mutex-left" Stuck,
    // Its input has no end of file while it holds the writing end itself.
    SelfHeld "self-held" Stuck,
    SelfFull "self-full" Stuck,
    ParentHolds "parent-holds" Stuck,
    DeadlockStderr "deadlock-stderr" Stuck,
    DeadlockChild "deadlock-child" Stuck,
    DeadlockLock "deadlock-lock" Stuck,
    DeadlockThreads "deadlock-threads" Stuck,
    DeadlockInput "deadlock-input" Stuck,
    Deadlock "deadlock" Stuck,
    MessageQueue "message-queue" Stuck,
    Semaphore "semaphore" Stuck,
    ListenQueue "listen-queue" Stuck,
    DatagramQueue "datagram-queue" Stuck,
    DaemonHolds "daemon-holds" Stuck,
    // The writing end of its input is open only in processes outside of its pipeline.
    CopyHeld "copy-held" Stuck,
    SigpipeIgnored "sigpipe-ignored" Stuck,
    ReaderLeft "reader-left" Stuck,
    // It reads the end of file of a FIFO or pipe without a writer again and again.
    FifoBusy "fifo-busy" Stuck,
    NonBlocking "non-blocking" Stuck,
    EndOfFile "end-of-file" Stuck,
    HeldInBuffer "held-in-buffer" Stuck,
    TokensLost "tokens-lost" Stuck,
    SharedMemory "shared-memory" Stuck,
    TerminalKey "terminal-key" Stuck,
    TerminalInput "terminal-input" Stuck,
    TerminalQuestion "terminal-question" Stuck,
    SmallPipe "small-pipe" Stuck,
    TerminalFull "terminal-full" Stuck,
    ReaderSleeps "reader-sleeps" Stuck,
    // It reads the standard input of a loop of a shell.
    LoopInput "loop-input" Stuck,
    TwoReaders "two-readers" Stuck,
    DescriptorLeak "descriptor-leak" NotStuck,
    // An interpreter that is waited for may hold its output in a buffer of its own.
    MayHold "may-hold" Stuck,
    PeerSilent "peer-silent" Stuck,
    WriterSilent "writer-silent" Stuck,
    Mutex "mutex" Stuck,
    // The other end is in no visible process.
    Hidden "hidden" Unknown,
    // Its system call may not be read.
    CallHidden "call-hidden" Unknown,
    // It reads a FIFO that it has opened for reading and writing, so that it never sees the end of file.
    FifoBoth "fifo-both" NotStuck,
    DatagramsDropped "datagrams-dropped" NotStuck,
    QueueEmpty "queue-empty" NotStuck,
    // It waits for a message, and the process at the other end of its socket for work.
    PeerWaits "peer-waits" NotStuck,
    Zombie "zombie" NotStuck,
    CloseWait "close-wait" NotStuck,
    CpuLimit "cpu-limit" NotStuck,
    ByteReads "byte-reads" NotStuck,
    Computes "computes" NotStuck,
    Queues "queues" NotStuck,
    Disk "disk" NotStuck,
    // It has run while it was watched.
    Works "works" NotStuck,
    Sleeps "sleeps" NotStuck,
    // It waits for what no process here gives: the network, a person, an event.
    Rests "rests" NotStuck,
    Unknown "unknown" Unknown,
}

impl WhyCause {
    /// Whether processes wait for each other.
    pub fn is_circle(self) -> bool {
        use WhyCause::{
            Deadlock, DeadlockChild, DeadlockInput, DeadlockLock, DeadlockStderr, DeadlockThreads,
            ParentHolds,
        };
        [Deadlock, DeadlockChild, DeadlockInput, DeadlockLock, DeadlockStderr, DeadlockThreads, ParentHolds]
            .contains(&self)
    }
}

impl WhyRecord {
    /// The most important verdict of its answers.
    pub fn verdict(&self) -> WhyVerdict {
        let has = |verdict| self.answers.iter().any(|answer| answer.verdict == verdict);
        let order = [WhyVerdict::Stuck, WhyVerdict::Unknown];
        order.into_iter().find(|verdict| has(*verdict)).unwrap_or(WhyVerdict::NotStuck)
    }
}
