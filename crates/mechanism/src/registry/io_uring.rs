//! `io-uring`: a pipe or a socket through io_uring(7): requests in a queue instead of system calls.

mod lane;
mod msg_ring;
mod ring;
mod slots;
mod stream;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

use model::{ByteSize, Tasks, Wait, Workload, sudo};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, pipe_with};

use self::ring::{Ring, RingPlan, RingWait};
use self::slots::{Slots, bytes_of};
use self::stream::{RingReader, RingWriter, StreamPlan, Task};
use super::pipe::{SIZE_LIMITS, SIZE_OPTION, set_size};
use crate::descriptor::{BLOCK_OR_SPIN, Descriptor, OptionKind, OptionSpec};
use crate::fd::FdWait;
use crate::loops::{Direction, assemble, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request, Unsupported};

/// The largest buffer that can be registered (io_uring_register(2)), and the longest request by far.
const BUFFER_BYTES_MAX: usize = 1 << 30;

/// Memory that an ended trial had registered is let go of a little later: how often, and how long after each
/// time, a refusal is not believed.
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct IoUring;

impl Mechanism for IoUring {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "io-uring",
            summary: "a pipe or a socket through io_uring: requests in a queue shared with the kernel",
            waits: BLOCK_OR_SPIN,
            options: &[
                OptionSpec {
                    name: "on",
                    kind: OptionKind::Choice(&["pipe", "socket", "msg-ring"]),
                    default: "pipe",
                    help: "what lies beneath; msg-ring: shared memory, and IORING_OP_MSG_RING from ring to ring",
                },
                SIZE_OPTION,
                OptionSpec {
                    name: "depth",
                    kind: OptionKind::Choice(&["1", "2", "4", "8", "16", "32", "64"]),
                    default: "2",
                    help: "buffers each way: half of them in flight, as one chain, the others being worked on",
                },
                OptionSpec {
                    name: "fixed",
                    kind: OptionKind::Flag,
                    default: "off",
                    help: "buffers and descriptors are registered (READ_FIXED, WRITE_FIXED)",
                },
                OptionSpec {
                    name: "sqpoll",
                    kind: OptionKind::Flag,
                    default: "off",
                    help: "a thread of the kernel takes the requests (IORING_SETUP_SQPOLL): no system call, one CPU more",
                },
            ],
            limits: SIZE_LIMITS,
            man_pages: &["io_uring(7)", "io_uring_setup(2)", "io_uring_enter(2)", "io_uring_register(2)"],
            more_specs: &[
                "io-uring",
                "io-uring:size=1MiB",
                "io-uring:fixed,size=1MiB",
                "io-uring:size=1MiB,sqpoll",
                "io-uring:on=socket",
                "io-uring:on=msg-ring",
            ],
            ..Descriptor::STREAM
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        let plan = RingPlan { entries: 1, wait: RingWait::Enter, sqpoll: false, inherited: false };
        Ring::set_up(plan).map(|_| ()).map_err(|error| why_not(&error))
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        if request.options.word("on") == Some("msg-ring") {
            return msg_ring::open(request);
        }
        let plan = plan(request)?;
        if plan.fixed {
            try_to_register(request, &plan)?;
        }
        if request.workload == Workload::PingPong && request.tasks != Tasks::Single {
            return round_trips(request, plan);
        }
        one_way(request, || {
            let (reader, writer, granted) = connect(request, &plan)?;
            let (sender, receiver) = if plan.alone {
                let task = Task::shared(plan, Some(writer), Some(reader));
                (task.writer(), task.reader())
            } else {
                let (near, far) =
                    (Task::shared(plan, Some(writer), None), Task::shared(plan, None, Some(reader)));
                (near.writer(), far.reader())
            };
            Ok(Direction { sender, receiver, granted })
        })
    }
}

/// Each task has one ring, for what it asks and what it is answered.
fn round_trips(request: &Request<'_>, plan: StreamPlan) -> Result<Channel, OpenError> {
    let (far_in, near_out, granted) = connect(request, &plan)?;
    let (near_in, far_out, _) = connect(request, &plan)?;
    let near = Task::shared(plan, Some(near_out), Some(near_in));
    let far = Task::shared(plan, Some(far_out), Some(far_in));
    let forth: Direction<RingWriter, RingReader> =
        Direction { sender: near.writer(), receiver: far.reader(), granted };
    let back = Direction { sender: far.writer(), receiver: near.reader(), granted: Granted::new() };
    Ok(assemble(request, forth, Some(back)))
}

fn plan(request: &Request<'_>) -> Result<StreamPlan, OpenError> {
    let options = request.options;
    let block_bytes = request.block_bytes;
    if block_bytes > BUFFER_BYTES_MAX {
        return Err(OpenError::block_too_large(
            block_bytes,
            BUFFER_BYTES_MAX as u64,
            "one request of io_uring",
            "another mechanism",
        ));
    }
    let depth = options.word("depth").and_then(|word| word.parse().ok()).unwrap_or(2);
    Ok(StreamPlan {
        socket: options.word("on") == Some("socket"),
        fixed: options.flag("fixed"),
        sqpoll: options.flag("sqpoll"),
        wait: ring_wait(request),
        alone: request.tasks == Tasks::Single,
        answered: request.tasks != Tasks::Single && request.workload == Workload::PingPong,
        depth,
        block_bytes,
    })
}

fn ring_wait(request: &Request<'_>) -> RingWait {
    if request.wait == Wait::Spin { RingWait::Look } else { RingWait::Enter }
}

/// A reading and a writing descriptor. They never fail to wait, except where one task would wait for itself:
/// io_uring does the waiting.
fn connect(request: &Request<'_>, plan: &StreamPlan) -> Result<(OwnedFd, OwnedFd, Granted), OpenError> {
    let (reader, writer, granted) = if plan.socket {
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (reader, writer) = pair.map_err(OpenError::system("socketpair(AF_UNIX, SOCK_STREAM)"))?;
        if request.options.size("size").is_some() {
            return Err(OpenError::Unsupported {
                message: "size= is a pipe's".to_owned(),
                remedy: "on=pipe, or without size=".to_owned(),
            });
        }
        let sndbuf =
            sockopt::socket_send_buffer_size(&writer).map_err(OpenError::system("getsockopt(SO_SNDBUF)"))?;
        (reader, writer, Granted::from([("sndbuf_bytes".to_owned(), sndbuf as u64)]))
    } else {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(OpenError::system("pipe2"))?;
        if let Some(size) = request.options.size("size") {
            set_size(&writer, size)?;
        }
        let size = fcntl_getpipe_size(&writer).map_err(OpenError::system("fcntl(F_GETPIPE_SZ)"))?;
        (reader, writer, Granted::from([("pipe_bytes".to_owned(), size as u64)]))
    };
    let mode = if plan.alone { FdWait::Never } else { FdWait::InCall };
    mode.apply(&reader)?;
    mode.apply(&writer)?;
    Ok((reader, writer, granted))
}

/// Registers as much memory as the trial's tasks will together, and lets go of it again: what is refused here
/// is a limit, stated before anything runs.
fn try_to_register(request: &Request<'_>, plan: &StreamPlan) -> Result<(), OpenError> {
    let directions = if request.workload == Workload::PingPong { 2 } else { 1 + request.relays as usize };
    let count = 2 * directions * plan.depth;
    let bytes = bytes_of(count, plan.block_bytes).unwrap_or(usize::MAX);
    let ring_plan = RingPlan { entries: 1, wait: RingWait::Enter, sqpoll: false, inherited: false };
    let ring = Ring::set_up(ring_plan).map_err(OpenError::system("io_uring_setup"))?;
    let register = || {
        Slots::new(count, plan.block_bytes)?.register_with(&ring)?;
        ring.unregister_buffers()
    };
    let mut registered = register();
    for _ in 0..RETRIES {
        match &registered {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => sleep(PAUSE),
            _ => break,
        }
        registered = register();
    }
    match registered {
        Ok(()) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => Err(OpenError::Limit {
            message: format!(
                "{} of registered buffers are more than this user may lock into memory (RLIMIT_MEMLOCK)",
                ByteSize(bytes as u64)
            ),
            remedy: format!("ulimit -l {} (KiB), a smaller depth= or --block, or without fixed", bytes >> 9),
        }),
        Err(error) => Err(OpenError::system("io_uring_register(IORING_REGISTER_BUFFERS)")(error)),
    }
}

/// Who forbids io_uring: the administrator, a sandbox, or the kernel's maker.
fn why_not(error: &io::Error) -> Unsupported {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let (reason, remedy) = match (error.raw_os_error(), disabled.trim()) {
        (Some(libc::EPERM), "1") => (
            "kernel.io_uring_disabled is 1: only for root and kernel.io_uring_group".to_owned(),
            format!("{}sysctl -w kernel.io_uring_disabled=0, or join that group", sudo()),
        ),
        (Some(libc::EPERM), "2") => (
            "kernel.io_uring_disabled is 2: for nobody".to_owned(),
            format!("{}sysctl -w kernel.io_uring_disabled=0", sudo()),
        ),
        (Some(libc::EPERM | libc::EACCES), _) => (
            "io_uring_setup: EPERM: a sandbox forbids it (seccomp, as containers have it)".to_owned(),
            "outside of the container, or a seccomp profile that allows io_uring_setup".to_owned(),
        ),
        (Some(libc::ENOSYS), _) => (
            "io_uring_setup: ENOSYS: the kernel has no io_uring, or a sandbox says so".to_owned(),
            "a kernel with CONFIG_IO_URING=y, or a seccomp profile that allows io_uring_setup".to_owned(),
        ),
        _ => (
            format!("io_uring_setup: {}", model::describe_errno(error)),
            "look at ulimit -n and ulimit -l".to_owned(),
        ),
    };
    Unsupported { reason, remedy: Some(remedy) }
}
