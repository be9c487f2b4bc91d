//! `fifo`: a pipe with a name in the file system, fifo(7).

use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};

use super::pipe::{PIPE_BUF_BYTES, SIZE_LIMITS, SIZE_OPTION, pipe_direction, pipe_ends};
use crate::leftover::announcer;
use crate::prelude::*;
use process::TemporaryPath;

pub(super) static FIFO: Mechanism = Mechanism {
    name: "fifo",
    summary: "a pipe with a name in the file system",
    capabilities: Capabilities::LINK.union(Capabilities::NEEDS_CLEANUP).union(Capabilities::MANY_SENDERS),
    options: &[SIZE_OPTION],
    link_options: &[SIZE_OPTION.name],
    link_differs: "a reader that opens /dev/stdin when its writer has gone, or a writer that opens /dev/stdout when its reader \
                   has gone, waits for ever",
    atomic_bytes: PIPE_BUF_BYTES,
    limits: SIZE_LIMITS,
    man_pages: &["fifo(7)", "mkfifo(3)"],
    default_specs: &["fifo"],
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    one_way(request, || pipe_direction(request, open_both(request.folder)?))
}

fn open_link(options: &Options, _folder: &Folder) -> Result<LinkEnds, OpenError> {
    pipe_ends(options, open_both(&Folder::for_brief_names())?)
}

/// Makes the FIFO, opens the reading and the writing end, and removes the name, which open ends do not need.
fn open_both(folder: &Folder) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let path = folder.path()?.join("fifo");
    let (_removed_on_return, ()) =
        TemporaryPath::make(&announcer(), path.clone(), |path| mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR))
            .in_call(format!("mkfifo({})", path.display()))?;
    // Non-blocking: otherwise open(2) would wait for the other end, which this task opens next (fifo(7)).
    let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .in_call("open(fifo, O_RDONLY)")?;
    let writer =
        open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).in_call("open(fifo, O_WRONLY)")?;
    Ok((reader, writer))
}
