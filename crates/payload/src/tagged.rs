//! Blocks of many senders, or for many receivers, on one channel. A block begins with a tag: the number of its sender, and its own
//! number. The tag determines the other bytes, so the receiver sees whether a block arrived in one piece or was mixed with another one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, Tile};

/// Size of a tag: the sender's number in 4 bytes, then the block's in 8 bytes, both little-endian.
pub const TAG_BYTES: usize = 12;

/// The position in the tile of the bytes after the tag. Blocks of the same number have different positions if their senders differ.
fn phase(tile: &Tile, sender: u32, sequence: u64, block_bytes: usize) -> usize {
    /// Distance between the positions of two senders: a prime, so that a thousand senders have different positions.
    const SENDER_DISTANCE: u64 = 7919;
    let body = (block_bytes - TAG_BYTES) as u64;
    tile.phase(sequence.wrapping_mul(body).wrapping_add(u64::from(sender) * SENDER_DISTANCE))
}

/// Makes the blocks of one sender.
pub struct Tagger {
    tile: Arc<Tile>,
    sender: u32,
    sequence: u64,
    block: Block,
    /// The totals of its blocks; `None` if they are not added up.
    pub(crate) totals: Option<BlockTotals>,
}

impl Tagger {
    /// Blocks have at least [`TAG_BYTES`].
    pub fn new(tile: Arc<Tile>, sender: u32, block_bytes: usize) -> Self {
        Self { tile, sender, sequence: 0, block: Block::new(block_bytes.max(TAG_BYTES)), totals: None }
    }

    /// The same, with the totals of its blocks added up, for several receivers.
    #[must_use]
    pub fn adding_up(self) -> Self {
        Self { totals: Some(BlockTotals::default()), ..self }
    }

    /// The sender's next block.
    pub fn next_block(&mut self) -> &[u8] {
        let phase = phase(&self.tile, self.sender, self.sequence, self.block.len());
        let (tag, body) = self.block.split_at_mut(TAG_BYTES);
        tag[..4].copy_from_slice(&self.sender.to_le_bytes());
        tag[4..].copy_from_slice(&self.sequence.to_le_bytes());
        self.tile.copy_from(phase, body);
        self.sequence += 1;
        if let Some(totals) = &mut self.totals {
            totals.add(&self.block, true);
        }
        &self.block
    }
}

/// With several receivers that compete for blocks: totals of what the sender sent, or of what one receiver received. The totals of all
/// receivers together are the sender's if no byte was lost, repeated or changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTotals {
    /// Blocks that were sent, or received in one piece.
    pub whole_blocks: u64,
    /// The sum of the values of all bytes.
    pub byte_sum: u64,
}

impl BlockTotals {
    /// Adds what was sent or received in one call.
    pub fn add(&mut self, piece: &[u8], is_whole: bool) {
        self.whole_blocks += u64::from(is_whole);
        self.byte_sum += sum(piece);
    }
}

/// Checks every block that arrives, and counts the torn ones, which did not arrive in one piece.
pub struct TagChecker {
    tile: Arc<Tile>,
    block_bytes: usize,
    /// For each sender, the lowest number that its next block can have.
    next: Vec<u64>,
    torn: u64,
    /// The sum of the bytes of torn blocks. At the end it must equal `missing_sum`.
    torn_sum: u64,
    /// The sum of the bytes of the blocks that were sent and did not arrive whole.
    missing_sum: u64,
}

impl TagChecker {
    pub fn new(tile: Arc<Tile>, senders: u32, block_bytes: usize) -> Self {
        Self { tile, block_bytes, next: vec![0; senders as usize], torn: 0, torn_sum: 0, missing_sum: 0 }
    }

    /// Checks the next bytes that arrived, as many as a block has.
    pub fn check(&mut self, block: &[u8]) {
        match self.identify(block) {
            Some((sender, sequence)) => {
                self.count_missing(sender, sequence);
                self.next[sender as usize] = sequence + 1;
            }
            None => {
                self.torn += 1;
                self.torn_sum += sum(block);
            }
        }
    }

    /// Whether the bytes that one of several receivers got in one call are a whole block. Other receivers may have got the blocks before
    /// it, or the rest of these bytes.
    pub fn is_block(&mut self, piece: &[u8]) -> bool {
        let found = self.identify(piece).filter(|_| piece.len() == self.block_bytes);
        if let Some((sender, sequence)) = found {
            self.next[sender as usize] = sequence + 1;
        }
        found.is_some()
    }

    /// The sender and the number of a block that arrived in one piece and in order; `None` for other bytes.
    fn identify(&self, block: &[u8]) -> Option<(u32, u64)> {
        let (tag, body) = block.split_at_checked(TAG_BYTES)?;
        let sender = u32::from_le_bytes(*tag.first_chunk()?);
        let sequence = u64::from_le_bytes(*tag.last_chunk()?);
        let is_due = *self.next.get(sender as usize)? <= sequence;
        let phase = phase(&self.tile, sender, sequence, self.block_bytes);
        (is_due && self.tile.first_difference(phase, body).is_none()).then_some((sender, sequence))
    }

    /// Adds the blocks of a sender that should have arrived before number `until` to `missing_sum`. At most as many as were torn: if
    /// more are missing, bytes were lost.
    fn count_missing(&mut self, sender: u32, until: u64) {
        let first = self.next[sender as usize];
        let until = until.min(first.saturating_add(self.torn));
        if first < until {
            let mut tagger =
                Tagger { sequence: first, ..Tagger::new(self.tile.clone(), sender, self.block_bytes) };
            self.missing_sum += (first..until).map(|_| sum(tagger.next_block())).sum::<u64>();
        }
    }

    /// The number of torn blocks, after each sender has sent `blocks_of_each`; `None` if bytes were lost, repeated or changed.
    pub fn torn(mut self, blocks_of_each: u64) -> Option<u64> {
        for sender in 0..self.next.len() as u32 {
            self.count_missing(sender, blocks_of_each);
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

    /// `blocks` blocks of each of two senders, in turn.
    fn stream(blocks: u64) -> Vec<Vec<u8>> {
        let mut taggers: Vec<Tagger> = (0..2).map(|sender| Tagger::new(tile(), sender, BLOCK)).collect();
        (0..2 * blocks).map(|at| taggers[at as usize % 2].next_block().to_vec()).collect()
    }

    fn torn(bytes: &[u8], blocks: u64) -> Option<u64> {
        let mut tag_checker = TagChecker::new(tile(), 2, BLOCK);
        bytes.chunks_exact(BLOCK).for_each(|block| tag_checker.check(block));
        tag_checker.torn(blocks)
    }

    #[test]
    fn whole_blocks_torn_blocks_and_lost_bytes() {
        let blocks = stream(4);
        assert_eq!(torn(&blocks.concat(), 4), Some(0));
        // The second block is in the middle of the first one.
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
    fn each_competing_receiver_recognises_whole_blocks() {
        let mut tagger = Tagger::new(tile(), 0, BLOCK);
        let blocks: Vec<Vec<u8>> = (0..4).map(|_| tagger.next_block().to_vec()).collect();
        let mut sent = BlockTotals::default();
        blocks.iter().for_each(|block| sent.add(block, true));
        let received = |pieces: &[&[u8]]| {
            let (mut tag_checker, mut found) = (TagChecker::new(tile(), 1, BLOCK), BlockTotals::default());
            for piece in pieces {
                let is_block = tag_checker.is_block(piece);
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

    /// So that no two blocks near each other have the same bytes after the tag.
    #[test]
    fn a_senders_blocks_are_the_payload_from_its_own_position_on() {
        for (sender, start) in [(0, 0), (1, 7919), (2, 15_838)] {
            let mut tagger = Tagger::new(tile(), sender, BLOCK);
            let bodies: Vec<u8> = (0..3).flat_map(|_| tagger.next_block()[TAG_BYTES..].to_vec()).collect();
            assert_eq!(tile().first_difference(start, &bodies), None, "{sender}");
        }
    }

    #[test]
    fn totals_count_whole_blocks_and_add_up_all_bytes() {
        let mut totals = BlockTotals::default();
        totals.add(&[1, 2, 3], true);
        totals.add(&[200, 100], false);
        assert_eq!(totals, BlockTotals { whole_blocks: 1, byte_sum: 306 });
    }

    proptest! {
        #[test]
        fn mixed_bytes_of_two_writers_are_complete(cuts in prop::collection::vec((0usize..2, 1usize..150), 1..60)) {
            // Each writer's bytes stay in order; pieces of the two writers alternate at random.
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
