//! A sender whose blocks are pages that the kernel takes by reference: what the ways by vmsplice(2), sendfile(2) and
//! splice(2) share.

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
    pub(super) fn of(request: &Request<'_>) -> Self {
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
