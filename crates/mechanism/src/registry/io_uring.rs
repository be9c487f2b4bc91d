//! `io-uring`: a pipe or a socket through io_uring(7): requests in a queue instead of system calls.

use std::fs;
use std::time::Duration;

use process::{Retries, retry_rare};
use rustix::net::SocketType;

use self::plan::Plan;
use self::ring::Ring;
use self::slots::{Slots, bytes_of};
use self::stream::TaskEnd;
use super::pipe::{SIZE_LIMITS, SIZE_OPTION, new_pipe, size_as_asked};
use super::sockets::{sndbuf_bytes, unix_pair};
use crate::prelude::*;

mod lane;
mod plan;
mod ring;
mod slots;
mod stream;

/// The largest buffer that can be registered (io_uring_register(2)), and the longest request by far.
const BUFFER_BYTES_MAX: usize = 1 << 30;

/// For a refused registration: the kernel releases the memory of an ended trial a little later.
const UNTIL_RELEASED: Retries = Retries { calls_max: 6, pause: Duration::from_millis(10) };

pub(super) static IO_URING: Mechanism = Mechanism {
    name: "io-uring",
    summary: "a pipe or a socket through io_uring: requests in a queue shared with the kernel",
    waits: BLOCK_OR_SPIN,
    options: &[
        OptionSpec {
            name: "on",
            kind: OptionKind::Choice(&["pipe", "socket"]),
            default: "pipe",
            help: "what carries the bytes",
        },
        SIZE_OPTION,
        OptionSpec {
            name: "depth",
            kind: OptionKind::Choice(&["1", "2", "4", "8", "16", "32", "64"]),
            default: "2",
            help: "buffers each way: half of them in flight, as one chain, the others being filled or checked",
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
    ],
    in_place: |_| true,
    probe,
    ..Mechanism::stream(open_channel)
};

fn probe() -> Result<(), OpenError> {
    Ring::set_up(1, false, false).map(drop).map_err(why_not)
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
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
            TaskEnd::pair(plan, Some(writer), Some(reader))
        } else {
            let (sender, _) = TaskEnd::pair(plan, Some(writer), None);
            (sender, TaskEnd::pair(plan, None, Some(reader)).1)
        };
        Ok(Direction { granted, ..Direction::new(sender, receiver) })
    })
}

/// Each task has one ring for both what it sends and what it receives. `far_in` is where the far task reads what the near
/// one sends.
fn round_trips(request: &Request<'_>, plan: Plan) -> Result<Channel, OpenError> {
    let (far_in, near_out, granted) = connect(request, &plan)?;
    let (near_in, far_out, _) = connect(request, &plan)?;
    let (asks, is_answered) = TaskEnd::pair(plan, Some(near_out), Some(near_in));
    let (answers, is_asked) = TaskEnd::pair(plan, Some(far_out), Some(far_in));
    let forth = Direction { granted, ..Direction::new(asks, is_asked) };
    Ok(assemble(request, forth, Some(Direction::new(answers, is_answered))))
}

fn plan(request: &Request<'_>) -> Result<Plan, OpenError> {
    let options = request.options;
    let block_bytes = request.block_bytes;
    if block_bytes > BUFFER_BYTES_MAX {
        let (most, limit) = (BUFFER_BYTES_MAX as u64, "one request of io_uring");
        return Err(OpenError::block_too_large(block_bytes, most, limit, "another mechanism"));
    }
    Ok(Plan {
        socket: options.word("on") == Some("socket"),
        fixed: options.has("fixed"),
        sqpoll: options.has("sqpoll"),
        spins: request.wait == Wait::Spin,
        alone: request.tasks == Tasks::Single,
        answered: request.tasks != Tasks::Single && request.workload == Workload::PingPong,
        depth: options.parsed("depth").unwrap_or(2),
        block_bytes,
    })
}

/// A reading and a writing descriptor. They are blocking, since io_uring does the waiting; non-blocking only if a single
/// task has both, as it would wait for itself.
fn connect(request: &Request<'_>, plan: &Plan) -> Result<(OwnedFd, OwnedFd, Granted), OpenError> {
    let options = request.options;
    if plan.socket && options.size(SIZE_OPTION.name).is_some() {
        return Err(OpenError::unsupported("size= is a pipe's", "on=pipe, or without size="));
    }
    let (reader, writer) = if plan.socket { unix_pair(options, SocketType::STREAM)? } else { new_pipe()? };
    let granted = granted([if plan.socket {
        ("sndbuf_bytes", sndbuf_bytes(&writer)?)
    } else {
        ("pipe_bytes", size_as_asked(options, &writer)?)
    }]);
    let mode = if plan.alone { FdWait::Never } else { FdWait::InCall };
    mode.apply(&reader)?;
    mode.apply(&writer)?;
    Ok((reader, writer, granted))
}

/// Registers as much memory as all tasks of the trial will, and unregisters it: so a limit is reported before any task
/// starts.
fn try_to_register(request: &Request<'_>, plan: &Plan) -> Result<(), OpenError> {
    let directions = if request.workload == Workload::PingPong { 2 } else { 1 + request.relays as usize };
    let count = 2 * directions * plan.depth;
    let bytes = bytes_of(count, plan.block_bytes).unwrap_or(usize::MAX);
    let ring = Ring::set_up(1, false, false).in_call("io_uring_setup")?;
    let register = || {
        Slots::new(count, plan.block_bytes)?.register_with(&ring.submitter())?;
        ring.submitter().unregister_buffers()
    };
    let is_refused = |error: &io::Error| error.raw_os_error() == Some(libc::ENOMEM);
    let registered = retry_rare(UNTIL_RELEASED, is_refused, register);
    if registered.as_ref().is_err_and(is_refused) {
        return Err(OpenError::limit(
            format!(
                "{} of registered buffers are more than this user may lock into memory (RLIMIT_MEMLOCK)",
                ByteSize(bytes as u64)
            ),
            format!("ulimit -l {} (KiB), a smaller depth= or --block, or without fixed", bytes >> 9),
        ));
    }
    registered.in_call("io_uring_register(IORING_REGISTER_BUFFERS)")
}

/// The reason why io_uring is refused: a setting of the administrator, a sandbox, or a kernel built without it.
fn why_not(error: io::Error) -> OpenError {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match (error.raw_os_error(), disabled.trim()) {
        (Some(libc::EPERM), "1") => OpenError::unsupported(
            "kernel.io_uring_disabled is 1: only for root and kernel.io_uring_group",
            format!("{}sysctl -w kernel.io_uring_disabled=0, or join that group", sudo()),
        ),
        (Some(libc::EPERM), "2") => OpenError::unsupported(
            "kernel.io_uring_disabled is 2: off for all users, root too",
            format!("{}sysctl -w kernel.io_uring_disabled=0", sudo()),
        ),
        (Some(libc::EPERM | libc::EACCES), _) => OpenError::forbidden("io_uring_setup", &error),
        (Some(libc::ENOSYS), _) => OpenError::unsupported(
            "io_uring_setup: ENOSYS: the kernel has no io_uring, or a sandbox says so",
            "a kernel with CONFIG_IO_URING=y, or a seccomp profile that allows io_uring_setup",
        ),
        _ => OpenError::system("io_uring_setup", error, Some("look at ulimit -n and ulimit -l".to_owned())),
    }
}
