//! `tcp`: TCP over the loopback interface, tcp(7).

use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, acceptfrom_with, connect, getsockname, listen,
    shutdown, sockopt,
};

use super::sockets::{
    BUFFER_LIMITS, RCVBUF_OPTION, SNDBUF_OPTION, loopback_socket, no_loopback, over_pairs, socket,
    socket_ends,
};
use super::tcp_end::{LOWAT_OPTION, TcpEnd};
use crate::prelude::*;

pub(super) static TCP: Mechanism = Mechanism {
    name: "tcp",
    summary: "TCP over the loopback interface, or to another host (--peer)",
    capabilities: Capabilities::LINK.union(Capabilities::CROSSES_HOSTS).union(Capabilities::MANY_SENDERS),
    options: &[
        OptionSpec {
            name: "nodelay",
            kind: OptionKind::Flag,
            default: "off: Nagle's algorithm gathers small blocks",
            help: "send small blocks at once (TCP_NODELAY)",
        },
        SNDBUF_OPTION,
        RCVBUF_OPTION,
        OptionSpec {
            name: LOWAT_OPTION,
            kind: OptionKind::Size,
            default: "1: the receiver is woken for every segment",
            help: "wake the receiver of a stream to another host when this much has come (SO_RCVLOWAT)",
        },
    ],
    link_options: &["nodelay", SNDBUF_OPTION.name, RCVBUF_OPTION.name],
    link_differs: "`[ -p /dev/stdin ]` is false, and /dev/stdin and /dev/stdout cannot be opened",
    limits: BUFFER_LIMITS,
    man_pages: &["tcp(7)", "ip(7)"],
    default_specs: &["tcp"],
    more_specs: &["tcp:nodelay"],
    probe,
    open_end: Some(open_end),
    open_link: Some(open_link),
    ..Mechanism::stream(open_channel)
};

/// Most connections that wait to be accepted. If other programs filled this queue before the own connection, connect(2) would wait for
/// minutes.
const BACKLOG: i32 = 128;

fn probe() -> Result<(), OpenError> {
    // A listener alone would succeed without a loopback interface, so a pair is connected.
    connect_pair(&Options::default()).map(drop).map_err(no_loopback)
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    if request.options.has(LOWAT_OPTION) {
        return Err(OpenError::unsupported("lowat= is for streams to another host", "--peer HOST, or tcp"));
    }
    over_pairs(request, || connect_pair(request.options))
}

fn open_end(request: &Request<'_>, meeting: &Meeting) -> Result<Box<dyn Endpoint>, OpenError> {
    Ok(lone_end(request.workload, meeting, TcpEnd::new(request, meeting)))
}

fn open_link(options: &Options, _folder: &Folder) -> Result<LinkEnds, OpenError> {
    let (near, far) = connect_pair(options)?;
    // The reader never sends. After this call a writer whose reader has ended gets EPIPE and SIGPIPE, as over a pipe, and not
    // ECONNRESET (tcp_reset() in state CLOSE_WAIT).
    shutdown(&far, Shutdown::Write).in_call("shutdown(SHUT_WR)")?;
    socket_ends((near, far))
}

/// Connects two sockets over the loopback interface.
fn connect_pair(options: &Options) -> Result<(OwnedFd, OwnedFd), OpenError> {
    // Buffers are set before the connection is made, so that the TCP window fits them (tcp(7)); the accepted socket inherits them.
    let listener = loopback_socket(options, SocketType::STREAM)?;
    listen(&listener, BACKLOG).in_call("listen")?;
    let address = getsockname(&listener).in_call("getsockname")?;
    let near = socket(options, AddressFamily::INET, SocketType::STREAM)?;
    connect(&near, &address).in_call("connect(127.0.0.1)")?;
    let far = accept_own(&listener, &near)?;
    if options.has("nodelay") {
        for socket in [&near, &far] {
            sockopt::set_tcp_nodelay(socket, true).in_call("setsockopt(TCP_NODELAY)")?;
        }
    }
    Ok((near, far))
}

/// Accepts the connection that `near` made: any program of this machine may connect to the port before it.
fn accept_own(listener: &OwnedFd, near: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let own = getsockname(near).in_call("getsockname")?;
    loop {
        let (far, caller) = acceptfrom_with(listener, SocketFlags::CLOEXEC).in_call("accept")?;
        if caller.as_ref() == Some(&own) {
            return Ok(far);
        }
    }
}
