//! The server's socket, which receives the messages of the library in a shell and of commands that are typed there.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
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

/// Most messages of others that are discarded before the server does its other work.
const DISCARDED_MAX: u32 = 100;

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

    /// The next message of this user, if one has come. Messages of others are discarded, at most [`DISCARDED_MAX`] in one call: any process may
    /// send without a pause.
    pub(crate) fn receive(&self) -> io::Result<Option<Message>> {
        for _ in 0..DISCARDED_MAX {
            let Some(is_ours) = self.next_is_ours()? else { return Ok(None) };
            let mut bytes = [0; HEAD_BYTES + TEXT_BYTES_MAX];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2), ScmCredentials(1))];
            // Without room for them the kernel closes the descriptors of a stranger.
            let space: &mut [MaybeUninit<u8>] = if is_ours { &mut space } else { &mut [] };
            let mut control = RecvAncillaryBuffer::new(space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let len = match recvmsg(&self.fd, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Ok(received) => received.bytes,
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut reply = None;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    reply = fds.into_iter().next();
                }
            }
            if let Some(head) = Head::from_bytes(&bytes[..len]).filter(|_| is_ours) {
                return Ok(Some(Message { head, text: bytes[HEAD_BYTES..len].to_vec(), reply }));
            }
        }
        Ok(None)
    }

    /// Whether the next message is of a process of this user that can be seen here; `None` if there is no message. The message is only looked at,
    /// because the credentials of a sender in another PID namespace have the PID 0, which the type of rustix must not have.
    fn next_is_ours(&self) -> io::Result<Option<bool>> {
        /// A control message (cmsg(3)) of credentials, which come before descriptors. For these there is no room, so that none is copied.
        #[repr(C)]
        struct Control {
            head: libc::cmsghdr,
            sender: libc::ucred,
        }
        // SAFETY: zeros are valid values of both.
        let (mut control, mut message): (Control, libc::msghdr) = unsafe { std::mem::zeroed() };
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>() as _;
        // SAFETY: there is room for as many bytes as the message says; the kernel writes no more.
        let asked =
            unsafe { libc::recvmsg(self.fd.as_raw_fd(), &mut message, libc::MSG_PEEK | libc::MSG_DONTWAIT) };
        match (asked, io::Error::last_os_error()) {
            (0.., _) => {
                let is_told = control.head.cmsg_type == libc::SCM_CREDENTIALS;
                let Control { sender, .. } = control;
                Ok(Some(is_told && sender.pid != 0 && sender.uid == getuid().as_raw()))
            }
            (_, error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            (_, error) if error.kind() == io::ErrorKind::Interrupted => self.next_is_ours(),
            (_, error) => Err(error),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use rustix::net::{SendFlags, sendto};

    use super::*;

    fn head_from(pid: i32) -> Head {
        Head { kind: kind::EXEC, pid, ..Head::default() }
    }

    /// Expected: a process that sends without a pause what is no message holds the server up for a moment. Happened: the server did nothing else.
    #[test]
    fn what_others_send_without_a_pause_does_not_stop_the_server() {
        let socket = Socket::open().expect("a socket");
        let to = SocketAddrUnix::new_abstract_name(socket.name.as_bytes()).expect("a name");
        let is_over = Arc::new(AtomicBool::new(false));
        let (address, over) = (to.clone(), is_over.clone());
        let flood = std::thread::spawn(move || {
            let (from, began) = (datagrams().expect("a socket"), std::time::Instant::now());
            while !over.load(Relaxed) && began.elapsed() < Duration::from_secs(10) {
                let _ = sendto(&from, b"noise", SendFlags::DONTWAIT, &address);
            }
            over.load(Relaxed)
        });
        for _ in 0..20 {
            assert!(socket.receive().expect("no error").is_none());
        }
        is_over.store(true, Relaxed);
        assert!(flood.join().expect("it ended"), "it was never heard");
        while socket.next_is_ours().expect("no error").is_some() {
            socket.receive().expect("no error");
        }
        let head = head_from(7);
        sendto(datagrams().expect("a socket"), head.as_bytes(), SendFlags::empty(), &to).expect("sent");
        assert_eq!(socket.receive().expect("no error").map(|message| message.head.pid), Some(7));
    }

    #[test]
    fn a_descriptor_comes_with_its_message_and_no_copy_of_it_stays() {
        let socket = Socket::open().expect("a socket");
        let (own, theirs) = UnixStream::pair().expect("a pair");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [theirs.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let to = SocketAddrUnix::new_abstract_name(socket.name.as_bytes()).expect("a name");
        let head = head_from(8);
        let parts = [IoSlice::new(head.as_bytes())];
        sendmsg_addr(datagrams().expect("a socket"), &to, &parts, &mut control, SendFlags::empty())
            .expect("sent");
        drop(theirs);
        let message = socket.receive().expect("no error").expect("a message");
        assert!(message.reply.is_some());
        drop(message);
        own.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let read = (&own).read(&mut [0]);
        assert_eq!(read.expect("the other end is closed"), 0);
    }
}
