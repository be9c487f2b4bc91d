//! The server started by ssh(1), as the user has set that up, through an argument vector: what the other host's shell is given is
//! fixed text and numbers.

use std::io::Read;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use process::{Capture, Cleaner, command, ssh_words};

use crate::launcher::Launched;
use crate::wire::{RemoteError, Wire};

/// How long a login may take, until hosepipe there says something.
pub(crate) const LOGIN_MAX: Duration = Duration::from_secs(10);
/// How long ssh may take to say why it ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// ssh, running.
pub(crate) struct Ssh<'c> {
    launched: Launched<'c>,
    host: String,
}

impl<'c> Ssh<'c> {
    /// Starts hosepipe there; with `send`, a copy of this program, which is removed when it has ended.
    pub(crate) fn start(
        host: &str,
        address: Option<IpAddr>,
        send: bool,
        cleaner: &'c Cleaner,
    ) -> Result<(Self, Wire), RemoteError> {
        let (ours, theirs) = UnixStream::pair().map_err(RemoteError::system("socketpair"))?;
        let address = address.map(|address| format!(" --address {address}")).unwrap_or_default();
        let program = if send { Some(this_program()?) } else { None };
        let there = match &program {
            None => format!("hosepipe peer --stdio{address}"),
            Some(program) => received(program.len(), &address),
        };
        let theirs = OwnedFd::from(theirs);
        let mut ssh = command(&ssh_words(host, &there));
        ssh.stdin(theirs.try_clone().map_err(RemoteError::system("dup"))?).stdout(theirs);
        let launched = Launched::start(vec![ssh], Capture::Errors, cleaner);
        let mut ssh = Self { launched: launched.map_err(RemoteError)?, host: host.to_owned() };
        let mut wire = Wire::over(ours.into(), host)?;
        if let Some(program) = program {
            ssh.copy(&mut wire, &program)?;
        }
        Ok((ssh, wire))
    }

    /// Sends this program once it is known that it can run there.
    fn copy(&mut self, wire: &mut Wire, program: &[u8]) -> Result<(), RemoteError> {
        let system = rustix::system::uname();
        let own = format!("{} {}", system.sysname().to_string_lossy(), system.machine().to_string_lossy());
        let there = wire.line(LOGIN_MAX).map_err(|error| self.explain(error))?;
        let host = &self.host;
        let late = || RemoteError(format!("{host} says nothing for {} s", LOGIN_MAX.as_secs()));
        let there = there.ok_or_else(late)?;
        if there != own {
            let there = model::visible(&there);
            return Err(RemoteError(format!(
                "{host} is `{there}`, and this program is for {own}: install hosepipe there, without --send-binary"
            )));
        }
        wire.write(program, LOGIN_MAX).map_err(|error| self.explain(error))
    }

    /// What went wrong: by the exit status and the last words of ssh, else the error of the connection.
    pub(crate) fn explain(&mut self, error: RemoteError) -> RemoteError {
        // Where it cannot be waited for, it has said what there is.
        let _ = self.launched.wait(LAST_WORDS);
        let ssh = self.launched.only();
        let ended = ssh.ended().and_then(|ended| ended.status.code());
        let (host, said) = (&self.host, model::visible(&ssh.said()).replace('\n', "; "));
        match ended {
            Some(127) => RemoteError(format!(
                "{host} has no hosepipe on its PATH ({said}): install it there, or --send-binary where the machine is alike"
            )),
            Some(255) => RemoteError(format!("ssh {host}: {said} (can you run `ssh {host} true`?)")),
            Some(status) if !said.is_empty() => {
                RemoteError(format!("hosepipe on {host} ended with status {status}: {said}"))
            }
            _ if said.is_empty() => error,
            _ => RemoteError(format!("{error}: {said}")),
        }
    }
}

/// The bytes of this program.
fn this_program() -> Result<Vec<u8>, RemoteError> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open("/proc/self/exe").and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(RemoteError::system("cannot read /proc/self/exe"))?;
    Ok(bytes)
}

/// What a shell does there with a program of `len` bytes: it prints the kind of machine, receives the program, runs it and removes it.
fn received(len: usize, address: &str) -> String {
    format!(
        "sh -c 'uname -sm && d=$(mktemp -d) && trap \"rm -rf \\\"$d\\\"\" EXIT && trap \"exit 1\" HUP INT TERM && \
         head -c {len} >\"$d/hosepipe\" && chmod 700 \"$d/hosepipe\" && \"$d/hosepipe\" peer --stdio{address}'"
    )
}
