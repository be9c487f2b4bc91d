//! `send=vmsplice`: passes the sender's own pages by reference. `page_ring.rs` explains why that is safe.

use rustix::param::page_size;

use super::super::by_reference::{Content, PageSender, Pages};
use super::page_ring::{Layout, Lengths, PageRing, check_one_page_per_slot, check_vmsplice, refer};
use crate::prelude::*;

/// The writing end of a pipe, and the pages that are passed to it.
pub(super) struct PipePages {
    end: FdEnd,
    layout: Layout,
    ring: Option<PageRing>,
}

impl PipePages {
    /// A sender for a pipe of this size, and the size of its memory for blocks in bytes.
    pub(super) fn sender(
        request: &Request<'_>,
        end: FdEnd,
        pipe_bytes: u64,
    ) -> Result<(PageSender<Self>, u64), OpenError> {
        check_vmsplice()?;
        let (block_bytes, content) = (request.block_bytes, Content::for_request(request));
        let layout = if let Content::Constant { .. } = content {
            Layout::constant(block_bytes, page_size())
        } else {
            check_one_page_per_slot()?;
            let slots = pipe_bytes as usize / page_size();
            Layout::new(block_bytes, slots, page_size(), Lengths::for_request(request))
        };
        Ok((PageSender { pages: Self { end, layout, ring: None }, content }, layout.bytes() as u64))
    }
}

impl End for PipePages {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring = Some(PageRing::new(self.layout)?);
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.end.syscalls)
    }
}

impl Pages for PipePages {
    #[inline]
    fn room(&mut self, len: usize) -> io::Result<&mut [u8]> {
        Ok(self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?.next(len))
    }

    #[inline]
    fn hand_over(&mut self, len: usize) -> io::Result<()> {
        let block = self.ring.as_ref().ok_or(io::ErrorKind::NotConnected)?.block(len);
        let flags = self.end.wait.splice_flags();
        self.end.write_all(len, |fd, left| refer(fd, &block[len - left..], flags))
    }

    fn close(&mut self) -> io::Result<()> {
        self.end.finish()
    }
}
