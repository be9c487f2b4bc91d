//! `sendfile`: from a file in the page cache to a socket, sendfile(2), as web servers do. The sender produces its
//! blocks in a memory-mapped file; the socket takes the file's pages by reference; the receiver reads.
//!
//! Nothing in the interface says when the pages may be written again, and a sender that does not ask overwrites what
//! is still under way. Here the file is a ring, and the socket's books are asked: `pipe/file_ring.rs`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use model::{Wait, ZeroCopy};
use payload::Producer;
use rustix::event::PollFlags;
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use super::evidence::{but_copied, judge};
use super::pipe::file_ring::{FileLayout, FileRing};
use super::pipe::page_ring::Lengths;
use super::pipe::vmsplice::Content;
use super::pipe::{WAIT_OPTION, wait_of};
use super::sockets::{BUFFER_LIMITS, SNDBUF_OPTION, set_buffers};
use crate::descriptor::Descriptor;
use crate::fd::{FdReceiver, FdWait};
use crate::loops::{Direction, one_way};
use crate::{Channel, Granted, Mechanism, OpenError, Request};
use crate::{Options, Sender};

pub(crate) struct Sendfile;

impl Mechanism for Sendfile {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "sendfile",
            summary: "a file's pages to a Unix socket, by reference; copied once, by the receiver",
            options: &[SNDBUF_OPTION, WAIT_OPTION],
            limits: BUFFER_LIMITS,
            man_pages: &["sendfile(2)", "memfd_create(2)", "unix(7)"],
            more_specs: &["sendfile", "sendfile:sndbuf=1MiB"],
            ..Descriptor::STREAM
        }
    }

    fn wait(&self, options: &Options) -> Wait {
        wait_of(options).unwrap_or(Wait::Block)
    }

    fn zero_copy(&self, _options: &Options) -> Option<ZeroCopy> {
        let evidence = judge("a page changed after sendfile(2) to a Unix socket", page_is_passed());
        Some(but_copied(evidence, 1, "read(2) copies out of the socket"))
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let request = &Request { wait: wait_of(request.options).unwrap_or(request.wait), ..*request };
        let wait = FdWait::of(request);
        one_way(request, || {
            let (near, far) = unix_pair(request)?;
            let (sndbuf, mut granted) = buffers(&near, &far)?;
            wait.apply(&near)?;
            let lengths = if request.relays == 0 { Lengths::Even } else { Lengths::Uneven };
            let layout = FileLayout::new(request.block_bytes, sndbuf, lengths);
            granted.insert("ring_bytes".to_owned(), layout.bytes() as u64);
            let sender = SendfileSender {
                outlet: Outlet { socket: Some(near), wait, syscalls: 0 },
                layout,
                ring: None,
                content: Content::of(request),
            };
            Ok(Direction { sender, receiver: FdReceiver::new(far, wait)?, granted })
        })
    }
}

/// A connected pair of Unix stream sockets with the buffers the options ask for.
pub(super) fn unix_pair(request: &Request<'_>) -> Result<(OwnedFd, OwnedFd), OpenError> {
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(OpenError::system("socketpair(AF_UNIX, SOCK_STREAM)"))?;
    set_buffers(request, &near)?;
    Ok((near, far))
}

/// What the kernel gave: the sender's buffer, and all of it for the record.
pub(super) fn buffers(near: &OwnedFd, far: &OwnedFd) -> Result<(usize, Granted), OpenError> {
    let sndbuf =
        sockopt::socket_send_buffer_size(near).map_err(OpenError::system("getsockopt(SO_SNDBUF)"))?;
    let rcvbuf = sockopt::socket_recv_buffer_size(far).map_err(OpenError::system("getsockopt(SO_RCVBUF)"))?;
    let granted = [("sndbuf_bytes", sndbuf), ("rcvbuf_bytes", rcvbuf)];
    Ok((sndbuf, granted.map(|(name, size)| (name.to_owned(), size as u64)).into()))
}

/// The sending end of a socket, fed from a file.
struct SendfileSender {
    outlet: Outlet,
    layout: FileLayout,
    ring: Option<FileRing>,
    content: Content,
}

/// The socket.
struct Outlet {
    socket: Option<OwnedFd>,
    wait: FdWait,
    syscalls: u64,
}

impl Outlet {
    /// Room for the next block.
    #[inline]
    fn room<'a>(&self, ring: &'a mut FileRing, len: usize) -> io::Result<&'a mut [u8]> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        ring.next(socket.as_fd(), len)
    }

    /// Hands over the ring's block, all of it.
    #[inline]
    fn hand_over(&mut self, ring: &mut FileRing, len: usize) -> io::Result<()> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let (file, mut offset) = ring.file();
        let mut left = len;
        while left > 0 {
            self.syscalls += 1;
            match sendfile(socket, file, Some(&mut offset), left) {
                // The end of the file, which is longer than that.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => left -= sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(socket, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
        ring.handed_over(len);
        Ok(())
    }
}

impl Sender for SendfileSender {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring = Some(FileRing::new(self.layout)?);
        Ok(())
    }

    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let ring = self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        self.outlet.room(ring, block.len())?.copy_from_slice(block);
        self.outlet.hand_over(ring, block.len())
    }

    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        let ring = self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let len = producer.block_bytes();
        match self.content {
            Content::Produced => producer.fill(self.outlet.room(ring, len)?),
            Content::Constant { written: true } => {}
            Content::Constant { written: false } => {
                self.content = Content::Constant { written: true };
                return self.send(producer.next_block());
            }
            Content::Copied => return self.send(producer.next_block()),
        }
        self.outlet.hand_over(ring, len)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.outlet.socket = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.outlet.syscalls + self.ring.as_ref().map_or(0, FileRing::syscalls))
    }
}

/// Sends a page of a file, changes the file, and reads the socket: whether the reader sees the change.
fn page_is_passed() -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let page_bytes = rustix::param::page_size();
    let mut ring = FileRing::new(FileLayout::new(page_bytes, page_bytes, Lengths::Even))?;
    ring.next(near.as_fd(), page_bytes)?.fill(b'b');
    let (file, offset) = ring.file();
    sendfile(&near, file, Some(&mut offset.clone()), page_bytes)?;
    rustix::io::pwrite(file, &vec![b'a'; page_bytes], offset)?;
    let mut read = [0u8; 64];
    let len = rustix::io::read(&far, &mut read)?;
    Ok(len > 0 && read[..len].iter().all(|byte| *byte == b'a'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_pages_go_by_reference() {
        assert_eq!(page_is_passed().ok(), Some(true));
    }
}
