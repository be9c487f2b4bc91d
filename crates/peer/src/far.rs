//! The far side: it waits for one caller who has the token, or was started by ssh, holds one end of each trial that it is asked for,
//! and ends with its caller. It does nothing else for anybody.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Order, check_confirmed, hold_far_end};
use mechanism::{Heard, MEETING_PATIENCE, await_caller};
use model::{CaseError, Cpu, ErrorKind, Host, Tool};
use process::LOOK_UP;
use rustix::net::sockopt;

use crate::auth::{Proof, Prover, Token};
use crate::wire::{FromFar, FromNear, Hello, PeerError, Wire, line, read};

/// What a caller begins with is shorter.
const HELLO_BYTES_MAX: usize = 4096;

/// How often it says that it is there while a trial runs.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// The far side, which knows its caller.
pub struct Far {
    wire: Wire,
    listener: Arc<TcpListener>,
}

/// The far side, which waits for its caller.
pub struct Listening(TcpListener);

/// What the far side says of itself.
fn here(address: SocketAddr, proof: Option<Proof>, tool: Tool, host: Host) -> FromFar {
    FromFar::Here { proof, address, tool, host: Box::new(host) }
}

impl Listening {
    /// Listens there and nowhere else.
    ///
    /// # Errors
    /// What bind(2) or listen(2) answered.
    pub fn at(address: SocketAddr) -> Result<Self, PeerError> {
        TcpListener::bind(address).map(Self).map_err(PeerError::system(format!("cannot listen on {address}")))
    }

    /// Where that is; the system has chosen a port where 0 was asked for.
    ///
    /// # Errors
    /// What getsockname(2) answered.
    pub fn address(&self) -> Result<SocketAddr, PeerError> {
        self.0.local_addr().map_err(PeerError::system("getsockname"))
    }

    /// Waits for a caller who has the token. `remark` is told of others.
    ///
    /// # Errors
    /// Nobody came in time, or `stop` asked for the end.
    pub fn await_near(
        self,
        token: &Token,
        (tool, host): (Tool, Host),
        idle: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Far, PeerError> {
        let address = self.address()?;
        let mut judge = |greeting: &[u8], heard: &[u8]| judge(token, greeting, heard, remark);
        let mut greet = || Hello::new().map(|hello| line(&FromFar::Hello(hello))).unwrap_or_default();
        let came = await_caller(&self.0, HELLO_BYTES_MAX, idle, &mut greet, &mut judge, &mut || !stop())
            .map_err(PeerError::system("poll"))?;
        let (stream, proof) = came.ok_or_else(|| {
            PeerError(format!("nobody with the token called {address} for {} s", idle.as_secs()))
        })?;
        let name = stream.peer_addr().map_or_else(|_| "the caller".to_owned(), |name| name.to_string());
        keep_alive(&stream).map_err(PeerError::system("setsockopt(SO_KEEPALIVE)"))?;
        let wire = Wire::over(stream.into(), &name)?;
        wire.say(&here(address, Some(proof), tool, host), MEETING_PATIENCE)?;
        Ok(Far { wire, listener: Arc::new(self.0) })
    }
}

/// Whether a caller has the token, by what he has said; then our own proof.
fn judge(token: &Token, greeting: &[u8], heard: &[u8], remark: &mut dyn FnMut(&str)) -> Heard<Proof> {
    let Some(text) = heard.strip_suffix(b"\n") else { return Heard::More };
    let greeting = String::from_utf8_lossy(greeting);
    let said = read(&String::from_utf8_lossy(text), "a caller");
    let judged = match (read(&greeting, "this host"), said) {
        (Ok(FromFar::Hello(far)), Ok(FromNear::Hello { hello: near, proof })) => {
            near.check("a caller").and_then(|()| {
                let proof = proof.filter(|proof| token.verify(proof, Prover::Near, &far, &near));
                let wrong = || PeerError("a caller with another token was turned away".to_owned());
                proof.map(|_| token.prove(Prover::Far, &far, &near)).ok_or_else(wrong)
            })
        }
        (_, Err(error)) => Err(error),
        _ => Err(PeerError("a caller does not begin as he must".to_owned())),
    };
    match judged {
        Ok(proof) => Heard::Right(proof),
        Err(error) => {
            remark(&error.to_string());
            Heard::Wrong
        }
    }
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
        let stream =
            |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map_err(PeerError::system("dup"));
        let mut wire =
            Wire::new(stream(rustix::stdio::stdin())?, stream(rustix::stdio::stdout())?, "the caller");
        let hello = Hello::new().map_err(PeerError::system("getrandom"))?;
        wire.say(&FromFar::Hello(hello), MEETING_PATIENCE)?;
        match wire.hear(MEETING_PATIENCE)? {
            Some(FromNear::Hello { hello, .. }) => hello.check("the caller")?,
            _ => return Err(PeerError("the caller does not begin as he must".to_owned())),
        }
        wire.say(&here(address, None, tool, host), MEETING_PATIENCE)?;
        Ok(Self { wire, listener: Arc::new(listening.0) })
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
        let mut next: Option<FromNear> = None;
        while !stop() && heard_at.elapsed() < idle {
            let message = match next.take() {
                Some(message) => Some(message),
                None => match self.wire.line(LOOK_UP) {
                    Ok(line) => line.map(|line| read(&line, "the caller")).transpose()?,
                    // He has what he wanted.
                    Err(_) => return Ok(()),
                },
            };
            let Some(message) = message else { continue };
            match message {
                FromNear::Order(number, order) => {
                    next = self.hold(number, &order, cpus, stop)?;
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

    /// Holds one end. What the caller says meanwhile ends that, and is returned.
    fn hold(
        &mut self,
        number: u64,
        order: &Order,
        cpus: &[Cpu],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<FromNear>, PeerError> {
        let (wire, mut told_at, mut next) = (&mut self.wire, Instant::now(), None);
        let outcome = hold_far_end(order, &self.listener, cpus, &mut |moved| {
            let given_up = || CaseError::new(ErrorKind::Died, "given up");
            match wire.line(Duration::ZERO) {
                Ok(None) if !stop() => {}
                Ok(None) => {
                    return Err(CaseError::new(ErrorKind::Died, "the other host's end was asked to end"));
                }
                // Where he has gone, that is found once more.
                Err(_) => return Err(given_up()),
                Ok(Some(line)) => {
                    next = Some(line);
                    return Err(given_up());
                }
            }
            if told_at.elapsed() >= TELL_EVERY {
                told_at = Instant::now();
                return wire.say(&FromFar::Moved(number, moved), MEETING_PATIENCE).map_err(|_| given_up());
            }
            Ok(())
        });
        match outcome {
            // That he has gone is found by whoever listens next.
            Ok(report) => wire.say(&FromFar::Report(number, report), MEETING_PATIENCE).unwrap_or_default(),
            Err(error) if next.is_none() => {
                wire.say(&FromFar::Failed(number, error), MEETING_PATIENCE).unwrap_or_default();
            }
            Err(_) => {}
        }
        next.map(|line| read(&line, "the caller")).transpose()
    }
}
