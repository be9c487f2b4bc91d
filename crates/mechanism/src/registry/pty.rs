//! `pty`: a pseudo terminal in raw mode, pty(7).
//!
//! A stream goes from the slave to the master, as a program's output goes to `ssh`, `script` or a terminal emulator; a ping-pong starts
//! at the master, as a keystroke does. From slave to master no byte is lost when the slave closes: the master can still read what the
//! slave wrote, and then gets EIO (but see [`RETRIES_AFTER_HANGUP`]). If the master closes, the slave is hung up, and its unread bytes
//! are lost.
//!
//! Every byte is copied four times: by write(2) into the terminal's own buffer, and from there to a queue of at most 8 KiB; by a kernel
//! thread into the reader's line discipline (4 KiB); and by read(2) out of that in pieces of 64 bytes (drivers/tty: tty_io.c,
//! tty_buffer.c, n_tty.c). None of the sizes can be changed.

use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::messages::receiver_wait;
use crate::prelude::*;

/// Capacity of a line discipline in bytes (N_TTY_BUF_SIZE, drivers/tty/n_tty.c); no call reports it.
const LINE_BYTES: u64 = 4096;

pub(super) static PTY: Mechanism = Mechanism {
    name: "pty",
    summary: "a pseudo terminal in raw mode, slave to master",
    capabilities: Capabilities::LINK,
    limits: "4 KiB in the line discipline and 8 KiB on the way to it, fixed; count: kernel.pty.max",
    man_pages: &["pty(7)", "posix_openpt(3)", "termios(3)", "ioctl_tty(2) TIOCGPTPEER"],
    more_specs: &["pty"],
    probe,
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn probe() -> Result<(), OpenError> {
    open_pair().map(drop)
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let wait = FdWait::for_request(request);
    let connect = || {
        let (master, slave) = open_pair()?;
        Ok(if request.workload == Workload::PingPong { (master, slave) } else { (slave, master) })
    };
    over_connected(request, connect, |from, to| {
        let sender = TerminalEnd(FdEnd::new(from, wait)?);
        let receiver = TerminalEnd(FdEnd::new(to, receiver_wait(request))?);
        Ok(Direction::new(sender, receiver).granted([("line_bytes", LINE_BYTES)]))
    })
}

fn open_link(_options: &Options, _folder: &Folder) -> Result<LinkEnds, OpenError> {
    let (master, slave) = open_pair()?;
    LinkEnds::new(slave, master, granted([("line_bytes", LINE_BYTES)]), Transport::Terminal)
}

/// A master and its slave, raw: no echo, no signals, no translation, eight bits (cfmakeraw(3)).
fn open_pair() -> Result<(OwnedFd, OwnedFd), OpenError> {
    // NOCTTY: the terminal must not become the controlling terminal of a session.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).map_err(|errno| OpenError::system("open(/dev/ptmx)", errno, remedy(errno)))?;
    grantpt(&master).in_call("grantpt")?;
    unlockpt(&master).in_call("ioctl(TIOCSPTLCK)")?;
    // By the master's descriptor: its name may belong to another mount of devpts.
    let slave = ioctl_tiocgptpeer(&master, flags).in_call("ioctl(TIOCGPTPEER)")?;
    let mut settings = tcgetattr(&slave).in_call("tcgetattr")?;
    settings.make_raw();
    tcsetattr(&slave, OptionalActions::Now, &settings).in_call("tcsetattr")?;
    Ok((master, slave))
}

fn remedy(error: Errno) -> Option<String> {
    match error {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => {
            let mount = "sudo mount -t devpts devpts /dev/pts && sudo ln -s pts/ptmx /dev/ptmx";
            Some(format!("mount the terminals: {}", model::for_root(mount, sudo())))
        }
        Errno::NOSPC | Errno::AGAIN => Some("all terminals are taken: raise kernel.pty.max".to_owned()),
        Errno::ACCESS | Errno::PERM => Some("let this user open it: chmod 666 /dev/ptmx".to_owned()),
        _ => None,
    }
}

fn is_hangup(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Number of further reads after EIO, and the time between them, before EIO counts as the end of the stream. EIO can come too early: the
/// reader has emptied the line discipline, the other side has closed, and the kernel's thread has not yet copied the last bytes
/// (Linux 6.18, in about one of 400 streams, also of a C program; the bytes were there a millisecond later).
const RETRIES_AFTER_HANGUP: u32 = 20;
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// An end of a terminal. For its writes EIO is an error: the other side has closed. For its reads EIO is the end of the stream: the other
/// side has closed, and all bytes are read.
struct TerminalEnd(FdEnd);

delegate_end!(TerminalEnd, 0);

impl Sender for TerminalEnd {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.0.send(block).map_err(|error| {
            if is_hangup(&error) {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the other side of the terminal hung up (EIO)")
            } else {
                error
            }
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }
}

impl Receiver for TerminalEnd {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let answer = self.0.recv(room);
        if answer.as_ref().is_err_and(is_hangup) { self.retry_read(room) } else { answer }
    }
}

impl TerminalEnd {
    #[cold]
    fn retry_read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        for _ in 0..RETRIES_AFTER_HANGUP {
            std::thread::sleep(RETRY_DELAY);
            let answer = self.0.recv(room);
            if !answer.as_ref().is_err_and(is_hangup) {
                return answer;
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_pass_unchanged_and_then_comes_the_end() {
        let (master, slave) = open_pair().expect("a terminal");
        let every_byte: Vec<u8> = (0..=255).collect();
        let mut sender = TerminalEnd(FdEnd::new(slave, FdWait::InCall).expect("sender"));
        let mut receiver = TerminalEnd(FdEnd::new(master, FdWait::InCall).expect("receiver"));
        sender.send(&every_byte).expect("write");
        sender.finish().expect("close");
        let mut seen = Vec::new();
        let mut room = [0; 300];
        loop {
            match receiver.recv(&mut room).expect("read") {
                0 => break,
                len => seen.extend_from_slice(&room[..len]),
            }
        }
        assert_eq!(seen, every_byte);
    }

    #[test]
    fn a_write_to_a_terminal_that_hung_up_says_so() {
        let (master, slave) = open_pair().expect("a terminal");
        let mut sender = TerminalEnd(FdEnd::new(slave, FdWait::InCall).expect("sender"));
        drop(master);
        let error = sender.send(b"x").expect_err("no receiver");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    }
}
