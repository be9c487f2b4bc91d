//! The server of a shell: gives links to the library in it, runs their relays, and keeps the ledger of what it reports. A process of
//! its own, so that programs in the background keep their links when the shell, and hosepipe with it, has ended.

mod links;
mod program_changes;
mod programs;
mod prompt;
mod served;
mod server;
mod stages;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::monotonic_ns;
use pipes::protocol::{HEAD_BYTES, Head, Plain, kind};
use process::sleep_on;
use rustix::event::{PollFd, PollFlags};

use crate::socket::Socket;
use programs::Programs;

pub(crate) use server::Server;

/// Pause between two searches for the readers of a link that has failed, which may be about to start others.
const FAILED_POLL: Duration = Duration::from_millis(2);
/// Longest pause: all that happens wakes the server.
const IDLE: Duration = Duration::from_secs(3600);
/// How long messages are awaited from processes that the shell was starting when it was killed.
const LATE_MESSAGE: Duration = Duration::from_millis(200);
/// The same for all of these processes together.
const LATE_MESSAGES: Duration = Duration::from_millis(500);

/// How the server learns that the shell has ended.
pub(crate) enum ShellEnd {
    /// The process that waits for the shell reports it, and is then sent the [`crate::Summary`]. If it ends without a report, it was killed,
    /// and everything it started is killed.
    Report(UnixStream),
    /// A pidfd of the shell becomes readable.
    Pidfd(OwnedFd),
}

impl AsFd for ShellEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Report(stream) => stream.as_fd(),
            Self::Pidfd(process) => process.as_fd(),
        }
    }
}

impl ShellEnd {
    /// The report; `None` if the process that waits for the shell was killed.
    fn receive(&mut self, shell: i32) -> Option<Head> {
        let mut bytes = [0; HEAD_BYTES];
        match self {
            Self::Report(stream) => {
                stream.read_exact(&mut bytes).ok().and_then(|()| Head::from_bytes(&bytes))
            }
            Self::Pidfd(_) => {
                Some(Head { kind: kind::REAPED, pid: shell, at_ns: monotonic_ns(), ..Head::default() })
            }
        }
    }
}

/// Serves until the shell and its links have ended.
pub(crate) fn serve(mut server: Server<'_>, socket: &Socket, end: ShellEnd) -> io::Result<()> {
    let mut end = Some(end);
    loop {
        server.update_links(socket)?;
        server.answer_programs();
        let answer_within = server.programs.as_ref().and_then(Programs::answer_within);
        if end.is_none() && server.open.is_empty() && answer_within.is_none() {
            return Ok(());
        }
        server.sample_stages();
        let until_sample = end.as_ref().and_then(|_| server.until_next_sample());
        let failed_poll = (!server.failed_links().is_empty()).then_some(FAILED_POLL);
        let pauses = [answer_within, until_sample, failed_poll].into_iter().flatten();
        let pause = pauses.min().unwrap_or(IDLE);
        let prompt = server.prompt_pipes.map(|pipes| pipes.asked().as_fd());
        let sources = [Some(socket.fd.as_fd()), end.as_ref().map(AsFd::as_fd), prompt, server.bell.fd()];
        let [has_message, has_ended, is_prompted, _] = wait(sources, pause)?;
        server.bell.silence();
        if has_message || is_prompted {
            server.receive_all(socket)?;
        }
        if is_prompted {
            server.before_a_prompt(socket)?;
        }
        if has_ended && let Some(mut end) = end.take() {
            let Some(head) = end.receive(server.ledger.shell) else { return kill_everything(server, socket) };
            let summary = server.shell_ended(&head, socket)?;
            if let ShellEnd::Report(mut stream) = end {
                // If its reader was killed meanwhile, nothing needs the summary.
                let _ = serde_json::to_vec(&summary).map(|summary| stream.write_all(&summary));
            }
        }
    }
}

/// Kills all processes that were given links, after hosepipe was killed.
fn kill_everything(mut server: Server<'_>, socket: &Socket) -> io::Result<()> {
    server.draw_nothing();
    server.kill_all();
    // A process that the shell was about to start reports before it becomes its program.
    let began = Instant::now();
    while began.elapsed() < LATE_MESSAGES
        && wait([Some(socket.fd.as_fd()), None, None, None], LATE_MESSAGE)?[0]
    {
        server.receive_all(socket)?;
        server.kill_all();
    }
    Ok(())
}

/// Waits until one of these can be read, at most for this pause. Returns which can.
fn wait(fds: [Option<BorrowedFd<'_>>; 4], pause: Duration) -> io::Result<[bool; 4]> {
    let open = fds.iter().flatten();
    let mut polled: Vec<PollFd<'_>> = open.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    sleep_on(&mut polled, Some(pause))?;
    let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
    Ok(fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false)))
}
