//! `unix-seqpacket`: a connected pair of Unix sockets that keep message boundaries, unix(7).
//!
//! Nothing is lost and nothing overtakes, as on a stream, and the end of it is seen by the receiver; but a
//! message arrives whole. Between unmodified programs it is no link: a read smaller than the message throws
//! the rest away.

use rustix::net::SocketType;

use super::messages::{MESSAGE_LIMITS, MessageEnd, check_block};
use super::sockets::{SNDBUF_OPTION, unix_pair};
use crate::prelude::*;

pub(super) static UNIX_SEQPACKET: Mechanism = Mechanism {
    name: "unix-seqpacket",
    summary: "a connected pair of Unix sockets that keep message boundaries",
    // No rcvbuf: what lies in a Unix socket is charged to the one who sent it.
    options: &[SNDBUF_OPTION],
    limits: MESSAGE_LIMITS,
    man_pages: &["unix(7)", "socketpair(2)"],
    more_specs: &["unix-seqpacket", "unix-seqpacket:sndbuf=1MiB"],
    capabilities: Capabilities::KEEPS_BOUNDARIES.union(Capabilities::MANY_SENDERS),
    ..Mechanism::messages(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let (wait, connect) =
        (FdWait::for_request(request), || unix_pair(request.options, SocketType::SEQPACKET));
    over_connected(request, connect, |from, to| {
        let sndbuf = check_block(request, &from, &to, "unix-seqpacket:")?;
        let (sender, receiver) = (MessageEnd::new(from, wait, None)?, MessageEnd::new(to, wait, None)?);
        Ok(Direction::new(sender, receiver).granted([("sndbuf_bytes", sndbuf)]))
    })
}
