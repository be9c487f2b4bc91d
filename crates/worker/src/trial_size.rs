//! How much a trial of a pair of workers moves.

use std::time::Duration;

/// Longest start and end of a program, on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);

/// Longest time that a working program needs for a byte, and for a block.
const BYTE_MAX_NS: u64 = 100;
const BLOCK_MAX_NS: u64 = 200_000;

/// The stream repeats after this many bytes.
const PERIOD: u64 = 256;

/// What a trial moves: the numbers on a worker's command line (docs/WORKERS.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialSize {
    /// Bytes of the timed stream.
    pub bytes: u64,
    /// Bytes handed over in one call, at least 1.
    pub block_bytes: u64,
    /// Bytes sent before the clock starts.
    pub warmup_bytes: u64,
}

impl TrialSize {
    /// Bytes of the stream, including the warm-up.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.warmup_bytes)
    }

    /// XOR of all bytes of the stream. The byte at position i is i mod 256, and the XOR of 256 consecutive bytes is 0.
    pub fn xor(&self) -> u8 {
        (0..self.total_bytes() % PERIOD).fold(0, |sum, byte| sum ^ byte as u8)
    }

    /// The size with up to BYTES/256 + 3 additional bytes, at most 255. They make the XOR different in each launch, and never 0, the
    /// result of a program that does not compute it. They are at the end, so that the blocks keep their positions in the pipe's pages.
    pub(crate) fn with_residue(self, random: &mut fastrand::Rng) -> Self {
        let more_max = (self.bytes / PERIOD).saturating_add(3).min(PERIOD - 1);
        // For an odd number of bytes modulo 256 the XOR is 0 only for 1, and different for all other numbers.
        let is_usable = |more: &u64| {
            let residue = self.total_bytes().saturating_add(*more) % PERIOD;
            residue % 2 == 1 && residue > 1
        };
        let more = random.choice(Vec::from_iter((0..=more_max).filter(is_usable))).unwrap_or_default();
        Self { bytes: self.bytes.saturating_add(more), ..self }
    }

    /// A time limit that no working program reaches: a minute for the start, then 10 MB/s, or 5000 blocks a second; times the number of
    /// processes that share a CPU.
    pub fn limit(&self) -> Duration {
        self.limit_beside(processes_per_cpu())
    }

    fn limit_beside(&self, processes: u32) -> Duration {
        let blocks = self.total_bytes() / self.block_bytes.max(1) + 2;
        let ns = self.total_bytes().saturating_mul(BYTE_MAX_NS).max(blocks.saturating_mul(BLOCK_MAX_NS));
        (START_MAX + Duration::from_nanos(ns)).saturating_mul(processes)
    }

    /// The arguments between the role and the path of the result file.
    pub(crate) fn arguments(&self) -> [String; 3] {
        [self.bytes, self.block_bytes, self.warmup_bytes].map(|number| number.to_string())
    }
}

/// How many processes of the last minute were ready to run for each CPU, at least 1. sysinfo(2) gives the mean in 65536ths.
fn processes_per_cpu() -> u32 {
    let ready = rustix::system::sysinfo().loads[0] as f64 / 65536.0;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (ready / cpus as f64).ceil().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_xor_is_that_of_the_sequence() {
        for total in [0u64, 1, 2, 255, 256, 257, 1000, 65537] {
            let one_by_one = (0..total).fold(0u8, |sum, position| sum ^ (position % 256) as u8);
            for warmup_bytes in [0, total / 3] {
                let size = TrialSize { bytes: total - warmup_bytes, block_bytes: 7, warmup_bytes };
                assert_eq!(size.xor(), one_by_one, "{size:?}");
            }
        }
    }

    #[test]
    fn the_xor_is_never_0_and_differs_between_launches() {
        let mut random = fastrand::Rng::with_seed(1);
        for bytes in (1..2000).chain([1 << 20, 1 << 30, (1 << 30) + 255]) {
            for warmup_bytes in [0, 1, 4099] {
                let asked = TrialSize { bytes, block_bytes: 7, warmup_bytes };
                let size = asked.with_residue(&mut random);
                assert_ne!(size.xor(), 0, "{size:?}");
                assert!(
                    (0..=3 + bytes / 256).contains(&(size.bytes - bytes)) && size.bytes - bytes < 256,
                    "{size:?}"
                );
                assert_eq!(TrialSize { bytes, ..size }, asked);
            }
        }
        let asked = TrialSize { bytes: 1 << 20, block_bytes: 65536, warmup_bytes: 0 };
        let xors: BTreeSet<u8> = (0..100).map(|_| asked.with_residue(&mut random).xor()).collect();
        assert!(xors.len() > 30, "{xors:?}");
    }
    /// Expected: 5000 round trips of ends that yield end beside eight busy processes on two CPUs, where each waits for four.
    /// Happened: "crossbeam took longer than 61s", in 12 ms for each way.
    #[test]
    fn the_limit_grows_with_the_processes_that_share_a_cpu() {
        let size = TrialSize { bytes: 20_000, block_bytes: 4, warmup_bytes: 0 };
        assert_eq!(size.limit_beside(1).as_secs(), 61);
        assert!(size.limit_beside(5).as_millis() > 5000 * 2 * 12);
        assert!(size.limit() >= size.limit_beside(1));
        let longest = TrialSize { bytes: u64::MAX, ..size };
        assert!(longest.limit_beside(u32::MAX) > longest.limit_beside(1));
    }
}
