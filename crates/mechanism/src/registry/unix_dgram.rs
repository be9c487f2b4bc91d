//! `unix-dgram`: Unix datagram sockets, unix(7): one bound to a name, the other connected to it, as a program
//! and its syslog daemon are.
//!
//! Unlike UDP they lose nothing: a sender waits. By name it waits as soon as `net.unix.max_dgram_qlen` messages
//! lie unread, however small they are. In a connected pair (`pair`) the kernel does not count them, since the
//! receiver answers to nobody else, and only the send buffer bounds what is under way. That difference is the
//! point of the two specs. The name is one of the kernel's choosing in the abstract namespace: it needs no
//! removing. A receiver is not told that its sender has gone; a sender is refused.

use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, socket_with,
    socketpair,
};

use super::messages::{MessageEnd, check_block};
use super::sockets::{SNDBUF_OPTION, set_buffers};
use crate::descriptor::{Descriptor, OptionKind, OptionSpec};
use crate::fd::FdWait;
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request};

pub(crate) struct UnixDgram;

impl Mechanism for UnixDgram {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "unix-dgram",
            summary: "Unix datagram sockets: nothing is lost, the sender waits",
            // No rcvbuf: what lies in a Unix socket is charged to the one who sent it.
            options: &[
                OptionSpec {
                    name: "pair",
                    kind: OptionKind::Flag,
                    default: "off: sent to a name, as to syslog",
                    help: "a connected pair (socketpair): net.unix.max_dgram_qlen does not bound it",
                },
                SNDBUF_OPTION,
            ],
            limits: "block: the send buffer less 32 bytes, and some 4 MiB; queue: net.unix.max_dgram_qlen messages, except pair; sndbuf: net.core.wmem_max",
            man_pages: &["unix(7)", "socket(7)"],
            more_specs: &["unix-dgram", "unix-dgram:pair"],
            ..Descriptor::MESSAGES
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        one_way(request, || {
            let paired = request.options.flag("pair");
            let (near, far) = if paired { pair()? } else { connect_by_name()? };
            set_buffers(request, &near)?;
            let spec = if paired { "unix-dgram:pair," } else { "unix-dgram:" };
            let sndbuf = check_block(request, &near, &far, spec)?;
            let mut granted = Granted::from([("sndbuf_bytes".to_owned(), sndbuf)]);
            if let Some(messages) = queue_messages().filter(|_| !paired) {
                granted.insert("queue_messages".to_owned(), messages);
            }
            let wait = FdWait::of(request);
            Ok(Direction {
                sender: MessageEnd::new(near, wait, None)?,
                receiver: MessageEnd::new(far, wait, None)?,
                granted,
            })
        })
    }
}

fn pair() -> Result<(OwnedFd, OwnedFd), OpenError> {
    socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::system("socketpair(AF_UNIX, SOCK_DGRAM)"))
}

/// A sender connected to a receiver's name, and not the other way round.
fn connect_by_name() -> Result<(OwnedFd, OwnedFd), OpenError> {
    let far = datagram_socket()?;
    // An address without a path: the kernel chooses an abstract name (unix(7), autobind).
    bind(&far, &SocketAddrUnix::new_unnamed()).map_err(OpenError::system("bind(AF_UNIX, autobind)"))?;
    let name = getsockname(&far).map_err(OpenError::system("getsockname"))?;
    let near = datagram_socket()?;
    connect(&near, &name).map_err(OpenError::system("connect(AF_UNIX, SOCK_DGRAM)"))?;
    Ok((near, far))
}

fn datagram_socket() -> Result<OwnedFd, OpenError> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::system("socket(AF_UNIX, SOCK_DGRAM)"))
}

/// Messages that may lie unread in a socket made now. The kernel lets one more in than the limit says
/// (`unix_recvq_full`, net/unix/af_unix.c).
fn queue_messages() -> Option<u64> {
    let limit: u64 =
        std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").ok()?.trim().parse().ok()?;
    Some(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use rustix::net::{SendFlags, send};

    fn messages_that_fit((near, _far): (OwnedFd, OwnedFd)) -> u64 {
        let mut count = 0;
        loop {
            match send(&near, b"x", SendFlags::DONTWAIT) {
                Ok(_) => count += 1,
                Err(error) => {
                    assert_eq!(error, Errno::AGAIN);
                    return count;
                }
            }
        }
    }

    #[test]
    fn a_name_is_bounded_by_messages_and_a_pair_by_bytes() {
        let limit = queue_messages().expect("Linux has net.unix.max_dgram_qlen");
        assert_eq!(messages_that_fit(connect_by_name().expect("sockets")), limit);
        if limit < 100 {
            assert!(messages_that_fit(pair().expect("sockets")) > limit);
        }
    }
}
