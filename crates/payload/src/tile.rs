//! The tile: the bytes that a payload repeats.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use model::{Check, PayloadKind, describe_errno};
use thiserror::Error;

/// Bytes of a tile after the end of its period, which repeat its beginning. So a block of up to this size is one copy from any
/// phase; larger blocks take several copies.
const LAP_BYTES: usize = 64 << 10;

/// Bytes of one comparison. If the period is short, the comparisons read little more than this of a tile, so that the expected
/// bytes stay in the core's L1 cache.
const STRIDE_BYTES: usize = 8 << 10;

/// Most bytes that are read of a `file:PATH` payload: the memory of the ends must stay small.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// How long a random payload is before it repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    /// 2^17 - 1 bytes: small enough for a core's own cache, and prime, so that successive blocks differ
    /// whatever their size and a lost, repeated or swapped block changes what follows.
    Bench,
    /// 2^13 - 1 bytes, prime as well: for a comparison byte by byte the payload and the received bytes fit into the core's L1 cache.
    Compared,
    /// 16 MiB: whole pages for vmsplice(2), and long enough that a filter downstream sees little repetition.
    Filter,
}

impl Period {
    /// The period of a measured stream that is checked in this way.
    pub fn of_check(check: Check) -> Self {
        if check == Check::Compare { Self::Compared } else { Self::Bench }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Bench => (1 << 17) - 1,
            Self::Compared => (1 << 13) - 1,
            Self::Filter => 16 << 20,
        }
    }
}

/// Why a payload cannot be made.
#[derive(Debug, Error)]
pub enum PayloadError {
    /// The user's file cannot be read.
    #[error("cannot read the payload {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        reason: String,
    },
    /// The user's file is empty.
    #[error("the payload {0} is empty: give a file with at least one byte")]
    Empty(PathBuf),
}

/// One period of a payload and `LAP_BYTES` of the next, so that blocks can be copied in one piece.
pub struct Tile {
    bytes: Vec<u8>,
    period: usize,
}

impl Tile {
    /// Makes the tile of a payload. The same kind, seed and period always give the same bytes.
    ///
    /// # Errors
    /// A `file:` payload that cannot be read or is empty.
    pub fn make(kind: &PayloadKind, seed: u64, period: Period) -> Result<Self, PayloadError> {
        Ok(Self::from_period(match kind {
            PayloadKind::Sequence => (0..=255).collect(),
            PayloadKind::Zero => vec![0],
            PayloadKind::Random => random_bytes(seed, period.bytes()),
            // The 95 printable ASCII characters, space to tilde.
            PayloadKind::Printable => random_bytes(seed, period.bytes())
                .iter()
                .map(|byte| b' ' + (u16::from(*byte) * 95 / 256) as u8)
                .collect(),
            PayloadKind::File(path) => file_bytes(path)?,
        }))
    }

    /// A tile of the given bytes, which must not be empty.
    fn from_period(one_period: Vec<u8>) -> Self {
        let period = one_period.len();
        let mut bytes = one_period;
        bytes.reserve_exact(LAP_BYTES);
        // A short period (256 bytes, 1 byte) is repeated many times, so that a block is still one copy.
        while bytes.len() < period + LAP_BYTES {
            let more = (period + LAP_BYTES - bytes.len()).min(bytes.len());
            bytes.extend_from_within(..more);
        }
        Self { bytes, period }
    }

    /// Bytes until the payload repeats.
    pub fn period(&self) -> usize {
        self.period
    }

    /// The position in the tile of the stream's byte `offset`.
    pub fn phase(&self, offset: u64) -> usize {
        usize::try_from(offset % self.period as u64).unwrap_or(0)
    }

    /// The bytes of the tile from `phase` on; always at least `LAP_BYTES`.
    #[inline]
    pub fn piece(&self, phase: usize) -> &[u8] {
        &self.bytes[phase..]
    }

    /// The phase after `len` more bytes.
    #[inline]
    pub fn advance(&self, phase: usize, len: usize) -> usize {
        // Divides only if the phase wraps: a division for each 1-byte block would take measurable time.
        let next = phase + len;
        if next < self.period { next } else { next % self.period }
    }

    /// The first `bytes` bytes of the stream, in pieces of 64 KiB or more (the last may be shorter).
    pub fn pieces(&self, bytes: u64) -> impl Iterator<Item = &[u8]> {
        let (mut phase, mut left) = (0, bytes);
        std::iter::from_fn(move || {
            let piece = self.piece(phase);
            let len = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            phase = self.advance(phase, len);
            left -= len as u64;
            (len > 0).then(|| &piece[..len])
        })
    }

    /// Compares bytes with those of the stream from `phase` on. Returns the position of the first different one, and the expected byte.
    pub fn first_difference(&self, mut phase: usize, bytes: &[u8]) -> Option<(usize, u8)> {
        for (stride, found) in bytes.chunks(STRIDE_BYTES).enumerate() {
            // A lap is longer than a stride.
            let expected = &self.piece(phase)[..found.len()];
            if expected != found {
                let at = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
                return Some((stride * STRIDE_BYTES + at, expected[at]));
            }
            phase = self.advance(phase, found.len());
        }
        None
    }

    /// Writes the stream's bytes from `phase` on into `out`, and returns the phase after them.
    #[inline]
    pub fn copy_from(&self, mut phase: usize, out: &mut [u8]) -> usize {
        if out.len() <= LAP_BYTES {
            out.copy_from_slice(&self.piece(phase)[..out.len()]);
            return self.advance(phase, out.len());
        }
        let mut done = 0;
        while done < out.len() {
            let piece = self.piece(phase);
            let len = piece.len().min(out.len() - done);
            out[done..done + len].copy_from_slice(&piece[..len]);
            done += len;
            phase = self.advance(phase, len);
        }
        phase
    }
}

fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

fn file_bytes(path: &Path) -> Result<Vec<u8>, PayloadError> {
    let unreadable = |error: std::io::Error| PayloadError::Unreadable {
        path: path.to_owned(),
        reason: describe_errno(&error),
    };
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.is_empty() { Err(PayloadError::Empty(path.to_owned())) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(tile: &Tile, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        tile.copy_from(tile.phase(offset), &mut out);
        out
    }

    #[test]
    fn the_named_payloads_have_their_bytes() {
        let make = |kind| Tile::make(&kind, 7, Period::Bench).expect("no file involved");
        let sequence = stream(&make(PayloadKind::Sequence), 300, 70_000);
        assert!(sequence.iter().enumerate().all(|(i, byte)| *byte == ((300 + i) % 256) as u8));
        assert!(stream(&make(PayloadKind::Zero), 5, 100_000).iter().all(|byte| *byte == 0));
        assert!(stream(&make(PayloadKind::Printable), 0, 100_000).iter().all(|b| (b' '..=b'~').contains(b)));
        let random = make(PayloadKind::Random);
        assert_ne!(stream(&random, 0, 65536), stream(&random, 65536, 65536), "successive blocks differ");
    }

    #[test]
    fn a_compared_payload_is_short_and_successive_blocks_still_differ() {
        assert_eq!(Period::of_check(Check::Xxh3), Period::Bench);
        let period = Period::of_check(Check::Compare);
        let tile = Tile::make(&PayloadKind::Random, 7, period).expect("no file involved");
        assert!(tile.period() + STRIDE_BYTES <= 16 << 10, "half of a first cache of 32 KiB");
        let sent = stream(&tile, 0, 3 * 65536);
        assert_ne!(sent[..65536], sent[65536..131_072]);
        let swapped = [&sent[65536..131_072], &sent[..65536]].concat();
        assert_eq!(tile.first_difference(0, &sent), None);
        assert_eq!(tile.first_difference(0, &swapped).map(|(at, _)| at < 16), Some(true));
    }

    #[test]
    fn a_users_file_is_repeated() {
        let mut file = tempfile::NamedTempFile::new().expect("temp file");
        std::io::Write::write_all(&mut file, b"abc").expect("write");
        let tile = Tile::make(&PayloadKind::File(file.path().into()), 0, Period::Bench).expect("readable");
        assert_eq!(stream(&tile, 1, 5), b"bcabc");
    }

    #[test]
    fn a_missing_or_empty_file_is_an_error() {
        let missing = Tile::make(&PayloadKind::File("/nonexistent/x".into()), 0, Period::Bench);
        assert!(missing.err().is_some_and(|error| error.to_string().contains("ENOENT")));
        let empty = tempfile::NamedTempFile::new().expect("temp file");
        let error = Tile::make(&PayloadKind::File(empty.path().into()), 0, Period::Bench).err();
        assert!(error.is_some_and(|error| error.to_string().contains("is empty")));
    }

    #[test]
    fn a_printable_payload_has_every_printable_character() {
        let tile = Tile::make(&PayloadKind::Printable, 7, Period::Bench).expect("no file involved");
        let found: std::collections::BTreeSet<u8> = stream(&tile, 0, tile.period()).into_iter().collect();
        assert!(found.iter().copied().eq(b' '..=b'~'), "{found:?}");
    }

    #[test]
    fn a_tile_is_one_period_and_a_lap() {
        for (period, repeats) in [(b"abc".to_vec(), 3), (vec![7], 1), (vec![1; 100_000], 100_000)] {
            let tile = Tile::from_period(period);
            assert_eq!((tile.period(), tile.piece(0).len()), (repeats, repeats + LAP_BYTES));
            assert_eq!((tile.advance(repeats - 1, 1), tile.advance(0, repeats + 2)), (0, 2 % repeats));
        }
    }

    proptest! {
        #[test]
        fn chunks_agree_with_the_whole(cuts in prop::collection::vec(0usize..90_000, 1..8), seed: u64) {
            let tile = Tile::make(&PayloadKind::Random, seed, Period::Bench).expect("no file involved");
            let whole = stream(&tile, 0, cuts.iter().sum());
            let mut phase = 0;
            let mut joined = Vec::new();
            for cut in cuts {
                let mut part = vec![0; cut];
                phase = tile.copy_from(phase, &mut part);
                joined.extend(part);
            }
            prop_assert!(joined == whole);
        }
    }
}
