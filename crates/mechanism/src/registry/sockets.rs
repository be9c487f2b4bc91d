//! What the stream sockets share: buffer options, read-back sizes, and a channel from a connected pair.

use std::os::fd::OwnedFd;

use rustix::net::sockopt;

use crate::channel::{Channel, Granted, OpenError, Request};
use crate::descriptor::{OptionKind, OptionSpec};
use crate::fd::{FdReceiver, FdSender, FdWait};
use crate::link::{LinkEnds, LinkKind};
use crate::loops::{Direction, over_connected};

/// `sndbuf=SIZE`.
pub(super) const SNDBUF_OPTION: OptionSpec = OptionSpec {
    name: "sndbuf",
    kind: OptionKind::Size,
    default: "net.core.wmem_default (AF_UNIX), autotuned (TCP)",
    help: "send buffer asked for (SO_SNDBUF; the kernel doubles it for bookkeeping)",
};

/// `rcvbuf=SIZE`.
pub(super) const RCVBUF_OPTION: OptionSpec = OptionSpec {
    name: "rcvbuf",
    kind: OptionKind::Size,
    default: "net.core.rmem_default (AF_UNIX), autotuned (TCP)",
    help: "receive buffer asked for (SO_RCVBUF; the kernel doubles it for bookkeeping)",
};

/// What bounds a socket's buffers.
pub(super) const BUFFER_LIMITS: &str = "sndbuf, rcvbuf: net.core.wmem_max and net.core.rmem_max";

/// Asks for the buffers the options name; the kernel clamps them without a word, so they are read back later.
pub(super) fn set_buffers(request: &Request<'_>, socket: &OwnedFd) -> Result<(), OpenError> {
    if let Some(size) = request.options.size("sndbuf") {
        sockopt::set_socket_send_buffer_size(socket, clamp(size))
            .map_err(OpenError::system("setsockopt(SO_SNDBUF)"))?;
    }
    if let Some(size) = request.options.size("rcvbuf") {
        sockopt::set_socket_recv_buffer_size(socket, clamp(size))
            .map_err(OpenError::system("setsockopt(SO_RCVBUF)"))?;
    }
    Ok(())
}

/// setsockopt takes a C int.
fn clamp(size: u64) -> usize {
    size.min(i32::MAX as u64) as usize
}

/// A channel over connected pairs of stream sockets.
pub(super) fn over_pairs(
    request: &Request<'_>,
    connect: impl FnMut() -> Result<(OwnedFd, OwnedFd), OpenError>,
) -> Result<Channel, OpenError> {
    over_connected(request, connect, |near, far| line(request, near, far))
}

/// Makes a connected pair the ends of a link: the second socket reads.
pub(super) fn socket_ends((near, far): (OwnedFd, OwnedFd)) -> Result<LinkEnds, OpenError> {
    let granted = buffers(&near, &far)?;
    LinkEnds::new(near, far, granted, LinkKind::Stream)
}

/// The buffers between a sending and a receiving socket, as the kernel keeps them.
fn buffers(from: &OwnedFd, to: &OwnedFd) -> Result<Granted, OpenError> {
    let sndbuf =
        sockopt::socket_send_buffer_size(from).map_err(OpenError::system("getsockopt(SO_SNDBUF)"))?;
    let rcvbuf = sockopt::socket_recv_buffer_size(to).map_err(OpenError::system("getsockopt(SO_RCVBUF)"))?;
    Ok(Granted::from([
        ("sndbuf_bytes".to_owned(), sndbuf as u64),
        ("rcvbuf_bytes".to_owned(), rcvbuf as u64),
    ]))
}

fn line(
    request: &Request<'_>,
    from: OwnedFd,
    to: OwnedFd,
) -> Result<Direction<FdSender, FdReceiver>, OpenError> {
    let granted = buffers(&from, &to)?;
    let wait = FdWait::of(request);
    Ok(Direction { sender: FdSender::new(from, wait)?, receiver: FdReceiver::new(to, wait)?, granted })
}
