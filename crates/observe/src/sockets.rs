//! Sockets of which both ends are on this machine, as the kernel lists them for every user (sock_diag(7)): which sockets are connected, and
//! how full they are. Pairs of UNIX sockets, UNIX sockets that were connected to a name, and TCP connections.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use model::ChainLinkKind;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::inet::nlas::Nla as InetNla;
use netlink_packet_sock_diag::inet::{self, ExtensionFlags, InetRequest, InetResponse, SocketId};
use netlink_packet_sock_diag::unix::nlas::{Nla, UnixDiagName};
use netlink_packet_sock_diag::unix::{ShowFlags, StateFlags, UnixRequest, UnixResponse};
use netlink_packet_sock_diag::{SockDiagMessage, constants};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use crate::endpoint::{Endpoint, IpcFile, endpoints};
use crate::fullness::Fill;

/// Largest message of a list (netlink(7)).
const MESSAGES_BYTES: usize = 32 << 10;
/// States of a TCP socket that is shut down for writing.
const WRITTEN: [u8; 2] = [constants::TCP_FIN_WAIT1, constants::TCP_FIN_WAIT2];
/// Where `struct tcp_info` (linux/tcp.h) has the number of bytes received.
const RECEIVED_AT: usize = 128;

/// A connected socket whose other end is here, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedSocket {
    /// What it is.
    pub kind: ChainLinkKind,
    /// The name of a UNIX socket, with `@` before an abstract one, or the addresses of a TCP connection; empty of a pair.
    pub name: String,
    /// The inode of the other end.
    pub peer: u64,
    /// It is shut down for reading (shutdown(2)).
    pub no_reading: bool,
    /// It is shut down for writing.
    pub no_writing: bool,
    /// All bytes that it has received, of a TCP socket.
    pub received: Option<u64>,
    /// Bytes that can be read from it.
    held_bytes: u32,
    /// Memory of what was written to it and not yet read at the other end, and how much that may be (SO_SNDBUF).
    sent_bytes: u32,
    room_bytes: u32,
}

impl PairedSocket {
    fn new(kind: ChainLinkKind) -> Self {
        let (no_reading, no_writing, received) = Default::default();
        let (peer, held_bytes, sent_bytes, room_bytes) = Default::default();
        let name = String::new();
        Self { kind, name, peer, no_reading, no_writing, received, held_bytes, sent_bytes, room_bytes }
    }
}

/// All such sockets of this network namespace, by their inodes. Of a kernel that does not list TCP sockets (CONFIG_INET_DIAG) those of
/// /proc/net/tcp, which does not tell how much they have received.
///
/// # Errors
/// The kernel has no CONFIG_UNIX_DIAG, or no memory.
pub fn pairs() -> io::Result<HashMap<u64, PairedSocket>> {
    let netlink =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    let mut ends = HashMap::new();
    list(&netlink, unix_request(StateFlags::ESTABLISHED), &mut |message| {
        if let SockDiagMessage::UnixResponse(socket) = message {
            ends.insert(u64::from(socket.header.inode), unix_end(&socket));
        }
    })?;
    let mut connections: HashMap<Addresses, (u64, PairedSocket)> = HashMap::new();
    for (family, id) in [(constants::AF_INET, SocketId::new_v4()), (constants::AF_INET6, SocketId::new_v6())]
    {
        let listed = list(&netlink, tcp_request(family, id), &mut |message| {
            if let SockDiagMessage::InetResponse(socket) = message {
                connections.extend([tcp_end(&socket)]);
            }
        });
        if listed.is_err() {
            let table = if family == constants::AF_INET { "/proc/net/tcp" } else { "/proc/net/tcp6" };
            let table = fs::read_to_string(table).unwrap_or_default();
            connections.extend(table.lines().filter_map(tcp_line));
        }
    }
    for ((from, to), (inode, end)) in &connections {
        if let Some((peer, _)) = connections.get(&(*to, *from)) {
            ends.insert(*inode, PairedSocket { peer: *peer, ..end.clone() });
        }
    }
    let peers: HashMap<u64, (u64, String)> =
        ends.iter().map(|(inode, end)| (*inode, (end.peer, end.name.clone()))).collect();
    // A server of datagrams is not connected to its clients.
    ends.retain(|inode, end| *inode != 0 && peers.get(&end.peer).is_some_and(|(back, _)| back == inode));
    for end in ends.values_mut().filter(|end| end.kind == ChainLinkKind::Socketpair) {
        // Of two sockets that were connected by a name only one has it.
        if end.name.is_empty() {
            end.name = peers[&end.peer].1.clone();
        }
        if !end.name.is_empty() {
            end.kind = ChainLinkKind::UnixSocket;
        }
    }
    Ok(ends)
}

/// Every UNIX socket of this network namespace, in any state.
///
/// # Errors
/// As [`pairs`].
pub(crate) fn unix_sockets() -> io::Result<Vec<UnixResponse>> {
    let netlink =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    let mut sockets = Vec::new();
    list(&netlink, unix_request(StateFlags::from_bits_retain(u32::MAX)), &mut |message| {
        if let SockDiagMessage::UnixResponse(socket) = message {
            sockets.push(*socket);
        }
    })?;
    Ok(sockets)
}

/// Requests a list, and calls `each` for all its messages.
fn list(socket: &OwnedFd, request: SockDiagMessage, each: &mut dyn FnMut(SockDiagMessage)) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, request.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    send(socket, &bytes, SendFlags::empty())?;
    let mut room = vec![0; MESSAGES_BYTES];
    loop {
        let (_, bytes) = recv(socket, &mut *room, RecvFlags::empty())?;
        let mut rest = room.get(..bytes).unwrap_or_default();
        while let Some(length) = rest.first_chunk().map(|length| u32::from_ne_bytes(*length) as usize) {
            // A message that cannot be parsed has a name that is no text: it is ignored.
            match NetlinkMessage::<SockDiagMessage>::deserialize(rest).map(|message| message.payload) {
                Ok(NetlinkPayload::Done(_)) => return Ok(()),
                Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                Ok(NetlinkPayload::InnerMessage(message)) => each(message),
                _ => {}
            }
            // Messages begin at multiples of four (NLMSG_ALIGN).
            rest = rest.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        }
    }
}

fn unix_request(state_flags: StateFlags) -> SockDiagMessage {
    SockDiagMessage::UnixRequest(UnixRequest {
        state_flags,
        inode: 0,
        show_flags: ShowFlags::NAME
            | ShowFlags::PEER
            | ShowFlags::ICONS
            | ShowFlags::RQLEN
            | ShowFlags::MEMINFO,
        cookie: [0xff; 8],
    })
}

fn unix_end(socket: &UnixResponse) -> PairedSocket {
    let mut end = PairedSocket::new(ChainLinkKind::Socketpair);
    for attribute in &socket.nlas {
        match attribute {
            Nla::Name(UnixDiagName::Pathname(path)) => end.name = path.to_string_lossy().into_owned(),
            Nla::Name(UnixDiagName::Abstract(name)) => {
                end.name = format!("@{}", String::from_utf8_lossy(name))
            }
            Nla::Peer(inode) => end.peer = u64::from(*inode),
            Nla::ReceiveQueueLength(held, sent) => (end.held_bytes, end.sent_bytes) = (*held, *sent),
            Nla::MemInfo(memory) => end.room_bytes = memory.max_datagram_size,
            Nla::Shutdown(how) => (end.no_reading, end.no_writing) = (how & 1 != 0, how & 2 != 0),
            _ => {}
        }
    }
    end
}

fn tcp_request(family: u8, socket_id: SocketId) -> SockDiagMessage {
    use inet::StateFlags as States;
    SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: constants::IPPROTO_TCP,
        extensions: ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO,
        states: States::ESTABLISHED | States::FIN_WAIT1 | States::FIN_WAIT2 | States::CLOSE_WAIT,
        socket_id,
    })
}

/// The addresses of a TCP socket and of its peer.
pub(crate) type Addresses = (SocketAddr, SocketAddr);

/// A TCP socket in this state, with the bytes that can be read from it.
fn connection((from, to): Addresses, state: u8, held_bytes: u32) -> PairedSocket {
    let (name, no_writing) = (format!("{from} → {to}"), WRITTEN.contains(&state));
    PairedSocket { name, no_writing, held_bytes, ..PairedSocket::new(ChainLinkKind::Tcp) }
}

fn tcp_end(socket: &InetResponse) -> (Addresses, (u64, PairedSocket)) {
    let (header, id) = (&socket.header, &socket.header.socket_id);
    // One end may be a socket of IPv6 with an address of IPv4.
    let address = |address: IpAddr, port| SocketAddr::new(address.to_canonical(), port);
    let from = address(id.source_address, id.source_port);
    let to = address(id.destination_address, id.destination_port);
    let mut end = connection((from, to), header.state, header.recv_queue);
    for attribute in &socket.nlas {
        match attribute {
            InetNla::TcpInfo(info) => {
                let bytes = info.get(RECEIVED_AT..).and_then(<[u8]>::first_chunk);
                end.received = bytes.map(|bytes| u64::from_ne_bytes(*bytes));
            }
            InetNla::MemInfo(memory) => {
                (end.sent_bytes, end.room_bytes) = (memory.send_queue, memory.send_queue_max);
            }
            _ => {}
        }
    }
    ((from, to), (u64::from(header.inode), end))
}

/// A socket of /proc/net/tcp (proc_pid_net(5)).
pub(crate) struct TcpRow {
    pub(crate) addresses: Addresses,
    pub(crate) state: u8,
    /// Bytes that can be read; of a socket that listens the connections that wait.
    pub(crate) waiting: u32,
    pub(crate) inode: u64,
}

impl TcpRow {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, from, to, state, queues, _, _, _, _, inode, ..] = words[..] else { return None };
        let addresses = (hexadecimal_address(from)?, hexadecimal_address(to)?);
        let waiting = u32::from_str_radix(queues.split_once(':')?.1, 16).ok()?;
        Some(Self {
            addresses,
            state: u8::from_str_radix(state, 16).ok()?,
            waiting,
            inode: inode.parse().ok()?,
        })
    }
}

/// A connected socket of a line of that file.
fn tcp_line(line: &str) -> Option<(Addresses, (u64, PairedSocket))> {
    let TcpRow { addresses, state, waiting, inode } = TcpRow::parse(line)?;
    let is_open = [constants::TCP_ESTABLISHED, constants::TCP_CLOSE_WAIT].contains(&state);
    let end = connection(addresses, state, waiting);
    (is_open || end.no_writing).then_some((addresses, (inode, end)))
}

/// `0100007F:0050` is 127.0.0.1:80: words of four bytes in the order of this machine, the port as it is read.
fn hexadecimal_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let words =
        address.as_bytes().chunks(8).map(|word| u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok());
    let words = words.collect::<Option<Vec<u32>>>()?;
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    let address = match <[u8; 16]>::try_from(&bytes[..]) {
        Ok(bytes) => IpAddr::from(Ipv6Addr::from(bytes)),
        Err(_) => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..]).ok()?)),
    };
    Some(SocketAddr::new(address.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

/// Whether a process has an end of a pair without a name.
pub fn has_pair(pid: i32) -> bool {
    let pairs = pairs().unwrap_or_default();
    let is_one = |end: Endpoint| matches!(end.ipc_file, IpcFile::Socket(inode) if pairs.get(&inode).is_some_and(|end| end.kind == ChainLinkKind::Socketpair));
    endpoints(pid).is_ok_and(|mut ends| ends.any(is_one))
}

/// How full a pair is in one direction.
pub fn fill(reader: &PairedSocket, writer: &PairedSocket) -> Fill {
    // A writer waits when what it sent takes all of its room (unix(7), SO_SNDBUF); of TCP when what its peer has no room for does.
    let share = f64::from(writer.sent_bytes) / f64::from(writer.room_bytes.max(1));
    let holds = reader.held_bytes > 0;
    let over = !holds && (reader.no_reading || writer.no_writing);
    Fill {
        share: if holds { share.min(1.0) } else { 0.0 },
        holds,
        over,
        held_bytes: reader.held_bytes.into(),
        capacity_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    fn inode(socket: &impl AsFd) -> u64 {
        rustix::fs::fstat(socket).expect("open").st_ino
    }

    #[test]
    fn a_pair_is_found_with_what_it_holds_and_a_server_of_datagrams_is_not() {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        one.set_nonblocking(true).expect("set");
        let ends = pairs().expect("sock_diag");
        let [a, b] = [inode(&one), inode(&other)];
        assert_eq!((ends[&a].peer, ends[&b].peer), (b, a));
        assert!(fill(&ends[&b], &ends[&a]).is_empty());
        while one.write(&[1; 4096]).is_ok() {}
        other.shutdown(std::net::Shutdown::Write).expect("shut");
        let ends = pairs().expect("sock_diag");
        let full = fill(&ends[&b], &ends[&a]);
        assert!(full.is_full() && full.held_bytes >= 4096, "{full:?}");
        assert!(ends[&b].no_writing && ends[&a].no_reading && !ends[&a].no_writing);
        assert!(fill(&ends[&a], &ends[&b]).over, "what was shut gives nothing any more");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("named");
        let listener = UnixDatagram::bind(&path).expect("bound");
        let client = UnixDatagram::unbound().expect("made");
        client.connect(&path).expect("connected");
        let ends = pairs().expect("sock_diag");
        assert!(!ends.contains_key(&inode(&client)) && !ends.contains_key(&inode(&listener)));
    }
    #[test]
    fn both_ends_of_a_connection_are_found_by_name_or_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("named");
        let listener = UnixListener::bind(&path).expect("bound");
        let client = UnixStream::connect(&path).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
        let mut caller = TcpStream::connect(tcp.local_addr().expect("an address")).expect("connected");
        let (called, _) = tcp.accept().expect("accepted");
        caller.write_all(b"12345").expect("sent");
        // What was sent arrives at once on this host, but not within the call.
        called.peek(&mut [0]).expect("arrived");
        let ends = pairs().expect("sock_diag");
        let [a, b, c, d] = [inode(&client), inode(&server), inode(&caller), inode(&called)];
        assert_eq!((ends[&a].peer, ends[&b].peer), (b, a));
        assert_eq!(ends[&a].name, path.to_str().expect("text"));
        assert!([a, b].iter().all(|inode| ends[inode].kind == ChainLinkKind::UnixSocket));
        if !ends.contains_key(&c) {
            // This kernel does not list TCP sockets.
            return;
        }
        assert_eq!((ends[&c].peer, ends[&d].peer, ends[&c].kind), (d, c, ChainLinkKind::Tcp));
        assert_eq!((ends[&d].received, ends[&c].received), (Some(5), Some(0)));
        assert_eq!(fill(&ends[&d], &ends[&c]).held_bytes, 5);
        let table = fs::read_to_string("/proc/net/tcp").expect("a table");
        let listed: Vec<_> = table.lines().filter_map(tcp_line).collect();
        let ((from, _), (_, end)) = listed.iter().find(|(_, (inode, _))| *inode == d).expect("in the table");
        assert_eq!(
            (from.to_string(), end.held_bytes),
            (tcp.local_addr().expect("an address").to_string(), 5)
        );
    }
}
