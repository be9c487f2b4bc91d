//! Slow copies of a program, caused by the page offset of its buffer: estimated from the program's counters and the machine's speeds.

use serde::{Deserialize, Serialize};

use crate::CopyCosts;
use crate::copy_costs::{PAGE_BYTES, SLOW};

/// Smallest share of the program's CPU time, and of its wall time, that is reported.
const CPU_SHARE_MIN: f64 = 0.1;
const WALL_SHARE_MIN: f64 = 0.03;

/// Slow copies into a program's buffer, or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowCopies {
    /// Whether it writes from this buffer; otherwise it reads into it.
    pub writes: bool,
    /// Bytes from the start of a page to the buffer.
    pub offset: u64,
    /// The speed of the copies there as a share of the speed at other offsets.
    pub speed_share: f64,
    /// CPU time that the program would save with another offset, at most.
    pub saves_ns_max: u64,
}

/// Figures of a program from which its slow copies are estimated: its buffers, bytes and times.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopyFigures {
    /// The page offset of its buffer for reads, and for writes.
    pub read_offset: Option<u64>,
    pub write_offset: Option<u64>,
    /// Bytes that it read, and wrote.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    /// Its wall time, its CPU time, and the part of the CPU time in which the kernel may have copied for it.
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub kernel_ns: u64,
}

/// The copies of one direction.
struct Direction {
    /// Whether the program writes; otherwise it reads.
    writes: bool,
    /// How far the destination is ahead of the source, modulo a page. The kernel's side begins at a page.
    ahead: u64,
    bytes: Option<u64>,
}

impl CopyFigures {
    /// Whether there are machines on which these copies are slow; if not, the speeds of this machine are not needed.
    pub fn may_be_slow(&self) -> bool {
        self.directions().any(|one| SLOW.contains(&one.ahead))
    }

    /// Its slow copies, if they cost enough time: computed from the bytes and `costs`, limited by the time in the kernel.
    pub fn find_slow(&self, costs: &CopyCosts) -> Option<SlowCopies> {
        let full = costs.speeds.iter().find(|speed| speed.offset == 0)?.pipe_read_bytes_per_s;
        let slow = |Direction { writes, ahead, bytes }| {
            let speed_share = costs.slowdown_at(ahead)?;
            let expected_ns = bytes? as f64 * 1e9 / full * (1.0 / speed_share - 1.0);
            let saves_ns_max = self.kernel_ns as f64 * (1.0 - speed_share);
            let saves_ns = expected_ns.min(saves_ns_max);
            let matters = saves_ns >= CPU_SHARE_MIN * self.cpu_ns as f64
                && saves_ns >= WALL_SHARE_MIN * self.wall_ns as f64
                && saves_ns > 0.0;
            let offset = if writes { (PAGE_BYTES - ahead) % PAGE_BYTES } else { ahead };
            matters.then_some(SlowCopies { writes, offset, speed_share, saves_ns_max: saves_ns_max as u64 })
        };
        self.directions().find_map(slow)
    }

    fn directions(&self) -> impl Iterator<Item = Direction> {
        let reads = self.read_offset.map(|ahead| Direction { writes: false, ahead, bytes: self.read_bytes });
        let ahead = |offset: u64| (PAGE_BYTES - offset % PAGE_BYTES) % PAGE_BYTES;
        let writes = |offset| Direction { writes: true, ahead: ahead(offset), bytes: self.written_bytes };
        reads.into_iter().chain(self.write_offset.map(writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;
    const READER: CopyFigures = CopyFigures {
        read_offset: Some(16),
        write_offset: None,
        read_bytes: Some(2 * GB),
        written_bytes: None,
        wall_ns: 3 * GB,
        cpu_ns: 2 * GB,
        kernel_ns: GB,
    };

    #[test]
    fn a_large_reader_is_judged_by_what_it_could_save() {
        let slow = CopyCosts::simulated(0.25);
        let found = READER.find_slow(&slow).expect("2 GB at 1 GB/s");
        assert_eq!((found.writes, found.offset, found.speed_share), (false, 16, 0.25));
        assert_eq!(found.saves_ns_max, 750_000_000, "three quarters of the time in the kernel");
        let writer = CopyFigures {
            read_offset: Some(0),
            write_offset: Some(4080),
            written_bytes: Some(2 * GB),
            ..READER
        };
        let found = writer.find_slow(&slow).expect("a writer");
        assert_eq!((found.writes, found.offset), (true, 4080));
    }

    #[test]
    fn other_offsets_machines_and_programs_have_no_slow_copies() {
        let slow = CopyCosts::simulated(0.25);
        for offset in [0, 32, 48, 2048, 4080] {
            let reader = CopyFigures { read_offset: Some(offset), ..READER };
            assert!(!reader.may_be_slow() && reader.find_slow(&slow).is_none(), "{offset}");
            let offset = (4096 - offset) % 4096;
            let write_offset = Some(if offset == 16 { 64 } else { offset });
            let writer =
                CopyFigures { read_offset: None, write_offset, written_bytes: Some(2 * GB), ..READER };
            assert!(!writer.may_be_slow() && writer.find_slow(&slow).is_none(), "{offset}");
        }
        assert!(READER.may_be_slow());
        assert_eq!(READER.find_slow(&CopyCosts::simulated(1.0)), None, "a machine without the fault");
        for quiet in [
            CopyFigures { read_bytes: None, ..READER },
            CopyFigures { read_bytes: Some(GB / 100), ..READER },
            CopyFigures { cpu_ns: 100 * GB, ..READER },
            CopyFigures { wall_ns: 100 * GB, ..READER },
            CopyFigures { kernel_ns: GB / 100, ..READER },
        ] {
            assert_eq!(quiet.find_slow(&slow), None, "{quiet:?}");
        }
    }

    /// Reading at a quarter of 4 GB/s costs 0.75 ns more for each byte, and a tenth of the CPU time are 0.2 s.
    #[test]
    fn a_reader_of_few_bytes_saves_too_little() {
        let slow = CopyCosts::simulated(0.25);
        for (bytes, is_found) in [(100_000_000, false), (260_000_000, false), (270_000_000, true)] {
            let reader = CopyFigures { read_bytes: Some(bytes), ..READER };
            assert_eq!(reader.find_slow(&slow).is_some(), is_found, "{bytes}");
        }
        let idle = CopyFigures { read_bytes: Some(0), wall_ns: 0, cpu_ns: 0, kernel_ns: 0, ..READER };
        assert_eq!(idle.find_slow(&slow), None);
    }
}
