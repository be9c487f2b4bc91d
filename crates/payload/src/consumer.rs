//! The receiver's side of the payload.

use std::sync::Arc;

use model::{Check, DataLevel};

use crate::{Block, BlockTotals, Buffering, Checker, TagChecker, Tile};

/// Gives the receiver a buffer, and checks every byte at level `verify`.
pub struct Consumer {
    room: Block,
    block_bytes: usize,
    /// Bytes at the beginning of the room that were received and are not checked yet.
    gathered: usize,
    checker: Option<Checker>,
    /// Checks the blocks one by one, if they have tags.
    tags: Option<(TagChecker, BlockTotals)>,
}

impl Consumer {
    /// A consumer of blocks of `block_bytes`. It checks each as it comes, or batches of small ones; [`Self::finish`] checks the last ones.
    pub fn new(
        level: DataLevel,
        check: Check,
        tile: &Arc<Tile>,
        block_bytes: usize,
        buffering: Buffering,
    ) -> Self {
        let checker = (level == DataLevel::Verify).then(|| Checker::new(check, tile));
        Self { room: buffering.make(block_bytes), block_bytes, gathered: 0, checker, tags: None }
    }

    /// A consumer of blocks with tags.
    pub fn tagged(tag_checker: TagChecker, block_bytes: usize, buffering: Buffering) -> Self {
        let tags = Some((tag_checker, BlockTotals::default()));
        Self { room: buffering.make(block_bytes), block_bytes, gathered: 0, checker: None, tags }
    }

    /// Whether the blocks have tags: then [`Self::rest_of_block`] is their buffer, and [`Self::accept_part`] or [`Self::accept_piece`] checks
    /// them.
    pub fn is_tagged(&self) -> bool {
        self.tags.is_some()
    }

    /// The buffer for the rest of a block with a tag.
    pub fn rest_of_block(&mut self) -> &mut [u8] {
        &mut self.room[self.gathered..self.block_bytes]
    }

    /// Records that the only receiver got the first `len` bytes of the rest of a block.
    pub fn accept_part(&mut self, len: usize) {
        self.gathered += len;
        if let (Some((tag_checker, _)), true) = (&mut self.tags, self.gathered == self.block_bytes) {
            tag_checker.check(&self.room[..self.block_bytes]);
            self.gathered = 0;
        }
    }

    /// Records that one of several receivers got the first `len` bytes of the buffer in one call.
    pub fn accept_piece(&mut self, len: usize) {
        if let Some((tag_checker, totals)) = &mut self.tags {
            let is_block = tag_checker.is_block(&self.room[..len]);
            totals.add(&self.room[..len], is_block);
        }
    }

    /// What one of several receivers got; `None` if the blocks have no tags.
    pub fn totals(&self) -> Option<BlockTotals> {
        self.tags.as_ref().map(|(_, totals)| *totals)
    }

    /// As [`TagChecker::torn`]; `None`, too, if the blocks have no tags.
    pub fn torn(&mut self, blocks_of_each: u64) -> Option<u64> {
        self.tags.take()?.0.torn(blocks_of_each)
    }

    /// Whether bytes are checked at all.
    #[inline]
    pub fn checks(&self) -> bool {
        self.checker.is_some()
    }

    /// The buffer for the next block.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.room[self.gathered..self.gathered + self.block_bytes]
    }

    /// A buffer for at most `blocks` blocks, and for at least one.
    #[inline]
    pub fn room_for(&mut self, blocks: usize) -> &mut [u8] {
        let end = (self.gathered + blocks * self.block_bytes).min(self.room.len());
        &mut self.room[self.gathered..end]
    }

    /// Records that the first `len` bytes of the buffer were received.
    #[inline]
    pub fn accept(&mut self, len: usize) {
        if self.checker.is_some() {
            self.gathered += len;
            if self.gathered + self.block_bytes > self.room.len() {
                self.finish();
            }
        }
    }

    /// Checks received bytes that are not in the buffer but in memory of the mechanism.
    #[inline]
    pub fn inspect(&mut self, bytes: &[u8]) {
        if let Some(checker) = &mut self.checker {
            checker.update(bytes);
        }
    }

    /// Checks all that was received.
    pub fn finish(&mut self) {
        if let Some(checker) = &mut self.checker {
            checker.update(&self.room[..self.gathered]);
            self.gathered = 0;
        }
    }

    /// The checksum over all that was checked; `None` below `verify`.
    pub fn checksum(&self) -> Option<String> {
        self.checker.as_ref().map(Checker::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Period, expected_checksum};
    use model::PayloadKind;

    #[test]
    fn gathered_or_not_the_checksum_is_that_of_all_bytes() {
        let tile = Arc::new(Tile::make(&PayloadKind::Random, 1, Period::Bench).expect("no file involved"));
        for (check, block_bytes) in
            Check::ALL.iter().flat_map(|check| [1, 7, 4096, 5000].map(|len| (*check, len)))
        {
            for gathers in [false, true] {
                let buffering = Buffering { batches: gathers, offset: 0 };
                let mut consumer = Consumer::new(DataLevel::Verify, check, &tile, block_bytes, buffering);
                let (mut phase, mut left) = (0, 40_000usize);
                while left > 0 {
                    let len = consumer.room().len().min(left);
                    assert_eq!(consumer.room().len(), block_bytes);
                    phase = tile.copy_from(phase, &mut consumer.room()[..len]);
                    consumer.accept(len);
                    left -= len;
                }
                consumer.finish();
                let expected = expected_checksum(&tile, check, 40_000, &|| false);
                assert_eq!(consumer.checksum(), expected, "{check} {block_bytes} {gathers}");
            }
        }
    }

    fn consumer(level: DataLevel, block_bytes: usize, buffering: Buffering) -> Consumer {
        let tile = Arc::new(Tile::make(&PayloadKind::Random, 1, Period::Bench).expect("no file involved"));
        Consumer::new(level, Check::Xor, &tile, block_bytes, buffering)
    }

    const BATCHES: Buffering = Buffering { batches: true, offset: 0 };

    #[test]
    fn a_buffer_begins_at_its_offset_and_keeps_it() {
        for offset in [0, 16, 4095] {
            let begins = |block_bytes| {
                let buffering = Buffering { offset, ..BATCHES };
                consumer(DataLevel::None, block_bytes, buffering).room().as_ptr() as usize % 4096
            };
            assert_eq!((begins(1000), begins(5000)), (offset, offset));
        }
    }

    #[test]
    fn small_blocks_are_gathered_until_the_room_is_used_up() {
        let mut small = consumer(DataLevel::Verify, 4096, BATCHES);
        assert_eq!(small.room_for(100).len(), 16384);
        for left in [3, 2, 1, 4] {
            small.accept(4096);
            assert_eq!(small.room_for(1).len(), 4096);
            assert_eq!((small.room_for(2).len(), small.room_for(9).len()), (left.min(2) * 4096, left * 4096));
        }
        let mut large = consumer(DataLevel::Verify, 4097, BATCHES);
        assert_eq!((large.room_for(3).len(), large.room().len()), (4097, 4097));
    }

    #[test]
    fn bytes_elsewhere_in_memory_are_checked_too() {
        let mut verifies = consumer(DataLevel::Verify, 1, Buffering::default());
        assert!(verifies.checks());
        verifies.inspect(&[1, 2]);
        verifies.inspect(&[4]);
        assert_eq!(verifies.checksum().as_deref(), Some("07"));
        let mut writes = consumer(DataLevel::Write, 1, Buffering::default());
        writes.inspect(&[1]);
        assert_eq!((writes.checks(), writes.checksum()), (false, None));
    }
}
