//! `socketpair`: a connected pair of Unix stream sockets, socketpair(2).

use rustix::net::SocketType;

use super::sockets::{BUFFER_LIMITS, RCVBUF_OPTION, SNDBUF_OPTION, over_pairs, socket_ends, unix_pair};
use crate::prelude::*;

pub(super) static SOCKETPAIR: Mechanism = Mechanism {
    name: "socketpair",
    summary: "a connected pair of Unix stream sockets",
    capabilities: Capabilities::LINK.union(Capabilities::MANY_SENDERS),
    options: &[SNDBUF_OPTION, RCVBUF_OPTION],
    link_options: &[SNDBUF_OPTION.name, RCVBUF_OPTION.name],
    link_differs: "`[ -p /dev/stdin ]` is false, /dev/stdin and /dev/stdout cannot be opened, and a writer that lost its \
                   reader may say `write error: Connection reset by peer` and exit with an error status instead of being \
                   killed by SIGPIPE",
    limits: BUFFER_LIMITS,
    man_pages: &["socketpair(2)", "unix(7)"],
    default_specs: &["socketpair"],
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    over_pairs(request, || unix_pair(request.options, SocketType::STREAM))
}

fn open_link(options: &Options, _folder: &Folder) -> Result<LinkEnds, OpenError> {
    socket_ends(unix_pair(options, SocketType::STREAM)?)
}
