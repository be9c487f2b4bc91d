//! The sender's side of the payload.

use std::sync::Arc;

use model::DataLevel;

use crate::{Block, Tile};

/// Hands the sender its blocks: produced afresh at level `write` and above, the same one again at `none`.
pub struct Producer {
    tile: Arc<Tile>,
    phase: usize,
    block: Block,
    fresh: bool,
}

impl Producer {
    /// A producer of blocks of `block_bytes`, beginning at the payload's first byte.
    pub fn new(tile: Arc<Tile>, level: DataLevel, block_bytes: usize) -> Self {
        let mut block = Block::new(block_bytes);
        tile.copy_from(0, &mut block);
        Self { tile, phase: 0, block, fresh: level != DataLevel::None }
    }

    /// The next block of the stream.
    #[inline]
    pub fn next_block(&mut self) -> &[u8] {
        if self.fresh {
            self.phase = self.tile.copy_from(self.phase, &mut self.block);
        }
        &self.block
    }

    /// Writes the next bytes of the stream where a mechanism wants them (at level `none`: nothing).
    #[inline]
    pub fn fill(&mut self, slot: &mut [u8]) {
        if self.fresh {
            self.phase = self.tile.copy_from(self.phase, slot);
        }
    }

    /// Bytes in a block.
    #[inline]
    pub fn block_bytes(&self) -> usize {
        self.block.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;
    use model::PayloadKind;

    #[test]
    fn levels_differ_in_what_is_produced() {
        let tile = Arc::new(Tile::make(&PayloadKind::Random, 1, Period::Bench).expect("no file involved"));
        let mut untouched = Producer::new(tile.clone(), DataLevel::None, 1000);
        assert_eq!(untouched.next_block().to_vec(), untouched.next_block().to_vec());
        let mut written = Producer::new(tile, DataLevel::Write, 1000);
        assert_ne!(written.next_block().to_vec(), written.next_block().to_vec());
    }
}
