//! Where in a page the buffers of large reads and writes lie: from the arguments of the calls in which threads sleep (proc_pid_syscall(5)). A call
//! that does not sleep is not seen, so a program that never waits for its data has no offset here.

use std::collections::BTreeMap;

use process::proc;

use crate::flow::Moved;
use crate::waits::{Call, memory};

/// Addresses count modulo this.
const PAGE_BYTES: u64 = 4096;
/// Smaller calls move too little to matter.
const LARGE_BYTES: u64 = 4096;
/// Most entries of readv(2) and writev(2) that are read.
const PARTS_MAX: u64 = 8;
/// Most threads of a process that are sampled.
const THREADS_MAX: usize = 8;

/// A large call that a thread was seen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LargeCall {
    writes: bool,
    address: u64,
}

impl LargeCall {
    /// From the bytes of `syscall`; `None` where the thread runs, or is in another call, or in a small one.
    fn parse(pid: i32, syscall: &[u8]) -> Option<Self> {
        let call = Call::parse(&String::from_utf8_lossy(syscall))?;
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
        (bytes >= LARGE_BYTES).then_some(Self { writes, address })
    }
}

/// The offsets of a program's buffers.
#[derive(Debug, Default)]
pub struct BufferOffsets {
    /// How much each offset was seen: samples, and bytes that were moved since the sample before.
    reads: BTreeMap<u64, u64>,
    writes: BTreeMap<u64, u64>,
    last: Option<Moved>,
}

impl BufferOffsets {
    /// Takes a sample of processes that have so many threads, and have moved so much in all.
    pub fn sample(&mut self, pids: &[i32], threads: u64, moved: Option<Moved>) {
        for pid in pids {
            if threads <= pids.len() as u64 {
                self.note(*pid, proc::short(&format!("/proc/{pid}/syscall")).as_deref(), moved);
                continue;
            }
            for (_, folder) in proc::threads(*pid).take(THREADS_MAX) {
                self.note(*pid, proc::short(&format!("{folder}/syscall")).as_deref(), moved);
            }
        }
        self.last = moved;
    }

    /// Takes a sample of a thread's `syscall`; its process has moved so much in all.
    pub(crate) fn note(&mut self, pid: i32, syscall: Option<&[u8]>, moved: Option<Moved>) {
        let Some(call) = syscall.and_then(|bytes| LargeCall::parse(pid, bytes)) else { return };
        let since = moved.zip(self.last);
        let (offsets, bytes) = match call.writes {
            false => (&mut self.reads, since.map(|(now, last)| now.read.saturating_sub(last.read))),
            true => (&mut self.writes, since.map(|(now, last)| now.written.saturating_sub(last.written))),
        };
        *offsets.entry(call.address % PAGE_BYTES).or_default() += 1 + bytes.unwrap_or(0);
    }

    /// What was moved by the last of these samples.
    pub(crate) fn end_sample(&mut self, moved: Option<Moved>) {
        self.last = moved;
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
        let parse = |bytes: &[u8]| LargeCall::parse(0, bytes);
        let (address, reads) = (0x7f00_0000_2010, |address| Some(LargeCall { writes: false, address }));
        for number in [libc::SYS_read, libc::SYS_pread64, libc::SYS_recvfrom] {
            assert_eq!(parse(&syscall(number, address, 65536)), reads(address));
        }
        for number in [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_sendto] {
            let expected = Some(LargeCall { writes: true, address });
            assert_eq!(parse(&syscall(number, address, 4096)), expected);
        }
        assert_eq!(parse(&syscall(libc::SYS_read, address, 4095)), None, "small");
        assert_eq!(parse(&syscall(libc::SYS_openat, address, 65536)), None);
        assert_eq!((parse(b"running\n"), parse(b"-1 0x7ffe 0x7f12\n"), parse(b"")), (None, None, None));
        let parts: [u64; 4] = [5000, 10, address, 65536];
        let own = std::process::id().cast_signed();
        let vector = syscall(libc::SYS_readv, parts.as_ptr() as u64, 2);
        assert_eq!(LargeCall::parse(own, &vector), reads(address));
    }

    /// Expected: the offset through which the bytes went, not that of a small header that was waited for.
    #[test]
    fn the_offset_of_most_bytes_counts() {
        let mut offsets = BufferOffsets::default();
        assert_eq!(offsets.of_reads(), None);
        let mut moved = Moved::default();
        for (address, bytes) in [(16, 10), (16, 0), (4096 * 3 + 48, 1 << 20), (16, 0)] {
            moved.read += bytes;
            offsets.note(0, Some(&syscall(libc::SYS_read, address, 65536)), Some(moved));
            offsets.end_sample(Some(moved));
        }
        assert_eq!((offsets.of_reads(), offsets.of_writes()), (Some(48), None));
        let mut changing = BufferOffsets::default();
        for address in [16, 32, 48, 64] {
            changing.note(0, Some(&syscall(libc::SYS_write, address, 65536)), None);
        }
        assert_eq!(changing.of_writes(), None, "no offset is that of most");
    }
}
