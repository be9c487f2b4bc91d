//! One way of moving bytes: a table of its properties and functions. Help texts, `hosepipe list`, the documentation and the planner
//! read it. The engine knows no mechanism by name; reports know only `pipe`, with which they compare the others.

use model::{DataLevel, Role, Tasks, Wait, Workload, ZeroCopy};

use crate::assembly::no_second_receiver;
use crate::descriptor::{ANY_WAIT, BLOCK_ONLY};
use crate::{
    Capabilities, Channel, Endpoint, Folder, LinkEnds, Meeting, OpenError, OptionSpec, Options, Request,
};

/// Opens both ends of a mechanism.
pub(crate) type OpenChannel = fn(&Request<'_>) -> Result<Channel, OpenError>;
/// Opens one end, whose other end is on another host.
type OpenEnd = fn(&Request<'_>, &Meeting) -> Result<Box<dyn Endpoint>, OpenError>;
/// Opens a link between two programs.
type OpenLink = fn(&Options, &Folder) -> Result<LinkEnds, OpenError>;

/// One way of moving bytes: an entry of the registry. It sets the fields that differ from [`Mechanism::stream`],
/// [`Mechanism::messages`] or [`Mechanism::notification`], and takes the others from there.
pub struct Mechanism {
    /// The name as typed, such as `unix-stream`.
    pub name: &'static str,
    /// One line, without a full stop.
    pub summary: &'static str,
    /// The purpose of its row in a table.
    pub role: Role,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The workloads it can run.
    pub workloads: &'static [Workload],
    /// The kinds of tasks that can hold its ends.
    pub tasks: &'static [Tasks],
    /// How its ends can wait; the first is the default.
    pub waits: &'static [Wait],
    /// What its ends can do with the payload.
    pub data: &'static [DataLevel],
    /// Its options.
    pub options: &'static [OptionSpec],
    /// The options that apply to a link between two programs; the others apply only to the ends of a benchmark.
    pub link_options: &'static [&'static str],
    /// How it differs from a pipe for the programs that it links, in a sentence; empty if it does not.
    pub link_differs: &'static str,
    /// The longest block that is not mixed with others if many senders share the sending end, in bytes; `u64::MAX` if boundaries are
    /// kept, 0 if there is no guarantee.
    pub atomic_bytes: u64,
    /// The limits of a message or a buffer, in a sentence; empty if there are none.
    pub limits: &'static str,
    /// Where its behaviour is documented.
    pub man_pages: &'static [&'static str],
    /// Its specs in the default table.
    pub default_specs: &'static [&'static str],
    /// Its specs that `--all` adds.
    pub more_specs: &'static [&'static str],
    /// See [`Mechanism::probe`].
    pub(crate) probe: fn() -> Result<(), OpenError>,
    /// What its ends can do with the payload, if that depends on its options.
    pub(crate) data_with: Option<fn(&Options) -> &'static [DataLevel]>,
    /// Whether neither end uses the buffer of its caller: blocks are made and checked in memory of the mechanism.
    pub in_place: fn(&Options) -> bool,
    /// Whether bytes pass by reference with these options, the evidence, and how often each byte is still copied; `None` if no
    /// bytes pass by reference. Makes a small experiment, never in the timed path.
    pub zero_copy: fn(&Options) -> Option<ZeroCopy>,
    /// See [`Mechanism::open`].
    pub(crate) open_channel: OpenChannel,
    /// Opens one end of it, whose other end is on another host; `None` if the mechanism does not cross hosts. Nothing is opened yet:
    /// [`Endpoint::prepare`] connects the two ends, and returns at both at the same time. An error is a limit that the request exceeds,
    /// or an option that has no meaning between hosts.
    pub open_end: Option<OpenEnd>,
    /// See [`Mechanism::connect`].
    pub(crate) open_link: Option<OpenLink>,
}

impl Mechanism {
    /// A stream of bytes between any two tasks that may wait in any way, as a pipe and a stream socket are.
    pub(crate) const fn stream(open_channel: OpenChannel) -> Self {
        Self {
            name: "",
            summary: "",
            role: Role::Ranked,
            capabilities: Capabilities::empty(),
            workloads: &[Workload::Stream, Workload::PingPong],
            tasks: &[Tasks::Processes, Tasks::Threads, Tasks::Single],
            waits: ANY_WAIT,
            data: &[DataLevel::None, DataLevel::Write, DataLevel::Verify],
            options: &[],
            link_options: &[],
            link_differs: "",
            atomic_bytes: 0,
            limits: "",
            man_pages: &[],
            default_specs: &[],
            more_specs: &[],
            probe: || Ok(()),
            data_with: None,
            in_place: |_| false,
            zero_copy: |_| None,
            open_channel,
            open_end: None,
            open_link: None,
        }
    }

    /// As [`Mechanism::stream`], but a block arrives as one block.
    pub(crate) const fn messages(open_channel: OpenChannel) -> Self {
        let capabilities = Capabilities::KEEPS_BOUNDARIES;
        Self { capabilities, atomic_bytes: u64::MAX, ..Self::stream(open_channel) }
    }

    /// A notification without a payload: round trips only, since the throughput of a stream has no meaning without bytes.
    pub(crate) const fn notification(open_channel: OpenChannel) -> Self {
        Self {
            workloads: &[Workload::PingPong],
            waits: BLOCK_ONLY,
            data: &[DataLevel::None],
            in_place: |_| true,
            limits: "carries no payload: a round trip is the same whatever --block says",
            ..Self::messages(open_channel)
        }
    }

    /// Whether this machine has it.
    ///
    /// # Errors
    /// Why it has not, and the remedy.
    pub fn probe(&self) -> Result<(), OpenError> {
        (self.probe)()
    }

    /// How its ends wait when these options are given and `--wait` is not.
    pub fn wait(&self, options: &Options) -> Wait {
        options.parsed("wait").unwrap_or_else(|| self.waits.first().copied().unwrap_or(Wait::Block))
    }

    /// What its ends can do with the payload when these options are given.
    pub fn data(&self, options: &Options) -> &'static [DataLevel] {
        self.data_with.map_or(self.data, |data_with| data_with(options))
    }

    /// Opens both ends, with the sizes that the system grants.
    ///
    /// # Errors
    /// A limit that the request exceeds, or the system's refusal.
    pub fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let channel = (self.open_channel)(request)?;
        let shared = request.receivers.is_none_or(|count| channel.endpoints.len() == 1 + count as usize);
        if shared { Ok(channel) } else { Err(no_second_receiver()) }
    }

    /// Opens it as a link between two unmodified programs; `None` if it cannot be one. Names in a file system are made in
    /// `folder`, which only this link uses.
    ///
    /// # Errors
    /// A limit that an option exceeds, or the system's refusal.
    pub fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        self.open_link.map(|open_link| open_link(options, folder))
    }
}
