//! One end of a TCP connection with another host.
//!
//! ```text
//!                      a stream                                  round trips
//!  sender                         receiver       client                        server
//!    │ ── connect, key of the trial ──▶ │          │ ── connect, key ─────────▶ │     (either end may be the one that connects)
//!    │ ── READY ──────────────────────▶ │          │ ◀───────────────── READY ─ │
//!    │ ◀──────────────────────── GO ─── │ clock    │ clock starts               │
//!    │ ── block ─ block ─ … ─ block ──▶ │ starts   │ ── request ──────────────▶ │
//!    │ ── shutdown ───────────────────▶ │ stops    │ ◀──────────────── answer ─ │     … the last answer stops it
//!    │ ◀───────────────────── close ─── │          │                            │
//! ```
//! The end with the clock is the receiver of a stream, and the client of round trips.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use process::ready_within;
use rustix::net::{AddressFamily, Shutdown, SocketType, connect, shutdown, sockopt};

use super::sockets::{rcvbuf_bytes, set_buffers, sndbuf_bytes, socket, socket_option};
use crate::meeting::{CallerCheck, Callers, MEETING_PATIENCE};
use crate::prelude::*;

/// `lowat=SIZE`: the number of bytes that wakes the receiver of a stream.
pub(super) const LOWAT_OPTION: &str = "lowat";

/// Sent by an end that is ready.
const READY: u8 = b'r';
/// Sent by the end that has the clock when it starts the clock.
const GO: u8 = b'g';

/// One end. It has no connection before [`End::prepare`].
pub(super) struct TcpEnd {
    end: FdEnd,
    options: Options,
    meeting: Meeting,
    workload: Workload,
}

impl TcpEnd {
    pub(super) fn new(request: &Request<'_>, meeting: &Meeting) -> Self {
        let (options, meeting, workload) = (request.options.clone(), meeting.clone(), request.workload);
        Self { end: FdEnd::none(FdWait::for_request(request)), options, meeting, workload }
    }

    /// Whether this end times the trial.
    fn has_clock(&self) -> bool {
        self.meeting.is_initiator == (self.workload == Workload::PingPong)
    }

    /// Whether `lowat` applies. The receiver of a stream always gets more bytes, or the end of the stream, which also wakes it. A round
    /// trip with fewer bytes would wait for ever.
    fn receives_stream(&self) -> bool {
        self.workload == Workload::Stream && !self.meeting.is_initiator
    }

    /// Connects, or waits for the other end to connect. An end that connects sets its buffers before, so that the TCP window fits them;
    /// an end that listens sets them afterwards, since all trials have one listener.
    fn meet(&self) -> io::Result<TcpStream> {
        match &self.meeting.mode {
            MeetingMode::Connect(address) => {
                let mut stream = connect_to(&self.options, address).map_err(|error| match error.kind() {
                    io::ErrorKind::TimedOut => self.meeting.timed_out(),
                    kind => io::Error::new(kind, format!("connect({address}): {}", describe_errno(&error))),
                })?;
                stream.write_all(&self.meeting.key)?;
                Ok(stream)
            }
            MeetingMode::Listen(listener) => {
                let key = &self.meeting.key[..];
                let accepted = Callers::new(Arc::clone(listener), key.len()).next(
                    MEETING_PATIENCE,
                    &mut Vec::new,
                    &mut |_, received| match key.starts_with(received) {
                        true if received.len() == key.len() => CallerCheck::Right(()),
                        true => CallerCheck::Incomplete,
                        false => CallerCheck::Wrong,
                    },
                    &mut || true,
                )?;
                let (stream, ()) = accepted.ok_or_else(|| self.meeting.timed_out())?;
                set_buffers(&self.options, stream.as_fd()).map_err(io::Error::other)?;
                Ok(stream)
            }
        }
    }

    /// Makes both ends start at the same time: the end with the clock starts when the other end is ready, and sends it [`GO`]; in round
    /// trips the first message takes the place of that. So no small message is unacknowledged when the first block is sent. The block
    /// would wait for that acknowledgement (Nagle's algorithm, RFC 896), for 40 ms if it is delayed.
    fn start(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(MEETING_PATIENCE))?;
        let expect = |stream: &mut TcpStream, byte: u8| -> io::Result<()> {
            let mut received = [0];
            stream.read_exact(&mut received).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the other end is not ready within {} s", MEETING_PATIENCE.as_secs()),
                ),
                _ => error,
            })?;
            let problem = "the other end sent an invalid first byte";
            if received == [byte] { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, problem)) }
        };
        let says_go = self.workload == Workload::Stream;
        match (self.has_clock(), says_go) {
            (true, _) => expect(stream, READY)?,
            (false, true) => stream.write_all(&[READY]).and_then(|()| expect(stream, GO))?,
            (false, false) => stream.write_all(&[READY])?,
        }
        stream.set_read_timeout(None)?;
        if self.has_clock() && says_go { stream.write_all(&[GO]) } else { Ok(()) }
    }
}

/// Connects to an address; fails with `TimedOut` after [`MEETING_PATIENCE`].
fn connect_to(options: &Options, address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = TcpStream::from(socket(options, family, SocketType::STREAM).map_err(io::Error::other)?);
    stream.set_nonblocking(true)?;
    match connect(&stream, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if !ready_within(&stream, PollFlags::OUT, Some(MEETING_PATIENCE))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    sockopt::socket_error(&stream)??;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

impl End for TcpEnd {
    fn prepare(&mut self) -> io::Result<()> {
        let mut stream = self.meet()?;
        stream.set_nodelay(true)?;
        self.start(&mut stream)?;
        stream.set_nodelay(self.options.has("nodelay"))?;
        if let Some(bytes) = self.options.size(LOWAT_OPTION).filter(|_| self.receives_stream()) {
            set_lowat(&stream, bytes)?;
        }
        self.end = FdEnd::new(stream.into(), self.end.wait).map_err(io::Error::other)?;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        self.end.syscalls()
    }

    /// For a sender its buffer, segment size, congestion control and retransmits; for a receiver its buffer.
    fn connection(&self) -> Option<ConnectionFacts> {
        let socket = self.end.fd().ok()?;
        if !self.meeting.is_initiator {
            let mut granted = granted([("rcvbuf_bytes", rcvbuf_bytes(socket).ok()?)]);
            if self.options.has(LOWAT_OPTION) && self.receives_stream() {
                // SAFETY: a number.
                let bytes: libc::c_int =
                    unsafe { socket_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT) }.ok()?;
                granted.insert("lowat_bytes".to_owned(), bytes as u64);
            }
            return Some(ConnectionFacts { granted, ..ConnectionFacts::default() });
        }
        // SAFETY: the fields are numbers; an older kernel fills in fewer of them.
        let info: libc::tcp_info =
            unsafe { socket_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO) }.ok()?;
        Some(ConnectionFacts {
            granted: granted([
                ("sndbuf_bytes", sndbuf_bytes(socket).ok()?),
                ("mss_bytes", info.tcpi_snd_mss.into()),
            ]),
            congestion_control: sockopt::tcp_congestion(socket).ok(),
            retransmits: Some(info.tcpi_total_retrans.into()),
        })
    }
}

impl Sender for TcpEnd {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.end.send(block)
    }

    /// Shuts the stream down, so that the last, partial segment does not wait for an acknowledgement, as in [`Self::start`]. Then waits until
    /// the receiver has all bytes and closes: so segments that are sent again until then are counted. This end does not have the clock.
    fn finish(&mut self) -> io::Result<()> {
        if self.workload != Workload::Stream {
            return Ok(());
        }
        shutdown(self.end.fd()?, Shutdown::Write)?;
        if self.end.recv(&mut [0])? == 0 {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the receiver of a stream sent something"))
    }
}

impl Receiver for TcpEnd {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.end.recv(room)
    }
}

/// SO_RCVLOWAT (socket(7)). The kernel bounds it by half of the largest receive buffer (net.ipv4.tcp_rmem).
fn set_lowat(socket: &TcpStream, bytes: u64) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let (fd, len) = (socket.as_raw_fd(), size_of_val(&bytes) as libc::socklen_t);
    let value = (&raw const bytes).cast();
    // SAFETY: a C int, which the kernel copies.
    libc_result(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, len) }).map(drop)
}
