//! `process-vm`: the receiver copies directly from the sender's memory with process_vm_readv(2), as MPI libraries do
//! between two processes of a host (cross memory attach, CMA). A small ring in shared memory carries the address of each
//! block; when the receiver has released an address there, the sender may overwrite that block.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs;

use payload::Block;
use process::proc::has_ptrace_capability;

use super::ring::{Copying, Ring, RingReceiver, RingSender, RingWait, WAIT_OPTION};
use crate::prelude::*;

/// Most blocks that are announced and not yet copied: the sender produces the next ones while the receiver copies.
const BLOCKS_MAX: usize = 4;

pub(super) static PROCESS_VM: Mechanism = Mechanism {
    name: "process-vm",
    summary: "the receiver copies from the sender's memory, as MPI does",
    waits: BLOCK_OR_SPIN,
    options: &[WAIT_OPTION],
    limits: "needs the right to trace the sender (kernel.yama.ptrace_scope)",
    man_pages: &["process_vm_readv(2)", "ptrace(2)", "PR_SET_PTRACER(2const)"],
    more_specs: &["process-vm:wait=spin", "process-vm:wait=futex"],
    probe,
    ..Mechanism::messages(open_channel)
};

fn probe() -> Result<(), OpenError> {
    let (from, mut to) = ([1u8], [0u8]);
    let remedy = "a kernel with CONFIG_CROSS_MEMORY_ATTACH; a sandbox that allows it".to_owned();
    copy_from(std::process::id() as libc::pid_t, from.as_ptr() as u64, &mut to)
        .map_err(|error| OpenError::system("process_vm_readv", error, Some(remedy)))?;
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    may_trace(scope.trim(), has_ptrace_capability())
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let wait = RingWait::for_request(request);
    one_way(request, || {
        let ring = Arc::new(Ring::new(BLOCKS_MAX * Notice::BYTES, wait)?);
        let pool = (0..BLOCKS_MAX).map(|_| Block::new(request.block_bytes)).collect();
        let sender = RingSender::new(ring.clone(), wait, Copying::InOut);
        let notices = RingReceiver::new(ring, wait, Copying::InOut).returning_at_once();
        let bytes = BLOCKS_MAX as u64 * request.block_bytes as u64;
        let sender = MemorySender { notices: sender, pool, next: 0 };
        Ok(Direction::new(sender, MemoryReceiver { notices, current: None, syscalls: 0 })
            .granted([("blocks_in_flight_bytes", bytes)]))
    })
}

/// Whether this process may read another's memory, by the level of the security module Yama
/// (Documentation/admin-guide/LSM/Yama.rst); empty on a kernel without Yama.
fn may_trace(ptrace_scope: &str, capable: bool) -> Result<(), OpenError> {
    match ptrace_scope {
        "3" => Err(OpenError::unsupported(
            "kernel.yama.ptrace_scope is 3: no process may read another's memory",
            "it cannot be changed before the next boot; or --tasks threads",
        )),
        "2" if !capable => Err(OpenError::unsupported(
            "kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may read another's memory",
            format!("{}sysctl -w kernel.yama.ptrace_scope=1, or run as root", sudo()),
        )),
        // At 1 the sender itself permits it (see `MemorySender::prepare`).
        _ => Ok(()),
    }
}

/// Copies from another process's memory; returns the number of bytes.
fn copy_from(process: libc::pid_t, address: u64, to: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: to.len() };
    // SAFETY: the kernel writes at most `to.len()` bytes to `to`, and checks the other address itself.
    libc_result(unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) })
}

/// The address of a block in the sender's memory.
#[derive(Debug, Clone, Copy)]
struct Notice {
    process: libc::pid_t,
    address: u64,
    len: u64,
}

impl Notice {
    /// A power of two, so that a whole number of notices fills the ring.
    const BYTES: usize = 32;

    fn write(self, slot: &mut [u8]) {
        let words = [self.address, self.len, self.process as u64];
        slot.chunks_exact_mut(8)
            .zip(words)
            .for_each(|(place, word)| place.copy_from_slice(&word.to_ne_bytes()));
    }

    fn read(slot: &[u8]) -> Self {
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|index| slot[8 * at + index]));
        Self { address: word(0), len: word(1), process: word(2) as libc::pid_t }
    }
}

/// Announces the address of each block to the receiver, which copies it.
struct MemorySender {
    notices: RingSender,
    pool: Vec<Block>,
    /// Index in `pool` of the block that was announced longest ago.
    next: usize,
}

impl MemorySender {
    #[inline]
    fn notify(&mut self, address: *const u8, len: usize) -> io::Result<()> {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        let notice = Notice { process, address: address as u64, len: len as u64 };
        notice.write(self.notices.reserve(Notice::BYTES)?);
        self.notices.commit()
    }
}

impl End for MemorySender {
    /// Allows any process of this user to read this one's memory, which Yama would otherwise allow only to its ancestors. A
    /// kernel without Yama returns EINVAL, and needs no permission.
    fn prepare(&mut self) -> io::Result<()> {
        // SAFETY: changes who may trace this process, and nothing else.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
        self.notices.prepare()
    }

    fn syscalls(&self) -> Option<u64> {
        self.notices.syscalls()
    }
}

impl Sender for MemorySender {
    /// Waits until the block was copied, since the caller may overwrite it after this returns.
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.notify(block.as_ptr(), block.len())?;
        self.notices.wait_until_unreturned(0)
    }

    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        // The ring has at most the notices of the other blocks of the pool: so this one was copied.
        self.notices.wait_until_unreturned((BLOCKS_MAX - 1) as u64 * Notice::BYTES as u64)?;
        let block = &mut self.pool[self.next];
        producer.fill(block);
        let (address, len) = (block.as_ptr(), block.len());
        self.next = (self.next + 1) % BLOCKS_MAX;
        self.notify(address, len)
    }

    /// Waits until the last byte was copied, since the memory must stay until then.
    fn finish(&mut self) -> io::Result<()> {
        self.notices.wait_until_unreturned(0)
    }
}

/// Copies blocks from the sender's memory.
struct MemoryReceiver {
    notices: RingReceiver,
    /// The part of a block that is not copied yet.
    current: Option<Notice>,
    syscalls: u64,
}

impl End for MemoryReceiver {
    fn prepare(&mut self) -> io::Result<()> {
        self.notices.prepare()
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls + self.notices.syscalls()?)
    }
}

impl Receiver for MemoryReceiver {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut notice = match self.current {
            Some(notice) => notice,
            None => Notice::read(self.notices.peek(Notice::BYTES)?),
        };
        let len = room.len().min(usize::try_from(notice.len).unwrap_or(usize::MAX));
        self.syscalls += 1;
        let copied =
            copy_from(notice.process, notice.address, &mut room[..len]).map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::ESRCH) => io::Error::new(io::ErrorKind::UnexpectedEof, "the sender is gone"),
                    _ => error,
                }
            })?;
        notice.address += copied as u64;
        notice.len -= copied as u64;
        self.current = (notice.len > 0).then_some(notice);
        if self.current.is_none() {
            self.notices.release(Notice::BYTES)?;
        }
        Ok(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yama_decides_who_may_read() {
        assert!(may_trace("", false).is_ok());
        assert!(may_trace("1", false).is_ok());
        assert!(may_trace("2", true).is_ok());
        assert!(may_trace("2", false).is_err());
        assert!(may_trace("3", true).is_err());
    }
}
