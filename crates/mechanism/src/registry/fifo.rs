//! `fifo`: a pipe with a name in the file system, fifo(7).

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};

use super::pipe::{SIZE_LIMITS, SIZE_OPTION, pipe_direction, pipe_ends};
use crate::descriptor::{Capabilities, Descriptor};
use crate::leftover::NamedPath;
use crate::link::{LinkEnds, link_request};
use crate::loops::one_way;
use crate::{Channel, Mechanism, OpenError, Request};
use crate::{Folder, Options};

pub(crate) struct Fifo;

impl Mechanism for Fifo {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "fifo",
            summary: "a pipe with a name in the file system",
            capabilities: const { Capabilities::LINK.union(Capabilities::NEEDS_CLEANUP) },
            options: &[SIZE_OPTION],
            link_options: &[SIZE_OPTION.name],
            limits: SIZE_LIMITS,
            man_pages: &["fifo(7)", "mkfifo(3)"],
            default_specs: &["fifo"],
            ..Descriptor::STREAM
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let (reader, writer) = open_both(request)?;
            pipe_direction(request, reader, writer)
        })
    }

    fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        let request = link_request(options, folder);
        Some(open_both(&request).and_then(|(reader, writer)| pipe_ends(&request, reader, writer)))
    }
}

/// Makes the FIFO, opens both ends and removes the name: the ends live on without it.
fn open_both(request: &Request<'_>) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let path = request.folder.path()?.join("fifo");
    let (_removed_on_return, ()) =
        NamedPath::make(path.clone(), |path| mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR))
            .map_err(OpenError::system(format!("mkfifo({})", path.display())))?;
    // Non-blocking, or the open would wait for the other end, which this task opens next (fifo(7)).
    let reader = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .map_err(OpenError::system("open(fifo, O_RDONLY)"))?;
    let writer = open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(OpenError::system("open(fifo, O_WRONLY)"))?;
    Ok((reader, writer))
}
