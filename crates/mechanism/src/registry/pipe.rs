//! `pipe`: the kernel's own pipe, pipe(7), and the faster ways into it and out of it: vmsplice(2), splice(2) and tee(2).

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::link::grow;
use crate::prelude::*;

mod ends;
pub(super) mod file_ring;
pub(super) mod page_ring;
mod vmsplice;

use super::evidence::{self, but_copied};
use ends::{Drain, TeeSender, WritevSender};
use vmsplice::PipePages;

/// The option every pipe-like mechanism has.
pub(super) const SIZE_OPTION: OptionSpec = OptionSpec {
    name: "size",
    kind: OptionKind::Size,
    default: "64KiB, as pipe(2) makes it; between programs up to 1MiB, as the system grants",
    help: "bytes the pipe holds (F_SETPIPE_SZ; the kernel rounds up to a power of two of pages)",
};

/// How both ends wait, as a part of the spec.
pub(super) const WAIT_OPTION: OptionSpec = OptionSpec {
    name: "wait",
    kind: OptionKind::Choice(&["block", "poll", "spin"]),
    default: "block, or the value of --wait",
    help: "how an end waits: asleep in the call, asleep in poll(2), or trying again at once",
};

/// The limits of a pipe's size.
pub(super) const SIZE_LIMITS: &str =
    "size: fs.pipe-max-size for ordinary users; two pages if the user's pipes exceed fs.pipe-user-pages-soft";

/// PIPE_BUF on Linux: writes of at most this many bytes are never mixed (pipe(7)).
pub(super) const PIPE_BUF_BYTES: u64 = 4096;

/// The longest packet in bytes (pipe(2), O_DIRECT). A longer block arrives as several packets: all of its bytes, but without
/// its boundaries.
const PACKET_BYTES_MAX: usize = PIPE_BUF_BYTES as usize;

pub(super) static PIPE: Mechanism = Mechanism {
    name: "pipe",
    summary: "the kernel's pipe, as `|` makes it",
    capabilities: Capabilities::LINK.union(Capabilities::MANY_SENDERS),
    options: &[
        SIZE_OPTION,
        OptionSpec {
            name: "packet",
            kind: OptionKind::Flag,
            default: "off: a stream of bytes",
            help: "each write of up to 4 KiB is read as one packet (O_DIRECT); the kernel splits longer ones",
        },
        OptionSpec {
            name: "send",
            kind: OptionKind::Choice(&["write", "writev", "vmsplice", "tee"]),
            default: "write",
            help: "write: a copy of the block; writev: copies of pieces of 4 KiB; vmsplice: by reference; tee: references to the same pages each time",
        },
        OptionSpec {
            name: "recv",
            kind: OptionKind::Choice(&["read", "splice"]),
            default: "read",
            help: "read: copied; splice: moved by reference to /dev/null, so that no byte can be checked",
        },
        WAIT_OPTION,
    ],
    link_options: &[SIZE_OPTION.name],
    atomic_bytes: PIPE_BUF_BYTES,
    limits: "size: fs.pipe-max-size for ordinary users; two pages if the user's pipes exceed \
             fs.pipe-user-pages-soft; even a short packet takes a page",
    man_pages: &[
        "pipe(2)",
        "pipe(7)",
        "fcntl(2) F_SETPIPE_SZ",
        "vmsplice(2)",
        "splice(2)",
        "tee(2)",
        "writev(2)",
    ],
    default_specs: &["pipe", "pipe:size=1MiB"],
    more_specs: &[
        "pipe:size=256KiB",
        "pipe:packet",
        "pipe:send=writev",
        "pipe:size=1MiB,wait=spin",
        "pipe:send=vmsplice,size=1MiB",
        "pipe:send=vmsplice,size=1MiB,wait=spin",
        "pipe:send=vmsplice,recv=splice,size=1MiB,wait=spin",
        "pipe:send=tee,recv=splice,size=1MiB,wait=spin",
    ],
    data_with: Some(data_with),
    zero_copy,
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn data_with(options: &Options) -> &'static [DataLevel] {
    match PipeOptions::from_options(options) {
        PipeOptions { send: SendBy::Tee, .. } => &[DataLevel::None],
        PipeOptions { splices: true, .. } => &[DataLevel::None, DataLevel::Write],
        _ => PIPE.data,
    }
}

fn zero_copy(options: &Options) -> Option<ZeroCopy> {
    let asked = PipeOptions::from_options(options);
    let evidence = match asked.send {
        SendBy::Vmsplice => evidence::of_vmsplice(),
        SendBy::Tee => evidence::of_tee(),
        SendBy::Write | SendBy::Writev => return None,
    };
    Some(if asked.splices { evidence } else { but_copied(evidence, 1, "read(2) copies out of the pipe") })
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let asked = PipeOptions::from_options(request.options);
    asked.check(request)?;
    match asked.send {
        SendBy::Write => asked.open_with(request, |end, _| Ok(end)),
        SendBy::Writev => asked.open_with(request, |end, _| Ok(WritevSender(end))),
        SendBy::Tee => asked.open_with(request, |end, _| Ok(TeeSender::new(end))),
        SendBy::Vmsplice => asked.open_with(request, |end, granted| {
            let (sender, ring_bytes) = PipePages::sender(request, end, granted["pipe_bytes"])?;
            granted.insert("ring_bytes".to_owned(), ring_bytes);
            Ok(sender)
        }),
    }
}

fn open_link(options: &Options, _folder: &Folder) -> Result<LinkEnds, OpenError> {
    pipe_ends(options, new_pipe()?)
}

/// The options of a pipe's spec, except its size and how its ends wait.
#[derive(Clone, Copy)]
struct PipeOptions {
    packet: bool,
    send: SendBy,
    /// The receiver splices bytes to /dev/null, and does not read them.
    splices: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum SendBy {
    Write,
    Writev,
    Vmsplice,
    Tee,
}

impl PipeOptions {
    fn from_options(options: &Options) -> Self {
        let sends = [
            ("write", SendBy::Write),
            ("writev", SendBy::Writev),
            ("vmsplice", SendBy::Vmsplice),
            ("tee", SendBy::Tee),
        ];
        Self {
            packet: options.has("packet"),
            send: options.one_of("send", &sends),
            splices: options.word("recv") == Some("splice"),
        }
    }

    /// Refuses options that contradict each other or the request.
    fn check(&self, request: &Request<'_>) -> Result<(), OpenError> {
        let by_reference = matches!(self.send, SendBy::Vmsplice | SendBy::Tee) || self.splices;
        let (message, remedy) = if self.packet && by_reference {
            ("packets are made by write(2) and taken by read(2) only", "send=write or writev, recv=read")
        } else if request.senders.is_some() && self.packet && request.block_bytes > PACKET_BYTES_MAX {
            (
                "blocks above 4 KiB become several packets, which are mixed with those of other senders",
                "--block 4KiB",
            )
        } else if request.relays > 0 && self.splices {
            ("a relay cannot pass on bytes that went to /dev/null", "recv=read")
        } else if request.relays > 0 && self.send == SendBy::Tee {
            (
                "send=tee sends the same pages each time, but a relay sends what it received",
                "send=write or vmsplice",
            )
        } else {
            return Ok(());
        };
        Err(OpenError::unsupported(message, remedy))
    }

    /// A channel whose sender `make_sender` makes from the writing end; the option `recv` determines the receiver.
    fn open_with<S: Sender + 'static>(
        &self,
        request: &Request<'_>,
        make_sender: impl Fn(FdEnd, &mut Granted) -> Result<S, OpenError>,
    ) -> Result<Channel, OpenError> {
        if self.splices {
            self.open_between(request, make_sender, Drain::new)
        } else {
            self.open_between(request, make_sender, Ok)
        }
    }

    fn open_between<S: Sender + 'static, R: Receiver + 'static>(
        &self,
        request: &Request<'_>,
        make_sender: impl Fn(FdEnd, &mut Granted) -> Result<S, OpenError>,
        make_receiver: impl Fn(FdEnd) -> Result<R, OpenError>,
    ) -> Result<Channel, OpenError> {
        let packet = if self.packet { PipeFlags::DIRECT } else { PipeFlags::empty() };
        one_way(request, || {
            let ends = pipe_with(PipeFlags::CLOEXEC | packet).in_call("pipe2")?;
            let Direction { sender, receiver, mut granted, .. } = pipe_direction(request, ends)?;
            if self.packet {
                let packet_bytes = request.block_bytes.min(PACKET_BYTES_MAX);
                granted.insert("packet_bytes".to_owned(), packet_bytes as u64);
            }
            let sender = make_sender(sender, &mut granted)?;
            Ok(Direction { granted, ..Direction::new(sender, make_receiver(receiver)?) })
        })
    }
}

/// A plain pipe: its reading and its writing end.
pub(super) fn new_pipe() -> Result<(OwnedFd, OwnedFd), OpenError> {
    pipe_with(PipeFlags::CLOEXEC).in_call("pipe2")
}

/// Gives a pipe or FIFO the requested size and makes a direction of its reading and its writing end.
pub(super) fn pipe_direction(
    request: &Request<'_>,
    (reader, writer): (OwnedFd, OwnedFd),
) -> Result<Direction<FdEnd, FdEnd>, OpenError> {
    let (wait, bytes) = (FdWait::for_request(request), size_as_asked(request.options, &writer)?);
    Ok(Direction::new(FdEnd::new(writer, wait)?, FdEnd::new(reader, wait)?).granted([("pipe_bytes", bytes)]))
}

/// Makes the ends of a link from a pipe or FIFO: of the requested size, or else as large as this user may have it.
pub(super) fn pipe_ends(
    options: &Options,
    (reader, writer): (OwnedFd, OwnedFd),
) -> Result<LinkEnds, OpenError> {
    if options.size(SIZE_OPTION.name).is_none() {
        grow(&writer).in_call("fcntl(F_SETPIPE_SZ)")?;
    }
    // A FIFO's reading end was opened with O_NONBLOCK; a link's ends are blocking.
    FdWait::InCall.apply(&reader)?;
    let granted = granted([("pipe_bytes", size_as_asked(options, &writer)?)]);
    LinkEnds::new(writer, reader, granted, Transport::Stream)
}

/// Gives a pipe the size in the options, if there is one; returns the size that the kernel granted, in bytes.
pub(super) fn size_as_asked(options: &Options, writer: &OwnedFd) -> Result<u64, OpenError> {
    if let Some(size) = options.size(SIZE_OPTION.name) {
        set_size(writer, size)?;
    }
    let size = fcntl_getpipe_size(writer).in_call("fcntl(F_GETPIPE_SZ)")?;
    Ok(size as u64)
}

fn set_size(writer: &OwnedFd, size: u64) -> Result<(), OpenError> {
    // Above 2^31 the kernel answers EINVAL to all users, root too (fcntl(2)).
    let asked = usize::try_from(size).ok().filter(|size| *size <= 1 << 31).ok_or_else(|| {
        let message = format!("a pipe of {} is more than the kernel can make (2GiB)", ByteSize(size));
        OpenError::limit(message, "a smaller size=")
    })?;
    match fcntl_setpipe_size(writer, asked) {
        Ok(_) => Ok(()),
        Err(Errno::PERM) => Err(refused(size)),
        Err(error) => Err(OpenError::system(format!("fcntl(F_SETPIPE_SZ, {size})"), error, None)),
    }
}

/// The error for EPERM, which has two causes (fcntl(2)): the pipe is larger than one pipe may be, or this user's pipes together are
/// larger than they may be.
fn refused(size: u64) -> OpenError {
    let all_pipes_too_large =
        kernel_setting("fs/pipe-max-size").is_some_and(|largest| size.next_power_of_two() <= largest);
    let (limit, remedy) = if all_pipes_too_large {
        (
            "fs.pipe-user-pages-soft: other pipes have used it up",
            format!("close other pipes, or {}sysctl -w fs.pipe-user-pages-soft=0", sudo()),
        )
    } else {
        ("fs.pipe-max-size", format!("{}sysctl -w fs.pipe-max-size={size}", sudo()))
    };
    OpenError::limit(
        format!("a pipe of {} is more than this user may have ({limit})", ByteSize(size)),
        format!("{remedy}, or a smaller size="),
    )
}
