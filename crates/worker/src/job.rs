//! What a worker is asked to move.

use std::time::Duration;

/// What any program may take to start and to end, on a machine that does other things too.
const START_MAX: Duration = Duration::from_secs(60);

/// The slowest that a worker is waited for, in nanoseconds: for a byte, and for a block.
const BYTE_MAX_NS: u64 = 100;
const BLOCK_MAX_NS: u64 = 200_000;

/// One job of docs/WORKERS.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// Bytes of the timed stream.
    pub bytes: u64,
    /// Bytes handed over in one call, at least 1.
    pub block_bytes: u64,
    /// Bytes sent before the clock.
    pub warmup_bytes: u64,
}

impl Job {
    /// Every byte of the stream, the warm-up's included.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.warmup_bytes)
    }

    /// XOR of every byte of the stream: the byte at position i is i mod 256, and 256 of them cancel out.
    pub fn xor(&self) -> u8 {
        (0..self.total_bytes() % 256).fold(0, |sum, byte| sum ^ byte as u8)
    }

    /// A time limit that no sound worker meets: a minute for the start, then 10 MB/s, or 5000 blocks a second.
    pub fn limit(&self) -> Duration {
        let blocks = self.total_bytes() / self.block_bytes.max(1) + 2;
        let ns = self.total_bytes().saturating_mul(BYTE_MAX_NS).max(blocks.saturating_mul(BLOCK_MAX_NS));
        START_MAX + Duration::from_nanos(ns)
    }

    /// The arguments that follow the role, the path of the result file apart.
    pub(crate) fn arguments(&self) -> [String; 3] {
        [self.bytes, self.block_bytes, self.warmup_bytes].map(|number| number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_xor_is_that_of_the_sequence() {
        for total in [0u64, 1, 2, 255, 256, 257, 1000, 65537] {
            let one_by_one = (0..total).fold(0u8, |sum, position| sum ^ (position % 256) as u8);
            for warmup_bytes in [0, total / 3] {
                let job = Job { bytes: total - warmup_bytes, block_bytes: 7, warmup_bytes };
                assert_eq!(job.xor(), one_by_one, "{job:?}");
            }
        }
    }
}
