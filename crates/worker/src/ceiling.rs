//! The ceiling: this machine's fastest memory copy. The kernel copies each byte of a worker's stream at least once, into the
//! receiver's buffer, where it is then read. So no worker can be faster than a memory copy, or use less CPU time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use model::{CaseError, CaseRecord, DataLevel, ErrorKind, PayloadKind, Role, Sample, Spec, Tasks};
use payload::Block;

use crate::trial_size::TrialSize;

/// Both buffers fit into a core's L1 cache, where copies are fastest. Both begin at a page, because some CPUs (AMD Zen 3, `fsrm`) are
/// 20 times slower if the destination's page offset is 1 to 31 bytes larger than the source's.
const BLOCK_BYTES: usize = 16 << 10;
/// One pass takes about ten microseconds. The fastest pass counts, because interrupts make some passes slower.
const PASS_BLOCKS: u64 = 64;
const PASSES: usize = 200;

/// The fastest memory copy seen.
pub(crate) struct Ceiling {
    from: Block,
    to: Block,
    pass_ns: f64,
}

impl Ceiling {
    /// Measures once, without keeping a sample.
    pub(crate) fn new() -> Self {
        let [from, to] = [Block::new(BLOCK_BYTES), Block::new(BLOCK_BYTES)];
        let mut ceiling = Self { from, to, pass_ns: f64::INFINITY };
        ceiling.fastest_pass_ns();
        ceiling
    }

    /// Measures again.
    pub(crate) fn measure(&mut self) -> Sample {
        let elapsed_ns = self.fastest_pass_ns();
        let bytes = PASS_BLOCKS * BLOCK_BYTES as u64;
        Sample { elapsed_ns, bytes, messages: PASS_BLOCKS, ..Sample::default() }
    }

    fn fastest_pass_ns(&mut self) -> u64 {
        let fastest = (0..PASSES).map(|_| self.pass()).min().unwrap_or_default().max(1);
        self.pass_ns = self.pass_ns.min(fastest as f64);
        fastest
    }

    fn pass(&mut self) -> u64 {
        let began = Instant::now();
        for _ in 0..PASS_BLOCKS {
            self.to.copy_from_slice(black_box(&self.from));
            black_box(&mut self.to);
        }
        began.elapsed().as_nanos() as u64
    }

    /// Shortest time of a copy of `bytes`.
    fn copy_time(&self, bytes: u64) -> Duration {
        let passes = bytes as f64 / (PASS_BLOCKS * BLOCK_BYTES as u64) as f64;
        Duration::from_nanos((passes * self.pass_ns) as u64)
    }

    /// Refuses a sample that is faster than a memory copy, or uses less CPU time. `name` is the row's name.
    pub(crate) fn check(&self, name: &str, size: &TrialSize, sample: &Sample) -> Result<(), CaseError> {
        let elapsed = Duration::from_nanos(sample.elapsed_ns);
        let cpu = Duration::from_nanos(sample.user_ns + sample.system_ns);
        let (timed, all) = (self.copy_time(sample.bytes), self.copy_time(size.total_bytes()));
        let refused = |what: String, copy_time: Duration| {
            let message = format!(
                "{name} {what}: a memory copy of as many bytes, which is less work, takes at least {copy_time:.1?} here"
            );
            Err(CaseError::new(ErrorKind::Corrupt, message))
        };
        if elapsed < timed {
            return refused(format!("says that it moved {} bytes in {elapsed:.1?}", sample.bytes), timed);
        }
        if cpu < all {
            return refused(format!("used {cpu:.1?} of CPU time for {} bytes", size.total_bytes()), all);
        }
        Ok(())
    }

    /// Its case, without samples.
    pub(crate) fn record() -> CaseRecord {
        CaseRecord {
            role: Role::Ceiling,
            tasks: Tasks::Single,
            data: DataLevel::None,
            payload: PayloadKind::Sequence,
            block_bytes: BLOCK_BYTES as u64,
            check: None,
            ..CaseRecord::new(Spec::plain("memcpy"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_or_cheaper_than_a_copy_is_refused() {
        let ceiling = Ceiling { pass_ns: 10_000.0, ..Ceiling::new() };
        let size = TrialSize { bytes: 100 << 20, block_bytes: 65536, warmup_bytes: 100 << 20 };
        let checked = |elapsed_ns, cpu_ns: u64| {
            let sample = Sample {
                bytes: size.bytes,
                elapsed_ns,
                user_ns: cpu_ns / 2,
                system_ns: cpu_ns / 2,
                ..Sample::default()
            };
            ceiling.check("c:tuned", &size, &sample).map_err(|failure| failure.message)
        };
        assert_eq!(checked(1_000_000, 2_000_000), Ok(()));
        let copy = "a memory copy of as many bytes, which is less work, takes at least";
        assert_eq!(
            checked(0, 2_000_000),
            Err(format!("c:tuned says that it moved 104857600 bytes in 0.0ns: {copy} 1.0ms here"))
        );
        assert_eq!(
            checked(1_000_000, 1_900_000),
            Err(format!("c:tuned used 1.9ms of CPU time for 209715200 bytes: {copy} 2.0ms here"))
        );
    }

    /// Expected: the fastest copy of this machine, in every run.
    /// Happened: 2.74 GB/s in one run and 73.8 GB/s in another, as malloc(3) put one buffer 16 bytes further within its page
    /// than the other; then correct workers were refused.
    #[test]
    fn both_buffers_begin_on_a_page_wherever_there_is_memory() {
        let mut before = Vec::new();
        for offset in 0..16 {
            before.push(vec![0u8; 16 * offset + 1]);
            let ceiling = Ceiling::new();
            for buffer in [&ceiling.from, &ceiling.to] {
                assert_eq!(buffer.as_ptr() as usize % 4096, 0, "behind {} more bytes", 16 * offset + 1);
            }
        }
    }

    #[test]
    fn a_copy_is_as_fast_as_memory_is() {
        let mut ceiling = Ceiling::new();
        let sample = ceiling.measure();
        let rate = sample.bytes as f64 / sample.elapsed_ns as f64;
        assert!((1.0..2000.0).contains(&rate), "{rate} GB/s");
        assert_eq!(Ceiling::record().role, Role::Ceiling);
    }
}
