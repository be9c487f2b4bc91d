//! What a mechanism says of itself. Help texts, `hosepipe list`, the documentation and the planner
//! read this table; nothing else about a mechanism is known by name anywhere.

use model::{DataLevel, Role, Tasks, Wait, Workload};

/// A mechanism's entry in the registry.
#[derive(Debug)]
pub struct Descriptor {
    /// The name as typed, such as `unix-stream`.
    pub name: &'static str,
    /// One line, without a full stop.
    pub summary: &'static str,
    /// What a row of it is for.
    pub role: Role,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The workloads it can run.
    pub workloads: &'static [Workload],
    /// Who can hold its ends.
    pub tasks: &'static [Tasks],
    /// How its ends can wait; the first is the default.
    pub waits: &'static [Wait],
    /// What its ends can do with the payload.
    pub data: &'static [DataLevel],
    /// Its options.
    pub options: &'static [OptionSpec],
    /// What bounds a message or a buffer, in a sentence; empty where nothing does.
    pub limits: &'static str,
    /// Where its behaviour is documented.
    pub man_pages: &'static [&'static str],
    /// The specs of it that stand in the default table.
    pub default_specs: &'static [&'static str],
    /// The specs of it that `--all` adds to those.
    pub more_specs: &'static [&'static str],
}

/// What a mechanism can do, bit by bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It has a readable and a writable descriptor and can stand between two unmodified programs.
    pub link: bool,
    /// A block sent in one call arrives as one block.
    pub keeps_boundaries: bool,
    /// What was sent stays readable after the sender has gone.
    pub stores_data: bool,
    /// The two ends may be on different hosts.
    pub crosses_hosts: bool,
    /// It has a name or number that outlives its users unless it is removed.
    pub needs_cleanup: bool,
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

/// Every combination of tasks.
pub(crate) const ANY_TASKS: &[Tasks] = &[Tasks::Processes, Tasks::Threads, Tasks::Single];
/// One task only: there is no other end.
pub(crate) const ONE_TASK: &[Tasks] = &[Tasks::Single];
/// Streams and round trips.
pub(crate) const ANY_WORKLOAD: &[Workload] = &[Workload::Stream, Workload::PingPong];
/// Streams only.
pub(crate) const STREAM_ONLY: &[Workload] = &[Workload::Stream];
/// Every data level.
pub(crate) const ANY_DATA: &[DataLevel] = &[DataLevel::None, DataLevel::Write, DataLevel::Verify];
/// What a descriptor in non-blocking mode allows.
pub(crate) const ANY_WAIT: &[Wait] = &[Wait::Block, Wait::Poll, Wait::Spin];
/// Asleep in the call, or never waiting at all.
pub(crate) const BLOCK_ONLY: &[Wait] = &[Wait::Block];
