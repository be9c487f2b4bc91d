//! Exact comparison with a known payload: names the first wrong byte.

use std::sync::Arc;

use model::PayloadKind;
use serde::Serialize;

use crate::{PayloadError, Period, Tile};

/// The first byte that is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// Offset in the stream, from 0.
    pub offset: u64,
    /// What should be there.
    pub expected: u8,
    /// What is there.
    pub found: u8,
}

/// Compares a stream with a payload; the stream may be passed in chunks of any size.
pub struct Comparer {
    tile: Arc<Tile>,
    offset: u64,
}

impl Comparer {
    /// Compares from the payload's first byte on.
    pub fn new(tile: impl Into<Arc<Tile>>) -> Self {
        Self { tile: tile.into(), offset: 0 }
    }

    /// Compares the next bytes of the stream.
    ///
    /// # Errors
    /// The first byte that differs.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), Mismatch> {
        match self.tile.first_difference(self.tile.phase(self.offset), bytes) {
            None => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Some((at, expected)) => {
                Err(Mismatch { offset: self.offset + at as u64, expected, found: bytes[at] })
            }
        }
    }
}

/// Finds out which of the named payloads a stream is. The tile of a candidate (megabytes for the random ones) is made only when
/// all candidates before it differ from the stream. The bytes of the stream up to then are not kept: the candidate is compared with
/// the tile of the leader, which had the same bytes.
pub struct Detector {
    /// The candidate that agrees with the stream so far.
    leader: (PayloadKind, Comparer),
    waiting: std::vec::IntoIter<PayloadKind>,
    seed: u64,
}

impl Detector {
    /// The candidates are `only` one payload, or else all named payloads with this seed, those with short tiles first.
    ///
    /// # Errors
    /// A `file:` payload that cannot be read.
    pub fn new(only: Option<&PayloadKind>, seed: u64) -> Result<Self, PayloadError> {
        let mut waiting = only.map_or_else(|| PayloadKind::NAMED.to_vec(), |kind| vec![kind.clone()]);
        model::sort_by_key(&mut waiting, |kind| matches!(kind, PayloadKind::Printable | PayloadKind::Random));
        let first = waiting.remove(0);
        let comparer = Comparer::new(Tile::make(&first, seed, Period::Filter)?);
        Ok(Self { leader: (first, comparer), waiting: waiting.into_iter(), seed })
    }

    /// Compares the next bytes with the leader, or finds another candidate that agrees with the stream.
    ///
    /// # Errors
    /// No candidate agrees any more: the first wrong byte of the candidate with the longest agreement. From that offset on the
    /// stream is no known payload. Do not call this method again after an error.
    #[inline]
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), Mismatch> {
        let seen = self.leader.1.offset;
        self.leader.1.check(bytes).or_else(|mismatch| self.replace_leader(seen, bytes, mismatch))
    }

    /// Finds a waiting candidate that agrees with the `seen` bytes before `bytes`, which are those of the leader, and with `bytes`.
    #[cold]
    fn replace_leader(&mut self, seen: u64, bytes: &[u8], mut furthest: Mismatch) -> Result<(), Mismatch> {
        for kind in self.waiting.by_ref() {
            let Ok(tile) = Tile::make(&kind, self.seed, Period::Filter) else { continue };
            let mut candidate = Comparer::new(tile);
            // Up to `seen` the stream had the leader's bytes.
            let earlier = self.leader.1.tile.pieces(seen).try_for_each(|piece| candidate.check(piece));
            match earlier.and_then(|()| candidate.check(bytes)) {
                Ok(()) => {
                    self.leader = (kind, candidate);
                    return Ok(());
                }
                Err(mismatch) if mismatch.offset > furthest.offset => {
                    furthest = mismatch;
                    self.leader = (kind, candidate);
                }
                Err(_) => {}
            }
        }
        Err(furthest)
    }

    /// The payload that agrees with the stream so far; after an error, the one with the longest agreement.
    pub fn leading(&self) -> &PayloadKind {
        &self.leader.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(kind: &PayloadKind, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        Tile::make(kind, 3, Period::Filter).expect("no file involved").copy_from(0, &mut bytes);
        bytes
    }

    #[test]
    fn every_named_payload_is_recognised() {
        for kind in PayloadKind::NAMED {
            let mut detector = Detector::new(None, 3).expect("named");
            assert_eq!(detector.check(&bytes_of(kind, 1000)), Ok(()));
            assert_eq!(detector.leading(), kind);
        }
    }

    #[test]
    fn the_error_of_a_stream_that_is_no_payload_has_the_first_wrong_byte() {
        let mut detector = Detector::new(None, 3).expect("named");
        let error = detector.check(&[0, 1, 2, 9]).expect_err("9 is no 3");
        assert_eq!(error, Mismatch { offset: 3, expected: 3, found: 9 });
    }

    #[test]
    fn a_payload_that_differs_late_from_another_one_is_found() {
        let printable = bytes_of(&PayloadKind::Printable, 40_000);
        let mut detector = Detector::new(None, 3).expect("named");
        // A leader that agrees with the stream up to byte 30,000.
        let tile = Tile::make(&PayloadKind::Printable, 3, Period::Filter).expect("named");
        detector.leader = (PayloadKind::Zero, Comparer::new(tile));
        assert_eq!(detector.check(&printable[..30_000]), Ok(()));
        let mismatch = Mismatch { offset: 30_000, expected: 0, found: printable[30_000] };
        assert_eq!(detector.replace_leader(30_000, &printable[30_000..], mismatch), Ok(()));
        assert_eq!(detector.leading(), &PayloadKind::Printable);
    }

    #[test]
    fn the_error_is_that_of_the_longest_agreement() {
        let mut changed = bytes_of(&PayloadKind::Printable, 2000);
        changed[1500] ^= 0x80;
        let mut detector = Detector::new(None, 3).expect("named");
        let error = detector.check(&changed).expect_err("no ASCII");
        assert_eq!((error.offset, error.expected), (1500, changed[1500] ^ 0x80));
        assert_eq!(detector.leading(), &PayloadKind::Printable);
    }

    #[test]
    fn of_payloads_that_agree_equally_long_the_first_is_named() {
        let first_bytes: Vec<u8> = PayloadKind::NAMED.iter().map(|kind| bytes_of(kind, 1)[0]).collect();
        let other = (0..=255).find(|byte| !first_bytes.contains(byte)).expect("four bytes of 256");
        let mut detector = Detector::new(None, 3).expect("named");
        assert_eq!(detector.check(&[other]), Err(Mismatch { offset: 0, expected: 0, found: other }));
        assert_eq!(detector.leading(), &PayloadKind::Sequence);
    }

    proptest! {
        #[test]
        fn the_first_wrong_byte_is_named(len in 1usize..200_000, at in 0usize..200_000, chunk in 1usize..70_000) {
            let at = at % len;
            let mut bytes = bytes_of(&PayloadKind::Random, len);
            bytes[at] ^= 0x40;
            let mut comparer = Comparer::new(Tile::make(&PayloadKind::Random, 3, Period::Filter).expect("named"));
            let error = bytes.chunks(chunk).find_map(|part| comparer.check(part).err());
            prop_assert_eq!(error.map(|e| e.offset), Some(at as u64));
        }
    }
}
