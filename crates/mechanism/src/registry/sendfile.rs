//! `sendfile`: from a file in the page cache to a socket, sendfile(2), as web servers do. The sender produces its
//! blocks in a memory-mapped file; the socket takes the file's pages by reference; the receiver reads.
//!
//! sendfile(2) does not report when the pages may be written again, and a sender that does not find out overwrites bytes
//! that are not yet read. Here the file is a ring, and SIOCOUTQ tells how much was read: see `pipe/file_ring.rs`.

use rustix::fs::sendfile;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::by_reference::{Content, FilePages, FileSender, PageSender};
use super::evidence::{but_copied, verdict};
use super::pipe::WAIT_OPTION;
use super::pipe::file_ring::{FileLayout, FileRing};
use super::pipe::page_ring::Lengths;
use super::sockets::{BUFFER_LIMITS, SNDBUF_OPTION, rcvbuf_bytes, sndbuf_bytes, unix_pair};
use crate::prelude::*;

pub(super) static SENDFILE: Mechanism = Mechanism {
    name: "sendfile",
    summary: "a file's pages, sent to a Unix socket by reference; copied once, by the receiver",
    options: &[SNDBUF_OPTION, WAIT_OPTION],
    limits: BUFFER_LIMITS,
    man_pages: &["sendfile(2)", "memfd_create(2)", "unix(7)"],
    more_specs: &["sendfile", "sendfile:sndbuf=1MiB"],
    zero_copy,
    ..Mechanism::stream(open_channel)
};

fn zero_copy(_options: &Options) -> Option<ZeroCopy> {
    let evidence = verdict("a page was changed after sendfile(2) to a Unix socket", page_is_passed());
    Some(but_copied(evidence, 1, "read(2) copies out of the socket"))
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let wait = FdWait::for_request(request);
    one_way(request, || {
        let (near, far) = unix_pair(request.options, SocketType::STREAM)?;
        let (sndbuf, rcvbuf) = (sndbuf_bytes(&near)?, rcvbuf_bytes(&far)?);
        let layout = FileLayout::new(request.block_bytes, sndbuf as usize, Lengths::for_request(request));
        let pages = FilePages::new(FdEnd::new(near, wait)?, layout);
        let sender = PageSender { pages, content: Content::for_request(request) };
        Ok(Direction::new(sender, FdEnd::new(far, wait)?).granted([
            ("sndbuf_bytes", sndbuf),
            ("rcvbuf_bytes", rcvbuf),
            ("ring_bytes", layout.bytes() as u64),
        ]))
    })
}

impl FileSender for FdEnd {
    fn socket(&self) -> io::Result<&OwnedFd> {
        self.fd()
    }

    #[inline]
    fn send_pages(&mut self, ring: &FileRing, len: usize) -> io::Result<()> {
        let (file, mut offset) = ring.file();
        self.write_all(len, |socket, left| sendfile(socket, file, Some(&mut offset), left))
    }
}

/// Sends a page of a file, changes the file, and reads the socket. Returns whether the reader sees the change.
fn page_is_passed() -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let page_bytes = rustix::param::page_size();
    let mut ring = FileRing::new(FileLayout::new(page_bytes, page_bytes, Lengths::Equal))?;
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
