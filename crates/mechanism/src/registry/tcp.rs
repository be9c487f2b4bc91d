//! `tcp`: TCP over the loopback interface, tcp(7).

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, acceptfrom_with, bind, connect, getsockname, listen,
    shutdown, socket_with, sockopt,
};

use super::sockets::{BUFFER_LIMITS, RCVBUF_OPTION, SNDBUF_OPTION, over_pairs, set_buffers, socket_ends};
use crate::descriptor::{Capabilities, Descriptor, OptionKind, OptionSpec};
use crate::link::{LinkEnds, link_request};
use crate::{Channel, Mechanism, OpenError, Request, Unsupported};
use crate::{Folder, Options};

pub(crate) struct Tcp;

impl Mechanism for Tcp {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "tcp",
            summary: "TCP over the loopback interface",
            capabilities: const { Capabilities::LINK.union(Capabilities::CROSSES_HOSTS) },
            options: &[
                OptionSpec {
                    name: "nodelay",
                    kind: OptionKind::Flag,
                    default: "off: Nagle's algorithm gathers small blocks",
                    help: "send small blocks at once (TCP_NODELAY)",
                },
                SNDBUF_OPTION,
                RCVBUF_OPTION,
            ],
            link_options: &["nodelay", SNDBUF_OPTION.name, RCVBUF_OPTION.name],
            limits: BUFFER_LIMITS,
            man_pages: &["tcp(7)", "ip(7)"],
            default_specs: &["tcp"],
            more_specs: &["tcp:nodelay"],
            ..Descriptor::STREAM
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        reach().map_err(|error| Unsupported {
            reason: error.to_string(),
            remedy: Some("bring the loopback interface up: ip link set lo up".to_owned()),
        })
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        over_pairs(request, || connect_pair(request))
    }

    fn connect(&self, options: &Options, folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        Some(connect_pair(&link_request(options, folder)).and_then(|(near, far)| {
            // The reader never answers. Said at once, this turns the reset that a writer meets when the reader has
            // gone into EPIPE and SIGPIPE, as over a pipe (tcp_reset() in state CLOSE_WAIT).
            shutdown(&far, Shutdown::Write).map_err(OpenError::system("shutdown(SHUT_WR)"))?;
            socket_ends((near, far))
        }))
    }
}

/// Whether the loopback interface carries a connection; a listener alone is granted without one.
fn reach() -> Result<(), OpenError> {
    let listener = loopback_listener(None)?;
    let address = getsockname(&listener).map_err(OpenError::system("getsockname"))?;
    connect(&tcp_socket(None)?, &address).map_err(OpenError::system("connect(127.0.0.1)"))
}

/// Connects two sockets over the loopback interface.
fn connect_pair(request: &Request<'_>) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let listener = loopback_listener(Some(request))?;
    let address = getsockname(&listener).map_err(OpenError::system("getsockname"))?;
    let near = tcp_socket(Some(request))?;
    connect(&near, &address).map_err(OpenError::system("connect(127.0.0.1)"))?;
    let far = accept_own(&listener, &near)?;
    if request.options.flag("nodelay") {
        for socket in [&near, &far] {
            sockopt::set_tcp_nodelay(socket, true).map_err(OpenError::system("setsockopt(TCP_NODELAY)"))?;
        }
    }
    Ok((near, far))
}

/// Accepts the connection that `near` made: anybody on this machine may call the port, and earlier.
fn accept_own(listener: &OwnedFd, near: &OwnedFd) -> Result<OwnedFd, OpenError> {
    let own = getsockname(near).map_err(OpenError::system("getsockname"))?;
    loop {
        let (far, caller) =
            acceptfrom_with(listener, SocketFlags::CLOEXEC).map_err(OpenError::system("accept"))?;
        if caller.as_ref() == Some(&own) {
            return Ok(far);
        }
    }
}

/// A listener on a port of the kernel's choice. Buffers are set here, before the connection is made, so
/// that the window is agreed on with them (tcp(7)); accepted sockets inherit them.
fn loopback_listener(request: Option<&Request<'_>>) -> Result<OwnedFd, OpenError> {
    let listener = tcp_socket(request)?;
    let anywhere = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    bind(&listener, &anywhere).map_err(OpenError::system("bind(127.0.0.1)"))?;
    listen(&listener, 1).map_err(OpenError::system("listen"))?;
    Ok(listener)
}

fn tcp_socket(request: Option<&Request<'_>>) -> Result<OwnedFd, OpenError> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::system("socket(AF_INET, SOCK_STREAM)"))?;
    if let Some(request) = request {
        set_buffers(request, &socket)?;
    }
    Ok(socket)
}
