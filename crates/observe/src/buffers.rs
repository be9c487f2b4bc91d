//! The page offsets of the buffers of large reads and writes, from the arguments of the calls in which threads sleep (proc_pid_syscall(5)). A call
//! that does not sleep is not seen, so a program that never waits for its data has no offset here.

use std::collections::BTreeMap;

use process::proc;

use crate::flow::Moved;
use crate::waits::{Call, memory};

/// Size of a page.
const PAGE_BYTES: u64 = 4096;
/// Smallest call that counts.
const LARGE_BYTES: u64 = 4096;
/// Most entries of readv(2) and writev(2) that are read.
const PARTS_MAX: u64 = 8;
/// Most threads of a process that are sampled.
const THREADS_MAX: usize = 8;

/// A large call that a thread was seen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeCall {
    writes: bool,
    /// Where in a page its buffer begins.
    offset: u64,
    /// 1, and the bytes that the process has moved in this direction since the sample before.
    weight: u64,
}

impl LargeCall {
    /// From the bytes of `syscall`; `None` where the thread runs, or is in another call, or in a small one. `moved` is what the process has
    /// moved in all, now and at the sample before.
    pub(crate) fn read(pid: i32, syscall: Option<&[u8]>, moved: Option<(Moved, Moved)>) -> Option<Self> {
        let call = Call::parse(&String::from_utf8_lossy(syscall?))?;
        let writes = matches!(
            call.number,
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto | libc::SYS_writev | libc::SYS_pwritev
        );
        let (address, bytes) = match call.number {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => (call.argument(1), call.argument(2)),
            libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => (call.argument(1), call.argument(2)),
            libc::SYS_readv | libc::SYS_preadv | libc::SYS_writev | libc::SYS_pwritev => {
                let parts = memory(pid, call.argument(1), call.argument(2).min(PARTS_MAX) * 16)?;
                let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
                let parts = parts.chunks_exact(16).map(|part| (number(&part[..8]), number(&part[8..])));
                parts.max_by_key(|(_, bytes)| *bytes)?
            }
            _ => return None,
        };
        let since = moved.map_or(0, |(now, before)| match writes {
            true => now.written.saturating_sub(before.written),
            false => now.read.saturating_sub(before.read),
        });
        (bytes >= LARGE_BYTES).then_some(Self { writes, offset: address % PAGE_BYTES, weight: 1 + since })
    }
}

/// The offsets of a program's buffers, each with the weight of the calls that were seen there.
#[derive(Debug, Default)]
pub struct BufferOffsets {
    reads: BTreeMap<u64, u64>,
    writes: BTreeMap<u64, u64>,
}

impl BufferOffsets {
    /// Takes a sample of a process that has this many threads.
    pub fn sample(&mut self, pid: i32, threads: u64) {
        let read = |folder: &str| {
            LargeCall::read(pid, proc::read_short_file(&format!("{folder}/syscall")).as_deref(), None)
        };
        if threads > 1 {
            proc::threads(pid).take(THREADS_MAX).for_each(|(_, folder)| self.add(read(&folder).as_slice()));
        } else {
            self.add(read(&format!("/proc/{pid}")).as_slice());
        }
    }

    /// Adds the calls of a sample.
    pub fn add(&mut self, calls: &[LargeCall]) {
        for call in calls {
            let offsets = if call.writes { &mut self.writes } else { &mut self.reads };
            *offsets.entry(call.offset).or_default() += call.weight;
        }
    }

    /// The page offset of reads, 0 to 4095; `None` where none was seen, or no offset was that of most.
    pub fn of_reads(&self) -> Option<u64> {
        most(&self.reads)
    }

    /// The same of writes.
    pub fn of_writes(&self) -> Option<u64> {
        most(&self.writes)
    }
}

fn most(offsets: &BTreeMap<u64, u64>) -> Option<u64> {
    let (offset, seen) = offsets.iter().max_by_key(|(_, seen)| **seen)?;
    (2 * seen > offsets.values().sum()).then_some(*offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syscall(number: i64, address: u64, bytes: u64) -> Vec<u8> {
        format!("{number} 0x3 {address:#x} {bytes:#x} 0x0 0x0 0x0 0x7ffe 0x7f12\n").into_bytes()
    }

    #[test]
    fn large_calls_say_where_their_buffers_lie() {
        let parse = |bytes: &[u8]| LargeCall::read(0, Some(bytes), None);
        let (address, reads) = (0x7f00_0000_2010, Some(LargeCall { writes: false, offset: 16, weight: 1 }));
        for number in [libc::SYS_read, libc::SYS_pread64, libc::SYS_recvfrom] {
            assert_eq!(parse(&syscall(number, address, 65536)), reads);
        }
        for number in [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_sendto] {
            let expected = Some(LargeCall { writes: true, offset: 16, weight: 1 });
            assert_eq!(parse(&syscall(number, address, 4096)), expected);
        }
        assert_eq!(parse(&syscall(libc::SYS_read, address, 4095)), None, "small");
        assert_eq!(parse(&syscall(libc::SYS_openat, address, 65536)), None);
        assert_eq!((parse(b"running\n"), parse(b"-1 0x7ffe 0x7f12\n"), parse(b"")), (None, None, None));
        let parts: [u64; 4] = [5000, 10, address, 65536];
        let own = std::process::id().cast_signed();
        let vector = syscall(libc::SYS_readv, parts.as_ptr() as u64, 2);
        assert_eq!(LargeCall::read(own, Some(&vector), None), reads);
    }

    /// Expected: the offset through which the bytes went, not that of a small header that was waited for.
    #[test]
    fn the_offset_of_most_bytes_counts() {
        let mut offsets = BufferOffsets::default();
        assert_eq!(offsets.of_reads(), None);
        let (mut before, mut moved) = (Moved::default(), Moved::default());
        for (address, bytes) in [(16, 10), (16, 0), (4096 * 3 + 48, 1 << 20), (16, 0)] {
            moved.read += bytes;
            let call =
                LargeCall::read(0, Some(&syscall(libc::SYS_read, address, 65536)), Some((moved, before)));
            offsets.add(call.as_slice());
            before = moved;
        }
        assert_eq!((offsets.of_reads(), offsets.of_writes()), (Some(48), None));
        let mut changing = BufferOffsets::default();
        for address in [16, 32, 48, 64] {
            changing
                .add(LargeCall::read(0, Some(&syscall(libc::SYS_write, address, 65536)), None).as_slice());
        }
        assert_eq!(changing.of_writes(), None, "no offset is that of most");
    }
}
