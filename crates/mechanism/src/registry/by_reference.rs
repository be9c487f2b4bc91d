//! A sender whose blocks are pages that the kernel takes by reference: what the ways by vmsplice(2), sendfile(2) and
//! splice(2) share.

use super::pipe::file_ring::{FileLayout, FileRing};
use crate::prelude::*;

/// What the sender does with its memory before it hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Written once, with the first block.
    Constant {
        /// Whether that was done.
        written: bool,
    },
    /// Copied there block by block, since it lies elsewhere (a relay).
    Copied,
    /// Produced where it lies.
    Produced,
}

impl Content {
    /// What the request asks for.
    pub(super) fn for_request(request: &Request<'_>) -> Self {
        match (request.data, request.relays) {
            (DataLevel::None, 0) => Self::Constant { written: false },
            (DataLevel::None, _) => Self::Copied,
            _ => Self::Produced,
        }
    }
}

/// Memory that is written in turn, and a way to hand it to the kernel.
pub(super) trait Pages: End {
    /// Room for the next block, once what lay there was read.
    fn room(&mut self, len: usize) -> io::Result<&mut [u8]>;

    /// Hands over the block that room was made for last, all of it.
    fn hand_over(&mut self, len: usize) -> io::Result<()>;

    /// Says that no more comes.
    fn close(&mut self) -> io::Result<()>;
}

/// A sender to a socket that takes a file's pages by reference, too.
pub(super) trait FileSender: Sender {
    /// The socket, which the pages stay with until its other end has read them.
    fn socket(&self) -> io::Result<&OwnedFd>;

    /// Sends the first `len` bytes of the block that the ring made room for last.
    fn send_pages(&mut self, ring: &FileRing, len: usize) -> io::Result<()>;
}

/// The pages of a file, for such a sender.
pub(super) struct FilePages<S> {
    sender: S,
    layout: FileLayout,
    /// Made by the task that sends.
    ring: Option<FileRing>,
}

impl<S> FilePages<S> {
    pub(super) fn new(sender: S, layout: FileLayout) -> Self {
        Self { sender, layout, ring: None }
    }
}

impl<S: FileSender> End for FilePages<S> {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring = Some(FileRing::new(self.layout)?);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.sender.syscalls()? + self.ring.as_ref().map_or(0, FileRing::syscalls))
    }
}

impl<S: FileSender> Pages for FilePages<S> {
    #[inline]
    fn room(&mut self, len: usize) -> io::Result<&mut [u8]> {
        let ring = self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        ring.next(self.sender.socket()?.as_fd(), len)
    }

    #[inline]
    fn hand_over(&mut self, len: usize) -> io::Result<()> {
        let ring = self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        self.sender.send_pages(ring, len)?;
        ring.handed_over(len);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.sender.finish()
    }
}

/// Produces blocks in such memory and hands them over.
pub(super) struct PageSender<P> {
    pub(super) pages: P,
    pub(super) content: Content,
}

impl<P: Pages> End for PageSender<P> {
    fn prepare(&mut self) -> io::Result<()> {
        self.pages.prepare()
    }

    fn syscalls(&self) -> Option<u64> {
        self.pages.syscalls()
    }
}

impl<P: Pages> Sender for PageSender<P> {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.pages.room(block.len())?.copy_from_slice(block);
        self.pages.hand_over(block.len())
    }

    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        let len = producer.block_bytes();
        match self.content {
            Content::Produced => producer.fill(self.pages.room(len)?),
            Content::Constant { written: true } => {}
            Content::Constant { written: false } => {
                self.content = Content::Constant { written: true };
                self.pages.room(len)?.copy_from_slice(producer.next_block());
            }
            Content::Copied => self.pages.room(len)?.copy_from_slice(producer.next_block()),
        }
        self.pages.hand_over(len)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.pages.close()
    }
}
