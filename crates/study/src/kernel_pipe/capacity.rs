//! The capacity of a pipe: its default, its maximum, and how much of it small writes can use.

use std::fs::read_to_string;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, write};
use rustix::pipe::{PIPE_BUF, PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::run::{PartRun, refused};

/// The limit on a pipe's capacity for unprivileged processes (pipe(7)).
const MAX_SIZE_FILE: &str = "/proc/sys/fs/pipe-max-size";

pub(super) fn run(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let mut add = |name: &str, bytes: usize| run.measured(name, "bytes", vec![bytes as f64]);
    let (_reader, writer) = new_pipe()?;
    let default = fcntl_getpipe_size(&writer).map_err(refused("F_GETPIPE_SZ"))?;
    add("as it comes", default);
    for write_bytes in [1, 512, 4096, 4097] {
        add(&format!("taken in writes of {write_bytes}"), written_until_full(write_bytes)?);
    }
    if let Some(max) = read_to_string(MAX_SIZE_FILE).ok().and_then(|text| text.trim().parse().ok()) {
        add("fs.pipe-max-size", max);
        add("granted of it", fcntl_setpipe_size(&writer, max).unwrap_or(default));
    }
    add("PIPE_BUF", PIPE_BUF);
    Ok(())
}

fn new_pipe() -> anyhow::Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(refused("pipe2"))
}

/// Bytes that fit into a new pipe if each write has `write_bytes`.
fn written_until_full(write_bytes: usize) -> anyhow::Result<usize> {
    let (_reader, writer) = new_pipe()?;
    let block = vec![0; write_bytes];
    let mut bytes = 0;
    loop {
        match write(&writer, &block) {
            Ok(written) => bytes += written,
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
        let size = fcntl_getpipe_size(&writer).expect("a size");
        assert_eq!(written_until_full(4096).expect("written"), size);
        assert!(written_until_full(4097).expect("written") <= size);
    }
}
