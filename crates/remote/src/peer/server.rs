//! The server: it waits for one caller that has the token, or was started by ssh, holds one end of each trial that it is asked for, and ends
//! with its caller. It does nothing else.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{FarNews, Order, check_confirmed, hold_far_end};
use mechanism::MEETING_PATIENCE;
use model::{CaseError, Cpu, ErrorKind, Host, Tool};
use process::POLL_INTERVAL;

use crate::auth::{Hello, Opening, Token};
use crate::handshake::Listener;
use crate::peer::{BENCH, ClientMessage, Here, News};
use crate::wire::{RemoteError, Wire, read};

/// How often it sends news while a trial runs.
const NEWS_EVERY: Duration = Duration::from_millis(500);

/// The server of a known caller.
pub struct PeerServer {
    wire: Wire,
    listener: Arc<TcpListener>,
}

impl PeerServer {
    /// Waits for a caller that has the token.
    ///
    /// # Errors
    /// None came in time, or `stop` asked for the end.
    pub fn await_caller(
        mut listener: Listener,
        token: &Token,
        (tool, host): (Tool, Host),
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, RemoteError> {
        let address = listener.address()?;
        let wire = listener.next(token, BENCH, idle, stop, remark)?.ok_or_else(|| {
            RemoteError(format!("nobody with the token called {address} for {} s", idle.as_secs()))
        })?;
        Self { wire, listener: listener.listener }.known(address, tool, host)
    }

    /// Started by ssh, which has authenticated both hosts: its connection is standard input and output. Ends meet at `address`, or at the
    /// one that ssh was called at.
    ///
    /// # Errors
    /// The address is not known, or cannot be listened at; the caller does not begin as it must.
    pub fn over_ssh(address: Option<IpAddr>, tool: Tool, host: Host) -> Result<Self, RemoteError> {
        let called = || std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok();
        let address = address.or_else(called).ok_or_else(|| {
            let text = "ssh does not say at which address this host was called (SSH_CONNECTION): name it with --peer-address";
            RemoteError(text.to_owned())
        })?;
        let listener = Listener::at(SocketAddr::new(address, 0))?;
        let address = listener.address()?;
        let mut wire = Wire::over_stdio("the caller")?;
        wire.send(&Opening { hello: Hello::new(BENCH)?, proof: None }, MEETING_PATIENCE)?;
        let Opening { hello, .. } = wire.expect(MEETING_PATIENCE)?;
        hello.check("the caller", BENCH)?;
        Self { wire, listener: listener.listener }.known(address, tool, host)
    }

    /// Sends the facts of this host to a caller that is trusted.
    fn known(self, address: SocketAddr, tool: Tool, host: Host) -> Result<Self, RemoteError> {
        self.wire.send(&Here { address, tool, host }, MEETING_PATIENCE)?;
        Ok(self)
    }

    /// Holds ends until the caller ends, is silent for `idle`, or `stop` asks for the end. `remark` gets what is wrong with the
    /// caller's confirmations.
    ///
    /// # Errors
    /// The caller does not keep to the protocol.
    pub fn serve(
        mut self,
        cpus: &[Cpu],
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<(), RemoteError> {
        let (mut asked_at, mut held): (Instant, Option<Order>) = (Instant::now(), None);
        while !stop() && asked_at.elapsed() < idle {
            // A caller that is gone has what it wanted.
            let Ok(line) = self.wire.line(POLL_INTERVAL) else { return Ok(()) };
            let Some(line) = line else { continue };
            match read(&line, "the caller")? {
                ClientMessage::Order(number, order) => {
                    self.hold(number, &order, cpus, stop);
                    held = Some(order);
                }
                ClientMessage::Confirm { bytes, checksum } => {
                    let checked =
                        held.take().map(|order| check_confirmed(&order, bytes, checksum.as_deref()));
                    if let Some(Err(error)) = checked {
                        remark(&error.message);
                    }
                }
            }
            asked_at = Instant::now();
        }
        Ok(())
    }

    /// Holds one end until the trial is over or the caller sends something.
    fn hold(&mut self, number: u64, order: &Order, cpus: &[Cpu], stop: &dyn Fn() -> bool) {
        let (wire, mut sent_at) = (&mut self.wire, Instant::now());
        let news = |news| News { news: (number, news) };
        let outcome = hold_far_end(order, &self.listener, cpus, &mut |moved| {
            let ended = |why| CaseError::new(ErrorKind::Died, why);
            match wire.has_line(Duration::ZERO) {
                Ok(false) if !stop() => {}
                Ok(false) => return Err(ended("the other host's end was asked to end")),
                // A caller that is gone is found once more by the next read.
                _ => return Err(ended("given up")),
            }
            if sent_at.elapsed() < NEWS_EVERY {
                return Ok(());
            }
            sent_at = Instant::now();
            wire.send(&news(Ok(FarNews::Moved(moved))), MEETING_PATIENCE).map_err(|_| ended("given up"))
        });
        // A caller that is gone is found by the next read; one that has given the trial up passes its news over.
        wire.send(&news(outcome.map(FarNews::Report)), MEETING_PATIENCE).unwrap_or_default();
    }
}
