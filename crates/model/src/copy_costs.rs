//! The speed of copies as a function of the destination's page offset. Some CPUs (AMD Zen 3 and similar ones) copy at a fraction of
//! their speed if the destination is 1 to 31 bytes ahead of the source, both addresses taken modulo 4096.

use serde::{Deserialize, Serialize};

/// The distance at which addresses repeat for these CPUs, whatever the kernel's page size.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Offsets at which copies are slow on such a CPU.
pub(crate) const SLOW: std::ops::RangeInclusive<u64> = 1..=31;
/// Largest share of the full speed that counts as slow: on other CPUs misalignment alone costs up to a quarter.
const SLOW_SHARE_MAX: f64 = 0.7;

/// Speeds of copies from the start of a page, for several offsets of the destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyCosts {
    /// One entry for each offset, lowest first.
    pub speeds: Vec<CopySpeed>,
}

/// The speeds at one offset.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopySpeed {
    /// Bytes from the page's start to the destination.
    pub offset: u64,
    /// memcpy(3) of 16 KiB.
    pub memcpy_bytes_per_s: f64,
    /// read(2) of 64 KiB from a pipe.
    pub pipe_read_bytes_per_s: f64,
    /// pread(2) of 64 KiB of page cache.
    pub file_read_bytes_per_s: f64,
}

/// The offsets at which a machine copies slowly, and the speed there as a share (0 to 1) of the speed at other offsets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowOffsets {
    /// First offset, in bytes.
    pub first: u64,
    /// Last offset.
    pub last: u64,
    /// The share of memcpy(3).
    pub memcpy: f64,
    /// The share of read(2) from a pipe.
    pub pipe_read: f64,
    /// The share of read(2) from page cache.
    pub file_read: f64,
}

/// One of the speeds.
type Kind = fn(&CopySpeed) -> f64;

impl CopyCosts {
    /// The measured offsets: three at which such a CPU is slow, and four at which no CPU is slow.
    pub const OFFSETS: [u64; 7] = [0, 8, 16, 24, 32, 64, 2048];

    /// A simulated machine that copies at this share of its speed to the slow offsets.
    pub fn simulated(share: f64) -> Self {
        let speed = |offset| {
            let bytes_per_s = if SLOW.contains(&offset) { share * 4e9 } else { 4e9 };
            CopySpeed {
                offset,
                memcpy_bytes_per_s: 10.0 * bytes_per_s,
                pipe_read_bytes_per_s: bytes_per_s,
                file_read_bytes_per_s: 3.0 * bytes_per_s,
            }
        };
        Self { speeds: Self::OFFSETS.map(speed).to_vec() }
    }

    /// The slow offsets of this machine; `None` if it has none.
    pub fn slow_offsets(&self) -> Option<SlowOffsets> {
        let share = |kind| self.slow_share(kind).unwrap_or(1.0);
        let (memcpy, pipe_read, file_read) = (
            share(|speed| speed.memcpy_bytes_per_s),
            share(|speed| speed.pipe_read_bytes_per_s),
            share(|speed| speed.file_read_bytes_per_s),
        );
        let is_slow = [memcpy, pipe_read, file_read].iter().any(|share| *share <= SLOW_SHARE_MAX);
        let (first, last) = (*SLOW.start(), *SLOW.end());
        is_slow.then_some(SlowOffsets { first, last, memcpy, pipe_read, file_read })
    }

    /// The speed of read(2) from a pipe into a buffer at this address (or page offset), as a share of the full speed; `None` if it is
    /// not slow.
    pub fn slowdown_at(&self, address: u64) -> Option<f64> {
        let slow = self.slow_offsets()?;
        (SLOW.contains(&(address % PAGE_BYTES)) && slow.pipe_read <= SLOW_SHARE_MAX).then_some(slow.pipe_read)
    }

    /// The highest speed at the slow offsets, as a share of the lowest speed at the others. A slow machine is slow at all of them; a
    /// disturbance affects only some.
    fn slow_share(&self, kind: Kind) -> Option<f64> {
        let speeds = |slow: bool| {
            let speeds = self.speeds.iter().filter(move |speed| SLOW.contains(&speed.offset) == slow);
            speeds.map(kind)
        };
        let full = speeds(false).min_by(f64::total_cmp)?;
        let slow = speeds(true).max_by(f64::total_cmp)?;
        (full > 0.0).then_some(slow / full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_slow_after_the_start_of_a_page_and_writes_before_it() {
        let slow = CopyCosts::simulated(0.3);
        let found = slow.slow_offsets().expect("slow");
        assert_eq!((found.first, found.last), (1, 31));
        assert!(
            [found.memcpy, found.pipe_read, found.file_read].iter().all(|share| (share - 0.3).abs() < 1e-9)
        );
        for (address, reads, writes) in
            [(0, false, false), (1, true, false), (16, true, false), (31, true, false), (32, false, false)]
                .into_iter()
                .chain([(48, false, false), (2048, false, false), (4064, false, false), (4065, false, true)])
                .chain([(4095, false, true), (4096, false, false), (0x7f12_3456_7010, true, false)])
        {
            assert_eq!(slow.slowdown_at(address).is_some(), reads, "reads at {address}");
            // A write copies to the start of a page in the kernel, which is ahead of a source at the end of a page.
            assert_eq!(slow.slowdown_at(address.wrapping_neg()).is_some(), writes, "writes at {address}");
        }
    }

    /// A Zen 5: misaligned copies in user space are a fifth slower at all offsets that are no multiple of 64.
    #[test]
    fn a_machine_with_even_speeds_has_no_slow_offset() {
        assert_eq!(CopyCosts::simulated(1.0).slow_offsets(), None);
        let mut even = CopyCosts::simulated(1.0);
        for speed in even.speeds.iter_mut().filter(|speed| !speed.offset.is_multiple_of(64)) {
            speed.memcpy_bytes_per_s *= 0.6;
        }
        assert_eq!(even.slow_offsets(), None);
        assert_eq!((even.slowdown_at(16), even.slowdown_at(4080u64.wrapping_neg())), (None, None));
        assert_eq!(CopyCosts { speeds: Vec::new() }.slow_offsets(), None);
    }

    /// Expected: a disturbance while one offset was measured is no property of the machine.
    #[test]
    fn one_slow_figure_is_a_disturbance() {
        for offset in CopyCosts::OFFSETS {
            let mut disturbed = CopyCosts::simulated(1.0);
            for speed in disturbed.speeds.iter_mut().filter(|speed| speed.offset == offset) {
                speed.pipe_read_bytes_per_s *= 0.2;
            }
            assert_eq!(disturbed.slow_offsets(), None, "{offset}");
        }
    }

    #[test]
    fn a_simulated_machine_copies_at_a_share_of_its_speed() {
        let speeds = CopyCosts::simulated(0.5).speeds;
        let [full, slow] =
            [0, 16].map(|at| speeds.iter().find(|speed| speed.offset == at).expect("measured"));
        assert_eq!((full.memcpy_bytes_per_s, slow.memcpy_bytes_per_s), (4e10, 2e10));
        assert_eq!((full.pipe_read_bytes_per_s, slow.pipe_read_bytes_per_s), (4e9, 2e9));
        assert_eq!((full.file_read_bytes_per_s, slow.file_read_bytes_per_s), (12e9, 6e9));
    }

    #[test]
    fn a_speed_that_was_not_measured_counts_as_full() {
        let mut slow = CopyCosts::simulated(0.5);
        slow.speeds.iter_mut().for_each(|speed| speed.memcpy_bytes_per_s = 0.0);
        let found = slow.slow_offsets().expect("slow reads");
        assert_eq!((found.memcpy, found.pipe_read), (1.0, 0.5));
    }
}
