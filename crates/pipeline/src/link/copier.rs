//! Copies bytes through the memory of this process, and counts their lines, if that is wanted, before the next stage can read them. It uses
//! read(2) and write(2): a terminal has no pages to be moved, and each piece that splice(2) moves takes a whole page of a pipe, so a pipe of
//! short lines would be full much sooner.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use payload::Block;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read, write};

use super::lines::Lines;
use super::relay::{On, Pass, Source};

pub(super) struct Copier {
    /// In non-blocking mode.
    pub(super) input: OwnedFd,
    lines: Arc<Lines>,
    pub(super) room: Block,
    /// The part of `room` that was not written yet.
    waiting: Range<usize>,
}

impl Copier {
    /// Reads at most this many bytes at once.
    pub(super) fn new(input: OwnedFd, lines: Arc<Lines>, room_bytes: usize) -> io::Result<Self> {
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        Ok(Self { input, lines, room: Block::new(room_bytes), waiting: 0..0 })
    }
}

impl Source for Copier {
    fn pass(&mut self, end: &OwnedFd) -> io::Result<Pass> {
        if self.waiting.is_empty() {
            match read(&self.input, &mut self.room[..]) {
                Ok(0) => return Ok(Pass::End),
                Ok(taken) => {
                    self.lines.count(&self.room[..taken]);
                    self.waiting = 0..taken;
                }
                Err(Errno::AGAIN) => return Ok(Pass::Blocked(On::Bytes)),
                Err(Errno::INTR) => return Ok(Pass::Moved(0)),
                Err(error) => return Err(error.into()),
            }
        }
        match write(end, &self.room[self.waiting.clone()]) {
            Ok(moved) => {
                self.waiting.start += moved;
                Ok(Pass::Moved(moved as u64))
            }
            Err(Errno::AGAIN) => Ok(Pass::Blocked(On::Room)),
            Err(Errno::INTR) => Ok(Pass::Moved(0)),
            Err(error) => Err(error.into()),
        }
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.input.as_fd())
    }
}
