//! The far side: it waits for one caller who has the token, or was started by ssh, holds one end of each trial that it is asked for,
//! and ends with its caller. It does nothing else for anybody.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{FarNews, Order, check_confirmed, hold_far_end};
use mechanism::{Callers, Heard, MEETING_PATIENCE};
use model::{CaseError, Cpu, ErrorKind, Host, Tool};
use process::LOOK_UP;
use rustix::net::sockopt;

use crate::peer::auth::{Proof, Prover, Token};
use crate::peer::wire::{BENCH, FromFar, FromNear, Hello, PeerError, Protocol, Wire, line, read};

/// What a caller begins with is shorter.
const HELLO_BYTES_MAX: usize = 4096;

/// How often it says that it is there while a trial runs.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// The far side, which knows its caller.
pub struct Far {
    wire: Wire,
    listener: Arc<TcpListener>,
}

/// Where callers are waited for.
pub struct Listening {
    listener: Arc<TcpListener>,
    callers: Callers,
}

impl Listening {
    /// Listens there and nowhere else.
    ///
    /// # Errors
    /// What bind(2) or listen(2) answered.
    pub fn at(address: SocketAddr) -> Result<Self, PeerError> {
        let listener = TcpListener::bind(address).map(Arc::new);
        let listener = listener.map_err(PeerError::system(format!("cannot listen on {address}")))?;
        Ok(Self { callers: Callers::of(Arc::clone(&listener), HELLO_BYTES_MAX), listener })
    }

    /// Where that is; the system has chosen a port where 0 was asked for.
    ///
    /// # Errors
    /// What getsockname(2) answered.
    pub fn address(&self) -> Result<SocketAddr, PeerError> {
        self.listener.local_addr().map_err(PeerError::system("getsockname"))
    }

    /// Waits for a caller who has the token; `None` where nobody came in time, or `stop` asked for the end. `remark` is told of others.
    ///
    /// # Errors
    /// What the system answered.
    pub fn next(
        &mut self,
        token: &Token,
        protocol: Protocol,
        patience: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Option<Wire>, PeerError> {
        let mut judge = |greeting: &[u8], heard: &[u8]| {
            judge(token, protocol, greeting, heard).unwrap_or_else(|error| {
                remark(&error.to_string());
                Heard::Wrong
            })
        };
        let mut greet = || Hello::new(protocol).map_or(Vec::new(), |hello| line(&FromFar::Hello(hello)));
        let came = self.callers.next(patience, &mut greet, &mut judge, &mut || !stop());
        let Some((stream, proof)) = came.map_err(PeerError::system("poll"))? else { return Ok(None) };
        let name = stream.peer_addr().map_or_else(|_| "the caller".to_owned(), |name| name.to_string());
        keep_alive(&stream).map_err(PeerError::system("setsockopt(SO_KEEPALIVE)"))?;
        let wire = Wire::over(stream.into(), &name)?;
        wire.say(&FromFar::Known(proof), MEETING_PATIENCE)?;
        Ok(Some(wire))
    }

    /// Waits for a caller who has the token, to hold ends for him.
    ///
    /// # Errors
    /// Nobody came in time, or `stop` asked for the end.
    pub fn await_near(
        mut self,
        token: &Token,
        (tool, host): (Tool, Host),
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Far, PeerError> {
        let address = self.address()?;
        let wire = self.next(token, BENCH, idle, stop, remark)?.ok_or_else(|| {
            PeerError(format!("nobody with the token called {address} for {} s", idle.as_secs()))
        })?;
        Far { wire, listener: self.listener }.known(address, tool, host)
    }
}

/// Whether a caller has the token, by what he has said; then our own proof. An error is what is wrong with him.
fn judge(
    token: &Token,
    protocol: Protocol,
    greeting: &[u8],
    heard: &[u8],
) -> Result<Heard<Proof>, PeerError> {
    let Some(text) = heard.strip_suffix(b"\n") else { return Ok(Heard::More) };
    let [greeting, text] = [greeting, text].map(String::from_utf8_lossy);
    let (far, said) = (read(&greeting, "this host")?, read(&text, "a caller")?);
    let (FromFar::Hello(far), FromNear::Hello { hello: near, proof }) = (far, said) else {
        return Err(PeerError("a caller does not begin as he must".to_owned()));
    };
    near.check("a caller", protocol)?;
    if !proof.is_some_and(|proof| token.verify(&proof, Prover::Near, &far, &near)) {
        return Err(PeerError("a caller with another token was turned away".to_owned()));
    }
    Ok(Heard::Right(token.prove(Prover::Far, &far, &near)))
}

/// How long what was said may lie unacknowledged (TCP_USER_TIMEOUT of tcp(7)): keep-alive does not look while something does.
const UNHEARD_MAX_MS: u32 = 15_000;

/// A caller whose machine went away without a word is noticed within half a minute.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_user_timeout(stream, UNHEARD_MAX_MS)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    Ok(sockopt::set_tcp_keepcnt(stream, 3)?)
}

impl Far {
    /// Started by ssh, which has seen to who we are: its connection is standard input and output. Ends meet at `address`, or at the
    /// one that ssh was called at.
    ///
    /// # Errors
    /// Nobody says at which address, or it cannot be had; the caller does not begin as he must.
    pub fn over_ssh(address: Option<IpAddr>, tool: Tool, host: Host) -> Result<Self, PeerError> {
        let called = || std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok();
        let address = address.or_else(called).ok_or_else(|| {
            let text = "ssh does not say at which address this host was called (SSH_CONNECTION): name it with --peer-address";
            PeerError(text.to_owned())
        })?;
        let listening = Listening::at(SocketAddr::new(address, 0))?;
        let address = listening.address()?;
        let mut wire = Wire::over_stdio("the caller")?;
        wire.say(&FromFar::Hello(Hello::new(BENCH)?), MEETING_PATIENCE)?;
        match wire.hear(MEETING_PATIENCE)? {
            Some(FromNear::Hello { hello, .. }) => hello.check("the caller", BENCH)?,
            _ => return Err(PeerError("the caller does not begin as he must".to_owned())),
        }
        Self { wire, listener: listening.listener }.known(address, tool, host)
    }

    /// Says what it is to a caller who may know.
    fn known(self, address: SocketAddr, tool: Tool, host: Host) -> Result<Self, PeerError> {
        self.wire.say(&FromFar::Here { address, tool, host: Box::new(host) }, MEETING_PATIENCE)?;
        Ok(self)
    }

    /// Holds ends until the caller ends, says nothing for `idle`, or `stop` asks for the end. `remark` is told what is wrong with what
    /// the caller confirms.
    ///
    /// # Errors
    /// The caller does not keep to the protocol.
    pub fn serve(
        mut self,
        cpus: &[Cpu],
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<(), PeerError> {
        let (mut heard_at, mut held): (Instant, Option<Order>) = (Instant::now(), None);
        while !stop() && heard_at.elapsed() < idle {
            // Where he has gone, he has what he wanted.
            let Ok(line) = self.wire.line(LOOK_UP) else { return Ok(()) };
            let Some(line) = line else { continue };
            match read(&line, "the caller")? {
                FromNear::Order(number, order) => {
                    self.hold(number, &order, cpus, stop);
                    held = Some(order);
                }
                FromNear::Confirm { bytes, checksum } => {
                    let told = held.take().map(|order| check_confirmed(&order, bytes, checksum.as_deref()));
                    if let Some(Err(error)) = told {
                        remark(&error.message);
                    }
                }
                FromNear::Hello { .. } => return Err(PeerError("the caller begins twice".to_owned())),
            }
            heard_at = Instant::now();
        }
        Ok(())
    }

    /// Holds one end, until the caller says something else.
    fn hold(&mut self, number: u64, order: &Order, cpus: &[Cpu], stop: &dyn Fn() -> bool) {
        let (wire, mut told_at) = (&mut self.wire, Instant::now());
        let news = |news| FromFar::News(number, news);
        let outcome = hold_far_end(order, &self.listener, cpus, &mut |moved| {
            let ended = |why| CaseError::new(ErrorKind::Died, why);
            match wire.has_line(Duration::ZERO) {
                Ok(false) if !stop() => {}
                Ok(false) => return Err(ended("the other host's end was asked to end")),
                // Where he has gone, that is found once more.
                _ => return Err(ended("given up")),
            }
            if told_at.elapsed() < TELL_EVERY {
                return Ok(());
            }
            told_at = Instant::now();
            wire.say(&news(Ok(FarNews::Moved(moved))), MEETING_PATIENCE).map_err(|_| ended("given up"))
        });
        // That he has gone is found by whoever listens next; of what he gave up he hears nothing.
        wire.say(&news(outcome.map(FarNews::Report)), MEETING_PATIENCE).unwrap_or_default();
    }
}
