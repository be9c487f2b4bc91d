//! `unix-seqpacket`: a connected pair of Unix sockets that keep message boundaries, unix(7).
//!
//! As on a stream, no message is lost or reordered, and the receiver sees the end; but each message arrives as a whole. It
//! cannot link unmodified programs: after a read that is smaller than the message, the kernel drops the rest.

use rustix::net::SocketType;

use super::messages::{MESSAGE_LIMITS, unix_direction};
use super::sockets::{SNDBUF_OPTION, unix_pair};
use crate::prelude::*;

pub(super) static UNIX_SEQPACKET: Mechanism = Mechanism {
    name: "unix-seqpacket",
    summary: "a connected pair of Unix sockets that keep message boundaries",
    // No rcvbuf: the kernel charges unread bytes of a Unix socket to the sender's buffer.
    options: &[SNDBUF_OPTION],
    limits: MESSAGE_LIMITS,
    man_pages: &["unix(7)", "socketpair(2)"],
    more_specs: &["unix-seqpacket", "unix-seqpacket:sndbuf=1MiB"],
    capabilities: Capabilities::KEEPS_BOUNDARIES.union(Capabilities::MANY_SENDERS),
    ..Mechanism::messages(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let connect = || unix_pair(request.options, SocketType::SEQPACKET);
    over_connected(request, connect, |from, to| unix_direction(request, (from, to), "unix-seqpacket:"))
}
