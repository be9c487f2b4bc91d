//! The server: it accepts one caller that has the token, or is started by ssh, runs its end of each trial that the caller orders, and ends
//! when the caller does.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{EndpointRequest, PeerMessage, check_confirmed, run_endpoint_for_peer};
use mechanism::MEETING_PATIENCE;
use model::{CaseError, Cpu, ErrorKind, Host, Tool};
use process::{POLL_INTERVAL, Wire, WireError, read_message};

use crate::auth::{Hello, Opening, Token};
use crate::handshake::Listener;
use crate::peer::{BENCH, ClientMessage, ServerFacts, TrialUpdate};

/// Time between two messages about a trial that runs.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// The server of an authenticated caller.
pub struct PeerServer {
    wire: Wire,
    listener: Arc<TcpListener>,
}

impl PeerServer {
    /// Waits for a caller that has the token.
    ///
    /// # Errors
    /// None came in time, or `stop` returned true.
    pub fn await_caller(
        mut listener: Listener,
        token: &Token,
        (tool, host): (Tool, Host),
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, WireError> {
        let address = listener.address()?;
        let wire = listener.next(token, BENCH, idle, stop, remark)?.ok_or_else(|| {
            WireError(format!("no caller with the token came to {address} within {} s", idle.as_secs()))
        })?;
        Self { wire, listener: listener.listener }.introduce(address, tool, host)
    }

    /// The server that ssh has started: ssh has authenticated both hosts, and the connection is standard input and output. Trials connect
    /// to `address`, or to the one at which sshd was reached.
    ///
    /// # Errors
    /// The address is unknown, or bind(2) refused it; the caller's first message is wrong.
    pub fn over_ssh(address: Option<IpAddr>, tool: Tool, host: Host) -> Result<Self, WireError> {
        let reached = || std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok();
        let address = address.or_else(reached).ok_or_else(|| {
            let text = "ssh does not say at which address it reached this host (SSH_CONNECTION is not set): name it with --peer-address";
            WireError(text.to_owned())
        })?;
        let listener = Listener::at(SocketAddr::new(address, 0))?;
        let address = listener.address()?;
        let mut wire = Wire::over_stdio("the caller")?;
        wire.send(&Opening { hello: Hello::new(BENCH)?, proof: None }, MEETING_PATIENCE)?;
        let Opening { hello, .. } = wire.expect(MEETING_PATIENCE)?;
        hello.check("the caller", BENCH)?;
        Self { wire, listener: listener.listener }.introduce(address, tool, host)
    }

    /// Sends the facts of this host to the caller.
    fn introduce(self, address: SocketAddr, tool: Tool, host: Host) -> Result<Self, WireError> {
        self.wire.send(&ServerFacts { address, tool, host }, MEETING_PATIENCE)?;
        Ok(self)
    }

    /// Runs this host's end of each ordered trial until the caller ends, sends nothing for `idle`, or `stop` returns true. `remark` is called
    /// with what is wrong with the caller's confirmations.
    ///
    /// # Errors
    /// The caller sends something else than a message.
    pub fn serve(
        mut self,
        cpus: &[Cpu],
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<(), WireError> {
        let (mut asked_at, mut unconfirmed): (Instant, Option<EndpointRequest>) = (Instant::now(), None);
        while !stop() && asked_at.elapsed() < idle {
            // The caller has ended, and needs nothing more.
            let Ok(line) = self.wire.line(POLL_INTERVAL) else { return Ok(()) };
            let Some(line) = line else { continue };
            match read_message(&line, "the caller")? {
                ClientMessage::Order(number, order) => {
                    self.run_endpoint(number, &order, cpus, stop);
                    unconfirmed = Some(order);
                }
                ClientMessage::Confirm { bytes, checksum } => {
                    let checked =
                        unconfirmed.take().map(|order| check_confirmed(&order, bytes, checksum.as_deref()));
                    if let Some(Err(error)) = checked {
                        remark(&error.message);
                    }
                }
            }
            asked_at = Instant::now();
        }
        Ok(())
    }

    /// Runs one end until the trial is over or the caller sends something.
    fn run_endpoint(&mut self, number: u64, order: &EndpointRequest, cpus: &[Cpu], stop: &dyn Fn() -> bool) {
        let (wire, mut sent_at) = (&mut self.wire, Instant::now());
        let update = |news| TrialUpdate { news: (number, news) };
        let outcome = run_endpoint_for_peer(order, &self.listener, cpus, &mut |moved| {
            let ended = |why| CaseError::new(ErrorKind::Died, why);
            match wire.has_line(Duration::ZERO) {
                Ok(false) if !stop() => {}
                Ok(false) => return Err(ended("the other host's end was asked to end")),
                // A message, or the caller is gone: the next read finds the same.
                _ => return Err(ended("given up")),
            }
            if sent_at.elapsed() < UPDATE_INTERVAL {
                return Ok(());
            }
            sent_at = Instant::now();
            wire.send(&update(Ok(PeerMessage::Moved(moved))), MEETING_PATIENCE).map_err(|_| ended("given up"))
        });
        // If the caller is gone, the next read finds that; if it has given up the trial, it ignores the message.
        wire.send(&update(outcome.map(PeerMessage::Report)), MEETING_PATIENCE).unwrap_or_default();
    }
}
