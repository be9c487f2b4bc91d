//! `pipe`: the kernel's own pipe, pipe(7), and the faster roads into it and out of it: splice(2) and its kin.

use std::os::fd::OwnedFd;

use model::{ByteSize, DataLevel, Wait, ZeroCopy, sudo};
use rustix::io::Errno;
use rustix::param::page_size;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::descriptor::{Capabilities, Descriptor, OptionKind, OptionSpec};
use crate::fd::{FdReceiver, FdSender, FdWait};
use crate::link::{LinkEnds, LinkKind, grow, link_request};
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request};
use crate::{Folder, Options, Receiver, Sender};

mod drain;
pub(super) mod file_ring;
pub(super) mod page_ring;
mod tee;
pub(super) mod vmsplice;
mod writev;

use super::evidence::{self, but_copied};
use drain::Drain;
use tee::TeeSender;
use vmsplice::VmspliceSender;
use writev::WritevSender;

/// The option every pipe-like mechanism has.
pub(super) const SIZE_OPTION: OptionSpec = OptionSpec {
    name: "size",
    kind: OptionKind::Size,
    default: "64KiB, what pipe(2) gives; between programs 1MiB, or what is granted of it",
    help: "bytes the pipe holds (F_SETPIPE_SZ; the kernel rounds up to a power of two of pages)",
};

/// How both ends wait, as a part of the spec.
pub(super) const WAIT_OPTION: OptionSpec = OptionSpec {
    name: "wait",
    kind: OptionKind::Choice(&["block", "poll", "spin"]),
    default: "block, or what --wait says",
    help: "how an end waits: asleep in the call, asleep in poll(2), or trying again at once",
};

/// What bounds a pipe's size.
pub(super) const SIZE_LIMITS: &str =
    "size: fs.pipe-max-size for ordinary users; two pages once fs.pipe-user-pages-soft is spent";

/// The longest packet: PIPE_BUF, as limits.h has it on Linux. A longer block arrives as several (pipe(2)): every
/// byte of it, but no longer its boundaries.
const PACKET_BYTES_MAX: usize = 4096;

pub(crate) struct Pipe;

impl Mechanism for Pipe {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "pipe",
            summary: "the kernel's pipe, as `|` makes it",
            capabilities: Capabilities::LINK,
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
                    help: "copied in whole, or gathered from pieces of 4 KiB; by reference, or the same pages again and again",
                },
                OptionSpec {
                    name: "recv",
                    kind: OptionKind::Choice(&["read", "splice"]),
                    default: "read",
                    help: "copied out, or moved by reference to /dev/null, where nobody can look at it",
                },
                WAIT_OPTION,
            ],
            link_options: &[SIZE_OPTION.name],
            limits: "size: fs.pipe-max-size for ordinary users; two pages once fs.pipe-user-pages-soft is spent; a packet \
                     takes a page of it, however short",
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
            ..Descriptor::STREAM
        }
    }

    fn wait(&self, options: &Options) -> Wait {
        wait_of(options).unwrap_or(Wait::Block)
    }

    fn data(&self, options: &Options) -> &'static [DataLevel] {
        match (options.word("send"), options.word("recv")) {
            (Some("tee"), _) => &[DataLevel::None],
            (_, Some("splice")) => &[DataLevel::None, DataLevel::Write],
            _ => self.descriptor().data,
        }
    }

    fn zero_copy(&self, options: &Options) -> Option<ZeroCopy> {
        let evidence = match options.word("send") {
            Some("vmsplice") => evidence::of_vmsplice(),
            Some("tee") => evidence::of_tee(),
            _ => return None,
        };
        Some(match options.word("recv") {
            Some("splice") => evidence,
            _ => but_copied(evidence, 1, "read(2) copies out of the pipe"),
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let request = &Request { wait: wait_of(request.options).unwrap_or(request.wait), ..*request };
        check_combination(request)?;
        let wait = FdWait::of(request);
        match (request.options.word("send"), request.options.word("recv")) {
            (None | Some("write"), None | Some("read")) => one_way(request, || {
                pair(request).and_then(|(reader, writer)| pipe_direction(request, reader, writer))
            }),
            (None | Some("write"), _) => open_with(request, |fd, _| FdSender::new(fd, wait)),
            (Some("writev"), _) => open_with(request, |fd, _| WritevSender::new(fd, wait)),
            (Some("tee"), _) => open_with(request, |fd, _| TeeSender::new(fd, wait)),
            (_, _) => open_with(request, |fd, granted| {
                let slots = granted["pipe_bytes"] as usize / page_size();
                let sender = VmspliceSender::new(request, fd, wait, slots)?;
                granted.insert("ring_bytes".to_owned(), sender.ring_bytes());
                Ok(sender)
            }),
        }
    }

    fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        let request = link_request(options, folder);
        Some(pair(&request).and_then(|(reader, writer)| pipe_ends(&request, reader, writer)))
    }
}

/// How the spec says that ends wait.
pub(super) fn wait_of(options: &Options) -> Option<Wait> {
    options.word("wait").and_then(|word| word.parse().ok())
}

/// What the calls of splice(2)'s family are told, since not all of them look at O_NONBLOCK.
pub(super) fn splice_flags(wait: FdWait) -> SpliceFlags {
    if wait == FdWait::InCall { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK }
}

/// Options that contradict each other or the task at hand.
fn check_combination(request: &Request<'_>) -> Result<(), OpenError> {
    let refuse = |message: &str, remedy: &str| {
        Err(OpenError::Unsupported { message: message.to_owned(), remedy: remedy.to_owned() })
    };
    let (send, recv) = (request.options.word("send"), request.options.word("recv"));
    let by_reference = matches!(send, Some("vmsplice" | "tee")) || recv == Some("splice");
    if request.options.flag("packet") && by_reference {
        return refuse(
            "packets are made by write(2) and taken by read(2) only",
            "send=write or writev, recv=read",
        );
    }
    if request.relays > 0 && recv == Some("splice") {
        return refuse("a relay cannot pass on what went to /dev/null", "recv=read");
    }
    if request.relays > 0 && send == Some("tee") {
        return refuse("a relay has nothing of its own to send again and again", "send=write or vmsplice");
    }
    Ok(())
}

fn pair(request: &Request<'_>) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let packet = if request.options.flag("packet") { PipeFlags::DIRECT } else { PipeFlags::empty() };
    pipe_with(PipeFlags::CLOEXEC | packet).map_err(OpenError::system("pipe2"))
}

/// A channel whose sender is made of the writing end; the receiver is what `recv=` says.
fn open_with<S: Sender + 'static>(
    request: &Request<'_>,
    make_sender: impl Fn(OwnedFd, &mut Granted) -> Result<S, OpenError>,
) -> Result<Channel, OpenError> {
    let wait = FdWait::of(request);
    if request.options.word("recv") == Some("splice") {
        open_between(request, make_sender, |fd| Drain::new(fd, wait))
    } else {
        open_between(request, make_sender, |fd| FdReceiver::new(fd, wait))
    }
}

fn open_between<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    make_sender: impl Fn(OwnedFd, &mut Granted) -> Result<S, OpenError>,
    make_receiver: impl Fn(OwnedFd) -> Result<R, OpenError>,
) -> Result<Channel, OpenError> {
    one_way(request, || {
        let (reader, writer) = pair(request)?;
        let mut granted = size_as_asked(request, &writer)?;
        Ok(Direction {
            sender: make_sender(writer, &mut granted)?,
            receiver: make_receiver(reader)?,
            granted,
        })
    })
}

/// Sizes a pipe or FIFO as asked and makes a line of its two descriptors.
pub(super) fn pipe_direction(
    request: &Request<'_>,
    reader: OwnedFd,
    writer: OwnedFd,
) -> Result<Direction<FdSender, FdReceiver>, OpenError> {
    let granted = size_as_asked(request, &writer)?;
    let wait = FdWait::of(request);
    Ok(Direction { sender: FdSender::new(writer, wait)?, receiver: FdReceiver::new(reader, wait)?, granted })
}

/// Makes a pipe or FIFO the ends of a link: sized as asked, or else as large as it may be.
pub(super) fn pipe_ends(
    request: &Request<'_>,
    reader: OwnedFd,
    writer: OwnedFd,
) -> Result<LinkEnds, OpenError> {
    if request.options.size(SIZE_OPTION.name).is_none() {
        grow(&writer).map_err(OpenError::system("fcntl(F_SETPIPE_SZ)"))?;
    }
    // Both ends have one size; whoever opened a FIFO without waiting gives the reader its ordinary mode back.
    FdWait::InCall.apply(&reader)?;
    let granted = size_as_asked(request, &writer)?;
    LinkEnds::new(writer, reader, granted, LinkKind::Stream)
}

/// Sizes a pipe as the options ask, and says what the kernel gave.
pub(super) fn size_as_asked(request: &Request<'_>, writer: &OwnedFd) -> Result<Granted, OpenError> {
    if let Some(size) = request.options.size("size") {
        set_size(writer, size)?;
    }
    let size = fcntl_getpipe_size(writer).map_err(OpenError::system("fcntl(F_GETPIPE_SZ)"))?;
    let mut granted = Granted::from([("pipe_bytes".to_owned(), size as u64)]);
    if request.options.flag("packet") {
        granted.insert("packet_bytes".to_owned(), request.block_bytes.min(PACKET_BYTES_MAX) as u64);
    }
    Ok(granted)
}

pub(super) fn set_size(writer: &OwnedFd, size: u64) -> Result<(), OpenError> {
    // Above 2^31 the kernel answers EINVAL to everybody, root included (fcntl(2)).
    let asked =
        usize::try_from(size).ok().filter(|size| *size <= 1 << 31).ok_or_else(|| OpenError::Limit {
            message: format!("a pipe of {} is more than the kernel can make (2GiB)", ByteSize(size)),
            remedy: "a smaller size=".to_owned(),
        })?;
    match fcntl_setpipe_size(writer, asked) {
        Ok(_) => Ok(()),
        Err(Errno::PERM) => Err(refused(size)),
        Err(error) => Err(OpenError::system(format!("fcntl(F_SETPIPE_SZ, {size})"))(error)),
    }
}

/// EPERM has two causes (fcntl(2)): the pipe is too large, or this user's pipes together are.
fn refused(size: u64) -> OpenError {
    let text = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap_or_default();
    let spent = text.trim().parse().is_ok_and(|largest: u64| size.next_power_of_two() <= largest);
    let (limit, remedy) = if spent {
        (
            "fs.pipe-user-pages-soft: other pipes have spent it",
            format!("close other pipes, or {}sysctl -w fs.pipe-user-pages-soft=0", sudo()),
        )
    } else {
        ("fs.pipe-max-size", format!("{}sysctl -w fs.pipe-max-size={size}", sudo()))
    };
    OpenError::Limit {
        message: format!("a pipe of {} is more than this user may have ({limit})", ByteSize(size)),
        remedy: format!("{remedy}, or a smaller size="),
    }
}
