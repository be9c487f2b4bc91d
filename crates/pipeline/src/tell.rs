//! A command for the server of a shell, and its answer.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use pipes::protocol::{Head, Kind, TEXT_BYTES_MAX};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, sendmsg_addr, socket_with,
};

const DONE: u8 = b'0';
const NOT_DONE: u8 = b'1';

/// Tells the server of this name a command; what it says to it, or why it did not do it.
///
/// # Errors
/// There is no such server (any more), or the command is too long for it.
pub fn tell(server: &str, words: &[&str]) -> io::Result<Result<String, String>> {
    let text: String = words.iter().flat_map(|word| [*word, "\0"]).collect();
    if text.len() > TEXT_BYTES_MAX {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let (mut own, theirs) = UnixStream::pair()?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let head = Head { kind: Kind::Command as u32, pid: std::process::id() as i32, ..Head::default() };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let ends = [theirs.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&ends));
    let to = SocketAddrUnix::new_abstract_name(server.as_bytes())?;
    let head = head.to_bytes();
    let parts = [IoSlice::new(&head), IoSlice::new(text.as_bytes())];
    sendmsg_addr(&socket, &to, &parts, &mut control, SendFlags::NOSIGNAL)?;
    drop(theirs);
    let mut bytes = Vec::new();
    own.read_to_end(&mut bytes)?;
    let (done, text) = bytes.split_first().ok_or(io::ErrorKind::ConnectionRefused)?;
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(if *done == DONE { Ok(text) } else { Err(text) })
}

/// Answers whoever told the command. One that has gone needs no answer.
pub(crate) fn answer(reply: OwnedFd, done: &Result<String, String>) {
    let (first, text) = match done {
        Ok(text) => (DONE, text),
        Err(text) => (NOT_DONE, text),
    };
    let _ = UnixStream::from(reply).write_all(&[&[first], text.as_bytes()].concat());
}
