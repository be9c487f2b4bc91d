//! A file in the page cache whose pages are handed to a Unix socket by reference, and written again only after the
//! other end has read them.
//!
//! sendfile(2) and splice(2) report when the socket has taken the pages, not when they were read. SIOCOUTQ reports that:
//! bytes queued on a Unix socket stay charged to its sender until the receiver has copied them and releases the buffer
//! (unix_stream_read_generic in net/unix/af_unix.c). SIOCOUTQ returns this charge in bytes, which is at least the number
//! of unread bytes: a buffer that is half read still counts as a whole. So at least `handed_over - SIOCOUTQ` bytes have
//! been read, and a chunk whose last byte is among them may be written again. SIOCOUTQ is called only if the last result
//! does not suffice, once in several blocks.
//!
//! This is not true of TCP, where SIOCOUTQ does not count bytes that the peer's kernel has but its program has not read,
//! nor of a reader that splices the pages on to another descriptor. Neither is used here.
#![allow(unsafe_code)]

use rustix::event::{PollFd, Timespec, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::page_ring::Lengths;
use crate::prelude::*;
use crate::shared::READ_WRITE;

/// Smallest charge of a queued block, in bytes: less than the buffer header that each block has.
const CHARGE_MIN: usize = 512;

/// Pages that a socket may take beyond its send buffer: one buffer of 17 pages (MAX_SKB_FRAGS), and its header.
const OVERSHOOT_PAGES: usize = 18;

/// The smallest chunk, in bytes: a cache line and the adjacent line that the CPU prefetches with it.
const CHUNK_BYTES_MIN: usize = 128;

/// Sleep between two calls of SIOCOUTQ while the other end has not read far enough. That is rare: the ring is longer than the queue.
const RECHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The number of chunks in the ring and their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileLayout {
    chunk_bytes: usize,
    chunks: usize,
}

impl FileLayout {
    /// A ring for blocks of up to `block_bytes` and a socket with this send buffer: long enough that the socket is
    /// full before the ring is.
    pub(crate) fn new(block_bytes: usize, sndbuf_bytes: usize, lengths: Lengths) -> Self {
        let page_bytes = rustix::param::page_size();
        let grain = if block_bytes < page_bytes { CHUNK_BYTES_MIN } else { page_bytes };
        let usual_bytes = match lengths {
            Lengths::Equal => block_bytes,
            Lengths::Any => block_bytes.min(page_bytes),
        };
        let chunks = (sndbuf_bytes + OVERSHOOT_PAGES * page_bytes).div_ceil(usual_bytes.max(CHARGE_MIN)) + 2;
        Self { chunk_bytes: block_bytes.next_multiple_of(grain), chunks }
    }

    /// Bytes of memory this takes.
    pub(crate) fn bytes(self) -> usize {
        self.chunk_bytes * self.chunks
    }
}

/// The mapped file, and how much of it was handed over.
pub(crate) struct FileRing {
    file: OwnedFd,
    memory: SharedMemory,
    chunk_bytes: usize,
    /// For each chunk, the value of `handed_over` after its last byte.
    handed_over_by: Vec<u64>,
    /// The chunk that the last call of [`Self::next`] returned.
    chunk: usize,
    handed_over: u64,
    /// Bytes that the other end has certainly read.
    read: u64,
    syscalls: u64,
}

impl FileRing {
    /// Makes the file and maps it. Call it in the task that sends, so that the pages are in its page table.
    pub(crate) fn new(layout: FileLayout) -> io::Result<Self> {
        let file = memfd_create("hosepipe", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, layout.bytes() as u64)?;
        Ok(Self {
            memory: SharedMemory::of_file(&file, layout.bytes(), READ_WRITE)?,
            file,
            chunk_bytes: layout.chunk_bytes,
            handed_over_by: vec![0; layout.chunks],
            chunk: 0,
            handed_over: 0,
            read: 0,
            syscalls: 0,
        })
    }

    /// Room for the next block. Waits until the other end of `socket` has read the block that was there before.
    #[inline]
    pub(crate) fn next(&mut self, socket: BorrowedFd<'_>, len: usize) -> io::Result<&mut [u8]> {
        let next = if self.chunk + 1 == self.handed_over_by.len() { 0 } else { self.chunk + 1 };
        self.wait_until_read(socket, self.handed_over_by[next])?;
        self.chunk = next;
        assert!(len <= self.chunk_bytes, "a block longer than the ring was made for");
        // SAFETY: the range is inside the mapping (see the assertion) and borrowed from `self`, so no other reference to it
        // exists; and no socket refers to it any more (see the top of this file).
        Ok(unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().add(self.offset()), len) })
    }

    /// The file, and the offset in it of the block that [`Self::next`] made room for.
    pub(crate) fn file(&self) -> (BorrowedFd<'_>, u64) {
        (self.file.as_fd(), self.offset() as u64)
    }

    /// The first `len` bytes of that block, in memory.
    pub(crate) fn block(&self, len: usize) -> &[u8] {
        assert!(len <= self.chunk_bytes, "a block longer than the ring was made for");
        // SAFETY: as in `next`; only `self` writes it.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(self.offset()), len) }
    }

    /// Notes that the socket has taken the block that [`Self::next`] made room for, `len` bytes.
    #[inline]
    pub(crate) fn handed_over(&mut self, len: usize) {
        self.handed_over += len as u64;
        self.handed_over_by[self.chunk] = self.handed_over;
    }

    /// System calls made to find out what was read.
    pub(crate) fn syscalls(&self) -> u64 {
        self.syscalls
    }

    fn offset(&self) -> usize {
        self.chunk * self.chunk_bytes
    }

    #[inline]
    fn wait_until_read(&mut self, socket: BorrowedFd<'_>, upto: u64) -> io::Result<()> {
        while self.read < upto {
            self.syscalls += 1;
            self.read = self.handed_over - unread(socket)?.min(self.handed_over);
            if self.read < upto {
                // Wakes up early only if the other end has closed: then the kernel releases what it had not read.
                self.syscalls += 1;
                poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::empty())], Some(&RECHECK_INTERVAL))?;
            }
        }
        Ok(())
    }
}

/// Upper bound of the bytes that the other end has not read yet (SIOCOUTQ; unix(7) refers to tcp(7)).
fn unread(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, the same number as TIOCOUTQ, writes one int.
    libc_result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) })?;
    Ok(bytes.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn a_block_is_unread_until_its_last_byte_was_read() {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("sockets");
        let mut ring = FileRing::new(FileLayout::new(10_000, 65_536, Lengths::Equal)).expect("memory");
        ring.next(near.as_fd(), 10_000).expect("room").fill(7);
        let (file, mut offset) = ring.file();
        let sent = rustix::fs::sendfile(&near, file, Some(&mut offset), 10_000);
        assert_eq!(sent, Ok(10_000));
        ring.handed_over(10_000);
        assert!(unread(near.as_fd()).expect("SIOCOUTQ") >= 10_000);
        let mut room = [0; 9_999];
        assert_eq!(rustix::io::read(&far, &mut room), Ok(9_999));
        assert!(unread(near.as_fd()).expect("SIOCOUTQ") > 0, "one byte is left");
        assert_eq!(rustix::io::read(&far, &mut room), Ok(1));
        assert_eq!(unread(near.as_fd()).expect("SIOCOUTQ"), 0);
    }
}
