//! The speed of copies by where in a page their destination lies. Some CPUs (AMD Zen 3 and kin) copy at a fraction of their speed
//! where the destination lies 1 to 31 bytes ahead of the source, both addresses taken modulo 4096.

use serde::{Deserialize, Serialize};

/// The distance at which addresses repeat for these CPUs, whatever the kernel's page size.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Offsets at which copies are slow on such a CPU.
pub(crate) const SLOW: std::ops::RangeInclusive<u64> = 1..=31;
/// A share of the full speed from which on a copy is not called slow: plain misalignment costs up to a quarter on other CPUs.
const SLOW_SHARE_MAX: f64 = 0.7;

/// Speeds of copies whose source begins at a page, measured at several offsets of the destination.
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

/// Where and by how much a machine copies slowly. Each share is of the speed at other offsets: 0.3 is three tenths.
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
    /// Offsets that are measured: three at which such a CPU is slow, four at which none is.
    pub const OFFSETS: [u64; 7] = [0, 8, 16, 24, 32, 64, 2048];

    /// An invented machine that copies at this share of its speed to the slow offsets.
    pub fn invented(share: f64) -> Self {
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

    /// Where this machine copies slowly; `None` where it does not.
    pub fn slow_offsets(&self) -> Option<SlowOffsets> {
        let share = |kind| self.worst(kind).unwrap_or(1.0);
        let (memcpy, pipe_read, file_read) = (
            share(|speed| speed.memcpy_bytes_per_s),
            share(|speed| speed.pipe_read_bytes_per_s),
            share(|speed| speed.file_read_bytes_per_s),
        );
        let is_slow = [memcpy, pipe_read, file_read].iter().any(|share| *share <= SLOW_SHARE_MAX);
        let (first, last) = (*SLOW.start(), *SLOW.end());
        is_slow.then_some(SlowOffsets { first, last, memcpy, pipe_read, file_read })
    }

    /// The share of its speed at which read(2) from a pipe copies into a buffer at this address or offset within a page; `None`
    /// where that is not slow.
    pub fn slowdown_at(&self, address: u64) -> Option<f64> {
        let slow = self.slow_offsets()?;
        (SLOW.contains(&(address % PAGE_BYTES)) && slow.pipe_read <= SLOW_SHARE_MAX).then_some(slow.pipe_read)
    }

    /// The same for write(2) from a buffer: the kernel's page begins at 0, and lies ahead of a source at the end of a page.
    pub fn slowdown_of_writes_at(&self, address: u64) -> Option<f64> {
        self.slowdown_at(address.wrapping_neg())
    }

    /// The highest share of the slow offsets: a machine is slow at all of them, a disturbance meets some. The full speed is the
    /// lowest of the other offsets.
    fn worst(&self, kind: Kind) -> Option<f64> {
        let of = |slow: bool| {
            let speeds = self.speeds.iter().filter(move |speed| SLOW.contains(&speed.offset) == slow);
            speeds.map(kind)
        };
        let full = of(false).min_by(f64::total_cmp)?;
        let slow = of(true).max_by(f64::total_cmp)?;
        (full > 0.0).then_some(slow / full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_machine_is_slow_behind_the_start_of_a_page_and_writes_before_it() {
        let slow = CopyCosts::invented(0.3);
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
            assert_eq!(slow.slowdown_of_writes_at(address).is_some(), writes, "writes at {address}");
        }
    }

    /// A Zen 5: misaligned copies in user space are a fifth slower at all offsets that are no multiple of 64.
    #[test]
    fn a_machine_with_even_speeds_has_no_slow_offset() {
        assert_eq!(CopyCosts::invented(1.0).slow_offsets(), None);
        let mut even = CopyCosts::invented(1.0);
        for speed in even.speeds.iter_mut().filter(|speed| !speed.offset.is_multiple_of(64)) {
            speed.memcpy_bytes_per_s *= 0.6;
        }
        assert_eq!(even.slow_offsets(), None);
        assert_eq!((even.slowdown_at(16), even.slowdown_of_writes_at(4080)), (None, None));
        assert_eq!(CopyCosts { speeds: Vec::new() }.slow_offsets(), None);
    }

    /// Expected: a disturbance while one offset was measured is no property of the machine.
    #[test]
    fn one_slow_figure_is_a_disturbance() {
        for offset in CopyCosts::OFFSETS {
            let mut disturbed = CopyCosts::invented(1.0);
            for speed in disturbed.speeds.iter_mut().filter(|speed| speed.offset == offset) {
                speed.pipe_read_bytes_per_s *= 0.2;
            }
            assert_eq!(disturbed.slow_offsets(), None, "{offset}");
        }
    }
}
