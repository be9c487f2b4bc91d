//! One end of a TCP connection with another host.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use process::ready_within;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{AddressFamily, Shutdown, SocketType, connect, shutdown, sockopt};

use super::sockets::{rcvbuf_bytes, set_buffers, sndbuf_bytes, socket};
use crate::meeting::{Callers, Heard, MEETING_PATIENCE};
use crate::prelude::*;

/// `lowat=SIZE`: how many bytes wake the receiver of a stream.
pub(super) const LOWAT_OPTION: &str = "lowat";

/// What an end says that is ready, and what the one with the clock says when it starts it.
const READY: u8 = b'r';
const GO: u8 = b'g';

/// One end, which has its connection once it is prepared.
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

    /// Whether the clock of the trial is this end's.
    fn has_clock(&self) -> bool {
        self.meeting.is_first == (self.workload == Workload::PingPong)
    }

    /// Only there more bytes always follow, or the end of the stream, which wakes a receiver as well. A round trip's answer would be
    /// waited for without end.
    fn receives_stream(&self) -> bool {
        self.workload == Workload::Stream && !self.meeting.is_first
    }

    /// Calls, or answers. Buffers are set before a call is made, so that the window is agreed on with them; who answers sets his
    /// afterwards, as all trials have one listener.
    fn meet(&self) -> io::Result<TcpStream> {
        match &self.meeting.place {
            Place::Call(address) => {
                let mut stream = call(&self.options, address).map_err(|error| match error.kind() {
                    io::ErrorKind::TimedOut => self.meeting.missed(),
                    _ => with_address(&error, address),
                })?;
                stream.write_all(&self.meeting.word)?;
                Ok(stream)
            }
            Place::Answer(listener) => {
                let known = &self.meeting.word[..];
                let met = Callers::new(Arc::clone(listener), known.len()).next(
                    MEETING_PATIENCE,
                    &mut Vec::new,
                    &mut |_, heard| match known.starts_with(heard) {
                        true if heard.len() == known.len() => Heard::Right(()),
                        true => Heard::More,
                        false => Heard::Wrong,
                    },
                    &mut || true,
                )?;
                let (stream, ()) = met.ok_or_else(|| self.meeting.missed())?;
                set_buffers(&self.options, stream.as_fd()).map_err(io::Error::other)?;
                Ok(stream)
            }
        }
    }

    /// Both ends leave together: who has the clock starts it when he knows that the other is ready, and tells him to go; of round trips
    /// the first question does. So nothing small is on its way when the first block is sent, which would wait for its acknowledgement
    /// (Nagle's algorithm, RFC 896), 40 ms where that is delayed.
    fn start(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(MEETING_PATIENCE))?;
        let hear = |stream: &mut TcpStream, word: u8| -> io::Result<()> {
            let mut heard = [0];
            stream.read_exact(&mut heard).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the other end is not ready within {} s", MEETING_PATIENCE.as_secs()),
                ),
                _ => error,
            })?;
            let problem = "the other end does not begin as it must";
            if heard == [word] { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, problem)) }
        };
        let says_go = self.workload == Workload::Stream;
        match (self.has_clock(), says_go) {
            (true, _) => hear(stream, READY)?,
            (false, true) => stream.write_all(&[READY]).and_then(|()| hear(stream, GO))?,
            (false, false) => stream.write_all(&[READY])?,
        }
        stream.set_read_timeout(None)?;
        if self.has_clock() && says_go { stream.write_all(&[GO]) } else { Ok(()) }
    }
}

/// Calls an address, with patience.
fn call(options: &Options, address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(options, family, SocketType::STREAM).map_err(io::Error::other)?;
    let flags = fcntl_getfl(&socket)?;
    fcntl_setfl(&socket, flags | OFlags::NONBLOCK)?;
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if !ready_within(&socket, PollFlags::OUT, Some(MEETING_PATIENCE))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    sockopt::socket_error(&socket)??;
    fcntl_setfl(&socket, flags)?;
    Ok(TcpStream::from(socket))
}

fn with_address(error: &io::Error, address: &SocketAddr) -> io::Error {
    io::Error::new(error.kind(), format!("connect({address}): {}", describe_errno(error)))
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

    /// Of a connection that was made; the sender's buffer, segments and congestion control, the receiver's buffer.
    fn connection(&self) -> Option<ConnectionFacts> {
        let socket = self.end.fd().ok()?;
        if !self.meeting.is_first {
            let mut granted = granted([("rcvbuf_bytes", rcvbuf_bytes(socket).ok()?)]);
            if self.options.has(LOWAT_OPTION) && self.receives_stream() {
                granted.insert("lowat_bytes".to_owned(), lowat_bytes(socket).ok()?);
            }
            return Some(ConnectionFacts { granted, ..ConnectionFacts::default() });
        }
        let info = tcp_info(socket).ok()?;
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

    /// Waits until the receiver has everything and closes: what is sent again until then is counted. The clock is not this end's. It says
    /// that nothing more comes, as closing does: a last part of a segment would wait for an acknowledgement, as above.
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
    answered(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, len) }).map(drop)
}

/// What the kernel made of it.
fn lowat_bytes(socket: &OwnedFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    let mut len = size_of_val(&bytes) as libc::socklen_t;
    let (fd, room) = (socket.as_raw_fd(), (&raw mut bytes).cast());
    // SAFETY: room for a C int, as `len` says.
    answered(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, room, &mut len) })?;
    Ok(bytes as u64)
}

fn tcp_info(socket: &OwnedFd) -> io::Result<libc::tcp_info> {
    // SAFETY: numbers, for which zeros are valid; an older kernel fills in a shorter part.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as libc::socklen_t;
    let (fd, room) = (socket.as_raw_fd(), (&raw mut info).cast());
    // SAFETY: room for as much as `len` says; the kernel writes no more.
    answered(unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, room, &mut len) }).map(|_| info)
}
