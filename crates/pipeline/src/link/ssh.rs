//! A link whose bytes go to another host and back: through ssh(1), as the user has configured it, and a `cat` there.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mechanism::{OpenError, large_pipe};
use process::Captured;

use super::refused;
use super::relay::{Pass, Source};
use super::stream::Stream;

/// Time between two checks whether ssh has ended, after it has closed its output.
const END_POLL: Duration = Duration::from_millis(1);
/// Longest time to wait for its last words after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Largest part of its standard error that is quoted in an error: the end of it, because ssh gives up with its last words.
const STDERR_BYTES_MAX: usize = 2000;

/// The bytes that come back, and the ssh process.
pub(super) struct SshSource {
    stream: Stream,
    ssh: Child,
    /// Reads its standard error to the end: with `LogLevel DEBUG3` ssh writes more than a pipe holds.
    said: Option<JoinHandle<Captured>>,
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
    let mut source = SshSource { stream, ssh, said: None, host: host.to_owned() };
    if let Some(errors) = source.ssh.stderr.take() {
        let read = process::spawn_thread("hosepipe-ssh", move || last_words(errors));
        source.said = Some(read.map_err(refused("a thread for the messages of ssh"))?);
    }
    Ok((write, source))
}

/// Reads a stream to its end, and keeps the end of it.
fn last_words(mut errors: impl Read) -> Captured {
    let (mut said, mut room) = (Captured::keeping(0, STDERR_BYTES_MAX), [0; STDERR_BYTES_MAX]);
    while let Ok(len @ 1..) = errors.read(&mut room) {
        said.push(&room[..len]);
    }
    said
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
        // A process that ssh has left behind (ControlPersist) may keep its standard error open.
        let began = Instant::now();
        while self.said.as_ref().is_some_and(|said| !said.is_finished()) && began.elapsed() < LAST_WORDS {
            std::thread::sleep(END_POLL);
        }
        let said = self.said.take_if(|said| said.is_finished()).and_then(|said| said.join().ok());
        let said = said.map(|said| said.text()).unwrap_or_default().replace(['\r', '\n'], " ");
        let host = &self.host;
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

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_ssh_says_is_read_and_the_end_of_it_is_kept() {
        let said =
            last_words(io::Cursor::new([vec![b'x'; 1 << 20], b"Permission denied\n".to_vec()].concat()));
        let text = said.text();
        assert!(text.ends_with("xxxPermission denied") && text.len() < STDERR_BYTES_MAX + 10, "{text}");
    }
}
