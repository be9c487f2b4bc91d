//! `udp`: datagrams over the loopback interface, udp(7), with acknowledgements so that none is lost.
//!
//! UDP itself never makes a sender wait: if the receiver's buffer is full, the kernel drops a datagram without an error. So
//! the ends do what every protocol over UDP does: the sender has at most a *window* of unacknowledged datagrams, and the
//! receiver acknowledges every half window with a small datagram. The system calls of both sides for that are counted in the
//! figures. A round trip needs no acknowledgement, since the answer is one.
//!
//! The window is computed from the granted receive buffer and the charge of a datagram in it (payload, headers and the
//! kernel's rounding: 832 bytes for a payload of 1 byte, 66 KiB for 64 KiB), which is measured with one datagram when the
//! channel is opened. If a datagram is lost nevertheless, the receiver fails after [`RECEIVER_PATIENCE`] and reports how many
//! the kernel dropped; no end waits for ever.
#![allow(unsafe_code)]

use std::time::Duration;

use process::ready_within;
use rustix::net::{RecvFlags, SendFlags, SocketType, connect, getsockname, recv, send};

use super::messages::{MessageEnd, receiver_wait};
use super::sockets::{
    RCVBUF_OPTION, SNDBUF_OPTION, loopback_socket, no_loopback, rcvbuf_bytes, sndbuf_bytes, socket_option,
};
use crate::prelude::*;

/// The largest payload of a datagram over IPv4: 65535 less 20 bytes of IP header and 8 of UDP.
const DATAGRAM_BYTES_MAX: u64 = 65507;

/// Largest window in datagrams: unacknowledged datagrams are also in a CPU's queue of packets, which holds
/// net.core.netdev_max_backlog packets (1000 by default) of all programs of the machine.
const WINDOW_MAX: u64 = 256;

/// Longest wait for a datagram; after it one was lost. That of the receiver is shorter, since only it can report the cause; both
/// are shorter than that of the supervisor, which would report a hang.
const RECEIVER_PATIENCE: Duration = Duration::from_secs(3);
const SENDER_PATIENCE: Duration = Duration::from_secs(5);

pub(super) static UDP: Mechanism = Mechanism {
    name: "udp",
    summary: "UDP over the loopback interface, acknowledged so that nothing is lost",
    // No link: unmodified programs send no acknowledgements, and their reader would not see the end.
    capabilities: Capabilities::KEEPS_BOUNDARIES,
    options: &[
        OptionSpec {
            name: "datagram",
            kind: OptionKind::Size,
            default: "off: a block is a datagram",
            help: "cut blocks into datagrams of this size, so that blocks may be larger than a datagram",
        },
        SNDBUF_OPTION,
        RCVBUF_OPTION,
    ],
    limits: "block or datagram: 65507 bytes (IPv4); sndbuf, rcvbuf: net.core.wmem_max and net.core.rmem_max",
    man_pages: &["udp(7)", "ip(7)", "socket(7)"],
    more_specs: &["udp", "udp:datagram=32KiB", "udp:datagram=32KiB,rcvbuf=1MiB"],
    probe,
    ..Mechanism::messages(open_channel)
};

fn probe() -> Result<(), OpenError> {
    connect_pair(&Options::default()).map(drop).map_err(no_loopback)
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let datagram_bytes = datagram_bytes(request)?;
    one_way(request, || direction(request, datagram_bytes))
}

/// Bytes in a datagram; a block is cut into as many as necessary.
fn datagram_bytes(request: &Request<'_>) -> Result<usize, OpenError> {
    let block = request.block_bytes as u64;
    let asked = request.options.size("datagram");
    let bytes = asked.unwrap_or(block).min(block);
    if bytes <= DATAGRAM_BYTES_MAX {
        return Ok(bytes as usize);
    }
    let limit = "the largest UDP datagram over IPv4";
    Err(if asked.is_none() {
        let remedy = "udp:datagram=32KiB, which cuts blocks";
        OpenError::block_too_large(request.block_bytes, DATAGRAM_BYTES_MAX, limit, remedy)
    } else {
        let (bytes, most) = (ByteSize(bytes), ByteSize(DATAGRAM_BYTES_MAX));
        OpenError::limit(format!("datagrams of {bytes}, limit {most} ({limit})"), "udp:datagram=32KiB")
    })
}

fn direction(
    request: &Request<'_>,
    datagram_bytes: usize,
) -> Result<Direction<UdpSender, UdpReceiver>, OpenError> {
    let (near, far) = connect_pair(request.options)?;
    let charge = try_one(&near, &far, datagram_bytes)?;
    let (sndbuf, rcvbuf) = (sndbuf_bytes(&near)?, rcvbuf_bytes(&far)?);
    let window = Window::for_buffer(rcvbuf, charge);
    let granted = [
        ("sndbuf_bytes", sndbuf),
        ("rcvbuf_bytes", rcvbuf),
        ("datagram_bytes", datagram_bytes as u64),
        ("charge_bytes", charge),
        ("window_datagrams", window.datagrams),
    ];
    // If each block is answered, or received by the same task, before the next is sent, a window that holds one block can
    // never be exceeded.
    let in_turns = request.workload == Workload::PingPong || request.tasks == Tasks::Single;
    let pieces = request.block_bytes.div_ceil(datagram_bytes) as u64;
    let window = if in_turns && pieces <= window.datagrams { None } else { Some(window) };
    let socket = MessageEnd::new(near, FdWait::for_request(request), Some(SENDER_PATIENCE))?;
    let sender = UdpSender { socket, datagram_bytes, window, unacknowledged: 0, acknowledged: 0 };
    let socket = MessageEnd::new(far, receiver_wait(request), Some(RECEIVER_PATIENCE))?;
    Ok(Direction::new(sender, UdpReceiver { socket, window, received: 0 }).granted(granted))
}

/// Two sockets connected to each other: each receives only from the other. A socket that is not connected receives datagrams of every
/// process that sends to its port.
fn connect_pair(options: &Options) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let one = || loopback_socket(options, SocketType::DGRAM);
    let (near, far) = (one()?, one()?);
    connect_both(&near, &far)?;
    Ok((near, far))
}

fn connect_both(near: &OwnedFd, far: &OwnedFd) -> Result<(), OpenError> {
    for (from, to) in [(near, far), (far, near)] {
        let address = getsockname(to).in_call("getsockname")?;
        connect(from, &address).in_call("connect(127.0.0.1)")?;
    }
    discard_unread(near)?;
    discard_unread(far)
}

/// Drops datagrams that other processes have sent before the socket was connected.
fn discard_unread(socket: &OwnedFd) -> Result<(), OpenError> {
    loop {
        match recv(socket, &mut [0; 1], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(OpenError::system("recv", error, None)),
            Ok(_) => {}
        }
    }
}

/// Sends one datagram of this size and receives it. Returns its charge in the receive buffer, in bytes.
fn try_one(near: &OwnedFd, far: &OwnedFd, datagram_bytes: usize) -> Result<u64, OpenError> {
    let mut datagram = vec![0xA5; datagram_bytes];
    send(near, &datagram, SendFlags::NOSIGNAL).in_call(format!("send({datagram_bytes} bytes, 127.0.0.1)"))?;
    let arrived = ready_within(far, PollFlags::IN, Some(Duration::from_secs(1)));
    if !arrived.in_call("poll")? {
        let call = format!("a datagram of {datagram_bytes} bytes did not arrive at 127.0.0.1");
        let remedy = "look for a firewall rule on the loopback interface, or a small MTU on it";
        return Err(OpenError::system(call, Errno::TIMEDOUT, Some(remedy.to_owned())));
    }
    let charge = SocketMemory::read(far).in_call("getsockopt(SO_MEMINFO)")?.charged_bytes;
    recv(far, &mut datagram[..], RecvFlags::DONTWAIT).in_call("recv")?;
    Ok(charge.max(datagram_bytes as u64))
}

/// Most unacknowledged datagrams, and the number of datagrams for each acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    datagrams: u64,
    datagrams_per_ack: u64,
}

impl Window {
    /// The datagrams that fit into three quarters of the buffer: the kernel frees room only after a quarter of it was read
    /// (`udp_rmem_release`, net/ipv4/udp.c). At least one: an empty buffer accepts a datagram of any size.
    fn for_buffer(rcvbuf_bytes: u64, charge_bytes: u64) -> Self {
        let datagrams = (rcvbuf_bytes / 4 * 3 / charge_bytes.max(1)).clamp(1, WINDOW_MAX);
        Self { datagrams, datagrams_per_ack: (datagrams / 2).max(1) }
    }
}

/// Bytes of an acknowledgement: the total number of received datagrams.
const ACK_BYTES: usize = size_of::<u64>();

/// Sends; waits for an acknowledgement when the window is full.
struct UdpSender {
    socket: MessageEnd,
    datagram_bytes: usize,
    window: Option<Window>,
    unacknowledged: u64,
    acknowledged: u64,
}

impl UdpSender {
    fn await_ack(&mut self, window: Window) -> io::Result<()> {
        let mut ack = [0; ACK_BYTES];
        let len = self.socket.receive_message(&mut ack).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => {
                io::Error::new(error.kind(), format!("a datagram or its acknowledgement was lost: {error}"))
            }
            _ => error,
        })?;
        self.acknowledged += window.datagrams_per_ack;
        self.unacknowledged -= window.datagrams_per_ack;
        if len != ACK_BYTES || u64::from_ne_bytes(ack) != self.acknowledged {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} was acknowledged, not {}", u64::from_ne_bytes(ack), self.acknowledged),
            ));
        }
        Ok(())
    }
}

delegate_end!(UdpSender, socket);

impl Sender for UdpSender {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        for datagram in block.chunks(self.datagram_bytes) {
            if let Some(window) = self.window {
                if self.unacknowledged == window.datagrams {
                    self.await_ack(window)?;
                }
                self.unacknowledged += 1;
            }
            self.socket.send_message(datagram)?;
        }
        Ok(())
    }

    /// Waits for all acknowledgements. If this socket were closed before, the receiver would get an error for its acknowledgement, before
    /// the datagrams that it has not read. This wait is not measured, since the receiver has the clock.
    fn finish(&mut self) -> io::Result<()> {
        while let Some(window) = self.window.filter(|window| self.unacknowledged >= window.datagrams_per_ack)
        {
            self.await_ack(window)?;
        }
        Ok(())
    }
}

/// Receives, and acknowledges.
struct UdpReceiver {
    socket: MessageEnd,
    window: Option<Window>,
    received: u64,
}

delegate_end!(UdpReceiver, socket);

impl Receiver for UdpReceiver {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let len = self.socket.receive_message(room).map_err(|error| self.with_losses(error))?;
        self.received += 1;
        if let Some(window) = self.window
            && self.received.is_multiple_of(window.datagrams_per_ack)
        {
            self.socket.send_message(&self.received.to_ne_bytes())?;
        }
        Ok(len)
    }
}

impl UdpReceiver {
    /// Adds the number of received and lost datagrams to a timeout.
    #[cold]
    fn with_losses(&self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::TimedOut {
            return error;
        }
        let memory = self.socket.fd().and_then(SocketMemory::read);
        let dropped = memory.map_or(0, |memory| memory.dropped);
        let received = self.received;
        let text = match dropped {
            0 => format!("{error} after {received} datagrams; this socket dropped none (see `nstat -az`)"),
            lost => format!("{error} after {received} datagrams: {lost} lost, the receive buffer was full"),
        };
        io::Error::new(error.kind(), text)
    }
}

/// The kernel's figures of a socket's receive memory (SO_MEMINFO, linux/sock_diag.h).
struct SocketMemory {
    charged_bytes: u64,
    dropped: u64,
}

impl SocketMemory {
    fn read(socket: &OwnedFd) -> io::Result<Self> {
        /// asm-generic/socket.h; the libc crate does not have it for every target.
        const SO_MEMINFO: libc::c_int = 55;
        type Values = [u32; libc::SK_MEMINFO_DROPS as usize + 1];
        // SAFETY: numbers.
        let values = unsafe { socket_option::<Values>(socket, libc::SOL_SOCKET, SO_MEMINFO) }?;
        Ok(Self {
            charged_bytes: values[libc::SK_MEMINFO_RMEM_ALLOC as usize].into(),
            dropped: values[libc::SK_MEMINFO_DROPS as usize].into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_leaves_a_quarter_of_the_buffer() {
        let small = Window { datagrams: 1, datagrams_per_ack: 1 };
        assert_eq!(Window::for_buffer(1000, 5000), small, "one always fits");
        assert_eq!(Window::for_buffer(212_992, 66_339), Window { datagrams: 2, datagrams_per_ack: 1 });
        assert_eq!(Window::for_buffer(212_992, 832), Window { datagrams: 192, datagrams_per_ack: 96 });
        assert_eq!(Window::for_buffer(8 << 20, 832).datagrams, WINDOW_MAX);
    }

    /// Expected: each end receives datagrams only from the other. Happened: a datagram of another process that came before a socket was
    /// connected was read as the first one of the trial.
    #[test]
    fn datagrams_from_before_the_sockets_were_connected_are_dropped() {
        let options = Options::default();
        let made = || loopback_socket(&options, SocketType::DGRAM).expect("a socket");
        let (near, far, stranger) = (made(), made(), made());
        for end in [&near, &far] {
            connect(&stranger, &getsockname(end).expect("a port")).expect("reachable");
            for _ in 0..3 {
                send(&stranger, b"not yours", SendFlags::NOSIGNAL).expect("taken");
            }
        }
        connect_both(&near, &far).expect("connected");
        for end in [&near, &far] {
            assert_eq!(recv(end, &mut [0; 9], RecvFlags::DONTWAIT), Err(Errno::AGAIN));
        }
    }

    /// Without a window datagrams are lost, and the receiver reports how many.
    #[test]
    fn a_lost_datagram_is_an_error_and_no_hang() {
        for wait in [FdWait::InCall, FdWait::InPoll, FdWait::Spin] {
            let (near, far) = connect_pair(&Options::default()).expect("sockets");
            let patience = Some(Duration::from_millis(50));
            let mut sender = MessageEnd::new(near, FdWait::InCall, None).expect("sender");
            let socket = MessageEnd::new(far, wait, patience).expect("receiver");
            let mut receiver = UdpReceiver { socket, window: None, received: 0 };
            let mut block = vec![0; 60_000];
            for _ in 0..1000 {
                sender.send_message(&block).expect("UDP takes everything");
            }
            let error = (0..1000).find_map(|_| receiver.recv(&mut block).err()).expect("most were lost");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(error.to_string().contains("lost, the receive buffer was full"), "{error}");
        }
    }

    #[test]
    fn a_full_window_is_never_lost() {
        for bytes in [1, 1000, 1472, 4096, 16_000, 40_000, 65_507] {
            let (near, far) = connect_pair(&Options::default()).expect("sockets");
            let charge = try_one(&near, &far, bytes).expect("arrives");
            let window = Window::for_buffer(rcvbuf_bytes(&far).expect("size"), charge).datagrams;
            let block = vec![1; bytes];
            let mut room = vec![0; bytes];
            // Half a window is read before the next datagrams are sent: room that the kernel frees too late would be missing.
            let mut unread = 0;
            for _ in 0..20 {
                while unread < window {
                    send(&near, &block, SendFlags::NOSIGNAL).expect("send");
                    unread += 1;
                }
                for _ in 0..window.div_ceil(2) {
                    recv(&far, &mut room[..], RecvFlags::DONTWAIT).expect("nothing was lost");
                    unread -= 1;
                }
            }
            assert_eq!(SocketMemory::read(&far).expect("its memory").dropped, 0, "{bytes} bytes");
        }
    }
}
