//! Exact comparison with a known payload: names the first wrong byte.

use model::PayloadKind;

use crate::{PayloadError, Period, Tile};

/// The first byte that is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// Offset in the stream, from 0.
    pub offset: u64,
    /// What should be there.
    pub expected: u8,
    /// What is there.
    pub found: u8,
}

/// Compares a stream with a payload, in whatever chunks it comes.
pub struct Comparer {
    tile: Tile,
    phase: usize,
    offset: u64,
}

impl Comparer {
    /// Compares from the payload's first byte on.
    pub fn new(tile: Tile) -> Self {
        Self { tile, phase: 0, offset: 0 }
    }

    /// Compares the next bytes of the stream.
    ///
    /// # Errors
    /// The first byte that differs.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), Mismatch> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = self.tile.piece(self.phase);
            let len = piece.len().min(rest.len());
            if piece[..len] != rest[..len] {
                return Err(self.first_difference(&rest[..len]));
            }
            self.phase = self.tile.advance(self.phase, len);
            self.offset += len as u64;
            rest = &rest[len..];
        }
        Ok(())
    }

    fn first_difference(&self, bytes: &[u8]) -> Mismatch {
        let pairs = self.tile.piece(self.phase).iter().zip(bytes);
        let at = pairs.clone().take_while(|(expected, found)| expected == found).count();
        let (expected, found) = pairs.into_iter().nth(at).map_or((0, 0), |(e, f)| (*e, *f));
        Mismatch { offset: self.offset + at as u64, expected, found }
    }
}

/// Finds out which of the named payloads a stream is: all that still fit are kept, the first one leads.
pub struct Detector {
    candidates: Vec<(PayloadKind, Comparer)>,
}

impl Detector {
    /// Starts with every named payload of this seed.
    ///
    /// # Errors
    /// Never for named payloads; the signature is that of [`Tile::make`].
    pub fn new(seed: u64) -> Result<Self, PayloadError> {
        let make = |kind: &PayloadKind| -> Result<_, PayloadError> {
            Ok((kind.clone(), Comparer::new(Tile::make(kind, seed, Period::Filter)?)))
        };
        Ok(Self { candidates: PayloadKind::NAMED.iter().map(make).collect::<Result<_, _>>()? })
    }

    /// Starts with one known payload.
    ///
    /// # Errors
    /// A `file:` payload that cannot be read.
    pub fn only(kind: &PayloadKind, seed: u64) -> Result<Self, PayloadError> {
        let tile = Tile::make(kind, seed, Period::Filter)?;
        Ok(Self { candidates: vec![(kind.clone(), Comparer::new(tile))] })
    }

    /// Compares the next bytes with every payload that still fits.
    ///
    /// # Errors
    /// When the last candidate falls: its first wrong byte. That candidate got furthest, so its offset is
    /// the first byte at which the stream is no known payload any more.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), Mismatch> {
        let mut furthest: Option<(Mismatch, (PayloadKind, Comparer))> = None;
        let mut still = Vec::with_capacity(self.candidates.len());
        for (kind, mut comparer) in self.candidates.drain(..) {
            match comparer.check(bytes) {
                Ok(()) => still.push((kind, comparer)),
                Err(mismatch) if furthest.as_ref().is_none_or(|(best, _)| mismatch.offset > best.offset) => {
                    furthest = Some((mismatch, (kind, comparer)));
                }
                Err(_) => {}
            }
        }
        self.candidates = still;
        match furthest {
            Some((mismatch, candidate)) if self.candidates.is_empty() => {
                self.candidates.push(candidate);
                Err(mismatch)
            }
            _ => Ok(()),
        }
    }

    /// The payload the stream is, as far as it is known (the first that fits).
    pub fn leading(&self) -> Option<&PayloadKind> {
        self.candidates.first().map(|(kind, _)| kind)
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
            let mut detector = Detector::new(3).expect("named");
            assert_eq!(detector.check(&bytes_of(kind, 1000)), Ok(()));
            assert_eq!(detector.leading(), Some(kind));
        }
    }

    #[test]
    fn a_stream_that_is_no_payload_fails_where_it_first_departs() {
        let mut detector = Detector::new(3).expect("named");
        let error = detector.check(&[0, 1, 2, 9]).expect_err("9 is no 3");
        assert_eq!(error, Mismatch { offset: 3, expected: 3, found: 9 });
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
