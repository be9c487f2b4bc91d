//! The near side: it finds the other host, and asks it for its end of each trial.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use engine::{FarEnd, FarNews, Order};
use mechanism::MEETING_PATIENCE;
use model::{CaseError, ErrorKind, PeerRecord};
use process::Cleaner;

use crate::peer::auth::{Prover, Token};
use crate::peer::ssh::{LOGIN_MAX, Ssh};
use crate::peer::wire::{BENCH, FromFar, FromNear, Hello, PeerError, Protocol, Wire};

/// The near side, which has reached the other host.
pub struct Near<'c> {
    wire: Wire,
    ssh: Option<Ssh<'c>>,
    /// Where ends meet.
    address: SocketAddr,
    /// What is recorded of the other host.
    pub record: PeerRecord,
    /// Orders so far: what is said of an earlier one comes too late.
    orders: u64,
    /// Why nothing more is heard.
    lost: Option<CaseError>,
}

impl<'c> Near<'c> {
    /// Reaches the hosepipe that listens at `ADDRESS:PORT`, and has the same token.
    ///
    /// # Errors
    /// A sentence.
    pub fn over_tcp(target: &str, token: &Token) -> Result<Self, PeerError> {
        let stream = reach(target)?;
        let address = stream.peer_addr().map_err(PeerError::system("getpeername"))?;
        let mut wire = meet(stream, target, token, BENCH)?;
        let (_, record) = here(&mut wire, target)?;
        Ok(Self { wire, ssh: None, address, record, orders: 0, lost: None })
    }

    /// Starts a hosepipe by ssh; with `send`, a copy of this one. Ends meet at `address`, or at the one that ssh has reached.
    ///
    /// # Errors
    /// A sentence.
    pub fn over_ssh(
        host: &str,
        address: Option<IpAddr>,
        send: bool,
        cleaner: &'c Cleaner,
    ) -> Result<Self, PeerError> {
        let (mut ssh, mut wire) = Ssh::start(host, address, send, cleaner)?;
        let met = hellos(&mut wire, host, LOGIN_MAX, BENCH, None).and_then(|_| here(&mut wire, host));
        let (address, record) = met.map_err(|error| ssh.explain(error))?;
        Ok(Self { wire, ssh: Some(ssh), address, record, orders: 0, lost: None })
    }

    /// The first trouble of the connection is that of all cases after it.
    fn lose(&mut self, error: PeerError) -> CaseError {
        let error = match &mut self.ssh {
            Some(ssh) => ssh.explain(error),
            None => error,
        };
        let error = CaseError::new(ErrorKind::Died, error.to_string());
        self.lost.get_or_insert(error).clone()
    }

    fn say(&mut self, message: &FromNear) -> Result<(), CaseError> {
        self.lost.clone().map_or(Ok(()), Err)?;
        self.wire.say(message, MEETING_PATIENCE).map_err(|error| self.lose(error))
    }
}

/// Reaches who listens at `ADDRESS:PORT`.
///
/// # Errors
/// A sentence: nobody does, or there is no such name.
pub fn reach(target: &str) -> Result<TcpStream, PeerError> {
    let addresses = target.to_socket_addrs().map_err(PeerError::system(format!("cannot find {target}")))?;
    let mut reached = Err(PeerError(format!("{target} has no address")));
    for address in addresses {
        reached = TcpStream::connect_timeout(&address, MEETING_PATIENCE)
            .map_err(PeerError::system(format!("cannot reach a hosepipe at {address}")));
        if reached.is_ok() {
            break;
        }
    }
    reached
}

/// Shows who was reached that we have the token, and has it shown.
///
/// # Errors
/// A sentence: it is no hosepipe, is there for something else, or does not have the token.
pub fn meet(stream: TcpStream, name: &str, token: &Token, protocol: Protocol) -> Result<Wire, PeerError> {
    stream.set_nodelay(true).map_err(PeerError::system("setsockopt(TCP_NODELAY)"))?;
    let mut wire = Wire::over(stream.into(), name)?;
    let (far, near) = hellos(&mut wire, name, MEETING_PATIENCE, protocol, Some(token))?;
    let turned_away = |error: PeerError| PeerError(format!("{error}: does it have another token?"));
    match heard(&mut wire, name).map_err(turned_away)? {
        FromFar::Known(proof) if token.verify(&proof, Prover::Far, &far, &near) => Ok(wire),
        FromFar::Known(_) => Err(PeerError(format!("{name} does not have the token: it is not trusted"))),
        _ => Err(PeerError(format!("{name} does not begin as it must"))),
    }
}

/// Both sides say who they are, the far one first; where there is a token, we show that we have it.
fn hellos(
    wire: &mut Wire,
    name: &str,
    patience: Duration,
    protocol: Protocol,
    token: Option<&Token>,
) -> Result<(Hello, Hello), PeerError> {
    let silent =
        || PeerError(format!("{name} says nothing for {} s: is a hosepipe there?", patience.as_secs()));
    let Some(FromFar::Hello(far)) = wire.hear(patience)? else { return Err(silent()) };
    far.check(name, protocol)?;
    let hello = Hello::new(protocol)?;
    let proof = token.map(|token| token.prove(Prover::Near, &far, &hello));
    wire.say(&FromNear::Hello { hello: hello.clone(), proof }, patience)?;
    Ok((far, hello))
}

/// What the far side says of itself when it knows us.
fn here(wire: &mut Wire, name: &str) -> Result<(SocketAddr, PeerRecord), PeerError> {
    match heard(wire, name)? {
        FromFar::Here { address, tool, host } => {
            let record =
                PeerRecord { name: name.to_owned(), address: address.to_string(), tool, host: *host };
            Ok((address, record))
        }
        _ => Err(PeerError(format!("{name} does not begin as it must"))),
    }
}

fn heard(wire: &mut Wire, name: &str) -> Result<FromFar, PeerError> {
    let silent = || PeerError(format!("{name} says nothing for {} s", MEETING_PATIENCE.as_secs()));
    wire.hear(MEETING_PATIENCE)?.ok_or_else(silent)
}

impl FarEnd for Near<'_> {
    fn order(&mut self, order: &Order) -> Result<SocketAddr, CaseError> {
        self.orders += 1;
        self.say(&FromNear::Order(self.orders, order.clone()))?;
        Ok(self.address)
    }

    fn news(&mut self, wait: Duration) -> Result<Option<FarNews>, CaseError> {
        self.lost.clone().map_or(Ok(()), Err)?;
        loop {
            match self.wire.hear(wait) {
                Ok(None) => return Ok(None),
                Ok(Some(FromFar::News(number, news))) if number == self.orders => return news.map(Some),
                Ok(Some(FromFar::News(..))) => {}
                Ok(Some(_)) => {
                    return Err(self.lose(PeerError(format!("{} begins twice", self.record.name))));
                }
                Err(error) => return Err(self.lose(error)),
            }
        }
    }

    fn confirm(&mut self, bytes: u64, checksum: Option<&str>) -> Result<(), CaseError> {
        self.say(&FromNear::Confirm { bytes, checksum: checksum.map(str::to_owned) })
    }

    fn give_up(&mut self, why: &CaseError) {
        self.lost.get_or_insert_with(|| why.clone());
    }
}
