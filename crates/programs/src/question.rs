//! The question: what is sent, between which ends, in which languages, and what the programs must do.

use mechanism::{Capabilities, Mechanism};
use model::{Tasks, Workload};
use stats::Demand;

use crate::languages::Code;
use crate::promises::{Promises, Sharing};

model::words! {
    /// The direction of messages.
    pub enum Pattern {
        /// One way.
        Stream = "stream",
        /// There and back.
        RequestReply = "request-reply",
    }
}
model::words! {
    /// The two tasks that communicate.
    pub enum Between {
        /// A process and a child that inherits its end.
        ParentChild = "parent-child",
        /// Unrelated programs that know a common name.
        Processes = "processes",
        /// Two threads of one process.
        Threads = "threads",
    }
}
model::words! {
    /// What else a mechanism must do.
    pub enum Must {
        /// Work as standard input and output of unmodified programs.
        Filter = "filter",
        /// Keep the boundaries of messages.
        Boundaries = "boundaries",
        /// Keep sent messages after the sender has ended.
        Persistent = "persistent",
        /// Reach another host.
        CrossHost = "cross-host",
        /// Accept messages from several senders.
        ManySenders = "many-senders",
        /// Go on with a new receiver.
        ReaderCrash = "reader-crash",
        /// Go on with a new sender.
        WriterCrash = "writer-crash",
        /// Keep what was not read when both ends have died.
        Restart = "restart",
        /// Keep it on the disk.
        Reboot = "reboot",
        /// Work between two containers that share a folder.
        Containers = "containers",
        /// Be waited for together with sockets.
        Poll = "poll",
        /// Leave messages in shared memory.
        NoCopy = "no-copy",
    }
}
model::words! {
    /// Which of several receivers gets a message.
    pub enum Share {
        /// One of them.
        Compete = "compete",
        /// All of them.
        Broadcast = "broadcast",
    }
}

/// What is asked of a mechanism and its programs.
#[derive(Debug, Clone)]
pub struct Question {
    pub message_bytes: u64,
    pub pattern: Pattern,
    /// `None`: a parent and its child, or of two programs unrelated processes.
    pub between: Option<Between>,
    /// How many programs send, and how many receive.
    pub senders: u32,
    pub receivers: u32,
    pub share: Option<Share>,
    /// The rate at which messages are paced; `None`: as fast as the programs can.
    pub rate_per_s: Option<u32>,
    /// What decides between mechanisms that do what is asked: the rate as it was typed, and the CPU budget.
    pub demand: Demand,
    pub must: Vec<Must>,
    pub code: Code,
}

impl Pattern {
    pub fn workload(self) -> Workload {
        match self {
            Self::Stream => Workload::Stream,
            Self::RequestReply => Workload::PingPong,
        }
    }

    /// "one way" or "there and back".
    pub fn way(self) -> &'static str {
        if self == Self::Stream { "one way" } else { "there and back" }
    }

    /// What is counted and timed: "message" or "round trip".
    pub fn unit(self) -> &'static str {
        if self == Self::Stream { "message" } else { "round trip" }
    }
}

impl Between {
    pub fn tasks(self) -> Tasks {
        match self {
            Self::ParentChild | Self::Processes => Tasks::Processes,
            Self::Threads => Tasks::Threads,
        }
    }
}

impl Must {
    /// What the registry of mechanisms calls it; `None` for what the two programs do.
    fn capability(self) -> Option<Capabilities> {
        Some(match self {
            Self::Filter => Capabilities::LINK,
            Self::Boundaries => Capabilities::KEEPS_BOUNDARIES,
            Self::Persistent => Capabilities::STORES_DATA,
            Self::CrossHost => Capabilities::CROSSES_HOSTS,
            Self::ManySenders => Capabilities::MANY_SENDERS,
            _ => return None,
        })
    }

    /// Whether a mechanism does it, or the two programs with it, if the answer is two.
    pub fn is_done_by(self, one: &Mechanism, is_of_pair: bool) -> bool {
        self.capability().is_some_and(|capability| one.capabilities.contains(capability))
            || is_of_pair && Promises::of(one.name).is_some_and(|promises| promises.keeps(self))
    }

    pub fn is_of_crash(self) -> bool {
        matches!(self, Self::ReaderCrash | Self::WriterCrash)
    }
}

impl Question {
    /// The rate of each sender, where all together keep the asked one.
    pub(crate) fn sender_rate_per_s(&self) -> Option<u32> {
        self.rate_per_s.map(|rate| rate.div_ceil(self.senders))
    }

    /// The argument COUNT of a receiver, where each sender sends `count` messages. How many of them one of several that compete gets is not
    /// known before: 0.
    pub(crate) fn receiver_count(&self, count: u64) -> u64 {
        if self.share == Some(Share::Compete) { 0 } else { count * u64::from(self.senders) }
    }

    /// Whether the answer is two programs, one that sends and one that receives, that meet at a name.
    pub fn is_of_pair(&self) -> bool {
        self.code.receiver.is_some()
            || !self.code.sender.facts().has_one_file
            || self.has_several_ends()
            || self.must.iter().any(|must| must.capability().is_none())
    }

    /// The size of a message in words: "1 byte", "200 bytes".
    pub(crate) fn message_size(&self) -> String {
        format!("{} byte{}", self.message_bytes, if self.message_bytes == 1 { "" } else { "s" })
    }

    /// Whether there are more than one sender and one receiver.
    pub fn has_several_ends(&self) -> bool {
        self.senders * self.receivers > 1
    }

    /// The two ends: where nothing is typed, those of the programs.
    pub fn between(&self) -> Between {
        let usual = if self.is_of_pair() { Between::Processes } else { Between::ParentChild };
        self.between.unwrap_or(usual)
    }

    /// Whether several ends use one queue of a mechanism.
    pub fn shares(&self, promises: &Promises) -> bool {
        self.senders > 1 && promises.many_senders == Sharing::Shared
            || self.share == Some(Share::Compete) && promises.many_receivers == Sharing::Shared
    }
}
