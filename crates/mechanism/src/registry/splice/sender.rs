//! The sender: a pipe of its own, filled and spliced onwards.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use payload::Producer;
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;

use super::super::pipe::file_ring::{FileLayout, FileRing};
use super::super::pipe::page_ring::refer;
use super::super::pipe::vmsplice::Content;
use super::onward::Onward;
use crate::Sender;

/// Where the sender's bytes come from.
pub(super) enum Source {
    /// Copied into the pipe by write(2).
    Written,
    /// The pages of a file, by vmsplice(2) from where it is mapped.
    Pages { layout: FileLayout, ring: Option<FileRing>, content: Content },
}

/// A sender with a pipe of its own, always emptied before it is filled again.
pub(super) struct SpliceSender {
    pub(super) source: Source,
    pub(super) write_end: OwnedFd,
    pub(super) onward: Onward,
}

impl SpliceSender {
    /// Fills the pipe with as much as it takes, empties it onwards, and so on to the last byte.
    #[inline]
    fn pass(
        onward: &mut Onward,
        block: &[u8],
        fill: impl Fn(&[u8]) -> rustix::io::Result<usize>,
    ) -> io::Result<()> {
        let mut rest = block;
        while !rest.is_empty() {
            onward.syscalls += 1;
            match fill(rest) {
                Ok(taken) => {
                    onward.all(taken)?;
                    rest = &rest[taken..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn peer(onward: &Onward) -> io::Result<BorrowedFd<'_>> {
        Ok(onward.to.as_ref().ok_or(io::ErrorKind::NotConnected)?.as_fd())
    }

    /// Hands over the ring's block.
    #[inline]
    fn refer_block(&mut self, len: usize) -> io::Result<()> {
        let Source::Pages { ring: Some(ring), .. } = &mut self.source else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let pipe = &self.write_end;
        Self::pass(&mut self.onward, ring.block(len), |rest| refer(pipe, rest, SpliceFlags::NONBLOCK))?;
        ring.handed_over(len);
        Ok(())
    }
}

impl Sender for SpliceSender {
    fn prepare(&mut self) -> io::Result<()> {
        if let Source::Pages { layout, ring, .. } = &mut self.source {
            *ring = Some(FileRing::new(*layout)?);
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let pipe = &self.write_end;
        match &mut self.source {
            Source::Pages { ring: Some(ring), .. } => {
                ring.next(Self::peer(&self.onward)?, block.len())?.copy_from_slice(block);
                self.refer_block(block.len())
            }
            _ => Self::pass(&mut self.onward, block, |rest| rustix::io::write(pipe, rest)),
        }
    }

    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        let Source::Pages { ring: Some(ring), content, .. } = &mut self.source else {
            return self.send(producer.next_block());
        };
        let len = producer.block_bytes();
        match content {
            Content::Produced => {
                producer.fill(ring.next(Self::peer(&self.onward)?, len)?);
                self.refer_block(len)
            }
            Content::Constant { written: true } => self.refer_block(len),
            Content::Constant { written } => {
                *written = true;
                self.send(producer.next_block())
            }
            Content::Copied => self.send(producer.next_block()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.onward.to = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        let asked = match &self.source {
            Source::Pages { ring: Some(ring), .. } => ring.syscalls(),
            _ => 0,
        };
        Some(self.onward.syscalls + asked)
    }
}
