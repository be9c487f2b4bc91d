//! Blocks of many senders, or for many receivers, on one channel. Each begins with its sender's number and its own, and these determine its bytes: so the
//! receiver sees whether a block came in one piece or was mixed with another one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, Tile};

/// Bytes at the beginning of a block: the sender's number (4) and the block's (8), both little-endian.
pub const TAG_BYTES: usize = 12;

/// Where the bytes behind the tag lie in the tile. Senders begin at different places, so that equal numbers do not mean equal bytes.
fn phase(tile: &Tile, sender: u32, sequence: u64, block_bytes: usize) -> usize {
    /// A prime: any two of a thousand senders are apart.
    const APART: u64 = 7919;
    let body = (block_bytes - TAG_BYTES) as u64;
    tile.phase(sequence.wrapping_mul(body).wrapping_add(u64::from(sender) * APART))
}

/// Makes the blocks of one sender.
pub struct Tagger {
    tile: Arc<Tile>,
    sender: u32,
    sequence: u64,
    block: Block,
}

impl Tagger {
    /// Blocks have at least [`TAG_BYTES`].
    pub fn new(tile: Arc<Tile>, sender: u32, block_bytes: usize) -> Self {
        Self { tile, sender, sequence: 0, block: Block::new(block_bytes.max(TAG_BYTES)) }
    }

    /// The sender's next block.
    pub fn next_block(&mut self) -> &[u8] {
        let phase = phase(&self.tile, self.sender, self.sequence, self.block.len());
        let (tag, body) = self.block.split_at_mut(TAG_BYTES);
        tag[..4].copy_from_slice(&self.sender.to_le_bytes());
        tag[4..].copy_from_slice(&self.sequence.to_le_bytes());
        self.tile.copy_from(phase, body);
        self.sequence += 1;
        &self.block
    }
}

/// What one task sent to, or received as one of, several receivers that compete for blocks. The sums of all receivers are the sender's
/// if no byte was lost, repeated or changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pieces {
    /// Blocks that were sent, or received in one piece.
    pub whole_blocks: u64,
    /// All bytes, added up.
    pub byte_sum: u64,
}

impl Pieces {
    /// Adds what was sent or received in one call.
    pub fn add(&mut self, piece: &[u8], is_whole: bool) {
        self.whole_blocks += u64::from(is_whole);
        self.byte_sum += sum(piece);
    }
}

/// Checks every block that arrives, and counts those that did not come in one piece.
pub struct Sorter {
    tile: Arc<Tile>,
    block_bytes: usize,
    /// The number that each sender's next block has at least.
    next: Vec<u64>,
    torn: u64,
    /// The bytes of torn blocks, added up: they must be those of the blocks that did not arrive whole, in any order.
    torn_sum: u64,
    missing_sum: u64,
}

impl Sorter {
    pub fn new(tile: Arc<Tile>, senders: u32, block_bytes: usize) -> Self {
        Self { tile, block_bytes, next: vec![0; senders as usize], torn: 0, torn_sum: 0, missing_sum: 0 }
    }

    /// Takes as many bytes as a block has, as they arrived.
    pub fn take(&mut self, block: &[u8]) {
        match self.whole(block) {
            Some((sender, sequence)) => {
                self.skip(sender, sequence);
                self.next[sender as usize] = sequence + 1;
            }
            None => {
                self.torn += 1;
                self.torn_sum += sum(block);
            }
        }
    }

    /// Whether what one of several receivers got in one call is a block: the blocks between are other receivers', and the rest of a
    /// piece may be another's.
    pub fn is_block(&mut self, piece: &[u8]) -> bool {
        let found = self.whole(piece).filter(|_| piece.len() == self.block_bytes);
        if let Some((sender, sequence)) = found {
            self.next[sender as usize] = sequence + 1;
        }
        found.is_some()
    }

    /// The sender and the number of a block that came in one piece, and is not earlier than one that came.
    fn whole(&self, block: &[u8]) -> Option<(u32, u64)> {
        let (tag, body) = block.split_at_checked(TAG_BYTES)?;
        let sender = u32::from_le_bytes(*tag.first_chunk()?);
        let sequence = u64::from_le_bytes(*tag.last_chunk()?);
        let is_due = *self.next.get(sender as usize)? <= sequence;
        let phase = phase(&self.tile, sender, sequence, self.block_bytes);
        (is_due && self.tile.first_difference(phase, body).is_none()).then_some((sender, sequence))
    }

    /// Adds up the blocks of a sender that should have come before this one. There are no more of them than are torn already, or
    /// bytes were lost.
    fn skip(&mut self, sender: u32, until: u64) {
        let first = self.next[sender as usize];
        let until = until.min(first.saturating_add(self.torn));
        if first < until {
            let mut tagger =
                Tagger { sequence: first, ..Tagger::new(self.tile.clone(), sender, self.block_bytes) };
            self.missing_sum += (first..until).map(|_| sum(tagger.next_block())).sum::<u64>();
        }
    }

    /// How many blocks arrived in pieces, after each sender has sent `blocks_of_each`; `None` where bytes were lost, repeated or changed.
    pub fn torn(mut self, blocks_of_each: u64) -> Option<u64> {
        for sender in 0..self.next.len() as u32 {
            self.skip(sender, blocks_of_each);
        }
        (self.missing_sum == self.torn_sum).then_some(self.torn)
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;
    use model::PayloadKind;
    use proptest::prelude::*;

    const BLOCK: usize = 100;

    fn tile() -> Arc<Tile> {
        Arc::new(Tile::make(&PayloadKind::Random, 1, Period::Bench).expect("no file involved"))
    }

    /// So many blocks of two senders, taking turns.
    fn stream(blocks: u64) -> Vec<Vec<u8>> {
        let mut taggers: Vec<Tagger> = (0..2).map(|sender| Tagger::new(tile(), sender, BLOCK)).collect();
        (0..2 * blocks).map(|at| taggers[at as usize % 2].next_block().to_vec()).collect()
    }

    fn torn(bytes: &[u8], blocks: u64) -> Option<u64> {
        let mut sorter = Sorter::new(tile(), 2, BLOCK);
        bytes.chunks_exact(BLOCK).for_each(|block| sorter.take(block));
        sorter.torn(blocks)
    }

    #[test]
    fn whole_blocks_torn_blocks_and_lost_bytes() {
        let blocks = stream(4);
        assert_eq!(torn(&blocks.concat(), 4), Some(0));
        // The second block in the midst of the first.
        let [first, second] = [&blocks[0], &blocks[1]];
        let mixed = [&first[..60], second, &first[60..], &blocks[2..].concat()].concat();
        assert_eq!(torn(&mixed, 4), Some(2));
        let mut changed = mixed.clone();
        changed[30] ^= 1;
        assert_eq!(torn(&changed, 4), None);
        let mut repeated = blocks.clone();
        repeated[2] = repeated[0].clone();
        assert_eq!(torn(&repeated.concat(), 4), None, "one came twice and another not at all");
    }

    #[test]
    fn of_competing_receivers_each_knows_a_whole_block() {
        let mut tagger = Tagger::new(tile(), 0, BLOCK);
        let blocks: Vec<Vec<u8>> = (0..4).map(|_| tagger.next_block().to_vec()).collect();
        let mut sent = Pieces::default();
        blocks.iter().for_each(|block| sent.add(block, true));
        let received = |pieces: &[&[u8]]| {
            let (mut sorter, mut found) = (Sorter::new(tile(), 1, BLOCK), Pieces::default());
            for piece in pieces {
                let is_block = sorter.is_block(piece);
                found.add(piece, is_block);
            }
            (found.whole_blocks, found.byte_sum)
        };
        let (one, other) = (received(&[&blocks[0], &blocks[3]]), received(&[&blocks[1], &blocks[2]]));
        assert_eq!((one.0 + other.0, one.1 + other.1), (sent.whole_blocks, sent.byte_sum));
        let (one, other) = (
            received(&[&blocks[0], &blocks[2][..60]]),
            received(&[&blocks[1], &blocks[2][60..], &blocks[3]]),
        );
        assert_eq!(
            (one.0 + other.0, one.1 + other.1),
            (3, sent.byte_sum),
            "one was divided, and no byte was lost"
        );
        assert_eq!(received(&[&blocks[1], &blocks[1]]).0, 1, "the same block does not come twice");
        assert_eq!(received(&[&blocks[1][..BLOCK - 1]]).0, 0, "not all of it");
    }

    proptest! {
        #[test]
        fn bytes_in_any_order_of_writers_are_all_there(cuts in prop::collection::vec((0usize..2, 1usize..150), 1..60)) {
            // Each writer's bytes in their order, in pieces that take turns as drawn.
            let blocks = stream(5);
            let whole: Vec<Vec<u8>> = (0..2).map(|sender| blocks.iter().skip(sender).step_by(2).flatten().copied().collect()).collect();
            let mut left = [&whole[0][..], &whole[1][..]];
            let mut mixed = Vec::new();
            for (sender, len) in cuts.into_iter().chain([(0, 1000), (1, 1000)]) {
                let (piece, rest) = left[sender].split_at(len.min(left[sender].len()));
                mixed.extend_from_slice(piece);
                left[sender] = rest;
            }
            prop_assert!(torn(&mixed, 5).is_some());
        }
    }
}
