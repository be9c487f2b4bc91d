//! A sender whose blocks are pages that the kernel takes by reference: the common code of vmsplice(2), sendfile(2) and
//! splice(2).

use super::pipe::file_ring::{FileLayout, FileRing};
use crate::prelude::*;

/// How the sender fills its memory before it hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Written once, with the first block.
    Constant {
        /// Whether the first block was written.
        written: bool,
    },
    /// Each block is copied into it from another buffer (a relay).
    Copied,
    /// Each block is produced in it.
    Produced,
}

impl Content {
    /// The content for the request's data level and relays.
    pub(super) fn for_request(request: &Request<'_>) -> Self {
        match (request.data, request.relays) {
            (DataLevel::None, 0) => Self::Constant { written: false },
            (DataLevel::None, _) => Self::Copied,
            _ => Self::Produced,
        }
    }
}

/// A ring of memory, and a way to hand its pages to the kernel.
pub(super) trait Pages: End {
    /// Room for the next block. Waits until the block that was there before has been read.
    fn room(&mut self, len: usize) -> io::Result<&mut [u8]>;

    /// Hands over all `len` bytes of the block for which [`Pages::room`] was called last.
    fn hand_over(&mut self, len: usize) -> io::Result<()>;

    /// Ends the stream.
    fn close(&mut self) -> io::Result<()>;
}

/// A sender to a socket that can also send a file's pages by reference.
pub(super) trait FileSender: Sender {
    /// The socket. It refers to the pages until its other end has read them.
    fn socket(&self) -> io::Result<&OwnedFd>;

    /// Sends the first `len` bytes of the ring's last block.
    fn send_pages(&mut self, ring: &FileRing, len: usize) -> io::Result<()>;
}

/// The pages of a file, sent by a [`FileSender`].
pub(super) struct FilePages<S> {
    sender: S,
    layout: FileLayout,
    /// Made in the task that sends; `None` before.
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

/// Produces blocks in the memory of [`Pages`] and hands them over.
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
