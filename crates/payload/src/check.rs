//! The check that the receiver computes over all bytes, and its expected result.

use std::hash::Hasher;
use std::sync::Arc;

use model::Check;
use twox_hash::XxHash3_64;

use crate::xor::xor;
use crate::{Comparer, Mismatch, Tile};

/// The result of a comparison without a mismatch.
const EQUAL: &str = "equal";

/// A running check of a stream; its result does not depend on the sizes of the chunks.
pub enum Checker {
    /// See [`Check::Xxh3`].
    Xxh3(Box<XxHash3_64>),
    /// See [`Check::Xor`].
    Xor(u8),
    /// See [`Check::Compare`].
    Compare(Comparer, Option<Mismatch>),
}

impl Checker {
    /// A new check of a stream that should be the payload of this tile.
    pub fn new(check: Check, tile: &Arc<Tile>) -> Self {
        match check {
            Check::Xxh3 => Self::xxh3(),
            Check::Xor => Self::Xor(0),
            Check::Compare => Self::Compare(Comparer::new(tile.clone()), None),
        }
    }

    /// A new check that hashes a stream; it needs no payload.
    pub fn xxh3() -> Self {
        Self::Xxh3(Box::new(XxHash3_64::new()))
    }

    /// Adds the next bytes of the stream.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Xxh3(hasher) => hasher.write(bytes),
            Self::Xor(sum) => *sum ^= xor(bytes),
            Self::Compare(comparer, mismatch @ None) => *mismatch = comparer.check(bytes).err(),
            Self::Compare(_, Some(_)) => {}
        }
    }

    /// The checksum so far, in hexadecimal; for a comparison its result.
    pub fn text(&self) -> String {
        match self {
            Self::Xxh3(hasher) => format!("{:016x}", hasher.finish()),
            Self::Xor(sum) => format!("{sum:02x}"),
            Self::Compare(_, None) => EQUAL.to_owned(),
            Self::Compare(_, Some(Mismatch { offset, expected, found })) => {
                format!("{found:02x} instead of {expected:02x} at byte {offset}")
            }
        }
    }
}

/// The expected checksum of the first `bytes` bytes of a payload; `None` if `stop` returned true before it was computed, which
/// takes long for terabytes.
pub fn expected_checksum(tile: &Tile, check: Check, bytes: u64, stop: &dyn Fn() -> bool) -> Option<String> {
    let (mut checker, bytes) = match check {
        Check::Xxh3 => (Checker::xxh3(), bytes),
        // Two periods cancel out.
        Check::Xor => (Checker::Xor(0), bytes % (2 * tile.period() as u64)),
        Check::Compare => return Some(EQUAL.to_owned()),
    };
    for piece in tile.pieces(bytes) {
        if stop() {
            return None;
        }
        checker.update(piece);
    }
    Some(checker.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;
    use model::PayloadKind;

    fn sequence() -> Arc<Tile> {
        Arc::new(Tile::make(&PayloadKind::Sequence, 0, Period::Bench).expect("no file involved"))
    }

    #[test]
    fn known_values() {
        let tile = sequence();
        let expected = |check, bytes| expected_checksum(&tile, check, bytes, &|| false);
        assert_eq!(expected(Check::Xxh3, 0).as_deref(), Some("2d06800538d394c2"), "XXH3-64 of nothing");
        assert_eq!(expected(Check::Xor, 256).as_deref(), Some("00"));
        assert_eq!(expected(Check::Xor, 3).as_deref(), Some("03"));
        assert_eq!(expected_checksum(&tile, Check::Xor, 3, &|| true), None, "asked to stop");
    }

    #[test]
    fn the_xor_of_many_periods_is_that_of_the_last_bytes() {
        let mut file = tempfile::NamedTempFile::new().expect("temp file");
        std::io::Write::write_all(&mut file, b"abc").expect("write");
        let tile = Tile::make(&PayloadKind::File(file.path().into()), 0, Period::Bench).expect("readable");
        for bytes in 0..20u64 {
            let xor = (0..bytes).fold(0, |sum, at| sum ^ b"abc"[at as usize % 3]);
            let expected = expected_checksum(&tile, Check::Xor, bytes, &|| false);
            assert_eq!(expected, Some(format!("{xor:02x}")), "{bytes} bytes");
        }
    }

    #[test]
    fn all_checks_except_xor_find_swapped_bytes() {
        let tile = sequence();
        let of_tile = |order: [u8; 4]| {
            let mut checker = Checker::new(Check::Compare, &tile);
            order.iter().for_each(|byte| checker.update(&[*byte]));
            checker.text()
        };
        assert_eq!(of_tile([0, 1, 2, 3]), EQUAL);
        assert_eq!(of_tile([0, 2, 1, 3]), "02 instead of 01 at byte 1");
        let sum = |check, parts: [&[u8]; 2]| {
            let mut checker = Checker::new(check, &tile);
            parts.iter().for_each(|part| checker.update(part));
            checker.text()
        };
        assert_ne!(sum(Check::Xxh3, [b"ab", b"cd"]), sum(Check::Xxh3, [b"cd", b"ab"]));
        assert_eq!(sum(Check::Xor, [b"ab", b"cd"]), sum(Check::Xor, [b"cd", b"ab"]));
    }

    #[test]
    fn the_xor_of_exabytes_reads_at_most_two_periods() {
        let pieces = std::cell::Cell::new(0);
        let stop = || pieces.replace(pieces.get() + 1) > 9;
        assert_eq!(expected_checksum(&sequence(), Check::Xor, (1 << 62) + 3, &stop).as_deref(), Some("03"));
    }
}
