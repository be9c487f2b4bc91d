//! What a pipe holds: as it comes, as it can be made, and how much of it small writes can use.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, write};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::run::{PartRun, refused};

/// The largest pipe of an ordinary user (pipe(7)).
const MAX_SIZE_FILE: &str = "/proc/sys/fs/pipe-max-size";

pub(super) fn run(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let mut tell = |name: &str, bytes: u64| run.measured(name, "bytes", vec![bytes as f64]);
    let (_reader, writer) = new_pipe()?;
    let default = fcntl_getpipe_size(&writer).map_err(refused("F_GETPIPE_SZ"))? as u64;
    tell("as it comes", default);
    for write_bytes in [1, 512, 4096, 4097] {
        tell(&format!("taken in writes of {write_bytes}"), taken(write_bytes)?);
    }
    if let Some(max) = max_size() {
        tell("fs.pipe-max-size", max);
        let granted = fcntl_setpipe_size(&writer, usize::try_from(max).unwrap_or(usize::MAX));
        tell("granted of it", granted.unwrap_or(default as usize) as u64);
    }
    tell("PIPE_BUF", rustix::pipe::PIPE_BUF as u64);
    Ok(())
}

fn new_pipe() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(refused("pipe2"))
}

fn max_size() -> Option<u64> {
    std::fs::read_to_string(MAX_SIZE_FILE).ok()?.trim().parse().ok()
}

/// Bytes that a new pipe takes, in writes of the same size, before it is full.
fn taken(write_bytes: usize) -> anyhow::Result<u64> {
    let (_reader, writer) = new_pipe()?;
    let block = vec![0; write_bytes];
    let mut bytes = 0;
    loop {
        match write(&writer, &block) {
            Ok(len) => bytes += len as u64,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(bytes),
            Err(error) => return Err(refused("write")(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_pages_fill_a_pipe_and_a_byte_more_wastes_most_of_the_next() {
        let (_reader, writer) = new_pipe().expect("a pipe");
        let size = fcntl_getpipe_size(&writer).expect("a size") as u64;
        assert_eq!(taken(4096).expect("taken"), size);
        assert!(taken(4097).expect("taken") <= size);
    }
}
