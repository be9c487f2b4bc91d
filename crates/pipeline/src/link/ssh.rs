//! A link whose bytes go to another host and back: through ssh(1), as the user has configured it, and a `cat` there.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::Duration;

use mechanism::{OpenError, large_pipe};

use super::refused;
use super::relay::{Pass, Source};
use super::stream::Stream;

/// Time between two checks whether ssh has ended, after it has closed its output.
const END_POLL: Duration = Duration::from_millis(1);
/// Largest part of its standard error that is quoted in an error.
const STDERR_BYTES_MAX: u64 = 2000;

/// The bytes that come back, and the ssh process.
pub(super) struct SshSource {
    stream: Stream,
    ssh: Child,
    host: String,
}

/// Starts ssh. Returns the writer's end, and the source of the bytes that come back.
///
/// # Errors
/// There is no ssh, or a system call failed.
pub(super) fn through(host: &str) -> Result<(OwnedFd, SshSource), OpenError> {
    let (write, input, _) = large_pipe().map_err(refused("pipe2"))?;
    let (output, read, _) = large_pipe().map_err(refused("pipe2"))?;
    let mut command = process::command(&process::ssh_words(host, "cat"));
    let ssh = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn();
    let ssh = ssh.map_err(refused("cannot start ssh"))?;
    let stream = Stream::new(read, None, None).map_err(refused("fcntl(F_SETFL)"))?;
    Ok((write, SshSource { stream, ssh, host: host.to_owned() }))
}

impl SshSource {
    /// Checks whether ssh succeeded: the end of its output does not show whether it has moved all bytes.
    ///
    /// # Errors
    /// Its messages, if it failed.
    fn ended(&mut self) -> io::Result<Pass> {
        let Some(status) = self.ssh.try_wait()? else { return Ok(Pass::Pause(END_POLL)) };
        if status.success() {
            return Ok(Pass::End);
        }
        let mut said = Vec::new();
        if let Some(errors) = self.ssh.stderr.take() {
            errors.take(STDERR_BYTES_MAX).read_to_end(&mut said)?;
        }
        let (host, said) = (&self.host, String::from_utf8_lossy(&said).trim().replace(['\r', '\n'], " "));
        let ending = process::describe_ending(status);
        Err(io::Error::other(format!("ssh {host} {ending}: {said} (can you run `ssh {host} true`?)")))
    }
}

impl Source for SshSource {
    fn pass(&mut self, pipe: &OwnedFd) -> io::Result<Pass> {
        match self.stream.pass(pipe)? {
            Pass::End => self.ended(),
            pass => Ok(pass),
        }
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.stream.poll_fd()
    }
}

impl Drop for SshSource {
    /// Ends ssh, so that the writer gets SIGPIPE, and reaps it. Its number cannot be reused before it is reaped.
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}
