//! Starts the server on another host by ssh(1), with the user's own settings. The shell of the other host gets only fixed text and numbers.

use std::net::IpAddr;
use std::time::Duration;

use process::{Capture, Cleaner, Wire, WireError, command, ssh_words};

use crate::launcher::Launched;

/// Longest time of a login, until the first message of hosepipe on the other host.
pub(crate) const LOGIN_MAX: Duration = Duration::from_secs(10);
/// Longest time to wait for the end of ssh and for its messages.
const STDERR_WAIT: Duration = Duration::from_secs(1);

/// A running ssh.
pub(crate) struct Ssh<'c> {
    launched: Launched<'c>,
    host: String,
}

impl<'c> Ssh<'c> {
    /// Starts hosepipe on the host; with `send`, a copy of this program, which is removed afterwards.
    pub(crate) fn start(
        host: &str,
        address: Option<IpAddr>,
        send: bool,
        cleaner: &'c Cleaner,
    ) -> Result<(Self, Wire), WireError> {
        let address = address.map(|address| format!(" --address {address}")).unwrap_or_default();
        let this_program = || std::fs::read("/proc/self/exe").map_err(WireError::system("/proc/self/exe"));
        let program = send.then(this_program).transpose()?;
        let there = match &program {
            None => format!("hosepipe peer --stdio{address}"),
            Some(program) => receive_and_run(program.len(), &address),
        };
        let mut ssh = command(&ssh_words(host, &there));
        let mut wire = Wire::to_program(&mut ssh, host).map_err(WireError::system("pipe"))?;
        let launched = Launched::start(vec![ssh], Capture::Errors, cleaner);
        let mut ssh = Self { launched: launched.map_err(WireError)?, host: host.to_owned() };
        if let Some(program) = program {
            ssh.copy(&mut wire, &program)?;
        }
        Ok((ssh, wire))
    }

    /// Sends this program, if it can run on the other host.
    fn copy(&mut self, wire: &mut Wire, program: &[u8]) -> Result<(), WireError> {
        let system = rustix::system::uname();
        let own = format!("{} {}", system.sysname().to_string_lossy(), system.machine().to_string_lossy());
        let there = wire.line(LOGIN_MAX).map_err(|error| self.explain(error))?;
        let there = there.ok_or_else(|| wire.silent(LOGIN_MAX))?;
        if there != own {
            return Err(WireError(format!(
                "{} is `{}`, and this program is for {own}: install hosepipe there, without --send-binary",
                self.host,
                model::visible(&there)
            )));
        }
        wire.write(program, LOGIN_MAX).map_err(|error| self.explain(error))
    }

    /// Explains an error of the connection: by the exit status of ssh if it has ended, and by its messages if it has written any.
    pub(crate) fn explain(&mut self, error: WireError) -> WireError {
        // If waiting fails, its messages so far are used.
        let _ = self.launched.wait(STDERR_WAIT);
        let ssh = self.launched.only();
        let ended = ssh.ended().and_then(|ended| ended.status.code());
        let (host, said) = (&self.host, model::visible(&ssh.captured_output()).replace('\n', "; "));
        match ended {
            Some(127) => WireError(format!(
                "{host} has no hosepipe on its PATH ({said}): install it there, or use --send-binary if it has the same kind of machine"
            )),
            Some(255) => WireError(format!("ssh {host}: {said} (can you run `ssh {host} true`?)")),
            Some(status) if !said.is_empty() => {
                WireError(format!("hosepipe on {host} ended with status {status}: {said}"))
            }
            _ if said.is_empty() => error,
            _ => WireError(format!("{error}: {said}")),
        }
    }
}

/// The command line for the shell of the other host: it prints the kind of machine, receives a program of `len` bytes, runs it and removes it.
fn receive_and_run(len: usize, address: &str) -> String {
    format!(
        "sh -c 'uname -sm && d=$(mktemp -d) && trap \"rm -rf \\\"$d\\\"\" EXIT && trap \"exit 1\" HUP INT TERM && \
         head -c {len} >\"$d/hosepipe\" && chmod 700 \"$d/hosepipe\" && \"$d/hosepipe\" peer --stdio{address}'"
    )
}
