//! `splice`: the hop in the middle moves pages, not bytes, splice(2).
//!
//! splice(2) needs a pipe at one end, so that a sender with bytes in its memory writes them into a pipe of its own
//! and splices from there to where the receiver reads: what `cat`, `pv` and a proxy do between two descriptors, with
//! the reading left out. Two copies, as through a plain pipe, and one call more; but the first copy is made into a
//! pipe whose lock nobody else wants, where a plain pipe's writer and reader wait for each other's copies, and there
//! are two buffers. `send=vmsplice` saves the first copy: the pages in the socket are then the sender's own. In a
//! chain every relay splices, and no byte comes near its memory: compare with the chain of `pipe` or `socketpair`,
//! whose relays read and write.

use std::os::fd::OwnedFd;

use model::{DataLevel, Tasks, Wait, Workload, ZeroCopy};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use super::evidence::{but_copied, try_road};
use super::pipe::file_ring::FileLayout;
use super::pipe::page_ring::Lengths;
use super::pipe::vmsplice::Content;
use super::pipe::{SIZE_OPTION, WAIT_OPTION, size_as_asked, wait_of};
use super::sendfile::{buffers, unix_pair};
use super::sockets::SNDBUF_OPTION;
use crate::Options;
use crate::descriptor::{Descriptor, OptionKind, OptionSpec};
use crate::endpoint::Endpoint;
use crate::fd::{FdReceiver, FdWait};
use crate::loops::{Direction, assemble, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request};

mod onward;
mod relay;
mod sender;

use onward::Onward;
use relay::SpliceRelay;
use sender::{Source, SpliceSender};

pub(crate) struct Splice;

impl Mechanism for Splice {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "splice",
            summary: "written into a pipe and spliced on by reference, to a second pipe or a Unix socket",
            options: &[
                OptionSpec {
                    name: "to",
                    kind: OptionKind::Choice(&["pipe", "socket"]),
                    default: "pipe",
                    help: "what the receiver reads from",
                },
                OptionSpec {
                    name: "send",
                    kind: OptionKind::Choice(&["write", "vmsplice"]),
                    default: "write",
                    help: "how the bytes come into the first pipe: copied, or (to=socket) by reference",
                },
                SIZE_OPTION,
                SNDBUF_OPTION,
                WAIT_OPTION,
            ],
            limits: "size (of every pipe): fs.pipe-max-size for ordinary users; sndbuf: net.core.wmem_max",
            man_pages: &["splice(2)", "vmsplice(2)", "pipe(7)", "unix(7)"],
            more_specs: &["splice", "splice:size=1MiB", "splice:to=socket", "splice:to=socket,send=vmsplice"],
            ..Descriptor::STREAM
        }
    }

    fn wait(&self, options: &Options) -> Wait {
        wait_of(options).unwrap_or(Wait::Block)
    }

    fn zero_copy(&self, options: &Options) -> Option<ZeroCopy> {
        let evidence = if is_to_socket(options) { evidence_to_socket() } else { evidence_to_pipe() };
        Some(if is_vmspliced(options) {
            but_copied(evidence, 1, "read(2) copies out of the socket")
        } else {
            but_copied(evidence, 2, "write(2) before the hop and read(2) after it copy")
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let request = &Request { wait: wait_of(request.options).unwrap_or(request.wait), ..*request };
        check_combination(request)?;
        if request.relays > 0 {
            return chain(request);
        }
        one_way(request, || {
            let hop = Hop::open(request)?;
            let sender = hop.sender(request)?;
            Ok(Direction { sender, receiver: FdReceiver::new(hop.reader, hop.wait)?, granted: hop.granted })
        })
    }
}

fn is_to_socket(options: &Options) -> bool {
    options.word("to") == Some("socket")
}

fn is_vmspliced(options: &Options) -> bool {
    options.word("send") == Some("vmsplice")
}

fn check_combination(request: &Request<'_>) -> Result<(), OpenError> {
    let refuse = |message: &str, remedy: &str| {
        Err(OpenError::Unsupported { message: message.to_owned(), remedy: remedy.to_owned() })
    };
    if is_vmspliced(request.options) && !is_to_socket(request.options) {
        return refuse(
            "a pipe needs no second pipe to be given pages",
            "pipe:send=vmsplice, or splice:to=socket,send=vmsplice",
        );
    }
    if is_vmspliced(request.options) && request.relays > 0 && request.data != DataLevel::None {
        // The books of the first socket know nothing of the pages that a relay has passed on.
        return refuse(
            "nothing says when pages that a relay passes on by reference may be written again",
            "send=write, or --data none",
        );
    }
    if request.relays > 0 && (request.workload == Workload::PingPong || request.tasks == Tasks::Single) {
        return refuse(
            "a chain carries a stream between two tasks",
            "--workload stream, and --tasks processes or threads",
        );
    }
    Ok(())
}

/// What lies between two tasks, or between the sender's own pipe and the receiver.
struct Hop {
    reader: OwnedFd,
    writer: OwnedFd,
    granted: Granted,
    wait: FdWait,
}

impl Hop {
    fn open(request: &Request<'_>) -> Result<Self, OpenError> {
        let wait = FdWait::of(request);
        if is_to_socket(request.options) {
            let (writer, reader) = unix_pair(request)?;
            let (_, granted) = buffers(&writer, &reader)?;
            return Ok(Self { reader, writer, granted, wait });
        }
        let (reader, writer) = own_pipe()?;
        let granted = size_as_asked(request, &writer)?;
        Ok(Self { reader, writer, granted, wait })
    }

    /// The sending end of this hop.
    fn sender(&self, request: &Request<'_>) -> Result<SpliceSender, OpenError> {
        let (read_end, write_end) = own_pipe()?;
        size_as_asked(request, &write_end)?;
        FdWait::Never.apply(&write_end)?;
        self.wait.apply(&self.writer)?;
        let out = self.writer.try_clone().map_err(OpenError::system("dup"))?;
        let source = if is_vmspliced(request.options) {
            let sndbuf = self.granted.get("sndbuf_bytes").copied().unwrap_or(0) as usize;
            let layout = FileLayout::new(request.block_bytes, sndbuf, Lengths::Even);
            // Relays splice: this is the only end that sends from memory.
            let content = Content::of(&Request { relays: 0, ..*request });
            Source::Pages { layout, ring: None, content }
        } else {
            Source::Written
        };
        Ok(SpliceSender { source, write_end, onward: Onward::new(read_end, out, self.wait) })
    }
}

fn own_pipe() -> Result<(OwnedFd, OwnedFd), OpenError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(OpenError::system("pipe2"))
}

/// sender | splicing relay | … | receiver.
fn chain(request: &Request<'_>) -> Result<Channel, OpenError> {
    let first = Hop::open(request)?;
    let sender = first.sender(request)?;
    let mut relays: Vec<Box<dyn Endpoint>> = Vec::new();
    let granted = first.granted;
    let mut reader = first.reader;
    for _ in 0..request.relays {
        let next = Hop::open(request)?;
        relays.push(Box::new(SpliceRelay::new(request, reader, next.writer)?));
        reader = next.reader;
    }
    let receiver = FdReceiver::new(reader, FdWait::of(request))?;
    let mut channel = assemble(request, Direction { sender, receiver, granted }, None);
    channel.endpoints.splice(1..1, relays);
    Ok(channel)
}

fn evidence_to_pipe() -> ZeroCopy {
    try_road("splice(2) to a second pipe", |pipe, len| {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        splice(pipe, None, &writer, None, len, SpliceFlags::NONBLOCK)?;
        Ok(reader)
    })
}

fn evidence_to_socket() -> ZeroCopy {
    try_road("splice(2) to a Unix socket", |pipe, len| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        splice(pipe, None, &near, None, len, SpliceFlags::NONBLOCK)?;
        Ok(far)
    })
}
