//! Common code of the sockets: how they are made, options for buffers, granted sizes, and a channel from a connected pair.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};

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
    help: "requested send buffer (SO_SNDBUF; the kernel doubles it for its own data)",
};

/// `rcvbuf=SIZE`.
pub(super) const RCVBUF_OPTION: OptionSpec = OptionSpec {
    name: "rcvbuf",
    kind: OptionKind::Size,
    default: "net.core.rmem_default (AF_UNIX), autotuned (TCP)",
    help: "requested receive buffer (SO_RCVBUF; the kernel doubles it for its own data)",
};

/// The limits of a socket's buffers.
pub(super) const BUFFER_LIMITS: &str = "sndbuf, rcvbuf: net.core.wmem_max and net.core.rmem_max";

/// The arguments of a call, as in man pages.
fn arguments(family: AddressFamily, kind: SocketType) -> String {
    let family = if family == AddressFamily::UNIX { "UNIX" } else { "INET" };
    let kind = match kind {
        SocketType::STREAM => "STREAM",
        SocketType::DGRAM => "DGRAM",
        _ => "SEQPACKET",
    };
    format!("AF_{family}, SOCK_{kind}")
}

/// A socket with the buffers that the options request.
pub(super) fn socket(
    options: &Options,
    family: AddressFamily,
    kind: SocketType,
) -> Result<OwnedFd, OpenError> {
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)
        .in_call(format!("socket({})", arguments(family, kind)))?;
    set_buffers(options, &socket)?;
    Ok(socket)
}

/// A socket with a port of the kernel's choice on the loopback interface.
pub(super) fn loopback_socket(options: &Options, kind: SocketType) -> Result<OwnedFd, OpenError> {
    let socket = socket(options, AddressFamily::INET, kind)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).in_call("bind(127.0.0.1)")?;
    Ok(socket)
}

/// A connected pair of Unix sockets with the buffers that the options request.
pub(super) fn unix_pair(options: &Options, kind: SocketType) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let (near, far) = pair.in_call(format!("socketpair({})", arguments(AddressFamily::UNIX, kind)))?;
    set_buffers(options, &near)?;
    set_buffers(options, &far)?;
    Ok((near, far))
}

/// The name of a Unix socket in a file system. Dropping it removes the name; connections stay open.
pub(super) struct SocketName {
    /// The address for connect(2).
    pub(super) address: SocketAddrUnix,
    /// The address is a path through this descriptor in /proc.
    _folder: OwnedFd,
    _path: TemporaryPath,
}

impl SocketName {
    /// Binds a socket to a name in a folder. Other users cannot connect to it (unix(7): connect requires write permission).
    pub(super) fn bind(socket: &OwnedFd, folder: &Folder) -> Result<Self, OpenError> {
        let folder = folder.path()?;
        let name = folder.join("socket");
        // A socket's name has at most 108 bytes (unix(7)); the path through /proc is short even if that of TMPDIR is long.
        let folder = open(&folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .in_call(format!("open({})", folder.display()))?;
        let path = format!("/proc/self/fd/{}/socket", folder.as_raw_fd());
        let address = SocketAddrUnix::new(path.as_str()).in_call(format!("address {path}"))?;
        // bind(2) gives the name the mode of the socket.
        fchmod(socket, Mode::RUSR | Mode::WUSR).in_call("fchmod(socket)")?;
        let (path, ()) = TemporaryPath::make(&announcer(), name.clone(), |_| bind(socket, &address))
            .in_call(format!("bind({})", name.display()))?;
        Ok(Self { address, _folder: folder, _path: path })
    }
}

/// Sets the buffers to the sizes in the options. The kernel may reduce them without an error, so the granted sizes are read later.
pub(super) fn set_buffers(options: &Options, socket: impl AsFd + Copy) -> Result<(), OpenError> {
    // setsockopt takes a C int.
    let asked = |name| options.size(name).map(|bytes| bytes.min(i32::MAX as u64) as usize);
    if let Some(bytes) = asked(SNDBUF_OPTION.name) {
        sockopt::set_socket_send_buffer_size(socket, bytes).in_call("setsockopt(SO_SNDBUF)")?;
    }
    if let Some(bytes) = asked(RCVBUF_OPTION.name) {
        sockopt::set_socket_recv_buffer_size(socket, bytes).in_call("setsockopt(SO_RCVBUF)")?;
    }
    Ok(())
}

/// The send buffer that the kernel gave, in bytes.
pub(super) fn sndbuf_bytes(socket: impl AsFd) -> Result<u64, OpenError> {
    sockopt::socket_send_buffer_size(socket).map(|bytes| bytes as u64).in_call("getsockopt(SO_SNDBUF)")
}

/// The receive buffer that the kernel gave, in bytes.
pub(super) fn rcvbuf_bytes(socket: impl AsFd) -> Result<u64, OpenError> {
    sockopt::socket_recv_buffer_size(socket).map(|bytes| bytes as u64).in_call("getsockopt(SO_RCVBUF)")
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

/// Makes the ends of a link from a connected pair; the second socket is the reading end.
pub(super) fn socket_ends((near, far): (OwnedFd, OwnedFd)) -> Result<LinkEnds, OpenError> {
    let granted = granted([("sndbuf_bytes", sndbuf_bytes(&near)?), ("rcvbuf_bytes", rcvbuf_bytes(&far)?)]);
    LinkEnds::new(near, far, granted, Transport::Stream)
}

/// getsockopt(2) for an option whose value is a plain C type of numbers.
///
/// # Safety
/// Any bytes must be a valid `T`.
pub(super) unsafe fn socket_option<T>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    let (fd, room) = (socket.as_raw_fd(), value.as_mut_ptr().cast());
    // SAFETY: room for as much as `len` says; the kernel writes no more.
    libc_result(unsafe { libc::getsockopt(fd, level, name, room, &mut len) })?;
    // SAFETY: zeros, or what the kernel wrote; both are valid, as the caller promises.
    Ok(unsafe { value.assume_init() })
}

/// The process that has connected a Unix socket; 0 if it is in another PID namespace, where the type of rustix is undefined.
pub(super) fn peer_process(socket: &impl AsRawFd) -> io::Result<libc::pid_t> {
    // SAFETY: any bytes are a valid `ucred`.
    let peer: libc::ucred = unsafe { socket_option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED) }?;
    Ok(peer.pid)
}

/// The error of a mechanism that cannot be used because the loopback interface is down.
pub(super) fn no_loopback(error: OpenError) -> OpenError {
    OpenError { remedy: Some("bring the loopback interface up: ip link set lo up".to_owned()), ..error }
}
