//! Mechanisms that can stand between two unmodified programs: a descriptor to write to and one to read from.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::system::{InCall, kernel_setting};
use crate::{Granted, OpenError, Options};
use process::TemporaryPath;

/// The two ends of a link. Both are close-on-exec, in blocking mode, and none is descriptor 0, 1 or 2, so that
/// they can be moved there in any order.
#[derive(Debug)]
pub struct LinkEnds {
    /// Where the writing program's standard output goes.
    pub write: OwnedFd,
    /// Where the bytes come out. `transport` tells whether the reading program can have this end itself or needs a relay.
    pub read: OwnedFd,
    /// Sizes that the system granted.
    pub granted: Granted,
    /// How the bytes travel.
    pub transport: Transport,
}

/// How bytes travel over a link: what a caller must know to connect programs with it.
#[derive(Debug)]
pub enum Transport {
    /// As over a pipe: the reading end waits for bytes, and reads 0 when the writing end is closed.
    Stream,
    /// Through a file. Its reading end does not wait for more; a relay must follow the writer or wait for it.
    Stored(Stored),
    /// Through a terminal: at the end of the stream its reading end returns EIO, where a pipe returns 0.
    Terminal,
}

/// The file of a link.
#[derive(Debug)]
pub struct Stored {
    /// When the reader may start.
    pub order: Order,
    /// The folder of the file; its file system stores the bytes.
    pub folder: PathBuf,
    /// Its name, which is removed when this is dropped; `None` if the file has no name (O_TMPFILE).
    pub name: Option<TemporaryPath>,
}

/// When the reader of a file starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// With the writer, which it follows.
    Parallel,
    /// When the writer has finished.
    Sequential,
}

impl Order {
    /// The value of the option `order`; parallel if it is not given.
    pub fn from_options(options: &Options) -> Self {
        options.one_of("order", &[("parallel", Self::Parallel), ("sequential", Self::Sequential)])
    }
}

impl LinkEnds {
    /// Ends of a link, moved above the standard descriptors.
    ///
    /// # Errors
    /// EMFILE: a descriptor had to be moved, and this process may open no more.
    pub(crate) fn new(
        write: OwnedFd,
        read: OwnedFd,
        granted: Granted,
        transport: Transport,
    ) -> Result<Self, OpenError> {
        Ok(Self { write: above_standard(write)?, read: above_standard(read)?, granted, transport })
    }
}

/// The same descriptor with a number above 2. If this process was started without standard descriptors, the kernel gives
/// their numbers to the next files that are opened.
fn above_standard(fd: OwnedFd) -> Result<OwnedFd, OpenError> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    fcntl_dupfd_cloexec(&fd, 3).in_call("fcntl(F_DUPFD_CLOEXEC, 3)")
}

/// Capacity of a new pipe in bytes, unless its user is above fs.pipe-user-pages-soft: 16 pages (pipe(7)), 64 KiB on most machines.
pub fn default_pipe_bytes() -> u64 {
    16 * rustix::param::page_size() as u64
}

/// A pipe as large as [`grow`] makes it, for relays of bytes into a program: the writing end, the reading
/// end (both close-on-exec), and its size in bytes.
pub fn large_pipe() -> io::Result<(OwnedFd, OwnedFd, u64)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let pipe_bytes = grow(&write)?;
    Ok((write, read, pipe_bytes))
}

/// The largest pipe that a link requests, in bytes. With 1 MiB the cost of wake-ups is small; with more the data would leave the
/// core's cache before it is read.
const PIPE_BYTES_MAX: usize = 1 << 20;

/// Makes a pipe as large as this user may have it, up to [`PIPE_BYTES_MAX`]: after each refusal it requests half as much, until
/// that is no more than the pipe has. Returns its size in bytes.
pub(crate) fn grow(pipe: &impl AsFd) -> io::Result<u64> {
    let limit = kernel_setting("fs/pipe-max-size").unwrap_or(u64::MAX);
    let mut asked = limit.min(PIPE_BYTES_MAX as u64) as usize;
    let held = fcntl_getpipe_size(pipe)?;
    while asked > held {
        match fcntl_setpipe_size(pipe, asked) {
            Ok(_) => break,
            // EPERM: a limit of this user (fcntl(2)); ENOMEM: no memory for it. A smaller size may succeed.
            Err(Errno::PERM | Errno::BUSY | Errno::NOMEM) => asked /= 2,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(fcntl_getpipe_size(pipe)? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, Folder};
    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::io::{FdFlags, fcntl_getfd};

    #[test]
    fn mechanisms_with_the_capability_link_open_a_link() {
        let folder = tempfile::tempdir().expect("temp dir");
        for mechanism in crate::all() {
            let answer = mechanism.connect(&Options::default(), &Folder::at(folder.path()));
            assert_eq!(
                answer.is_some(),
                mechanism.capabilities.contains(Capabilities::LINK),
                "{}",
                mechanism.name
            );
            let known = |name: &&str| mechanism.options.iter().any(|option| option.name == *name);
            assert!(mechanism.link_options.iter().all(known), "{}", mechanism.name);
            assert!(answer.is_some() || mechanism.link_options.is_empty());
            let Some(Ok(ends)) = answer else { continue };
            for end in [&ends.write, &ends.read] {
                assert!(end.as_raw_fd() > 2, "{}", mechanism.name);
                assert!(fcntl_getfd(end).expect("flags").contains(FdFlags::CLOEXEC), "{}", mechanism.name);
                assert!(!fcntl_getfl(end).expect("flags").contains(OFlags::NONBLOCK), "{}", mechanism.name);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0, "names are left");
    }

    #[test]
    fn a_link_is_a_large_pipe_unless_a_size_is_given() {
        let granted = |text: &str| {
            let (mechanism, options) = crate::resolve(&text.parse().expect("a spec")).expect("known");
            let ends = mechanism.connect(&options, &Folder::private()).expect("a link").expect("opens");
            ends.granted["pipe_bytes"]
        };
        assert_eq!(granted("pipe:size=8KiB"), 8 << 10);
        assert!(granted("pipe") >= 4096);
        let (write, _read, pipe_bytes) = large_pipe().expect("a pipe");
        assert_eq!(fcntl_getpipe_size(&write).expect("its size") as u64, pipe_bytes);
    }
}
