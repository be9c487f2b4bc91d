//! The server's socket, which receives the messages of the library in a shell and of commands that are typed there.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use pipes::protocol::{HEAD_BYTES, Head, Plain, Reply, TEXT_BYTES_MAX, kind};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recvmsg, sendmsg,
    sendmsg_addr, socket_with, sockopt,
};
use rustix::process::getuid;

/// Attempts to send an answer while the system has no memory, and how long they take together: a lost answer makes a stage fail.
const ATTEMPTS: u32 = 100;
const MEMORY_WITHIN: Duration = Duration::from_secs(1);

const DONE: u8 = b'0';
const NOT_DONE: u8 = b'1';

/// The server's end.
pub(crate) struct Socket {
    pub(crate) fd: OwnedFd,
    /// An abstract name (unix(7)): it is in no file system, so no file is left behind.
    pub(crate) name: String,
}

/// A message of the library or of a command, with the descriptor to answer on if it wants an answer.
pub(crate) struct Message {
    pub(crate) head: Head,
    pub(crate) text: Vec<u8>,
    pub(crate) reply: Option<OwnedFd>,
}

fn datagrams() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

impl Socket {
    pub(crate) fn open() -> io::Result<Self> {
        let fd = datagrams()?;
        // Any process that knows the name can send; the kernel adds the sender's user.
        sockopt::set_socket_passcred(&fd, true)?;
        let mut random = [0; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("hosepipe-{:032x}", u128::from_ne_bytes(random));
        bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Self { fd, name })
    }

    /// The next message of this user, if one has come.
    pub(crate) fn receive(&self) -> io::Result<Option<Message>> {
        loop {
            let mut bytes = [0; HEAD_BYTES + TEXT_BYTES_MAX];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2), ScmCredentials(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let len = match recvmsg(&self.fd, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
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
}

/// Answers the library. A shell that was killed meanwhile needs no answer.
pub(crate) fn send(to: &OwnedFd, reply: &Reply, fds: &[BorrowedFd<'_>]) {
    send_bytes(to, reply.as_bytes(), fds);
}

/// Answers with bytes.
pub(crate) fn send_bytes(to: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    for _ in 0..ATTEMPTS {
        match sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            Err(Errno::NOBUFS | Errno::NOMEM) => std::thread::sleep(MEMORY_WITHIN / ATTEMPTS),
            _ => return,
        }
    }
}

/// Answers a command. A sender that has gone needs no answer.
pub(crate) fn answer(reply: OwnedFd, done: &Result<String, String>) {
    let (first, text) = match done {
        Ok(text) => (DONE, text),
        Err(text) => (NOT_DONE, text),
    };
    let _ = UnixStream::from(reply).write_all(&[&[first], text.as_bytes()].concat());
}

/// Sends a command to the server with this name. Returns its answer: its text, or why it refused.
///
/// # Errors
/// The server does not exist (any more), or the command is too long.
pub fn send_command(server: &str, words: &[&str]) -> io::Result<Result<String, String>> {
    let text: String = words.iter().flat_map(|word| [*word, "\0"]).collect();
    if text.len() > TEXT_BYTES_MAX {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let (mut own, theirs) = UnixStream::pair()?;
    let head = Head { kind: kind::COMMAND, pid: std::process::id() as i32, ..Head::default() };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let ends = [theirs.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&ends));
    let to = SocketAddrUnix::new_abstract_name(server.as_bytes())?;
    let parts = [IoSlice::new(head.as_bytes()), IoSlice::new(text.as_bytes())];
    sendmsg_addr(datagrams()?, &to, &parts, &mut control, SendFlags::NOSIGNAL)?;
    drop(theirs);
    let mut bytes = Vec::new();
    own.read_to_end(&mut bytes)?;
    let (done, text) = bytes.split_first().ok_or(io::ErrorKind::ConnectionRefused)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(if *done == DONE { Ok(text) } else { Err(text) })
}
