//! What a mechanism says of itself. Help texts, `hosepipe list`, the documentation and the planner
//! read this table. The engine knows no mechanism by name; reports know the row that others are compared with, `pipe`.

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
    /// Those of them that apply where it is a link between two programs; the others say what measuring ends do.
    pub link_options: &'static [&'static str],
    /// What programs that it links can see of it that is not as with a pipe, in a sentence; empty where there is nothing.
    pub link_differs: &'static str,
    /// The longest block that comes in one piece where many senders share the sending end; `u64::MAX` where boundaries are kept, 0
    /// where nothing is promised.
    pub atomic_bytes: u64,
    /// What bounds a message or a buffer, in a sentence; empty where nothing does.
    pub limits: &'static str,
    /// Where its behaviour is documented.
    pub man_pages: &'static [&'static str],
    /// The specs of it that stand in the default table.
    pub default_specs: &'static [&'static str],
    /// The specs of it that `--all` adds to those.
    pub more_specs: &'static [&'static str],
}

impl Descriptor {
    /// A stream of bytes between any two tasks, waited for in any way: what a pipe and a socket are. An entry of the
    /// registry names what is its own and takes the rest from here or from the next two.
    pub(crate) const STREAM: Self = Self {
        name: "",
        summary: "",
        role: Role::Ranked,
        capabilities: Capabilities::empty(),
        workloads: &[Workload::Stream, Workload::PingPong],
        tasks: &[Tasks::Processes, Tasks::Threads, Tasks::Single],
        waits: &[Wait::Block, Wait::Poll, Wait::Spin],
        data: &[DataLevel::None, DataLevel::Write, DataLevel::Verify],
        options: &[],
        link_options: &[],
        link_differs: "",
        atomic_bytes: 0,
        limits: "",
        man_pages: &[],
        default_specs: &[],
        more_specs: &[],
    };

    /// The same where a block arrives as one block.
    pub(crate) const MESSAGES: Self =
        Self { capabilities: Capabilities::KEEPS_BOUNDARIES, atomic_bytes: u64::MAX, ..Self::STREAM };

    /// A notification without a payload: round trips only, since a stream of them would say nothing.
    pub(crate) const NOTIFICATION: Self = Self {
        workloads: &[Workload::PingPong],
        waits: BLOCK_ONLY,
        data: &[DataLevel::None],
        limits: "carries no payload: a round trip is the same whatever --block says",
        ..Self::MESSAGES
    };
}

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
/// Asleep in the call, or never waiting at all.
pub(crate) const BLOCK_ONLY: &[Wait] = &[Wait::Block];
/// Asleep in the call, or trying again at once.
pub(crate) const BLOCK_OR_SPIN: &[Wait] = &[Wait::Block, Wait::Spin];
