//! `vsock`: a stream over AF_VSOCK to this same machine (VMADDR_CID_LOCAL), vsock(7): the socket that virtual
//! machines and their hosts talk over, here without a virtual machine.
//!
//! It needs the kernel's loopback transport (vsock_loopback, Linux 5.6). Nothing is ever sent to a host or a
//! guest: the only address used is the local one.
#![allow(unsafe_code)]

use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, acceptfrom_with, bind, connect, getsockname,
    listen, socket_with,
};

use super::messages::receiver_wait;
use crate::prelude::*;

/// Socket options of the level AF_VSOCK (linux/vm_sockets.h): 64-bit sizes in bytes.
const SO_VM_SOCKETS_BUFFER_SIZE: libc::c_int = 0;
const SO_VM_SOCKETS_BUFFER_MAX_SIZE: libc::c_int = 2;

pub(crate) struct Vsock;

impl Mechanism for Vsock {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "vsock",
            summary: "a virtual machine's socket, looped back on this machine",
            capabilities: const { Capabilities::LINK.union(Capabilities::CROSSES_HOSTS) },
            options: &[OptionSpec {
                name: "buffer",
                kind: OptionKind::Size,
                default: "256KiB, the kernel's default",
                help: "bytes the receiver gives credit for (SO_VM_SOCKETS_BUFFER_SIZE)",
            }],
            link_options: &["buffer"],
            link_differs: "`[ -p /dev/stdin ]` is false, and /dev/stdin and /dev/stdout cannot be opened",
            limits: "needs the loopback transport (vsock_loopback); a packet carries at most 64 KiB",
            man_pages: &["vsock(7)"],
            more_specs: &["vsock", "vsock:buffer=1MiB"],
            ..Descriptor::STREAM
        }
    }

    fn probe(&self) -> Result<(), Unsupported> {
        Ok(local_listener(None).map(drop)?)
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let wait = FdWait::of(request);
        let connect = || connect_pair(request.options.size("buffer"));
        over_connected(request, connect, |from, to| {
            let bytes = buffer_bytes(&to)?;
            Ok(Direction::new(FdEnd::new(from, wait)?, FdEnd::new(to, receiver_wait(request))?)
                .granted([("buffer_bytes", bytes)]))
        })
    }

    fn connect(&self, options: &Options, _folder: &Folder) -> Option<Result<LinkEnds, OpenError>> {
        Some(connect_pair(options.size("buffer")).and_then(|(near, far)| {
            let granted = granted([("buffer_bytes", buffer_bytes(&far)?)]);
            LinkEnds::new(near, far, granted, LinkKind::Stream)
        }))
    }
}

/// Connects two sockets through the loopback transport. Both have their buffers before they connect: credit is
/// given from the first packet on, and an accepted socket has what its listener had.
fn connect_pair(buffer: Option<u64>) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let listener = local_listener(buffer)?;
    let address = getsockname(&listener).map_err(OpenError::system("getsockname(AF_VSOCK)"))?;
    let near = vsock_socket(buffer)?;
    retry_on_intr(|| connect(&near, &address))
        .map_err(OpenError::system("connect(AF_VSOCK, VMADDR_CID_LOCAL)"))?;
    let far = accept_own(&listener, &near).map_err(OpenError::system("accept(AF_VSOCK)"))?;
    Ok((near, far))
}

/// Accepts the connection that `near` made: anybody on this machine may call the port, and earlier.
fn accept_own(listener: &OwnedFd, near: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let own = getsockname(near)?;
    loop {
        let (far, caller) = retry_on_intr(|| acceptfrom_with(listener, SocketFlags::CLOEXEC))?;
        // The caller's own address may still be any; its port is its own.
        if caller.is_some_and(|caller| port(&caller) == port(&own)) {
            return Ok(far);
        }
    }
}

/// A listener at the local address. bind(2) asks the loopback transport whether the address is its own, so
/// that this is also how its absence is found out.
fn local_listener(buffer: Option<u64>) -> Result<OwnedFd, OpenError> {
    let listener = vsock_socket(buffer)?;
    bind(&listener, &local_address()).map_err(|errno| {
        OpenError::system_with("bind(AF_VSOCK, VMADDR_CID_LOCAL)", errno, bind_remedy(errno))
    })?;
    listen(&listener, 1).map_err(OpenError::system("listen(AF_VSOCK)"))?;
    Ok(listener)
}

fn bind_remedy(errno: Errno) -> Option<String> {
    let modprobe = format!("{}modprobe vsock_loopback (a kernel with CONFIG_VSOCKETS_LOOPBACK)", sudo());
    (errno == Errno::ADDRNOTAVAIL)
        .then(|| format!("this kernel's vsock has no loopback transport: {modprobe}"))
}

fn socket_remedy(errno: Errno) -> Option<String> {
    match errno {
        Errno::AFNOSUPPORT => {
            Some(format!("{}modprobe vsock vsock_loopback (a kernel with CONFIG_VSOCKETS)", sudo()))
        }
        Errno::PERM | Errno::ACCESS => {
            Some("a container's seccomp filter may forbid AF_VSOCK: run outside of it".to_owned())
        }
        _ => None,
    }
}

fn vsock_socket(buffer: Option<u64>) -> Result<OwnedFd, OpenError> {
    let socket = socket_with(AddressFamily::VSOCK, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(|errno| {
        OpenError::system_with("socket(AF_VSOCK, SOCK_STREAM)", errno, socket_remedy(errno))
    })?;
    if let Some(bytes) = buffer {
        // The limit first: a size above it is cut without a word.
        for option in [SO_VM_SOCKETS_BUFFER_MAX_SIZE, SO_VM_SOCKETS_BUFFER_SIZE] {
            set_size(&socket, option, bytes).map_err(|error| {
                let remedy = format!("a smaller buffer= ({})", describe_errno(&error));
                OpenError::system_with(
                    format!("setsockopt(AF_VSOCK, buffer of {bytes} bytes)"),
                    error,
                    Some(remedy),
                )
            })?;
        }
    }
    Ok(socket)
}

/// The local address at a port of the kernel's choice.
fn local_address() -> SocketAddrAny {
    // SAFETY: all zeros is a valid sockaddr_vm; the fields that matter are set below.
    let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
    address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
    address.svm_cid = libc::VMADDR_CID_LOCAL;
    address.svm_port = libc::VMADDR_PORT_ANY;
    // SAFETY: an address, and its length.
    unsafe { SocketAddrAny::read((&raw const address).cast(), size_of_val(&address) as u32) }
}

/// The port of a vsock's address.
fn port(address: &SocketAddrAny) -> u32 {
    assert!(address.addr_len() as usize >= size_of::<libc::sockaddr_vm>(), "not the address of a vsock");
    // SAFETY: that long by the assertion, and a sockaddr_vm is valid whatever its bytes.
    unsafe { address.as_ptr().cast::<libc::sockaddr_vm>().read_unaligned() }.svm_port
}

fn answer(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_size(socket: &OwnedFd, option: libc::c_int, bytes: u64) -> io::Result<()> {
    let len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: a u64 and its length, as these options have it.
    answer(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::AF_VSOCK, option, (&raw const bytes).cast(), len)
    })
}

/// Bytes that the receiver gives credit for.
fn buffer_bytes(socket: &OwnedFd) -> Result<u64, OpenError> {
    let (mut bytes, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
    let (fd, value) = (socket.as_raw_fd(), (&raw mut bytes).cast());
    // SAFETY: room for a u64, and its length.
    answer(unsafe { libc::getsockopt(fd, libc::AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, value, &mut len) })
        .map_err(OpenError::system("getsockopt(BUFFER_SIZE)"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_its_port() {
        assert_eq!(port(&local_address()), libc::VMADDR_PORT_ANY);
        // A kernel without AF_VSOCK has no socket to ask.
        if let Ok(socket) = vsock_socket(None) {
            let own = getsockname(&socket).expect("an address, bound or not");
            assert_eq!((own.address_family(), port(&own)), (AddressFamily::VSOCK, libc::VMADDR_PORT_ANY));
        }
    }
}
