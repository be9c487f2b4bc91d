//! Memory whose pages are handed to a pipe by reference, and written again only after they have left the pipe.
//!
//! vmsplice(2) has no completion: no call reports when the reader has read a page. It follows from the size of the pipe. A pipe of
//! S slots holds at most S pages, one in each slot, first in, first out. A slot is free again only after read(2) has copied
//! its page (pipe_read in fs/pipe.c releases the page after the copy, under the pipe's lock) or splice(2) has dropped it.
//! So when the pipe has taken S more pages after a page, that page has left it. The ring below is so long that this is true
//! whenever a page is written again. The same is true of several pipes in a row, with S the sum of their slots, because
//! pages pass in order.
//!
//! It is not true of a reader that passes the pages on with splice(2) or tee(2): it may keep pages that are in none of these pipes. The
//! mechanisms here have no such reader. [`check_one_page_per_slot`] checks that a slot holds one page.
#![allow(unsafe_code)]

use rustix::param::page_size;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_getpipe_size, pipe_with, vmsplice};

use crate::prelude::*;

/// Size of a huge page. vmsplice(2) looks pages up 16 at a time; in a huge page that is one lookup, and throughput was 50 % higher
/// when measured.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The smallest unit, in bytes: a cache line and the adjacent line that the CPU prefetches with it.
const UNIT_BYTES_MIN: usize = 128;

/// The layout of blocks in the ring: each block begins at a unit, and each of its units takes one slot of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    unit_bytes: usize,
    units: usize,
}

/// Whether blocks are all of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lengths {
    /// Every block is as long as the first.
    Equal,
    /// Any length up to a block: a relay sends the bytes of each read.
    Any,
}

impl Lengths {
    /// The lengths that the senders of this request send.
    pub(crate) fn for_request(request: &Request<'_>) -> Self {
        if request.relays == 0 { Self::Equal } else { Self::Any }
    }
}

impl Layout {
    /// A layout with enough units: none is written again before the pipes, which have `slots` slots together, have taken
    /// `slots` later units.
    pub(crate) fn new(block_bytes: usize, slots: usize, page_bytes: usize, lengths: Lengths) -> Self {
        // A unit whose size is a power of two up to a page lies in one page, so it takes one slot.
        let unit_bytes = block_bytes.next_power_of_two().clamp(UNIT_BYTES_MIN, page_bytes);
        let block_units = block_bytes.div_ceil(unit_bytes);
        let units = match lengths {
            // Between two uses of a block all other blocks of the ring are used: at least `slots` units.
            Lengths::Equal => (slots.div_ceil(block_units) + 1) * block_units,
            // At the end of the ring fewer units than a block has may stay unused, and a unit may be the last of its block in
            // one round and the first in the next.
            Lengths::Any => slots + 2 * block_units,
        };
        Self { unit_bytes, units }
    }

    /// A layout for one block of constant content, which may be sent again at once.
    pub(crate) fn constant(block_bytes: usize, page_bytes: usize) -> Self {
        Self::new(block_bytes, 0, page_bytes, Lengths::Equal)
    }

    /// Size of the ring in memory, in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.unit_bytes * self.units
    }
}

/// The memory, and the position of the next block.
pub(crate) struct PageRing {
    memory: SharedMemory,
    layout: Layout,
    next_unit: usize,
    /// Where the last block begins, in bytes.
    offset: usize,
}

impl PageRing {
    /// Maps the memory, at least a huge page. Call it in the task that sends, so that the pages are in its page table.
    pub(crate) fn new(layout: Layout) -> io::Result<Self> {
        let memory = SharedMemory::new(layout.bytes().max(HUGE_PAGE_BYTES))?;
        Ok(Self { memory, layout, next_unit: 0, offset: 0 })
    }

    /// The memory of the next block. The caller writes all of it and then passes it to [`refer`].
    #[inline]
    pub(crate) fn next(&mut self, len: usize) -> &mut [u8] {
        let Layout { unit_bytes, units } = self.layout;
        let wanted = len.div_ceil(unit_bytes);
        let first = if self.next_unit + wanted <= units { self.next_unit } else { 0 };
        self.next_unit = first + wanted;
        self.offset = first * unit_bytes;
        assert!(self.offset + len <= self.memory.len(), "a block longer than the ring was made for");
        // SAFETY: the range is inside the mapping (see the assertion) and borrowed from `self`, so no other reference to it
        // exists; and no pipe refers to it any more (see the top of this file).
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr().add(self.offset), len) }
    }

    /// The first `len` bytes of the last block, or of the ring if there was no block yet.
    #[inline]
    pub(crate) fn block(&self, len: usize) -> &[u8] {
        assert!(self.offset + len <= self.memory.len(), "a block longer than the ring was made for");
        // SAFETY: inside the mapping, and borrowed from `self`; only `self` writes it.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(self.offset), len) }
    }
}

/// Hands bytes of a [`PageRing`] to a pipe by reference; returns how many it took.
#[inline]
pub(crate) fn refer(pipe: impl AsFd, block: &[u8], flags: SpliceFlags) -> rustix::io::Result<usize> {
    // SAFETY: a ring's bytes are not written again before they have left the pipe (see the top of this file). The
    // descriptor is a pipe's write end: the bytes are only read.
    unsafe { vmsplice(pipe, &[IoSliceRaw::from_slice(block)], flags) }
}

/// Checks that vmsplice(2) may be called: a filter of system calls, such as a container's, can forbid it.
pub(crate) fn check_vmsplice() -> Result<(), OpenError> {
    model::vmsplice_refusal().map_or(Ok(()), |refusal| Err(OpenError::forbidden("vmsplice", &refusal)))
}

/// Checks that a slot of this kernel's pipes takes one page, which the safety of the ring requires: a pipe of S slots must
/// take at most S pages if more are offered.
pub(crate) fn check_one_page_per_slot() -> Result<(), OpenError> {
    let (_reader, writer) = pipe_with(PipeFlags::CLOEXEC).in_call("pipe2")?;
    let holds = fcntl_getpipe_size(&writer).in_call("fcntl(F_GETPIPE_SZ)")?;
    let layout = Layout::new(4 * holds, 0, page_size(), Lengths::Equal);
    let offer = PageRing::new(layout).in_call("mmap")?;
    let taken = refer(&writer, offer.block(4 * holds), SpliceFlags::NONBLOCK);
    if taken.in_call("vmsplice")? <= holds {
        return Ok(());
    }
    Err(OpenError::unsupported(
        "this kernel's pipes hold more than one page in a slot: it is unknown when a page may be written again",
        "--data none, or send=write",
    ))
}

/// Sends a page into a pipe by reference, lets `transfer` move it from there to the descriptor that it returns, changes the
/// page, and reads it. Returns whether the reader sees the change. For experiments only: a payload must never change so.
pub(crate) fn page_is_passed<F: AsFd>(
    transfer: impl FnOnce(BorrowedFd<'_>, usize) -> io::Result<F>,
) -> io::Result<bool> {
    const BEFORE: u8 = b'b';
    const AFTER: u8 = b'a';
    let page_bytes = page_size();
    let mut ring = PageRing::new(Layout::constant(page_bytes, page_bytes))?;
    ring.next(page_bytes).fill(BEFORE);
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    refer(&writer, ring.block(page_bytes), SpliceFlags::NONBLOCK)?;
    let end = transfer(reader.as_fd(), page_bytes)?;
    // The pipe still holds the page. That is sound: the kernel has no Rust reference, and only reads bytes.
    ring.next(page_bytes).fill(AFTER);
    let mut read = [0u8; 64];
    let len = rustix::io::read(end, &mut read)?;
    Ok(len > 0 && read[..len].iter().all(|byte| *byte == AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks a ring and asserts that no unit is used again before `slots` more were taken.
    fn walk(layout: Layout, slots: usize, lengths: impl Iterator<Item = usize>) {
        let mut last_slot: Vec<Option<usize>> = vec![None; layout.units];
        let (mut next_unit, mut taken) = (0, 0);
        for len in lengths {
            let wanted = len.div_ceil(layout.unit_bytes);
            let first = if next_unit + wanted <= layout.units { next_unit } else { 0 };
            next_unit = first + wanted;
            for unit in &last_slot[first..next_unit] {
                assert!(unit.is_none_or(|slot| taken - slot > slots), "{layout:?}, {slots} slots");
            }
            for unit in &mut last_slot[first..next_unit] {
                *unit = Some(taken);
                taken += 1;
            }
        }
    }

    #[test]
    fn a_unit_is_used_again_only_after_as_many_slots_as_the_pipe_has() {
        // Lengths without a pattern: a multiplicative generator (Lehmer's), whose quality matters little here.
        let mut state = 48_271u64;
        let mut some_length = |most: usize| {
            state = state * 48_271 % 0x7fff_ffff;
            1 + state as usize % most
        };
        for slots in [1, 2, 16, 17, 256] {
            for block in [1, 100, 128, 129, 4095, 4096, 4097, 65_536, 65_537, 300_000, 3 << 20] {
                walk(Layout::new(block, slots, 4096, Lengths::Equal), slots, std::iter::repeat_n(block, 600));
                let uneven = std::iter::repeat_with(|| some_length(block)).take(2_000);
                walk(Layout::new(block, slots, 4096, Lengths::Any), slots, uneven);
            }
        }
    }

    #[test]
    fn small_blocks_never_lie_across_pages() {
        for block in [1, 100, 128, 129, 4095, 4096] {
            let layout = Layout::new(block, 16, 4096, Lengths::Equal);
            assert!(4096usize.is_multiple_of(layout.unit_bytes) && layout.unit_bytes >= block, "{layout:?}");
        }
    }

    /// Fills a pipe from a ring, produces the next block without sending it, and then reads. Returns whether the pipe's blocks
    /// are as they were sent.
    fn survives(ring_slots: usize) -> bool {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("pipe");
        let page_bytes = page_size();
        let slots = fcntl_getpipe_size(&writer).expect("size") / page_bytes;
        let mut ring =
            PageRing::new(Layout::new(page_bytes, ring_slots, page_bytes, Lengths::Equal)).expect("memory");
        for block in 0..slots {
            let room = ring.next(page_bytes);
            room.fill(block as u8);
            assert_eq!(refer(&writer, room, SpliceFlags::NONBLOCK), Ok(page_bytes));
        }
        ring.next(page_bytes).fill(0xFF);
        let mut page = vec![0; page_bytes];
        (0..slots).all(|block| {
            rustix::io::read(&reader, &mut page[..]).expect("a full pipe");
            page.iter().all(|byte| *byte == block as u8)
        })
    }

    #[test]
    fn the_blocks_in_a_full_pipe_do_not_change_while_the_next_block_is_produced() {
        // A test of `model` says so.
        if model::vmsplice_refusal().is_some() {
            return;
        }
        assert!(survives(16), "a pipe has 16 slots by itself");
        // The test can fail: a ring one slot too short overwrites the oldest block in the pipe.
        assert!(!survives(14));
    }

    #[test]
    fn a_slot_of_this_kernel_takes_one_page() {
        // A test of `model` says so.
        if model::vmsplice_refusal().is_some() {
            return;
        }
        check_one_page_per_slot().expect("fs/splice.c, iter_to_pipe");
    }
}
