//! One end of UDP with another host, on a way that loses datagrams and swaps them. Each datagram has a number and says which one its
//! sender waits for itself. A receiver keeps what came too early and asks for what is missing; what is not acknowledged is sent again
//! after a while. So every byte arrives, in order, and what that took is counted.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use payload::Block;

use super::sockets::{rcvbuf_bytes, set_buffers, sndbuf_bytes};
use crate::meeting::MEETING_PATIENCE;
use crate::prelude::*;

/// The largest payload of a datagram over IPv4: 65535 less 20 bytes of IP header and 8 of UDP.
pub(super) const DATAGRAM_BYTES_MAX: u64 = 65507;

/// No larger window than this: what is under way is also in a CPU's queue of packets, which holds
/// net.core.netdev_max_backlog (1000 by default) for everybody on the machine.
pub(super) const WINDOW_MAX: u64 = 256;

/// What an Ethernet frame holds of our payload: 1500 bytes less the headers of IPv6, UDP and ours.
const DATAGRAM_BYTES: u64 = 1500 - 40 - 8 - HEADER as u64;

/// Of every datagram: what it is, the beginning of the trial's word, its number, and the number that its sender waits for.
const HEADER: usize = 21;
const DATA: u8 = b'd';
/// No data. Everything before the number came; of what came after it something is missing, or not.
const ACK: u8 = b'a';
const MISSING: u8 = b'm';
/// The word, and the sender's receive buffer; that the stream may begin, and how long a round trip takes in microseconds.
const HELLO: u8 = b'h';
const GO: u8 = b'g';

/// The shortest and the longest time after which something is sent again.
const AGAIN_MIN: Duration = Duration::from_millis(20);
const AGAIN_MAX: Duration = Duration::from_secs(1);
/// After so long without a word the other end is not waited for; less than its supervisor's patience.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// What a datagram is charged for in a receive buffer: this and its bytes, twice.
const CHARGE_BYTES: u64 = 1024;

pub(super) struct UdpEnd {
    options: Options,
    meeting: Meeting,
    workload: Workload,
    datagram_bytes: usize,
    /// Datagrams in a block, and those that come in all, of a stream.
    pieces: u64,
    total: u64,
    socket: Option<UdpSocket>,
    /// How many may be unacknowledged, and what was sent last, by number.
    window: u64,
    sent: Vec<Vec<u8>>,
    next: u64,
    acknowledged: u64,
    /// The number that is waited for, those that came too early, and whether one was asked for.
    expected: u64,
    early: BTreeMap<u64, Vec<u8>>,
    asked_for: Option<u64>,
    unanswered: u64,
    /// With more than this many unanswered an acknowledgement is sent.
    told_after: u64,
    room: Block,
    /// After so long something is sent again; and how often in a row that has passed without a word.
    again: Duration,
    silences: u32,
    retransmits: u64,
    syscalls: u64,
}

impl UdpEnd {
    pub(super) fn new(request: &Request<'_>, meeting: &Meeting) -> Result<Self, OpenError> {
        if FdWait::for_request(request) != FdWait::InCall {
            let text = "to another host its ends wait in the call itself";
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
            asked_for: None,
            unanswered: 0,
            told_after: 0,
            room: Block::new(HEADER + DATAGRAM_BYTES_MAX as usize),
            again: AGAIN_MAX,
            silences: 0,
            retransmits: 0,
            syscalls: 0,
        })
    }

    fn socket(&self) -> io::Result<&UdpSocket> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn receive(&mut self) -> io::Result<usize> {
        match &self.socket {
            Some(socket) => socket.recv(&mut self.room),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn say(&mut self, kind: u8, first: u64, second: u64) -> io::Result<()> {
        self.syscalls += 1;
        unless_gone(self.socket()?.send(&self.message(kind, first, second)))
    }

    fn message(&self, kind: u8, first: u64, second: u64) -> [u8; HEADER] {
        let mut bytes = [kind; HEADER];
        bytes[1..5].copy_from_slice(&self.meeting.word[..4]);
        bytes[5..13].copy_from_slice(&first.to_le_bytes());
        bytes[13..].copy_from_slice(&second.to_le_bytes());
        bytes
    }

    /// The kind and the two numbers of what lies in the room; `None` of what is of no message of this trial.
    fn heard(&self, len: usize) -> Option<(u8, u64, u64)> {
        let bytes = self.room.get(..len)?;
        let number = |from: usize| Some(u64::from_le_bytes(bytes.get(from..from + 8)?.try_into().ok()?));
        let own = bytes.get(1..5)? == &self.meeting.word[..4];
        Some((*bytes.first()?, number(5)?, number(13)?)).filter(|_| own)
    }

    /// The word and the receive buffer.
    fn hello(&self, socket: &UdpSocket) -> io::Result<Vec<u8>> {
        let rcvbuf = rcvbuf_bytes(&socket.try_clone()?.into()).map_err(io::Error::other)?;
        Ok([&[HELLO][..], &self.meeting.word, &rcvbuf.to_le_bytes()].concat())
    }

    /// The other end's receive buffer, where this is its word.
    fn heard_hello(&self, bytes: &[u8]) -> Option<u64> {
        let rcvbuf = bytes.strip_prefix(&[HELLO])?.strip_prefix(&self.meeting.word)?;
        Some(u64::from_le_bytes(rcvbuf.try_into().ok()?))
    }

    /// Finds the other end and tells how much it takes at once. Who calls repeats it until he is answered.
    fn meet(&mut self) -> io::Result<u64> {
        let began = Instant::now();
        let (local, peer): (SocketAddr, _) = match &self.meeting.place {
            Place::Call(address) if address.is_ipv4() => ((Ipv4Addr::UNSPECIFIED, 0).into(), Some(*address)),
            Place::Call(address) => ((Ipv6Addr::UNSPECIFIED, 0).into(), Some(*address)),
            Place::Answer(listener) => (listener.local_addr()?, None),
        };
        let socket = UdpSocket::bind(local)?;
        set_buffers(&self.options, socket.as_fd()).map_err(io::Error::other)?;
        socket.set_read_timeout(Some(AGAIN_MIN))?;
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
                    // Not there yet. Who asks at once again and again is soon not even refused (icmp(7), icmp_msgs_per_sec).
                    std::thread::sleep(AGAIN_MIN / 10);
                    asked = Instant::now();
                    continue;
                }
                Err(_) => continue,
            };
            if let Some(rcvbuf) = self.heard_hello(&self.room[..len]) {
                if peer.is_none() {
                    socket.connect(from)?;
                    socket.send(&hello)?;
                } else {
                    self.again = (asked.elapsed() * 3).clamp(AGAIN_MIN, AGAIN_MAX);
                }
                self.socket = Some(socket);
                return Ok(rcvbuf);
            }
        }
        Err(self.meeting.missed())
    }

    /// How many datagrams a receive buffer takes.
    fn window_of(&self, rcvbuf_bytes: u64) -> u64 {
        let charge = 2 * (self.datagram_bytes as u64 + CHARGE_BYTES);
        (rcvbuf_bytes / charge).clamp(1, WINDOW_MAX)
    }

    /// Whether this end called and its clock runs: a stream from the other end begins at its word.
    fn says_go(&self) -> bool {
        self.workload == Workload::Stream
            && !self.meeting.is_first
            && matches!(self.meeting.place, Place::Call(_))
    }

    fn awaits_go(&self) -> bool {
        self.workload == Workload::Stream
            && self.meeting.is_first
            && matches!(self.meeting.place, Place::Answer(_))
    }

    fn go(&mut self) -> io::Result<()> {
        self.say(GO, self.again.as_micros() as u64, 0)
    }

    /// Takes one datagram in. Data that is the next comes back as how much it is; it lies in the room, behind the header.
    fn take(&mut self) -> io::Result<Option<usize>> {
        self.syscalls += 1;
        let len = match self.receive() {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.silence().map(|()| None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Err(gone()),
            Err(error) => return Err(error),
        };
        let Some((kind, number, waits_for)) = self.heard(len) else { return Ok(None) };
        self.silences = 0;
        match kind {
            // Our answer was lost.
            HELLO
                if self.heard_hello(&self.room[..len]).is_some()
                    && matches!(self.meeting.place, Place::Answer(_)) =>
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
                // It came before: the acknowledgement was lost, and an answer has to be sent again.
                if self.workload == Workload::PingPong && self.acknowledged < self.next {
                    return self.send_again().map(|()| None);
                }
                self.say(ACK, 0, self.expected)
            }
            DATA if number == self.expected => return Ok(Some(len - HEADER)),
            // No sender has more under way.
            DATA if number - self.expected < WINDOW_MAX => {
                self.early.insert(number, self.room[HEADER..len].to_vec());
                self.ask_for_missing()
            }
            _ => Ok(()),
        }?;
        Ok(None)
    }

    /// Once for each number: what was asked for may be under way.
    fn ask_for_missing(&mut self) -> io::Result<()> {
        let missing = !self.early.is_empty() && !self.early.contains_key(&self.expected);
        if !missing || self.asked_for.replace(self.expected) == Some(self.expected) {
            return Ok(());
        }
        self.say(MISSING, 0, self.expected)
    }

    fn send_again(&mut self) -> io::Result<()> {
        if self.acknowledged == self.next {
            return Ok(());
        }
        (self.retransmits, self.syscalls) = (self.retransmits + 1, self.syscalls + 1);
        let slot = &self.sent[(self.acknowledged % self.window) as usize];
        unless_gone(self.socket()?.send(slot))
    }

    /// Nothing came for a while.
    fn silence(&mut self) -> io::Result<()> {
        self.silences += 1;
        if self.again * self.silences > SILENCE_MAX {
            let (seconds, again) = (SILENCE_MAX.as_secs(), self.retransmits);
            let text =
                format!("no datagram arrived for {seconds} s; {again} datagrams were sent again before that");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        if self.says_go() && self.expected == 0 {
            self.go()?;
        }
        // The other end may not know that anything is waited for: of the last datagram it sent nothing behind it tells.
        self.asked_for = Some(self.expected);
        self.say(MISSING, 0, self.expected)?;
        self.send_again()
    }

    /// The next data was taken: it is acknowledged after half a window, at the end, and where something is missing behind it.
    fn came(&mut self) -> io::Result<()> {
        self.expected += 1;
        self.unanswered += 1;
        self.ask_for_missing()?;
        let last = self.workload == Workload::Stream && self.expected == self.total;
        if last || self.unanswered > self.told_after {
            self.unanswered = 0;
            self.say(ACK, 0, self.expected)?;
        }
        Ok(())
    }
}

impl End for UdpEnd {
    fn prepare(&mut self) -> io::Result<()> {
        let rcvbuf = self.meet()?;
        self.window = self.window_of(rcvbuf);
        let own =
            self.window_of(rcvbuf_bytes(&self.socket()?.try_clone()?.into()).map_err(io::Error::other)?);
        // The answer to a question tells that it came.
        self.told_after =
            if self.workload == Workload::Stream { own / 2 } else { self.pieces.min(own - 1).max(1) };
        self.sent = vec![Vec::with_capacity(HEADER + self.datagram_bytes); self.window as usize];
        let began = Instant::now();
        while self.awaits_go() {
            let len = match self.receive() {
                Ok(len) => len,
                Err(_) if began.elapsed() < MEETING_PATIENCE => continue,
                Err(_) => return Err(self.meeting.missed()),
            };
            if let Some((GO, microseconds, _)) = self.heard(len) {
                self.again = Duration::from_micros(microseconds).clamp(AGAIN_MIN, AGAIN_MAX);
                break;
            }
        }
        self.socket()?.set_read_timeout(Some(self.again))?;
        if self.says_go() { self.go() } else { Ok(()) }
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }

    fn connection(&self) -> Option<ConnectionFacts> {
        let socket = OwnedFd::from(self.socket.as_ref()?.try_clone().ok()?);
        if !self.meeting.is_first {
            let granted = granted([("rcvbuf_bytes", rcvbuf_bytes(&socket).ok()?)]);
            return Some(ConnectionFacts { granted, ..ConnectionFacts::default() });
        }
        let granted = granted([
            ("sndbuf_bytes", sndbuf_bytes(&socket).ok()?),
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
            let header = self.message(DATA, self.next, self.expected);
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

    /// Waits until all of it came. That the other end has gone is no failure here: what it received it reports itself.
    fn finish(&mut self) -> io::Result<()> {
        if self.unanswered > 0 {
            self.say(ACK, 0, self.expected)?;
        }
        while self.acknowledged < self.next && self.silences < 5 {
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
                self.came()?;
                return Ok(datagram.len());
            }
            if let Some(len) = self.take()? {
                let bytes = &self.room[HEADER..HEADER + len];
                room.get_mut(..len).ok_or(io::ErrorKind::InvalidData)?.copy_from_slice(bytes);
                self.came()?;
                return Ok(len);
            }
        }
    }
}

/// An earlier datagram was refused because the other end is not there yet, or no longer: an end that waits for an answer finds out.
fn unless_gone(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the other end closed: ECONNREFUSED")
}
