//! `send=vmsplice`: the sender's own pages, by reference. Why that is safe: `page_ring.rs`.

use std::io;
use std::os::fd::OwnedFd;

use model::DataLevel;
use payload::Producer;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::param::page_size;
use rustix::pipe::SpliceFlags;

use super::page_ring::{Layout, Lengths, PageRing, refer, takes_pages};
use super::splice_flags;
use crate::fd::FdWait;
use crate::{OpenError, Request, Sender};

/// What the sender does with its memory before it hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::registry) enum Content {
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
    pub(in crate::registry) fn of(request: &Request<'_>) -> Self {
        match (request.data, request.relays) {
            (DataLevel::None, 0) => Self::Constant { written: false },
            (DataLevel::None, _) => Self::Copied,
            _ => Self::Produced,
        }
    }
}

/// The writing end of a pipe, fed with pages of ours.
pub(in crate::registry) struct VmspliceSender {
    outlet: Outlet,
    layout: Layout,
    ring: Option<PageRing>,
    content: Content,
}

impl VmspliceSender {
    /// Takes a descriptor and puts it in the mode its waiting needs. `slots`: the pages that can be under way
    /// between this end and the reader.
    pub(in crate::registry) fn new(
        request: &Request<'_>,
        fd: OwnedFd,
        wait: FdWait,
        slots: usize,
    ) -> Result<Self, OpenError> {
        wait.apply(&fd)?;
        let block_bytes = request.block_bytes;
        let content = Content::of(request);
        let layout = if let Content::Constant { .. } = content {
            Layout::constant(block_bytes, page_size())
        } else {
            takes_pages()?;
            let lengths = if request.relays == 0 { Lengths::Even } else { Lengths::Uneven };
            Layout::new(block_bytes, slots, page_size(), lengths)
        };
        let outlet = Outlet { fd: Some(fd), wait, flags: splice_flags(wait), syscalls: 0 };
        Ok(Self { outlet, layout, ring: None, content })
    }

    /// Bytes of memory the blocks take.
    pub(in crate::registry) fn ring_bytes(&self) -> u64 {
        self.layout.bytes() as u64
    }
}

impl Sender for VmspliceSender {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring = Some(PageRing::on_huge_pages(self.layout)?);
        Ok(())
    }

    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let ring = self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let chunk = ring.next(block.len());
        chunk.copy_from_slice(block);
        self.outlet.hand_over(chunk)
    }

    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        let ring = self.ring.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        match self.content {
            Content::Produced => {
                let chunk = ring.next(producer.block_bytes());
                producer.fill(chunk);
                self.outlet.hand_over(chunk)
            }
            Content::Constant { written: true } => self.outlet.hand_over(ring.first(producer.block_bytes())),
            Content::Constant { written: false } => {
                self.content = Content::Constant { written: true };
                self.send(producer.next_block())
            }
            Content::Copied => self.send(producer.next_block()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.outlet.fd = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.outlet.syscalls)
    }
}

/// The pipe's write end.
struct Outlet {
    fd: Option<OwnedFd>,
    wait: FdWait,
    flags: SpliceFlags,
    syscalls: u64,
}

impl Outlet {
    /// Hands a whole block over, in as many calls as it takes.
    #[inline]
    fn hand_over(&mut self, block: &[u8]) -> io::Result<()> {
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut rest = block;
        while !rest.is_empty() {
            self.syscalls += 1;
            match refer(fd, rest, self.flags) {
                Ok(taken) => rest = &rest[taken..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.syscalls += self.wait.after_would_block(fd, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
