//! `unix-seqpacket`: a connected pair of Unix sockets that keep message boundaries, unix(7).
//!
//! Nothing is lost and nothing overtakes, as on a stream, and the end of it is seen by the receiver; but a
//! message arrives whole. Between unmodified programs it is no link: a read smaller than the message throws
//! the rest away.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::messages::{MESSAGE_LIMITS, MessageEnd, check_block};
use super::sockets::{SNDBUF_OPTION, set_buffers};
use crate::descriptor::Descriptor;
use crate::fd::FdWait;
use crate::loops::{Direction, over_connected};
use crate::{Channel, Granted, Mechanism, OpenError, Request};

pub(crate) struct UnixSeqpacket;

impl Mechanism for UnixSeqpacket {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "unix-seqpacket",
            summary: "a connected pair of Unix sockets that keep message boundaries",
            // No rcvbuf: what lies in a Unix socket is charged to the one who sent it.
            options: &[SNDBUF_OPTION],
            limits: MESSAGE_LIMITS,
            man_pages: &["unix(7)", "socketpair(2)"],
            more_specs: &["unix-seqpacket", "unix-seqpacket:sndbuf=1MiB"],
            ..Descriptor::MESSAGES
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let wait = FdWait::of(request);
        let connect = || {
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
            let (near, far) = pair.map_err(OpenError::system("socketpair(AF_UNIX, SOCK_SEQPACKET)"))?;
            set_buffers(request, &near)?;
            set_buffers(request, &far)?;
            Ok((near, far))
        };
        over_connected(request, connect, |from, to| {
            let sndbuf = check_block(request, &from, &to, "unix-seqpacket:")?;
            Ok(Direction {
                sender: MessageEnd::new(from, wait, None)?,
                receiver: MessageEnd::new(to, wait, None)?,
                granted: Granted::from([("sndbuf_bytes".to_owned(), sndbuf)]),
            })
        })
    }
}
