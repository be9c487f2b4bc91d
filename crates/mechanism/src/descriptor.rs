//! The types with which a mechanism is described: capabilities and options; and common lists of tasks, workloads and waits.

use model::{Tasks, Wait, Workload};

bitflags::bitflags! {
    /// What a mechanism can do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Capabilities: u8 {
        /// It has a readable and a writable descriptor and can connect two unmodified programs.
        const LINK = 1;
        /// A block sent in one call arrives as one block.
        const KEEPS_BOUNDARIES = 1 << 1;
        /// Bytes that were sent stay readable after the sender has ended.
        const STORES_DATA = 1 << 2;
        /// The two ends may be on different hosts.
        const CROSSES_HOSTS = 1 << 3;
        /// It has a name or number that outlives its users unless it is removed.
        const NEEDS_CLEANUP = 1 << 4;
        /// Several senders may share its sending end.
        const MANY_SENDERS = 1 << 5;
        /// Unrelated programs can open it by a name, which is gone when they have ended.
        const HAS_NAME = 1 << 6;
    }
}

impl Capabilities {
    /// Whether unrelated programs can open it by a name, an address or a number.
    pub fn opens_by_name(self) -> bool {
        self.intersects(Self::HAS_NAME.union(Self::NEEDS_CLEANUP).union(Self::CROSSES_HOSTS))
    }
}

/// One option of a mechanism.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// The name, as in `size`.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: OptionKind,
    /// The behaviour if the option is not given, as a text for people.
    pub default: &'static str,
    /// One line, without a full stop.
    pub help: &'static str,
}

/// The kind of an option's value.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A size in bytes, at least 1.
    Size,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// No value: the option is present or absent.
    Flag,
    /// A folder that exists.
    Folder,
}

impl OptionKind {
    /// The shape of the value, for help texts: `SIZE`, `a|b`, `DIR`; empty for a flag.
    pub fn shape(&self) -> String {
        match self {
            Self::Size => "SIZE".to_owned(),
            Self::Choice(words) => words.join("|"),
            Self::Flag => String::new(),
            Self::Folder => "DIR".to_owned(),
        }
    }
}

/// One task with both ends.
pub(crate) const ONE_TASK: &[Tasks] = &[Tasks::Single];
pub(crate) const STREAM_ONLY: &[Workload] = &[Workload::Stream];
pub(crate) const ANY_WAIT: &[Wait] = &[Wait::Block, Wait::Poll, Wait::Spin];
/// Ends sleep in the call, or never have to wait.
pub(crate) const BLOCK_ONLY: &[Wait] = &[Wait::Block];
/// Ends sleep in the call, or try again at once.
pub(crate) const BLOCK_OR_SPIN: &[Wait] = &[Wait::Block, Wait::Spin];
