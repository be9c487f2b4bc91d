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
use pipes::message::{HEAD_BYTES, Message, Sender};

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
    /// The report of the shell's end: when, what it had used, and its status. `None` if the process that waits for the shell was killed.
    fn receive(&mut self, shell: i32) -> Option<(Sender, i32)> {
        match self {
            Self::Report(stream) => match Message::read(&packet_from(stream)?)? {
                (sender, Message::Reaped { status }) => Some((sender, status)),
                _ => None,
            },
            Self::Pidfd(_) => Some((Sender { pid: shell, at_ns: monotonic_ns(), ..Sender::default() }, 0)),
        }
    }
}

/// A message, which has no text, of the process that starts the shell and waits for it; `None` if that was killed.
fn packet_from(stream: &mut UnixStream) -> Option<[u8; HEAD_BYTES]> {
    let mut packet = [0; HEAD_BYTES];
    stream.read_exact(&mut packet).ok()?;
    Some(packet)
}

/// The PID of the shell, once the process that starts it has done that; `None` if it could not, or was killed.
pub(crate) fn started_shell(stream: &mut UnixStream) -> Option<i32> {
    let packet = packet_from(stream)?;
    Message::read(&packet).map(|(sender, _)| sender.pid)
}

/// Serves until the shell and its links have ended.
pub(crate) fn serve(mut server: Server<'_>, end: ShellEnd) -> io::Result<()> {
    let mut end = Some(end);
    loop {
        server.update_links()?;
        server.answer_programs();
        let answer_within = server.programs.as_ref().and_then(Programs::answer_within);
        if end.is_none() && server.open.is_empty() && answer_within.is_none() {
            return Ok(());
        }
        server.sample_stages();
        let until_sample = end.as_ref().and_then(|_| server.until_next_sample());
        let failed_poll = (!server.failed_links().is_empty()).then_some(FAILED_POLL);
        let pauses = [answer_within, until_sample, failed_poll].into_iter().flatten();
        let prompt = server.prompt_pipes.map(|pipes| pipes.asked().as_fd());
        let sources = [end.as_ref().map(AsFd::as_fd), prompt, server.bell.fd()];
        let [has_ended, is_prompted, _] = server.wait(sources, pauses.min().unwrap_or(IDLE))?;
        server.bell.silence();
        server.receive_all()?;
        if is_prompted {
            server.before_a_prompt()?;
        }
        if has_ended && let Some(mut end) = end.take() {
            let Some((sender, status)) = end.receive(server.ledger.shell) else {
                return kill_everything(server);
            };
            let summary = server.shell_ended(&sender, status)?;
            if let ShellEnd::Report(mut stream) = end {
                // If its reader was killed meanwhile, nothing needs the summary.
                let _ = serde_json::to_vec(&summary).map(|summary| stream.write_all(&summary));
            }
        }
    }
}

/// Kills all processes that were given links, after hosepipe was killed.
fn kill_everything(mut server: Server<'_>) -> io::Result<()> {
    server.draw_nothing();
    server.kill_all();
    // A process that the shell was about to start reports before it becomes its program.
    let began = Instant::now();
    while began.elapsed() < LATE_MESSAGES {
        server.wait([None; 3], LATE_MESSAGE)?;
        if !server.receive_all()? {
            break;
        }
        server.kill_all();
    }
    Ok(())
}
