//! Words in which a mechanism describes itself: capabilities, options, and lists of what it can do.

use model::{Tasks, Wait, Workload};

bitflags::bitflags! {
    /// What a mechanism can do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Capabilities: u8 {
        /// It has a readable and a writable descriptor and can stand between two unmodified programs.
        const LINK = 1;
        /// A block sent in one call arrives as one block.
        const KEEPS_BOUNDARIES = 1 << 1;
        /// What was sent stays readable after the sender has gone.
        const STORES_DATA = 1 << 2;
        /// The two ends may be on different hosts.
        const CROSSES_HOSTS = 1 << 3;
        /// It has a name or number that outlives its users unless it is removed.
        const NEEDS_CLEANUP = 1 << 4;
        /// Several senders may share its sending end.
        const MANY_SENDERS = 1 << 5;
        /// Programs that know nothing of each other can meet at a name of it, although none stays behind.
        const HAS_NAME = 1 << 6;
    }
}

impl Capabilities {
    /// Whether programs that know nothing of each other can meet at a name, an address or a number.
    pub fn is_met_by_name(self) -> bool {
        self.intersects(Self::HAS_NAME.union(Self::NEEDS_CLEANUP).union(Self::CROSSES_HOSTS))
    }
}

/// One option of a mechanism.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// The name, as in `size`.
    pub name: &'static str,
    /// What its value is.
    pub kind: OptionKind,
    /// What holds when it is not given, for people.
    pub default: &'static str,
    /// One line, without a full stop.
    pub help: &'static str,
}

/// What an option's value is.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A size in bytes, at least 1.
    Size,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A bare word; present or absent.
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

/// One task only: there is no other end.
pub(crate) const ONE_TASK: &[Tasks] = &[Tasks::Single];
/// Streams only.
pub(crate) const STREAM_ONLY: &[Workload] = &[Workload::Stream];
/// In any way.
pub(crate) const ANY_WAIT: &[Wait] = &[Wait::Block, Wait::Poll, Wait::Spin];
/// Asleep in the call, or never waiting at all.
pub(crate) const BLOCK_ONLY: &[Wait] = &[Wait::Block];
/// Asleep in the call, or trying again at once.
pub(crate) const BLOCK_OR_SPIN: &[Wait] = &[Wait::Block, Wait::Spin];
