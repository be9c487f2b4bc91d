//! The sender's side of the payload.

use std::sync::Arc;

use model::DataLevel;

use crate::{Block, BlockTotals, Buffering, Tagger, Tile};

/// Gives the sender its blocks: new ones at the levels `write` and `verify`, the same ones each time at `none`.
pub struct Producer {
    tile: Arc<Tile>,
    phase: usize,
    /// The buffer of one block, or of many that are produced together.
    blocks: Block,
    block_bytes: usize,
    /// Bytes of `blocks` that were handed out.
    handed_out: usize,
    fresh: bool,
    /// Makes the blocks, if they have tags; `blocks` is empty then.
    tagger: Option<Tagger>,
}

impl Producer {
    /// A producer of blocks of `block_bytes`, beginning at the payload's first byte.
    pub fn new(tile: Arc<Tile>, level: DataLevel, block_bytes: usize, buffering: Buffering) -> Self {
        let mut blocks = buffering.make(block_bytes);
        tile.copy_from(0, &mut blocks);
        let (handed_out, fresh) = (blocks.len(), level != DataLevel::None);
        Self { tile, phase: 0, blocks, block_bytes, handed_out, fresh, tagger: None }
    }

    /// A producer of blocks with tags, which are handed out one by one.
    pub fn tagged(tagger: Tagger, tile: Arc<Tile>, block_bytes: usize) -> Self {
        let blocks = Buffering::default().make(0);
        let tagger = Some(tagger);
        Self { tile, phase: 0, blocks, block_bytes, handed_out: 0, fresh: true, tagger }
    }

    /// Whether the blocks have tags: then only [`Self::next_block`] makes them.
    pub fn is_tagged(&self) -> bool {
        self.tagger.is_some()
    }

    /// The totals of the blocks that were made for several receivers.
    pub fn totals(&self) -> Option<BlockTotals> {
        self.tagger.as_ref()?.totals
    }

    /// The next block of the stream.
    #[inline]
    pub fn next_block(&mut self) -> &[u8] {
        self.next_blocks(1)
    }

    /// The next blocks of the stream that are produced already, at least one and at most `most`.
    #[inline]
    pub fn next_blocks(&mut self, most: usize) -> &[u8] {
        let end = most * self.block_bytes;
        if !self.fresh {
            return &self.blocks[..end.min(self.blocks.len())];
        }
        if self.handed_out == self.blocks.len() {
            if self.tagger.is_some() {
                return self.next_tagged_block();
            }
            self.phase = self.tile.copy_from(self.phase, &mut self.blocks);
            self.handed_out = 0;
        }
        let from = self.handed_out;
        self.handed_out = (from + end).min(self.blocks.len());
        &self.blocks[from..self.handed_out]
    }

    /// Not inlined, so that the loops of blocks without tags stay small.
    #[cold]
    #[inline(never)]
    fn next_tagged_block(&mut self) -> &[u8] {
        self.tagger.as_mut().map_or(&[], Tagger::next_block)
    }

    /// Writes the next bytes of the stream into `slot`, memory of a mechanism; at level `none` writes nothing. A sender uses either only
    /// this or only [`Self::next_block`].
    #[inline]
    pub fn fill(&mut self, slot: &mut [u8]) {
        if self.fresh {
            self.phase = self.tile.copy_from(self.phase, slot);
        }
    }

    /// Bytes in a block.
    #[inline]
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;
    use model::PayloadKind;

    #[test]
    fn levels_differ_in_what_is_produced() {
        let mut untouched = producer(DataLevel::None, 1000, Buffering::default());
        assert_eq!(untouched.next_block().to_vec(), untouched.next_block().to_vec());
        let mut written = producer(DataLevel::Write, 1000, Buffering::default());
        assert_ne!(written.next_block().to_vec(), written.next_block().to_vec());
    }

    #[test]
    fn blocks_made_ahead_are_those_made_one_by_one() {
        let tile = Arc::new(Tile::make(&PayloadKind::Random, 1, Period::Bench).expect("no file involved"));
        for block_bytes in [1, 3, 4096, 5000] {
            let made = |buffering| Producer::new(tile.clone(), DataLevel::Verify, block_bytes, buffering);
            let (mut one_by_one, mut ahead) = (made(Buffering::default()), made(AHEAD));
            for _ in 0..40_000 / block_bytes {
                assert_eq!(ahead.next_block(), one_by_one.next_block(), "{block_bytes}");
            }
        }
    }

    const AHEAD: Buffering = Buffering { batches: true, offset: 0 };

    fn producer(level: DataLevel, block_bytes: usize, buffering: Buffering) -> Producer {
        let tile = Arc::new(Tile::make(&PayloadKind::Sequence, 1, Period::Bench).expect("no file involved"));
        Producer::new(tile, level, block_bytes, buffering)
    }

    #[test]
    fn a_buffer_begins_at_its_offset_with_the_payloads_bytes() {
        for offset in [0, 16, 4095] {
            for block_bytes in [1000, 5000] {
                let mut one = producer(DataLevel::None, block_bytes, Buffering { offset, batches: false });
                assert_eq!((one.next_block().as_ptr() as usize % 4096, one.next_block()[3]), (offset, 3));
                let mut ahead = producer(DataLevel::Write, block_bytes, Buffering { offset, ..AHEAD });
                assert_eq!(
                    (ahead.next_block().as_ptr() as usize % 4096, ahead.next_block().len()),
                    (offset, block_bytes)
                );
            }
        }
    }

    #[test]
    fn only_small_blocks_are_made_ahead() {
        for (block_bytes, made) in [(1000, 16_000), (4096, 16_384), (4097, 4097), (20_000, 20_000)] {
            let mut ahead = producer(DataLevel::Write, block_bytes, AHEAD);
            assert_eq!((ahead.next_blocks(100).len(), ahead.block_bytes()), (made, block_bytes));
        }
    }

    #[test]
    fn memory_of_a_mechanism_is_filled_with_the_next_bytes() {
        let mut slot = [9; 3];
        producer(DataLevel::None, 3, Buffering::default()).fill(&mut slot);
        assert_eq!(slot, [9; 3]);
        let mut written = producer(DataLevel::Write, 3, Buffering::default());
        for expected in [[0, 1, 2], [3, 4, 5]] {
            written.fill(&mut slot);
            assert_eq!(slot, expected);
        }
    }
}
