//! `pipe`: the kernel's own pipe, pipe(7).

use std::os::fd::OwnedFd;

use model::{ByteSize, Role};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::channel::{Channel, Granted, Mechanism, OpenError, Request};
use crate::descriptor::{ANY_DATA, ANY_TASKS, ANY_WAIT, ANY_WORKLOAD, Capabilities, Descriptor};
use crate::descriptor::{OptionKind, OptionSpec};
use crate::fd::{FdReceiver, FdSender, FdWait};
use crate::halves::{Line, one_way};

/// The option every pipe-like mechanism has.
pub(super) const SIZE_OPTION: OptionSpec = OptionSpec {
    name: "size",
    kind: OptionKind::Size,
    default: "64KiB, what pipe(2) gives",
    help: "bytes the pipe holds (F_SETPIPE_SZ; the kernel rounds up to a power of two of pages)",
};

/// What bounds a pipe's size.
pub(super) const SIZE_LIMITS: &str =
    "size: fs.pipe-max-size for ordinary users; one page once fs.pipe-user-pages-soft is spent";

static DESCRIPTOR: Descriptor = Descriptor {
    name: "pipe",
    summary: "the kernel's pipe, as `|` makes it",
    role: Role::Ranked,
    capabilities: Capabilities {
        link: true,
        keeps_boundaries: false,
        stores_data: false,
        crosses_hosts: false,
        needs_cleanup: false,
    },
    workloads: ANY_WORKLOAD,
    tasks: ANY_TASKS,
    waits: ANY_WAIT,
    data: ANY_DATA,
    options: &[SIZE_OPTION],
    limits: SIZE_LIMITS,
    man_pages: &["pipe(2)", "pipe(7)", "fcntl(2) F_SETPIPE_SZ"],
    default_specs: &["pipe", "pipe:size=1MiB"],
    more_specs: &["pipe:size=256KiB"],
};

pub(crate) struct Pipe;

impl Mechanism for Pipe {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(OpenError::system("pipe2"))?;
            pipe_line(request, reader, writer)
        })
    }
}

/// Sizes a pipe or FIFO as asked and makes a line of its two descriptors.
pub(super) fn pipe_line(
    request: &Request<'_>,
    reader: OwnedFd,
    writer: OwnedFd,
) -> Result<Line<FdSender, FdReceiver>, OpenError> {
    if let Some(size) = request.options.size("size") {
        set_size(&writer, size)?;
    }
    let size = fcntl_getpipe_size(&writer).map_err(OpenError::system("fcntl(F_GETPIPE_SZ)"))?;
    let wait = FdWait::of(request);
    Ok(Line {
        sender: FdSender::new(writer, wait)?,
        receiver: FdReceiver::new(reader, wait)?,
        granted: Granted::from([("pipe_bytes".to_owned(), size as u64)]),
    })
}

fn set_size(writer: &OwnedFd, size: u64) -> Result<(), OpenError> {
    let limit = || OpenError::Limit {
        message: format!("a pipe of {} is more than this user may have (fs.pipe-max-size)", ByteSize(size)),
        remedy: format!("sudo sysctl -w fs.pipe-max-size={size}, or a smaller size="),
    };
    // Above 2^31 the kernel answers EINVAL to everybody, root included (fcntl(2)).
    let asked =
        usize::try_from(size).ok().filter(|size| *size <= 1 << 31).ok_or_else(|| OpenError::Limit {
            message: format!("a pipe of {} is more than the kernel can make (2GiB)", ByteSize(size)),
            remedy: "a smaller size=".to_owned(),
        })?;
    match fcntl_setpipe_size(writer, asked) {
        Ok(_) => Ok(()),
        Err(Errno::PERM) => Err(limit()),
        Err(error) => Err(OpenError::system(format!("fcntl(F_SETPIPE_SZ, {size})"))(error)),
    }
}
