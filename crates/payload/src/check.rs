//! What the receiver computes over every byte, and what it must come to.

use std::hash::Hasher;

use model::Check;
use twox_hash::XxHash3_64;

use crate::Tile;
use crate::xor::xor;

/// A running checksum over a stream, independent of how the stream is cut into chunks.
pub enum Checker {
    /// See [`Check::Xxh3`].
    Xxh3(Box<XxHash3_64>),
    /// See [`Check::Xor`].
    Xor(u8),
}

impl Checker {
    /// A checksum over nothing yet.
    pub fn new(check: Check) -> Self {
        match check {
            Check::Xxh3 => Self::Xxh3(Box::new(XxHash3_64::new())),
            Check::Xor => Self::Xor(0),
        }
    }

    /// Takes the next bytes of the stream in.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Xxh3(hasher) => hasher.write(bytes),
            Self::Xor(sum) => *sum ^= xor(bytes),
        }
    }

    /// The checksum so far, in hexadecimal.
    pub fn hex(&self) -> String {
        match self {
            Self::Xxh3(hasher) => format!("{:016x}", hasher.finish()),
            Self::Xor(sum) => format!("{sum:02x}"),
        }
    }
}

/// What the checksum of the first `bytes` bytes of a payload must be; `None` where `stop` asked to end first (a
/// trial of terabytes takes its time here too).
pub fn expected_checksum(tile: &Tile, check: Check, bytes: u64, stop: &dyn Fn() -> bool) -> Option<String> {
    let mut checker = Checker::new(check);
    let bytes = match check {
        Check::Xxh3 => bytes,
        // Two periods cancel out.
        Check::Xor => bytes % (2 * tile.period() as u64),
    };
    for piece in tile.pieces(bytes) {
        if stop() {
            return None;
        }
        checker.update(piece);
    }
    Some(checker.hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Period;
    use model::PayloadKind;

    #[test]
    fn known_values() {
        let tile = Tile::make(&PayloadKind::Sequence, 0, Period::Bench).expect("no file involved");
        let expected = |check, bytes| expected_checksum(&tile, check, bytes, &|| false);
        assert_eq!(expected(Check::Xxh3, 0).as_deref(), Some("2d06800538d394c2"), "XXH3-64 of nothing");
        assert_eq!(expected(Check::Xor, 256).as_deref(), Some("00"));
        assert_eq!(expected(Check::Xor, 3).as_deref(), Some("03"));
        assert_eq!(expected_checksum(&tile, Check::Xor, 3, &|| true), None, "asked to stop");
    }

    #[test]
    fn the_xor_of_many_periods_is_that_of_what_does_not_cancel_out() {
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
    fn a_swap_is_seen_by_xxh3_and_not_by_xor() {
        let sum = |check, parts: [&[u8]; 2]| {
            let mut checker = Checker::new(check);
            parts.iter().for_each(|part| checker.update(part));
            checker.hex()
        };
        assert_ne!(sum(Check::Xxh3, [b"ab", b"cd"]), sum(Check::Xxh3, [b"cd", b"ab"]));
        assert_eq!(sum(Check::Xor, [b"ab", b"cd"]), sum(Check::Xor, [b"cd", b"ab"]));
    }
}
