//! `unix-dgram`: Unix datagram sockets, unix(7): the receiver is bound to a name and the sender connected to it, like a
//! syslog daemon and a program that logs.
//!
//! Unlike UDP they lose no messages: a sender waits. A sender that is connected to a name waits when `net.unix.max_dgram_qlen`
//! messages are unread, even if they are small. In a connected pair (`pair`) the kernel does not count messages, because the receiver
//! has no other sender; only the send buffer limits the bytes in flight. The two specs show that difference.
//!
//! A receiver with a name gets messages from every process that can connect to it. So the name is in a file system, where only its own
//! user can connect, and is removed as soon as the sender is connected. (Abstract names have no permissions, and all of them can be
//! read in /proc/net/unix.) A receiver does not notice that its sender has ended; a sender whose receiver has ended gets ECONNREFUSED.

use rustix::net::{AddressFamily, SocketType, connect};

use super::messages::unix_direction;
use super::sockets::{SNDBUF_OPTION, SocketName, socket, unix_pair};
use crate::prelude::*;

pub(super) static UNIX_DGRAM: Mechanism = Mechanism {
    name: "unix-dgram",
    summary: "Unix datagram sockets: nothing is lost, the sender waits",
    // No rcvbuf: the kernel charges unread bytes of a Unix socket to the sender's buffer.
    options: &[
        OptionSpec {
            name: "pair",
            kind: OptionKind::Flag,
            default: "off: sent to a name, as to syslog",
            help: "a connected pair (socketpair): net.unix.max_dgram_qlen does not bound it",
        },
        SNDBUF_OPTION,
    ],
    limits: "block: the send buffer less 32 bytes, and at most about 4 MiB; queue: net.unix.max_dgram_qlen messages, except pair; sndbuf: net.core.wmem_max",
    man_pages: &["unix(7)", "socket(7)"],
    more_specs: &["unix-dgram", "unix-dgram:pair"],
    capabilities: Capabilities::KEEPS_BOUNDARIES
        .union(Capabilities::NEEDS_CLEANUP)
        .union(Capabilities::MANY_SENDERS)
        .union(Capabilities::HAS_NAME),
    ..Mechanism::messages(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let options = request.options;
    one_way(request, || {
        if options.has("pair") {
            return unix_direction(request, unix_pair(options, SocketType::DGRAM)?, "unix-dgram:pair,");
        }
        let sockets = connect_by_name(options, request.folder)?;
        let mut direction = unix_direction(request, sockets, "unix-dgram:")?;
        let messages = queue_messages().map(|messages| ("queue_messages".to_owned(), messages));
        direction.granted.extend(messages);
        Ok(direction)
    })
}

/// A sender that is connected to a receiver's name. The receiver is not connected to the sender.
fn connect_by_name(options: &Options, folder: &Folder) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let far = socket(options, AddressFamily::UNIX, SocketType::DGRAM)?;
    let name = SocketName::bind(&far, folder)?;
    let near = socket(options, AddressFamily::UNIX, SocketType::DGRAM)?;
    connect(&near, &name.address).in_call("connect(AF_UNIX, SOCK_DGRAM)")?;
    Ok((near, far))
}

/// Most unread messages of a new socket. The kernel accepts one more than the limit (`unix_recvq_full`,
/// net/unix/af_unix.c).
fn queue_messages() -> Option<u64> {
    Some(kernel_setting("net/unix/max_dgram_qlen")? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::stat;
    use rustix::net::{SendFlags, getsockname, send};

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
        let named = connect_by_name(&Options::default(), &Folder::private()).expect("sockets");
        assert_eq!(messages_that_fit(named), limit);
        if limit < 100 {
            assert!(
                messages_that_fit(unix_pair(&Options::default(), SocketType::DGRAM).expect("sockets"))
                    > limit
            );
        }
    }

    /// Expected: the receiver gets messages of its sender, and of no other process.
    /// Happened: its abstract name was listed in /proc/net/unix, and every user could send to it.
    #[test]
    fn no_other_process_can_send_to_the_name() {
        let folder = Folder::private();
        let (_near, far) = connect_by_name(&Options::default(), &folder).expect("sockets");
        let stranger = socket(&Options::default(), AddressFamily::UNIX, SocketType::DGRAM).expect("a socket");
        let name = getsockname(&far).expect("a name");
        assert!(connect(&stranger, &name).is_err(), "{name:?} was removed");

        let _name = SocketName::bind(&stranger, &folder).expect("a name");
        let mode = stat(folder.path().expect("a folder").join("socket")).expect("while it is there").st_mode;
        assert_eq!(mode & 0o777, 0o600, "only its own user may connect");
    }
}
