//! Sockets of this network namespace in any state: who is connected to whom, who listens, how long their queues are.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;

use netlink_packet_sock_diag::constants::{TCP_CLOSE_WAIT, TCP_LISTEN};
use netlink_packet_sock_diag::unix::nlas::{Nla, UnixDiagName};

use crate::sockets::{Addresses, TcpRow, unix_sockets};

/// A socket.
#[derive(Debug, Clone, Default)]
pub(super) struct Socket {
    /// The path of a UNIX socket, with `@` before an abstract name, or `ADDRESS → ADDRESS`; empty without a name.
    pub(super) name: String,
    /// The inode of the socket that gets what is sent.
    pub(super) peer: Option<u64>,
    /// The listening socket whose process has not accepted this connection.
    pub(super) unaccepted_by: Option<u64>,
    pub(super) listens: bool,
    pub(super) is_datagram: bool,
    /// The peer has closed, and this end has not (tcp(7), CLOSE_WAIT).
    pub(super) is_half_closed: bool,
    pub(super) is_tcp: bool,
    /// It was accepted, by a server.
    pub(super) is_accepted: bool,
    /// The address of this end of a TCP connection.
    pub(super) address: Option<SocketAddr>,
    /// Bytes that can be read; of one that listens the connections that wait.
    pub(super) waiting: u32,
    /// Datagrams to it that were dropped since it was made, as its queue was full.
    pub(super) dropped: u64,
    /// Of one that listens: how many may wait.
    pub(super) waiting_max: u32,
}

impl Socket {
    /// Whether it gets connections to this address.
    pub(super) fn is_at(&self, to: SocketAddr) -> bool {
        self.address.is_some_and(|own| {
            let is_any = own.ip().is_unspecified();
            own.port() == to.port() && (own.ip() == to.ip() || is_any)
        })
    }
}

/// All sockets by their inodes; none where the kernel does not list them.
pub(super) fn read() -> HashMap<u64, Socket> {
    let mut sockets = HashMap::new();
    let mut unaccepted = Vec::new();
    for found in unix_sockets().unwrap_or_default() {
        let mut socket = Socket {
            listens: found.header.state == TCP_LISTEN,
            is_datagram: i32::from(found.header.kind) == libc::SOCK_DGRAM,
            ..Socket::default()
        };
        for attribute in &found.nlas {
            match attribute {
                Nla::Name(UnixDiagName::Pathname(path)) => socket.name = path.to_string_lossy().into_owned(),
                Nla::Name(UnixDiagName::Abstract(name)) => {
                    socket.name = format!("@{}", String::from_utf8_lossy(name));
                }
                Nla::Peer(inode) => socket.peer = Some(u64::from(*inode)).filter(|inode| *inode != 0),
                Nla::ReceiveQueueLength(waiting, max) => {
                    (socket.waiting, socket.waiting_max) = (*waiting, *max)
                }
                Nla::PendingConnections(clients) => {
                    unaccepted.extend(clients.iter().map(|client| (*client, found.header.inode)));
                }
                _ => {}
            }
        }
        sockets.insert(u64::from(found.header.inode), socket);
    }
    let names: HashMap<u64, String> =
        sockets.iter().map(|(inode, socket)| (*inode, socket.name.clone())).collect();
    for socket in sockets.values_mut().filter(|socket| !socket.listens) {
        // The accepted end has the name to which the server was bound.
        socket.is_accepted = !socket.name.is_empty() && socket.peer.is_some();
        if socket.is_accepted {
            continue;
        }
        socket.name = socket.peer.and_then(|peer| names.get(&peer).cloned()).unwrap_or_default();
    }
    for (client, listener) in unaccepted.into_iter().map(|(one, other)| (one.into(), other.into())) {
        if let Some(socket) = sockets.get_mut(&client) {
            (socket.unaccepted_by, socket.name) = (Some(listener), names[&listener].clone());
        }
    }
    sockets.extend(tcp_sockets());
    sockets.extend(udp_sockets());
    sockets
}

/// The TCP sockets of /proc/net (proc_pid_net(5)), which every kernel has.
fn tcp_sockets() -> HashMap<u64, Socket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(tcp_line);
    let found: HashMap<Addresses, (u64, Socket)> = lines.collect();
    let port = |socket: &Socket| socket.address.map(|address| address.port());
    let listeners = || found.values().filter(|(_, socket)| socket.listens);
    let served: Vec<Option<u16>> = listeners().map(|(_, socket)| port(socket)).collect();
    let with_peer = |((from, to), (inode, socket)): (&Addresses, &(u64, Socket))| {
        let other = found.get(&(*to, *from)).map(|(peer, _)| *peer).filter(|_| !socket.listens);
        let unaccepted_by = other
            .filter(|peer| *peer == 0)
            .and_then(|_| listeners().find(|(_, socket)| socket.is_at(*to)).map(|(listener, _)| *listener));
        let peer = other.filter(|peer| *peer != 0);
        let is_accepted = !socket.listens && served.contains(&port(socket));
        (*inode, Socket { peer, unaccepted_by, is_accepted, ..socket.clone() })
    };
    found.iter().map(with_peer).filter(|(inode, _)| *inode != 0).collect()
}

/// The UDP sockets of /proc/net. Those that are bound are servers: datagrams come from any.
fn udp_sockets() -> HashMap<u64, Socket> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let one = |line: &str| {
        let TcpRow { addresses: (address, _), inode, .. } = TcpRow::parse(line)?;
        let dropped = line.split_whitespace().last()?.parse().ok()?;
        let name = address.to_string();
        Some((inode, Socket { name, is_datagram: true, is_accepted: true, dropped, ..Socket::default() }))
    };
    tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(one).collect()
}

fn tcp_line(line: &str) -> Option<(Addresses, (u64, Socket))> {
    let TcpRow { addresses: (from, to), state, waiting, inode } = TcpRow::parse(line)?;
    let listens = state == TCP_LISTEN;
    let name = if listens { from.to_string() } else { format!("{from} → {to}") };
    let (is_half_closed, address) = (state == TCP_CLOSE_WAIT, Some(from));
    let socket =
        Socket { name, listens, is_half_closed, is_tcp: true, waiting, address, ..Socket::default() };
    Some(((from, to), (inode, socket)))
}
