//! The type and direction of a descriptor, and the capacity of a pipe.

use std::os::fd::BorrowedFd;

use process::grow_pipe;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::pipe::fcntl_getpipe_size;

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

/// Enlarges a pipe up to 1 MiB, as far as the system grants it, and returns its capacity in bytes. A refusal is no error: the pipe works as it is.
pub(crate) fn enlarge(fd: BorrowedFd<'_>) -> usize {
    grow_pipe(fd).or_else(|_| fcntl_getpipe_size(fd)).unwrap_or(0)
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
}
