//! The socket on which the library in a shell asks its server, and is answered.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use pipes::protocol::{HEAD_BYTES, Head, Reply, TEXT_BYTES_MAX};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recvmsg, sendmsg,
    socket_with, sockopt,
};
use rustix::process::getuid;

/// Where the library in the shell finds its server.
pub(crate) struct Counter {
    pub(crate) socket: OwnedFd,
    /// An abstract name (unix(7)): it lives in no file system, so nothing can be left of it.
    pub(crate) name: String,
}

impl Counter {
    /// # Errors
    /// What socket(2) or bind(2) answers.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        // Whoever knows the name could call; the kernel's word says who it is.
        sockopt::set_socket_passcred(&socket, true)?;
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("hosepipe-{:032x}", u128::from_ne_bytes(random));
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Self { socket, name })
    }
}

/// What the library told, or asked.
pub(crate) struct Message {
    pub(crate) head: Head,
    pub(crate) text: Vec<u8>,
    pub(crate) reply: Option<OwnedFd>,
}

/// The next message of this user's, if one is there.
pub(crate) fn receive(socket: &OwnedFd) -> io::Result<Option<Message>> {
    loop {
        let mut bytes = [0; HEAD_BYTES + TEXT_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2), ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let len = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(received) => received.bytes,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let (mut reply, mut ours) = (None, false);
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmRights(fds) => reply = fds.into_iter().next(),
                RecvAncillaryMessage::ScmCredentials(sender) => ours = sender.uid == getuid(),
                _ => {}
            }
        }
        if let Some(head) = Head::from_bytes(&bytes[..len]).filter(|_| ours) {
            return Ok(Some(Message { head, text: bytes[HEAD_BYTES..len].to_vec(), reply }));
        }
    }
}

/// Answers the library.
pub(crate) fn send(to: &OwnedFd, reply: &Reply, fds: &[std::os::fd::BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    // A shell that was killed meanwhile needs no answer.
    let _ = sendmsg(to, &[IoSlice::new(&reply.to_bytes())], &mut control, SendFlags::NOSIGNAL);
}
