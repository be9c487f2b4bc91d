//! What the sockets share: how they are made, buffer options, read-back sizes, and a channel from a connected pair.

use rustix::fs::{Mode, OFlags, fchmod, open};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with, socketpair, sockopt,
};

use crate::leftover::announcer;
use crate::prelude::*;
use process::TemporaryPath;

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

/// What a call is about, as man pages write it.
fn arguments(family: AddressFamily, kind: SocketType) -> String {
    let family = if family == AddressFamily::UNIX { "UNIX" } else { "INET" };
    let kind = match kind {
        SocketType::STREAM => "STREAM",
        SocketType::DGRAM => "DGRAM",
        _ => "SEQPACKET",
    };
    format!("AF_{family}, SOCK_{kind}")
}

/// A socket with the buffers that the options ask for.
pub(super) fn socket(
    options: &Options,
    family: AddressFamily,
    kind: SocketType,
) -> Result<OwnedFd, OpenError> {
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::system(format!("socket({})", arguments(family, kind))))?;
    set_buffers(options, &socket)?;
    Ok(socket)
}

/// A connected pair of Unix sockets with the buffers that the options ask for.
pub(super) fn unix_pair(options: &Options, kind: SocketType) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let (near, far) =
        pair.map_err(OpenError::system(format!("socketpair({})", arguments(AddressFamily::UNIX, kind))))?;
    set_buffers(options, &near)?;
    set_buffers(options, &far)?;
    Ok((near, far))
}

/// The name of a Unix socket in a file system; dropping it removes the name, and connections live on.
pub(super) struct SocketName {
    /// What to connect to.
    pub(super) address: SocketAddrUnix,
    /// The address leads through this descriptor.
    _folder: OwnedFd,
    _path: TemporaryPath,
}

impl SocketName {
    /// Binds a socket to a name in a folder. Other users cannot connect to it (unix(7): that takes the permission to write).
    pub(super) fn bind(socket: &OwnedFd, folder: &Folder) -> Result<Self, OpenError> {
        let folder = folder.path()?;
        let name = folder.join("socket");
        // A socket's name holds 108 bytes (unix(7)); the way through /proc is short whatever TMPDIR is.
        let folder = open(&folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(OpenError::system(format!("open({})", folder.display())))?;
        let path = format!("/proc/self/fd/{}/socket", folder.as_raw_fd());
        let address =
            SocketAddrUnix::new(path.as_str()).map_err(OpenError::system(format!("address {path}")))?;
        // bind(2) gives the name the mode of the socket.
        fchmod(socket, Mode::RUSR | Mode::WUSR).map_err(OpenError::system("fchmod(socket)"))?;
        let (path, ()) = TemporaryPath::make(&announcer(), name.clone(), |_| bind(socket, &address))
            .map_err(OpenError::system(format!("bind({})", name.display())))?;
        Ok(Self { address, _folder: folder, _path: path })
    }
}

/// Asks for the buffers the options name; the kernel clamps them without a word, so they are read back later.
pub(super) fn set_buffers(options: &Options, socket: impl AsFd + Copy) -> Result<(), OpenError> {
    // setsockopt takes a C int.
    let asked = |name| options.size(name).map(|bytes| bytes.min(i32::MAX as u64) as usize);
    if let Some(bytes) = asked(SNDBUF_OPTION.name) {
        sockopt::set_socket_send_buffer_size(socket, bytes)
            .map_err(OpenError::system("setsockopt(SO_SNDBUF)"))?;
    }
    if let Some(bytes) = asked(RCVBUF_OPTION.name) {
        sockopt::set_socket_recv_buffer_size(socket, bytes)
            .map_err(OpenError::system("setsockopt(SO_RCVBUF)"))?;
    }
    Ok(())
}

/// The send buffer that the kernel gave, in bytes.
pub(super) fn sndbuf_bytes(socket: &OwnedFd) -> Result<u64, OpenError> {
    let bytes = sockopt::socket_send_buffer_size(socket);
    bytes.map(|bytes| bytes as u64).map_err(OpenError::system("getsockopt(SO_SNDBUF)"))
}

/// The receive buffer that the kernel gave, in bytes.
pub(super) fn rcvbuf_bytes(socket: &OwnedFd) -> Result<u64, OpenError> {
    let bytes = sockopt::socket_recv_buffer_size(socket);
    bytes.map(|bytes| bytes as u64).map_err(OpenError::system("getsockopt(SO_RCVBUF)"))
}

/// A channel over connected pairs of stream sockets.
pub(super) fn over_pairs(
    request: &Request<'_>,
    connect: impl FnMut() -> Result<(OwnedFd, OwnedFd), OpenError>,
) -> Result<Channel, OpenError> {
    let wait = FdWait::for_request(request);
    over_connected(request, connect, |from, to| {
        let (sndbuf, rcvbuf) = (sndbuf_bytes(&from)?, rcvbuf_bytes(&to)?);
        Ok(Direction::new(FdEnd::new(from, wait)?, FdEnd::new(to, wait)?)
            .granted([("sndbuf_bytes", sndbuf), ("rcvbuf_bytes", rcvbuf)]))
    })
}

/// Makes a connected pair the ends of a link: the second socket reads.
pub(super) fn socket_ends((near, far): (OwnedFd, OwnedFd)) -> Result<LinkEnds, OpenError> {
    let granted = granted([("sndbuf_bytes", sndbuf_bytes(&near)?), ("rcvbuf_bytes", rcvbuf_bytes(&far)?)]);
    LinkEnds::new(near, far, granted, LinkKind::Stream)
}

/// A mechanism that is not there because the loopback interface is down.
pub(super) fn no_loopback(error: OpenError) -> Unsupported {
    Unsupported {
        reason: error.to_string(),
        remedy: Some("bring the loopback interface up: ip link set lo up".to_owned()),
    }
}
