//! The client: it connects to the other host, and orders that host's end of each trial.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use engine::{EndpointRequest, PeerConnection, PeerMessage};
use mechanism::MEETING_PATIENCE;
use model::{CaseError, ErrorKind, PeerRecord};
use process::{Cleaner, Wire, WireError};

use crate::auth::Token;
use crate::handshake::{authenticate, connect, exchange_hellos};
use crate::peer::ssh::{LOGIN_MAX, Ssh};
use crate::peer::{BENCH, ClientMessage, ServerFacts, TrialUpdate};

/// A connection to the server on another host.
pub struct PeerClient<'c> {
    wire: Wire,
    ssh: Option<Ssh<'c>>,
    /// The address for connections of a trial.
    address: SocketAddr,
    /// The other host, for the record.
    pub record: PeerRecord,
    /// Number of orders so far: updates about earlier ones are ignored.
    orders: u64,
    /// Why the connection cannot be used any more.
    lost: Option<CaseError>,
}

impl<'c> PeerClient<'c> {
    /// Connects to the hosepipe that listens at `ADDRESS:PORT` with the same token.
    ///
    /// # Errors
    /// A sentence: the other host cannot be reached, or refuses.
    pub fn over_tcp(target: &str, token: &Token) -> Result<Self, WireError> {
        let stream = connect(target)?;
        let address = stream.peer_addr().map_err(WireError::system("getpeername"))?;
        let mut wire = authenticate(stream, target, token, BENCH)?;
        let (_, record) = receive_facts(&mut wire)?;
        Ok(Self { wire, ssh: None, address, record, orders: 0, lost: None })
    }

    /// Starts the other host's hosepipe by ssh, or with `send` a copy of this one. Trials connect to `address`, or to the one that ssh has
    /// reached.
    ///
    /// # Errors
    /// A sentence: the other host cannot be reached, or refuses.
    pub fn over_ssh(
        host: &str,
        address: Option<IpAddr>,
        send: bool,
        cleaner: &'c Cleaner,
    ) -> Result<Self, WireError> {
        let (mut ssh, mut wire) = Ssh::start(host, address, send, cleaner)?;
        let met = exchange_hellos(&mut wire, LOGIN_MAX, BENCH, None).and_then(|_| receive_facts(&mut wire));
        let (address, record) = met.map_err(|error| ssh.explain(error))?;
        Ok(Self { wire, ssh: Some(ssh), address, record, orders: 0, lost: None })
    }

    /// The first error of the connection is the error of all later cases.
    fn lose(&mut self, error: WireError) -> CaseError {
        let error = match &mut self.ssh {
            Some(ssh) => ssh.explain(error),
            None => error,
        };
        let error = CaseError::new(ErrorKind::Died, error.to_string());
        self.lost.get_or_insert(error).clone()
    }

    fn send(&mut self, message: &ClientMessage) -> Result<(), CaseError> {
        self.lost.clone().map_or(Ok(()), Err)?;
        self.wire.send(message, MEETING_PATIENCE).map_err(|error| self.lose(error))
    }
}

/// Receives the server's address and machine.
fn receive_facts(wire: &mut Wire) -> Result<(SocketAddr, PeerRecord), WireError> {
    let ServerFacts { address, tool, host } = wire.expect(MEETING_PATIENCE)?;
    Ok((address, PeerRecord { name: wire.name.clone(), address: address.to_string(), tool, host }))
}

impl PeerConnection for PeerClient<'_> {
    fn request_endpoint(&mut self, endpoint_request: &EndpointRequest) -> Result<SocketAddr, CaseError> {
        self.orders += 1;
        self.send(&ClientMessage::Order(self.orders, endpoint_request.clone()))?;
        Ok(self.address)
    }

    fn next_message(&mut self, wait: Duration) -> Result<Option<PeerMessage>, CaseError> {
        self.lost.clone().map_or(Ok(()), Err)?;
        loop {
            match self.wire.receive(wait) {
                Ok(None) => return Ok(None),
                Ok(Some(TrialUpdate { news: (number, news) })) if number == self.orders => {
                    return news.map(Some);
                }
                Ok(Some(_)) => {}
                Err(error) => return Err(self.lose(error)),
            }
        }
    }

    fn confirm(&mut self, bytes: u64, checksum: Option<&str>) -> Result<(), CaseError> {
        self.send(&ClientMessage::Confirm { bytes, checksum: checksum.map(str::to_owned) })
    }

    fn abandon(&mut self, why: &CaseError) {
        self.lost.get_or_insert_with(|| why.clone());
    }
}
