//! A link whose bytes go to another host and back: through ssh(1), as the user has set that up, and a `cat` there.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mechanism::{OpenError, large_pipe};

use super::lines::Lines;
use super::refused;
use super::relay::{Pass, Source};
use super::stream::Stream;
use super::wait::Stop;

/// How far apart looks are at whether ssh has ended that has closed its output.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// What is quoted of what it said.
const SAID_BYTES_MAX: u64 = 2000;

/// What comes back, and the ssh that it comes through.
pub(super) struct SshSource {
    stream: Stream,
    ssh: Child,
    host: String,
}

/// Starts ssh; the writer's end, and what comes back.
///
/// # Errors
/// There is no ssh, or what the system answered.
pub(super) fn through(host: &str, lines: Option<Arc<Lines>>) -> Result<(OwnedFd, SshSource), OpenError> {
    let (write, input, _) = large_pipe().map_err(refused("pipe2"))?;
    let (output, read, _) = large_pipe().map_err(refused("pipe2"))?;
    let mut command = process::command(&process::ssh_words(host, "cat"));
    let ssh = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn();
    let ssh = ssh.map_err(refused("cannot start ssh"))?;
    let stream = Stream::new(read, None, lines).map_err(refused("fcntl(F_SETFL)"))?;
    Ok((write, SshSource { stream, ssh, host: host.to_owned() }))
}

impl SshSource {
    /// Whether ssh has passed on everything; an end of its output alone does not say so.
    ///
    /// # Errors
    /// What it said, where it has not.
    fn ended(&mut self) -> io::Result<Pass> {
        let Some(status) = self.ssh.try_wait()? else { return Ok(Pass::Pause(BETWEEN_LOOKS)) };
        if status.success() {
            return Ok(Pass::End);
        }
        let mut said = Vec::new();
        if let Some(errors) = self.ssh.stderr.take() {
            errors.take(SAID_BYTES_MAX).read_to_end(&mut said)?;
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

    fn wakes(&self) -> BorrowedFd<'_> {
        self.stream.wakes()
    }

    /// Without ssh the writer has no reader, as over a pipe.
    fn hang_up(self: Box<Self>, _stop: &Stop) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SshSource {
    /// One that has ended is not killed again; its number is ours until it is waited for.
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}
