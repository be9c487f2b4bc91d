//! `splice`: splice(2) moves pages by reference from one pipe to another pipe or to a socket.
//!
//! splice(2) needs a pipe at one end. So the sender writes its bytes into its own pipe, and splices them from there to the
//! pipe or socket that the receiver reads, as `cat`, `pv` and proxies do between two descriptors. There are two copies, as
//! through a plain pipe, and one more call. But the lock of the first pipe has no other user, while the writer and the
//! reader of a plain pipe wait for each other's copies, and there are two buffers. With `send=vmsplice` there is no first
//! copy: the pages in the socket are the sender's own. In a chain every relay splices, and no byte is copied to its memory;
//! the relays in a chain of `pipe` or `socketpair` read and write.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use super::by_reference::{Content, FilePages, FileSender, PageSender};
use super::evidence::{but_copied, try_transfer};
use super::pipe::file_ring::{FileLayout, FileRing};
use super::pipe::page_ring::{Lengths, check_vmsplice, refer};
use super::pipe::{SIZE_OPTION, WAIT_OPTION, new_pipe, size_as_asked};
use super::sockets::{SNDBUF_OPTION, rcvbuf_bytes, sndbuf_bytes, unix_pair};
use crate::assembly::no_chain;
use crate::endpoint::{Endpoint, EndpointRole, Transfer};
use crate::loops::{each_piece, endpoint};
use crate::prelude::*;

pub(super) static SPLICE: Mechanism = Mechanism {
    name: "splice",
    summary: "written into a pipe, then spliced by reference to a second pipe or a Unix socket",
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
    zero_copy,
    ..Mechanism::stream(open_channel)
};

fn zero_copy(options: &Options) -> Option<ZeroCopy> {
    let asked = SpliceOptions::from_options(options);
    let evidence = if asked.to_socket { evidence_to_socket() } else { evidence_to_pipe() };
    Some(if asked.vmspliced {
        but_copied(evidence, 1, "read(2) copies out of the socket")
    } else {
        but_copied(evidence, 2, "write(2) before the hop and read(2) after it copy")
    })
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let asked = SpliceOptions::from_options(request.options);
    asked.check(request)?;
    if !asked.vmspliced {
        return asked.open(request, |_, own_pipe| own_pipe);
    }
    check_vmsplice()?;
    asked.open(request, |granted, own_pipe| {
        let layout = FileLayout::new(request.block_bytes, granted["sndbuf_bytes"] as usize, Lengths::Equal);
        // Relays splice: this is the only end that sends from memory.
        let content = Content::for_request(&Request { relays: 0, ..*request });
        PageSender { pages: FilePages::new(own_pipe, layout), content }
    })
}

/// The options of a spec of `splice`.
#[derive(Clone, Copy)]
struct SpliceOptions {
    to_socket: bool,
    vmspliced: bool,
}

impl SpliceOptions {
    fn from_options(options: &Options) -> Self {
        Self {
            to_socket: options.word("to") == Some("socket"),
            vmspliced: options.word("send") == Some("vmsplice"),
        }
    }

    fn check(&self, request: &Request<'_>) -> Result<(), OpenError> {
        if self.vmspliced && !self.to_socket {
            return Err(OpenError::unsupported(
                "vmsplice(2) passes pages to a pipe directly: a second pipe is useless",
                "pipe:send=vmsplice, or splice:to=socket,send=vmsplice",
            ));
        }
        if self.vmspliced && request.relays > 0 && request.data != DataLevel::None {
            // SIOCOUTQ of the first socket does not count pages that a relay has passed on.
            return Err(OpenError::unsupported(
                "it is unknown when pages that a relay passes on by reference may be written again",
                "send=write, or --data none",
            ));
        }
        if request.relays > 0 && (request.workload == Workload::PingPong || request.tasks == Tasks::Single) {
            return Err(no_chain());
        }
        Ok(())
    }

    /// A channel: sender | splicing relay | … | receiver. `make_sender` makes a sender from the sizes of its hop and from its own pipe.
    fn open<S: Sender + 'static>(
        &self,
        request: &Request<'_>,
        make_sender: impl Fn(&Granted, OwnPipe) -> S,
    ) -> Result<Channel, OpenError> {
        let wait = FdWait::for_request(request);
        let direction = |(writer, reader, granted): (OwnedFd, OwnedFd, Granted)| {
            let sender = make_sender(&granted, OwnPipe::new(request, writer)?);
            Ok(Direction { granted, ..Direction::new(sender, FdEnd::new(reader, wait)?) })
        };
        if request.relays == 0 {
            return one_way(request, || direction(self.hop(request)?));
        }
        let (first, mut reader, granted) = self.hop(request)?;
        let mut relays: Vec<Box<dyn Endpoint>> = Vec::new();
        for _ in 0..request.relays {
            let (writer, next_reader, _) = self.hop(request)?;
            let relay = self.relay(request, reader, writer)?;
            relays.push(endpoint(EndpointRole::Relay, relay, SpliceRelay::run));
            reader = next_reader;
        }
        let mut channel = assemble(request, direction((first, reader, granted))?, None);
        channel.endpoints.splice(1..1, relays);
        Ok(channel)
    }

    /// Makes the pipe or socket between two tasks; returns its writing and its reading end, and its granted sizes.
    fn hop(&self, request: &Request<'_>) -> Result<(OwnedFd, OwnedFd, Granted), OpenError> {
        if self.to_socket {
            let (writer, reader) = unix_pair(request.options, SocketType::STREAM)?;
            let granted =
                granted([("sndbuf_bytes", sndbuf_bytes(&writer)?), ("rcvbuf_bytes", rcvbuf_bytes(&reader)?)]);
            return Ok((writer, reader, granted));
        }
        let (reader, writer) = new_pipe()?;
        let granted = granted([("pipe_bytes", size_as_asked(request.options, &writer)?)]);
        Ok((writer, reader, granted))
    }

    fn relay(&self, request: &Request<'_>, from: OwnedFd, to: OwnedFd) -> Result<SpliceRelay, OpenError> {
        let wait = FdWait::for_request(request);
        wait.apply(&from)?;
        if !self.to_socket {
            return Ok(SpliceRelay { inward: PageMover::new(from, to, wait)?, onward: None });
        }
        let (read_end, write_end) = new_pipe()?;
        size_as_asked(request.options, &write_end)?;
        let onward = Some(PageMover::new(read_end, to, wait)?);
        Ok(SpliceRelay { inward: PageMover::new(from, write_end, wait)?, onward })
    }
}

/// The sender's own pipe, always emptied into a hop before it is filled again.
struct OwnPipe {
    write_end: OwnedFd,
    onward: PageMover,
}

impl OwnPipe {
    fn new(request: &Request<'_>, hop: OwnedFd) -> Result<Self, OpenError> {
        let (read_end, write_end) = new_pipe()?;
        size_as_asked(request.options, &write_end)?;
        FdWait::Never.apply(&write_end)?;
        Ok(Self { write_end, onward: PageMover::new(read_end, hop, FdWait::for_request(request))? })
    }

    /// Fills the pipe with as many bytes as fit, empties it into the hop, and repeats that up to the last byte.
    #[inline(always)]
    fn pass(
        &mut self,
        block: &[u8],
        fill: impl Fn(&OwnedFd, &[u8]) -> rustix::io::Result<usize>,
    ) -> io::Result<()> {
        let mut rest = block;
        while !rest.is_empty() {
            self.onward.to.syscalls += 1;
            match fill(&self.write_end, rest) {
                Ok(taken) => {
                    self.onward.move_all(taken)?;
                    rest = &rest[taken..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

delegate_end!(OwnPipe, onward.to);

/// With `send=write`: bytes are copied into the pipe by write(2).
impl Sender for OwnPipe {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.pass(block, |pipe, rest| rustix::io::write(pipe, rest))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.onward.to.finish()
    }
}

/// With `send=vmsplice`: the mapped pages of a file are passed to the pipe by vmsplice(2).
impl FileSender for OwnPipe {
    fn socket(&self) -> io::Result<&OwnedFd> {
        self.onward.to.fd()
    }

    #[inline]
    fn send_pages(&mut self, ring: &FileRing, len: usize) -> io::Result<()> {
        self.pass(ring.block(len), |pipe, rest| refer(pipe, rest, SpliceFlags::NONBLOCK))
    }
}

/// A task in a chain that splices all bytes, as `cat` does between two pipes: no byte is copied to its memory.
struct SpliceRelay {
    /// From the hop before it, to the hop after it or to the relay's own pipe.
    inward: PageMover,
    /// From the relay's own pipe to the hop after it, if the hops are sockets: splice(2) needs a pipe at one end.
    onward: Option<PageMover>,
}

impl SpliceRelay {
    fn run(&mut self, transfer: &mut Transfer<'_>) -> io::Result<()> {
        each_piece(transfer, |_, most, _| {
            let moved = self.inward.move_some(most)?;
            if let Some(onward) = &mut self.onward {
                onward.move_all(moved)?;
            }
            Ok(moved)
        })?;
        self.inward.to.finish()?;
        self.onward.as_mut().map_or(Ok(()), |onward| onward.to.finish())
    }
}

impl End for SpliceRelay {
    fn syscalls(&self) -> Option<u64> {
        Some(self.inward.to.syscalls + self.onward.as_ref().map_or(0, |onward| onward.to.syscalls))
    }
}

/// Moves pages from one descriptor to another.
struct PageMover {
    from: OwnedFd,
    to: FdEnd,
}

impl PageMover {
    fn new(from: OwnedFd, to: OwnedFd, wait: FdWait) -> Result<Self, OpenError> {
        Ok(Self { from, to: FdEnd::new(to, wait)? })
    }

    /// Waits for bytes and moves at most `most` of them; returns their number. 0 is the end of the stream.
    #[inline]
    fn move_some(&mut self, most: usize) -> io::Result<usize> {
        let (from, flags) = (&self.from, self.to.wait.splice_flags());
        // EAGAIN does not tell which side would block, so this waits for bytes, then for room.
        let wait_for_both = |to: &OwnedFd, wait: FdWait| {
            let syscalls = wait.after_would_block(from, PollFlags::IN)?;
            Ok(syscalls + wait.after_would_block(to, PollFlags::OUT)?)
        };
        self.to.retry_with(|to| splice(from, None, to, None, most, flags), wait_for_both)
    }

    /// Moves all of `len` bytes that are in `from`.
    #[inline]
    fn move_all(&mut self, len: usize) -> io::Result<()> {
        let (from, flags) = (&self.from, self.to.wait.splice_flags());
        self.to.write_all(len, |to, left| splice(from, None, to, None, left, flags))
    }
}

fn evidence_to_pipe() -> ZeroCopy {
    try_transfer("splice(2) to a second pipe", |pipe, len| {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        splice(pipe, None, &writer, None, len, SpliceFlags::NONBLOCK)?;
        Ok(reader)
    })
}

fn evidence_to_socket() -> ZeroCopy {
    try_transfer("splice(2) to a Unix socket", |pipe, len| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        splice(pipe, None, &near, None, len, SpliceFlags::NONBLOCK)?;
        Ok(far)
    })
}
