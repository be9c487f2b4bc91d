//! The socket to which the library in a shell, and commands that are typed there, send messages to the server.
//!
//! It has a name for a moment only, in a folder that no other user may enter; then it is found as a descriptor of the server, which no other user
//! may open (proc_pid_fd(5)). So no other user can fill its queue, no name is left behind, and no script removes one.

use std::fs::{self, Permissions};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use mechanism::Folder;
use model::monotonic_ns;
use pipes::message::{ANSWER_HEAD_BYTES, Answer, MESSAGE_BYTES_MAX, Message, Sender, TEXT_BYTES_MAX, Usage};
use pipes::protocol::Plain;
use process::signals::NoSignals;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, recvmsg, sendmsg, shutdown, socket_with,
};

/// Most connections that wait to be accepted; the kernel allows fewer (net.core.somaxconn). Further ones wait until there is room.
const WAITING_MAX: i32 = i32::MAX;
/// Longest answer to a command.
const COMMAND_ANSWER_BYTES_MAX: usize = 64 << 10;

/// The server's end.
pub(crate) struct RequestSocket {
    listener: OwnedFd,
    /// Its place in the file system, where it has no name any more.
    place: OwnedFd,
    /// Connections whose message has not come yet, in the order in which they were made.
    silent: Vec<OwnedFd>,
}

/// A message, and the connection for the answer.
pub(crate) struct Request {
    packet: Vec<u8>,
    /// A descriptor that came with it.
    pub(crate) with: Option<OwnedFd>,
    pub(crate) connection: OwnedFd,
}

impl Request {
    /// `None` if it is no message.
    pub(crate) fn read(&self) -> Option<(Sender, Message<'_>)> {
        Message::read(&self.packet)
    }
}

impl RequestSocket {
    pub(crate) fn open() -> io::Result<Self> {
        let listener = new_socket()?;
        // As long as there is a name, no signal may end this process.
        let _signals = NoSignals::block();
        let folder = Folder::for_brief_names();
        let path = folder.path().map_err(|error| error.source.unwrap_or(io::ErrorKind::NotFound.into()))?;
        let opened = open(&path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Shorter than any path: a socket's has at most 107 bytes (unix(7)).
        let path = format!("/proc/self/fd/{}/requests", opened.as_raw_fd());
        bind(&listener, &SocketAddrUnix::new(path.as_str())?)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        listen(&listener, WAITING_MAX)?;
        let place = open(path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { listener, place, silent: Vec::new() })
    }

    /// The path by which processes find it while this process has it.
    pub(crate) fn path_in(&self, server: u32) -> String {
        format!("/proc/{server}/fd/{}", self.place.as_raw_fd())
    }

    /// One of these can be read when a message has come.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.as_fd()).chain(self.silent.iter().map(AsFd::as_fd))
    }

    /// The messages that have come. A process connects when it has something to say, so all connections are accepted first: a message that
    /// was sent before another one was begun then comes before it.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<Request>> {
        loop {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(connection) => self.silent.push(connection),
                Err(Errno::INTR) => {}
                // Without a free descriptor they wait until others are closed.
                Err(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::CONNABORTED) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let mut requests = Vec::new();
        for connection in std::mem::take(&mut self.silent) {
            match receive_from(connection) {
                Received::Request(request) => requests.push(request),
                Received::Nothing(connection) => self.silent.push(connection),
                Received::End => {}
            }
        }
        Ok(requests)
    }
}

enum Received {
    Request(Request),
    Nothing(OwnedFd),
    /// Its process has ended.
    End,
}

fn receive_from(connection: OwnedFd) -> Received {
    let mut packet = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received =
        retry_on_intr(|| recvmsg(&connection, &mut [IoSliceMut::new(&mut packet)], &mut control, flags));
    match received {
        Ok(received) if received.bytes > 0 => packet.truncate(received.bytes),
        Err(Errno::AGAIN) => return Received::Nothing(connection),
        _ => return Received::End,
    }
    let with = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.into_iter().next(),
        _ => None,
    });
    Received::Request(Request { packet, with, connection })
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Answers. A process that was killed meanwhile needs no answer. One that cannot be sent its answer reads the end of the connection, also where
/// another copy of this end is open.
pub(crate) fn answer(connection: &OwnedFd, answer: Answer<'_>, fds: &[BorrowedFd<'_>]) {
    let (head, text) = answer.packet();
    if send(connection, head.as_bytes(), text, fds).is_err() {
        let _ = shutdown(connection, Shutdown::Both);
    }
}

fn send(to: &OwnedFd, head: &[u8], text: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let parts = [IoSlice::new(head), IoSlice::new(text)];
    retry_on_intr(|| sendmsg(to, &parts, &mut control, SendFlags::NOSIGNAL))
}

/// Sends a command to the server whose socket has this path. Returns its answer: its text, or why it refused.
///
/// # Errors
/// The server does not exist (any more), or the command is too long.
pub fn send_command(server: &str, words: &[&str]) -> io::Result<Result<String, String>> {
    let text: String = words.iter().flat_map(|word| [*word, "\0"]).collect();
    if text.len() > TEXT_BYTES_MAX {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let sender =
        Sender { pid: std::process::id().cast_signed(), at_ns: monotonic_ns(), usage: Usage::default() };
    let (head, text) = Message::Command(text.as_bytes()).packet(sender);
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect(&connection, &SocketAddrUnix::new(server)?)?;
    send(&connection, head.as_bytes(), text, &[])?;
    let mut room = vec![0; ANSWER_HEAD_BYTES + COMMAND_ANSWER_BYTES_MAX];
    let (len, _) = retry_on_intr(|| recv(&connection, &mut room[..], RecvFlags::empty()))?;
    let text = |text| String::from_utf8_lossy(text).into_owned();
    match Answer::read(&room[..len]) {
        Some(Answer::Done(words)) => Ok(Ok(text(words))),
        Some(Answer::NotDone(words)) => Ok(Err(text(words))),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::geteuid;

    use super::*;

    fn connected(socket: &RequestSocket) -> OwnedFd {
        let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let connection = connection.expect("a socket");
        let path = socket.path_in(std::process::id());
        connect(&connection, &SocketAddrUnix::new(path.as_str()).expect("a path")).expect("connected");
        connection
    }

    fn say(connection: &OwnedFd, pid: i32, fds: &[BorrowedFd<'_>]) {
        let (head, text) = Message::Ended.packet(Sender { pid, ..Sender::default() });
        send(connection, head.as_bytes(), text, fds).expect("sent");
    }

    fn heard(socket: &mut RequestSocket) -> Vec<i32> {
        let requests = socket.receive().expect("received");
        requests.iter().map(|request| request.read().expect("a message").0.pid).collect()
    }

    #[test]
    fn what_was_said_before_another_began_comes_first() {
        let mut socket = RequestSocket::open().expect("a socket");
        let (first, second) = (connected(&socket), connected(&socket));
        assert!(heard(&mut socket).is_empty());
        say(&second, 2, &[]);
        assert_eq!(heard(&mut socket), [2], "one that is silent holds up no other");
        say(&first, 1, &[]);
        let third = connected(&socket);
        say(&third, 3, &[]);
        drop((connected(&socket), third));
        assert_eq!(heard(&mut socket), [1, 3], "also of one that has gone");
        assert!(heard(&mut socket).is_empty());
    }

    #[test]
    fn a_descriptor_comes_with_its_message_and_no_copy_of_it_stays() {
        let mut socket = RequestSocket::open().expect("a socket");
        let (mut reads, writes) = io::pipe().expect("a pipe");
        say(&connected(&socket), 8, &[writes.as_fd()]);
        drop(writes);
        let requests = socket.receive().expect("received");
        assert!(requests[0].with.is_some());
        drop(requests);
        assert_eq!(reads.read(&mut [0]).expect("the other end is closed"), 0);
    }

    /// Expected: what waits for an answer that cannot be sent goes on. Happened: a thread of the server had a copy of the connection, and the shell
    /// waited for its pipe without end.
    #[test]
    fn an_answer_that_cannot_be_sent_is_the_end_of_the_connection() {
        let mut socket = RequestSocket::open().expect("a socket");
        let shell = connected(&socket);
        say(&shell, 8, &[]);
        let connection = socket.receive().expect("received").remove(0).connection;
        let _copy = connection.try_clone().expect("a copy");
        answer(&connection, Answer::Done(&vec![0; 16 << 20]), &[]);
        drop(connection);
        assert_eq!(recv(&shell, &mut [0; 8][..], RecvFlags::empty()).map(|(len, _)| len), Ok(0));
    }

    /// Expected: no other user can stop a shell. Happened: the socket had an abstract name, whose queue any user could fill.
    #[test]
    fn it_has_no_name_and_no_other_user_finds_it() {
        let socket = RequestSocket::open().expect("a socket");
        let path = socket.path_in(std::process::id());
        let place = fs::read_link(&path).expect("its place");
        assert!(place.to_string_lossy().ends_with("/requests (deleted)"), "{place:?}");
        assert!(!place.parent().expect("a folder").exists());
        if geteuid().is_root() {
            let mut other = Command::new("test");
            let found = other.args(["-S", &path]).uid(65534).gid(65534).status().expect("test(1)");
            assert!(!found.success());
        }
        assert!(Command::new("test").args(["-S", &path]).status().expect("test(1)").success());
    }
}
