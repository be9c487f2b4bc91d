//! The type and direction of a descriptor, the capacity of a pipe, and poll(2).

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// The default of pipe-max-size (Documentation/admin-guide/sysctl/fs.rst).
const PIPE_MAX_BYTES_USUAL: usize = 1 << 20;

/// Direction of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipeEnd {
    In,
    Out,
}

/// Whether a descriptor is open for this direction.
pub(crate) fn is_open_for(fd: BorrowedFd<'_>, direction: PipeEnd) -> bool {
    let wrong_way = if direction == PipeEnd::In { OFlags::WRONLY } else { OFlags::RDONLY };
    fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE != wrong_way)
}

/// Whether a descriptor is a pipe or FIFO open for this direction.
pub(crate) fn is_pipe(fd: BorrowedFd<'_>, direction: PipeEnd) -> bool {
    let is_fifo = fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    is_fifo && is_open_for(fd, direction)
}

/// Enlarges a pipe as far as the system grants (never shrinks it) and returns its capacity in bytes.
/// A refusal (EPERM above `pipe-user-pages-soft`) is no error: the pipe works as it is.
pub(crate) fn enlarge(fd: BorrowedFd<'_>) -> usize {
    let now = fcntl_getpipe_size(fd).unwrap_or(0);
    let mut asked = pipe_max_bytes();
    while asked > now {
        match fcntl_setpipe_size(fd, asked) {
            Ok(_) => return fcntl_getpipe_size(fd).unwrap_or(asked),
            Err(Errno::PERM) => asked /= 2,
            Err(_) => break,
        }
    }
    now
}

fn pipe_max_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").ok();
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(PIPE_MAX_BYTES_USUAL)
}

/// Waits until a descriptor is ready for `wanted`, or has an error, which the next call returns.
pub(crate) fn wait_for(fd: BorrowedFd<'_>, wanted: PollFlags) -> rustix::io::Result<()> {
    retry_on_intr(|| poll(&mut [PollFd::from_borrowed_fd(fd, wanted)], None)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn only_pipes_of_the_right_direction_are_pipes() {
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        assert!(is_pipe(writer.as_fd(), PipeEnd::Out) && is_pipe(reader.as_fd(), PipeEnd::In));
        assert!(!is_pipe(reader.as_fd(), PipeEnd::Out) && !is_pipe(writer.as_fd(), PipeEnd::In));
        let file = tempfile::tempfile().expect("file");
        assert!(!is_pipe(file.as_fd(), PipeEnd::In) && is_open_for(file.as_fd(), PipeEnd::In));
    }

    #[test]
    fn a_pipe_grows_and_never_shrinks() {
        let (_reader, writer) = rustix::pipe::pipe().expect("pipe");
        let before = fcntl_getpipe_size(&writer).expect("size");
        let granted = enlarge(writer.as_fd());
        assert!(granted >= before);
        assert_eq!(enlarge(writer.as_fd()), granted);
    }
}
