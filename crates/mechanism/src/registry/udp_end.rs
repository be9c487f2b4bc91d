//! One end of UDP with another host, over a network that loses and reorders datagrams. Each datagram has a number, and the number of
//! the datagram that its sender waits for. A receiver keeps datagrams that come too early and requests missing ones; datagrams that are
//! not acknowledged are sent again after a time. So every byte arrives, in order, and the datagrams sent again are counted.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use payload::Block;

use super::sockets::{rcvbuf_bytes, set_buffers, sndbuf_bytes};
use crate::meeting::MEETING_PATIENCE;
use crate::prelude::*;

/// The largest payload of a datagram over IPv4: 65535 less 20 bytes of IP header and 8 of UDP.
pub(super) const DATAGRAM_BYTES_MAX: u64 = 65507;

/// Largest window in datagrams: unacknowledged datagrams are also in a CPU's queue of packets, which holds
/// net.core.netdev_max_backlog packets (1000 by default) of all programs of the machine.
pub(super) const WINDOW_MAX: u64 = 256;

/// Payload of an Ethernet frame: 1500 bytes less the headers of IPv6, UDP and this protocol.
const DATAGRAM_BYTES: u64 = 1500 - 40 - 8 - HEADER as u64;

/// Bytes of the header of every datagram: its kind, 4 bytes of the trial's key, its number, and the number that its sender waits for.
const HEADER: usize = 21;
/// The kinds of datagrams. DATA: a part of a block.
const DATA: u8 = b'd';
/// No data: the sender has all datagrams before the number that it waits for.
const ACK: u8 = b'a';
/// The same, and the sender waits for that number, perhaps because the datagram was lost.
const MISSING: u8 = b'm';
/// The trial's key, and the size of the sender's receive buffer.
const HELLO: u8 = b'h';
/// The stream may begin. Its number is the retransmission timeout in microseconds.
const GO: u8 = b'g';

/// The shortest and the longest retransmission timeout: the time after which a datagram is sent again.
const RETRANSMIT_MIN: Duration = Duration::from_millis(20);
const RETRANSMIT_MAX: Duration = Duration::from_secs(1);
/// Longest wait without a datagram from the other end; shorter than that of the supervisor.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// Bytes of a receive buffer that a datagram takes in addition to its payload. Windows are computed with twice the sum.
const CHARGE_BYTES: u64 = 1024;

pub(super) struct UdpEnd {
    options: Options,
    meeting: Meeting,
    workload: Workload,
    datagram_bytes: usize,
    /// Datagrams in a block.
    pieces: u64,
    /// Datagrams in a stream.
    total: u64,
    socket: Option<UdpSocket>,
    /// Most datagrams that may be unacknowledged.
    window: u64,
    /// The last `window` datagrams that were sent, at their number modulo `window`.
    sent: Vec<Vec<u8>>,
    /// The number of the next datagram to send.
    next: u64,
    /// All datagrams below this number are acknowledged.
    acknowledged: u64,
    /// The number of the next datagram to receive.
    expected: u64,
    /// Datagrams that came too early, by number.
    early: BTreeMap<u64, Vec<u8>>,
    /// The number that was requested last.
    requested: Option<u64>,
    /// Datagrams received since the last datagram with an acknowledgement was sent.
    unanswered: u64,
    /// With more than this many unanswered datagrams an acknowledgement is sent.
    unanswered_max: u64,
    room: Block,
    /// The time after which a datagram is sent again.
    retransmit_timeout: Duration,
    /// Number of timeouts since the last datagram from the other end.
    timeouts: u32,
    retransmits: u64,
    syscalls: u64,
}

impl UdpEnd {
    pub(super) fn new(request: &Request<'_>, meeting: &Meeting) -> Result<Self, OpenError> {
        if FdWait::for_request(request) != FdWait::InCall {
            let text = "its ends on two hosts can only sleep in the call";
            return Err(OpenError::unsupported(text, "--wait block"));
        }
        let asked = request.options.size("datagram");
        let bytes = asked.unwrap_or(DATAGRAM_BYTES).min(request.block_bytes as u64);
        let most = DATAGRAM_BYTES_MAX - HEADER as u64;
        if bytes > most {
            let text = format!("datagrams of {}, limit {} between hosts", ByteSize(bytes), ByteSize(most));
            return Err(OpenError::limit(text, "a smaller datagram="));
        }
        let pieces = (request.block_bytes as u64).div_ceil(bytes);
        Ok(Self {
            options: request.options.clone(),
            meeting: meeting.clone(),
            workload: request.workload,
            datagram_bytes: bytes as usize,
            pieces,
            total: request.total_bytes / request.block_bytes as u64 * pieces,
            socket: None,
            window: 1,
            sent: Vec::new(),
            next: 0,
            acknowledged: 0,
            expected: 0,
            early: BTreeMap::new(),
            requested: None,
            unanswered: 0,
            unanswered_max: 0,
            room: Block::new(HEADER + DATAGRAM_BYTES_MAX as usize),
            retransmit_timeout: RETRANSMIT_MAX,
            timeouts: 0,
            retransmits: 0,
            syscalls: 0,
        })
    }

    fn socket(&self) -> io::Result<&UdpSocket> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn receive(&mut self) -> io::Result<usize> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        socket.recv(&mut self.room)
    }

    /// Sends a datagram without data.
    fn send_control(&mut self, kind: u8, first: u64, second: u64) -> io::Result<()> {
        self.syscalls += 1;
        unless_gone(self.socket()?.send(&self.header(kind, first, second)))
    }

    fn header(&self, kind: u8, first: u64, second: u64) -> [u8; HEADER] {
        let mut bytes = [kind; HEADER];
        bytes[1..5].copy_from_slice(&self.meeting.key[..4]);
        bytes[5..13].copy_from_slice(&first.to_le_bytes());
        bytes[13..].copy_from_slice(&second.to_le_bytes());
        bytes
    }

    /// The kind and the two numbers of the received datagram in `room`; `None` if it is not a datagram of this trial.
    fn parse_header(&self, len: usize) -> Option<(u8, u64, u64)> {
        let bytes = self.room.get(..len)?;
        let number = |from: usize| Some(u64::from_le_bytes(bytes.get(from..from + 8)?.try_into().ok()?));
        let own = bytes.get(1..5)? == &self.meeting.key[..4];
        Some((*bytes.first()?, number(5)?, number(13)?)).filter(|_| own)
    }

    /// The first datagram of an end: the key and the size of the receive buffer.
    fn hello(&self, socket: &UdpSocket) -> io::Result<Vec<u8>> {
        let rcvbuf = rcvbuf_bytes(socket).map_err(io::Error::other)?;
        Ok([&[HELLO][..], &self.meeting.key, &rcvbuf.to_le_bytes()].concat())
    }

    /// The size of the other end's receive buffer, if this is its [`HELLO`].
    fn parse_hello(&self, bytes: &[u8]) -> Option<u64> {
        let rcvbuf = bytes.strip_prefix(&[HELLO])?.strip_prefix(&self.meeting.key)?;
        Some(u64::from_le_bytes(rcvbuf.try_into().ok()?))
    }

    /// Finds the other end; returns the size of its receive buffer. An end that connects sends its [`HELLO`] until it gets an answer.
    fn meet(&mut self) -> io::Result<u64> {
        let began = Instant::now();
        let (local, peer): (SocketAddr, _) = match &self.meeting.mode {
            MeetingMode::Connect(address) if address.is_ipv4() => {
                ((Ipv4Addr::UNSPECIFIED, 0).into(), Some(*address))
            }
            MeetingMode::Connect(address) => ((Ipv6Addr::UNSPECIFIED, 0).into(), Some(*address)),
            MeetingMode::Listen(listener) => (listener.local_addr()?, None),
        };
        let socket = UdpSocket::bind(local)?;
        set_buffers(&self.options, socket.as_fd()).map_err(io::Error::other)?;
        socket.set_read_timeout(Some(RETRANSMIT_MIN))?;
        let hello = self.hello(&socket)?;
        let mut asked = began;
        while began.elapsed() < MEETING_PATIENCE {
            if let Some(peer) = peer {
                socket.connect(peer)?;
                unless_gone(socket.send(&hello))?;
            }
            let (len, from) = match socket.recv_from(&mut self.room) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    // The other end does not listen yet. Without a pause the kernel would soon send no more refusals (icmp(7),
                    // icmp_msgs_per_sec).
                    std::thread::sleep(RETRANSMIT_MIN / 10);
                    asked = Instant::now();
                    continue;
                }
                Err(_) => continue,
            };
            if let Some(rcvbuf) = self.parse_hello(&self.room[..len]) {
                if peer.is_none() {
                    socket.connect(from)?;
                    socket.send(&hello)?;
                } else {
                    self.retransmit_timeout = (asked.elapsed() * 3).clamp(RETRANSMIT_MIN, RETRANSMIT_MAX);
                }
                self.socket = Some(socket);
                return Ok(rcvbuf);
            }
        }
        Err(self.meeting.timed_out())
    }

    /// The number of datagrams that fit into a receive buffer, at most [`WINDOW_MAX`].
    fn window_of(&self, rcvbuf_bytes: u64) -> u64 {
        let charge = 2 * (self.datagram_bytes as u64 + CHARGE_BYTES);
        (rcvbuf_bytes / charge).clamp(1, WINDOW_MAX)
    }

    /// Whether the receiver of a stream, which times it, is the end that connected: the other end waits for its [`GO`] before it sends.
    fn needs_go(&self) -> bool {
        let connects = matches!(self.meeting.mode, MeetingMode::Connect(_));
        self.workload == Workload::Stream && connects != self.meeting.is_first
    }

    fn go(&mut self) -> io::Result<()> {
        self.send_control(GO, self.retransmit_timeout.as_micros() as u64, 0)
    }

    /// Receives and processes one datagram. If it is the next one with data, returns the number of its bytes; they are in `room`, after
    /// the header.
    fn take(&mut self) -> io::Result<Option<usize>> {
        self.syscalls += 1;
        let len = match self.receive() {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return self.handle_timeout().map(|()| None);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(gone()),
            Err(error) => return Err(error),
        };
        let Some((kind, number, waits_for)) = self.parse_header(len) else { return Ok(None) };
        self.timeouts = 0;
        match kind {
            // Our answer was lost.
            HELLO
                if self.parse_hello(&self.room[..len]).is_some()
                    && matches!(self.meeting.mode, MeetingMode::Listen(_)) =>
            {
                let hello = self.hello(self.socket()?)?;
                unless_gone(self.socket()?.send(&hello))?;
                return Ok(None);
            }
            DATA | ACK | MISSING => {}
            _ => return Ok(None),
        }
        if (self.acknowledged..=self.next).contains(&waits_for) {
            self.acknowledged = waits_for;
        }
        match kind {
            MISSING if waits_for == self.acknowledged => self.send_again(),
            DATA if number < self.expected => {
                // A duplicate: the acknowledgement was lost. In round trips the answer, which acknowledges it, is sent again.
                if self.workload == Workload::PingPong && self.acknowledged < self.next {
                    return self.send_again().map(|()| None);
                }
                self.send_control(ACK, 0, self.expected)
            }
            DATA if number == self.expected => return Ok(Some(len - HEADER)),
            // No sender has more datagrams unacknowledged.
            DATA if number - self.expected < WINDOW_MAX => {
                self.early.insert(number, self.room[HEADER..len].to_vec());
                self.request_missing()
            }
            _ => Ok(()),
        }?;
        Ok(None)
    }

    /// Requests the expected datagram if later ones have come. Only once for each number, since it may already be on the way.
    fn request_missing(&mut self) -> io::Result<()> {
        let missing = !self.early.is_empty() && !self.early.contains_key(&self.expected);
        if !missing || self.requested.replace(self.expected) == Some(self.expected) {
            return Ok(());
        }
        self.send_control(MISSING, 0, self.expected)
    }

    /// Sends the first datagram that is not acknowledged again.
    fn send_again(&mut self) -> io::Result<()> {
        if self.acknowledged == self.next {
            return Ok(());
        }
        (self.retransmits, self.syscalls) = (self.retransmits + 1, self.syscalls + 1);
        let slot = &self.sent[(self.acknowledged % self.window) as usize];
        unless_gone(self.socket()?.send(slot))
    }

    /// Handles a timeout: no datagram arrived for the time `retransmit_timeout`.
    fn handle_timeout(&mut self) -> io::Result<()> {
        self.timeouts += 1;
        if self.retransmit_timeout * self.timeouts > SILENCE_MAX {
            let (seconds, retransmits) = (SILENCE_MAX.as_secs(), self.retransmits);
            let text = format!(
                "no datagram arrived for {seconds} s; {retransmits} datagrams were sent again before that"
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        if self.needs_go() && !self.meeting.is_first && self.expected == 0 {
            self.go()?;
        }
        // Requests the expected datagram even without later ones: if the last datagram of the other end was lost, none follows it.
        self.requested = Some(self.expected);
        self.send_control(MISSING, 0, self.expected)?;
        self.send_again()
    }

    /// Counts the expected datagram as received. Acknowledges after half a window and at the end, and requests the next datagram if it is
    /// missing.
    fn advance(&mut self) -> io::Result<()> {
        self.expected += 1;
        self.unanswered += 1;
        self.request_missing()?;
        let last = self.workload == Workload::Stream && self.expected == self.total;
        if last || self.unanswered > self.unanswered_max {
            self.unanswered = 0;
            self.send_control(ACK, 0, self.expected)?;
        }
        Ok(())
    }
}

impl End for UdpEnd {
    fn prepare(&mut self) -> io::Result<()> {
        let rcvbuf = self.meet()?;
        self.window = self.window_of(rcvbuf);
        let own = self.window_of(rcvbuf_bytes(self.socket()?).map_err(io::Error::other)?);
        // In round trips the answer is the acknowledgement.
        self.unanswered_max =
            if self.workload == Workload::Stream { own / 2 } else { self.pieces.min(own - 1).max(1) };
        self.sent = vec![Vec::with_capacity(HEADER + self.datagram_bytes); self.window as usize];
        let began = Instant::now();
        while self.needs_go() && self.meeting.is_first {
            let len = match self.receive() {
                Ok(len) => len,
                Err(_) if began.elapsed() < MEETING_PATIENCE => continue,
                Err(_) => return Err(self.meeting.timed_out()),
            };
            if let Some((GO, microseconds, _)) = self.parse_header(len) {
                self.retransmit_timeout =
                    Duration::from_micros(microseconds).clamp(RETRANSMIT_MIN, RETRANSMIT_MAX);
                break;
            }
        }
        self.socket()?.set_read_timeout(Some(self.retransmit_timeout))?;
        if self.needs_go() && !self.meeting.is_first { self.go() } else { Ok(()) }
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }

    fn connection(&self) -> Option<ConnectionFacts> {
        let socket = self.socket.as_ref()?;
        if !self.meeting.is_first {
            let granted = granted([("rcvbuf_bytes", rcvbuf_bytes(socket).ok()?)]);
            return Some(ConnectionFacts { granted, ..ConnectionFacts::default() });
        }
        let granted = granted([
            ("sndbuf_bytes", sndbuf_bytes(socket).ok()?),
            ("datagram_bytes", self.datagram_bytes as u64),
            ("window_datagrams", self.window),
        ]);
        Some(ConnectionFacts { granted, congestion_control: None, retransmits: Some(self.retransmits) })
    }
}

impl Sender for UdpEnd {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        for piece in block.chunks(self.datagram_bytes) {
            while self.next - self.acknowledged >= self.window {
                self.take()?;
            }
            let header = self.header(DATA, self.next, self.expected);
            let slot = &mut self.sent[(self.next % self.window) as usize];
            slot.clear();
            slot.extend_from_slice(&header);
            slot.extend_from_slice(piece);
            (self.next, self.unanswered, self.syscalls) = (self.next + 1, 0, self.syscalls + 1);
            let slot = &self.sent[((self.next - 1) % self.window) as usize];
            unless_gone(self.socket()?.send(slot))?;
        }
        Ok(())
    }

    /// Waits until all datagrams are acknowledged. It is not an error if the other end has ended: its own report contains what it
    /// received.
    fn finish(&mut self) -> io::Result<()> {
        if self.unanswered > 0 {
            self.send_control(ACK, 0, self.expected)?;
        }
        while self.acknowledged < self.next && self.timeouts < 5 {
            if self.take().is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Receiver for UdpEnd {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(datagram) = self.early.remove(&self.expected) {
                room.get_mut(..datagram.len()).ok_or(io::ErrorKind::InvalidData)?.copy_from_slice(&datagram);
                self.advance()?;
                return Ok(datagram.len());
            }
            if let Some(len) = self.take()? {
                let bytes = &self.room[HEADER..HEADER + len];
                room.get_mut(..len).ok_or(io::ErrorKind::InvalidData)?.copy_from_slice(bytes);
                self.advance()?;
                return Ok(len);
            }
        }
    }
}

/// Ignores ECONNREFUSED: an earlier datagram was refused because the other end does not listen yet, or no longer. An end that waits for
/// an answer notices the latter.
fn unless_gone(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed: ECONNREFUSED")
}
