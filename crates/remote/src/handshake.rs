//! A connection of two programs over TCP: one listens, the other connects, and each proves that it has the token.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use mechanism::{CallerCheck, Callers, MEETING_PATIENCE};
use rustix::net::sockopt;

use crate::auth::{Hello, Opening, Proof, Protocol, Prover, Token};
use process::{Wire, WireError, message_line, read_message};

/// Longest first message of a client, in bytes.
const HELLO_BYTES_MAX: usize = 4096;

/// A listening socket, and the connections that have not yet proved that they have the token.
pub struct Listener {
    pub(crate) listener: Arc<TcpListener>,
    callers: Callers,
}

impl Listener {
    /// Listens on this address only.
    ///
    /// # Errors
    /// An error of bind(2) or listen(2).
    pub fn at(address: SocketAddr) -> Result<Self, WireError> {
        let listener = TcpListener::bind(address).map(Arc::new);
        let listener = listener.map_err(WireError::system(format!("cannot listen on {address}")))?;
        Ok(Self { callers: Callers::new(Arc::clone(&listener), HELLO_BYTES_MAX), listener })
    }

    /// Its address, with the port that the system chose if 0 was given.
    ///
    /// # Errors
    /// An error of getsockname(2).
    pub fn address(&self) -> Result<SocketAddr, WireError> {
        self.listener.local_addr().map_err(WireError::system("getsockname"))
    }

    /// Waits for a client that has the token; `None` if there is none within `patience`, or if `stop` returned true. `remark` is called with the
    /// reason for each refused client.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn next(
        &mut self,
        token: &Token,
        protocol: Protocol,
        patience: Duration,
        stop: &dyn Fn() -> bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Option<Wire>, WireError> {
        let mut check = |greeting: &[u8], received: &[u8]| {
            check_token(token, protocol, greeting, received).unwrap_or_else(|error| {
                remark(&error.to_string());
                CallerCheck::Wrong
            })
        };
        let mut greet =
            || Hello::new(protocol).map_or(Vec::new(), |hello| message_line(&Opening { hello, proof: None }));
        let authenticated = self.callers.next(patience, &mut greet, &mut check, &mut || !stop());
        let Some((stream, proof)) = authenticated.map_err(WireError::system("poll"))? else {
            return Ok(None);
        };
        let name = stream.peer_addr().map_or_else(|_| "the caller".to_owned(), |name| name.to_string());
        keep_alive(&stream).map_err(WireError::system("setsockopt(SO_KEEPALIVE)"))?;
        let wire = Wire::over(stream.into(), &name)?;
        wire.send(&proof, MEETING_PATIENCE)?;
        Ok(Some(wire))
    }
}

/// Checks by its first message whether a client has the token; if it has, gives our own proof. An error says what is wrong with the message.
fn check_token(
    token: &Token,
    protocol: Protocol,
    greeting: &[u8],
    received: &[u8],
) -> Result<CallerCheck<Proof>, WireError> {
    let Some(text) = received.strip_suffix(b"\n") else { return Ok(CallerCheck::Incomplete) };
    let [greeting, text] = [greeting, text].map(String::from_utf8_lossy);
    let Opening { hello: server, .. } = read_message(&greeting, "this host")?;
    let Opening { hello: client, proof } = read_message(&text, "a caller")?;
    client.check("a caller", protocol)?;
    if !proof.is_some_and(|proof| token.verify(&proof, Prover::Client, &server, &client)) {
        return Err(WireError("a client with another token was refused".to_owned()));
    }
    Ok(CallerCheck::Right(token.prove(Prover::Server, &server, &client)))
}

/// Longest time without an acknowledgement (TCP_USER_TIMEOUT of tcp(7)): while one is outstanding, no keep-alive packets are sent.
const UNACKNOWLEDGED_MAX_MS: u32 = 15_000;

/// Makes the kernel detect within half a minute that the other machine is unreachable, if it has not closed the connection.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MAX_MS)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    Ok(sockopt::set_tcp_keepcnt(stream, 3)?)
}

/// Connects to `ADDRESS:PORT`.
///
/// # Errors
/// A sentence: nothing listens there, or the name is unknown.
pub(crate) fn connect(target: &str) -> Result<TcpStream, WireError> {
    let addresses = target.to_socket_addrs().map_err(WireError::system(format!("cannot find {target}")))?;
    let mut reached = Err(WireError(format!("{target} has no address")));
    for address in addresses {
        reached = TcpStream::connect_timeout(&address, MEETING_PATIENCE)
            .map_err(WireError::system(format!("cannot reach a hosepipe at {address}")));
        if reached.is_ok() {
            break;
        }
    }
    reached
}

/// Proves to a listener that we have the token, and checks that it has it, too. `name` is the listener's name in messages.
///
/// # Errors
/// A sentence: the other program is not hosepipe, has another protocol version, or does not have the token.
pub(crate) fn authenticate(
    stream: TcpStream,
    name: &str,
    token: &Token,
    protocol: Protocol,
) -> Result<Wire, WireError> {
    stream.set_nodelay(true).map_err(WireError::system("setsockopt(TCP_NODELAY)"))?;
    let mut wire = Wire::over(stream.into(), name)?;
    let (server, client) = exchange_hellos(&mut wire, MEETING_PATIENCE, protocol, Some(token))?;
    let turned_away = |error: WireError| WireError(format!("{error}: does it have another token?"));
    let proof: Proof = wire.expect(MEETING_PATIENCE).map_err(turned_away)?;
    if !token.verify(&proof, Prover::Server, &server, &client) {
        return Err(WireError(format!("{name} does not have the token: it is not trusted")));
    }
    Ok(wire)
}

/// Both sides send their hello, the listener first; with a token we also send our proof.
pub(crate) fn exchange_hellos(
    wire: &mut Wire,
    patience: Duration,
    protocol: Protocol,
    token: Option<&Token>,
) -> Result<(Hello, Hello), WireError> {
    let silent = |wire: &Wire| WireError(format!("{}: is a hosepipe there?", wire.silent(patience)));
    let Opening { hello: server, .. } = wire.receive(patience)?.ok_or_else(|| silent(wire))?;
    server.check(&wire.name, protocol)?;
    let hello = Hello::new(protocol)?;
    let proof = token.map(|token| token.prove(Prover::Client, &server, &hello));
    wire.send(&Opening { hello: hello.clone(), proof }, patience)?;
    Ok((server, hello))
}
