//! Pairs of UNIX sockets, as the kernel tells them to everybody (sock_diag(7)): who is joined to whom, and how full they are.

use std::collections::HashMap;
use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::unix::nlas::Nla;
use netlink_packet_sock_diag::unix::{ShowFlags, StateFlags, UnixRequest, UnixResponse};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use crate::end::{End, Joint, ends};
use crate::fullness::Fill;

/// The kernel fills no larger message of a list (netlink(7)).
const MESSAGES_BYTES: usize = 32 << 10;

/// A connected socket without a name, whose other end has none either.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PairEnd {
    /// The inode of the other end.
    pub peer: u64,
    /// It takes nothing any more (shutdown(2)).
    pub no_reading: bool,
    /// It gives nothing any more.
    pub no_writing: bool,
    /// Bytes that can be read from it.
    held_bytes: u32,
    /// Memory of what was written to it and not yet read at the other end, and how much that may be (SO_SNDBUF).
    sent_bytes: u32,
    room_bytes: u32,
}

/// All such sockets of this network namespace, by their inodes.
///
/// # Errors
/// A kernel without CONFIG_UNIX_DIAG, or no memory.
pub fn pairs() -> io::Result<HashMap<u64, PairEnd>> {
    let netlink =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    send(&netlink, &request(), SendFlags::empty())?;
    let (mut ends, mut room) = (HashMap::new(), vec![0; MESSAGES_BYTES]);
    loop {
        let (_, bytes) = recv(&netlink, &mut *room, RecvFlags::empty())?;
        let mut rest = room.get(..bytes).unwrap_or_default();
        while let Some(length) = rest.first_chunk().map(|length| u32::from_ne_bytes(*length) as usize) {
            // One that cannot be read has a name that is no text: it is none of ours.
            match NetlinkMessage::<SockDiagMessage>::deserialize(rest).map(|message| message.payload) {
                Ok(NetlinkPayload::Done(_)) => {
                    ends.retain(|_, end: &mut PairEnd| end.peer != 0);
                    let all = ends.clone();
                    ends.retain(|_, end| all.contains_key(&end.peer));
                    return Ok(ends);
                }
                Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                Ok(NetlinkPayload::InnerMessage(SockDiagMessage::UnixResponse(socket))) => {
                    ends.extend(unnamed(&socket).map(|end| (u64::from(socket.header.inode), end)));
                }
                _ => {}
            }
            // Messages begin at multiples of four (NLMSG_ALIGN).
            rest = rest.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        }
    }
}

fn request() -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = UnixRequest {
        state_flags: StateFlags::ESTABLISHED,
        inode: 0,
        show_flags: ShowFlags::NAME | ShowFlags::PEER | ShowFlags::RQLEN | ShowFlags::MEMINFO,
        cookie: [0xff; 8],
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::UnixRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

fn unnamed(socket: &UnixResponse) -> Option<PairEnd> {
    let mut end = PairEnd::default();
    for attribute in &socket.nlas {
        match attribute {
            Nla::Name(_) => return None,
            Nla::Peer(inode) => end.peer = u64::from(*inode),
            Nla::ReceiveQueueLength(held, sent) => (end.held_bytes, end.sent_bytes) = (*held, *sent),
            Nla::MemInfo(memory) => end.room_bytes = memory.max_datagram_size,
            Nla::Shutdown(how) => (end.no_reading, end.no_writing) = (how & 1 != 0, how & 2 != 0),
            _ => {}
        }
    }
    Some(end)
}

/// Whether a process has an end of a pair.
pub fn has_pair(pid: i32) -> bool {
    let pairs = pairs().unwrap_or_default();
    let is_one = |end: End| matches!(end.joint, Joint::Socket(inode) if pairs.contains_key(&inode));
    ends(pid).is_ok_and(|mut ends| ends.any(is_one))
}

/// How full a pair is in one direction.
pub fn fill(reader: &PairEnd, writer: &PairEnd) -> Fill {
    // A writer waits when what it sent takes all of its room (unix(7), SO_SNDBUF).
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
    use std::os::fd::AsFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn inode(socket: &impl AsFd) -> u64 {
        rustix::fs::fstat(socket).expect("open").st_ino
    }

    #[test]
    fn a_pair_is_found_with_what_it_holds_and_a_named_one_is_not() {
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
}
