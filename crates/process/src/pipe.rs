//! The size of pipes.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};

/// The largest size that is requested, in bytes. With 1 MiB the cost of wake-ups is small; with more the data would leave the
/// core's cache before it is read.
const PIPE_BYTES_MAX: usize = 1 << 20;

/// Makes a pipe as large as this user may have it, up to 1 MiB: after each refusal it requests half as much, until
/// that is no more than the pipe has. Returns its size in bytes.
///
/// # Errors
/// It is no pipe, or the process may not use the call.
pub fn grow_pipe(pipe: impl AsFd) -> io::Result<usize> {
    let limit = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").ok();
    let limit = limit.and_then(|limit| limit.trim().parse().ok()).unwrap_or(PIPE_BYTES_MAX);
    let mut asked = limit.min(PIPE_BYTES_MAX);
    let held = fcntl_getpipe_size(&pipe)?;
    while asked > held {
        match fcntl_setpipe_size(&pipe, asked) {
            Ok(_) => break,
            // EPERM: a limit of this user (fcntl(2)); ENOMEM: no memory for it. A smaller size may succeed.
            Err(Errno::PERM | Errno::BUSY | Errno::NOMEM) => asked /= 2,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(fcntl_getpipe_size(&pipe)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_grows_once_and_never_shrinks() {
        let (reader, _writer) = rustix::pipe::pipe().expect("a pipe");
        let before = fcntl_getpipe_size(&reader).expect("its size");
        let granted = grow_pipe(&reader).expect("a pipe");
        assert!(granted >= before);
        assert_eq!((grow_pipe(&reader).ok(), fcntl_getpipe_size(&reader)), (Some(granted), Ok(granted)));
        assert!(grow_pipe(std::fs::File::open("/dev/null").expect("a file")).is_err(), "it is no pipe");
    }
}
