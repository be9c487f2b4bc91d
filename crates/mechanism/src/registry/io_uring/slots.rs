//! The buffers of a task: private memory divided into slots. A slot is used either by the kernel for a request or by the
//! task, never by both.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use io_uring::squeue::Flags;
use io_uring::{Submitter, opcode, squeue, types};

use super::lane::Span;
use super::plan::Plan;
use crate::SharedMemory;

/// Each slot begins on a page.
const PAGE_BYTES: usize = 4096;

/// The offset -1, "the current file position" (io_uring_enter(2)): pipes and sockets have no other one.
const CURRENT_POSITION: u64 = u64::MAX;

/// The slots of one task, one after the other in memory.
pub(super) struct Slots {
    memory: SharedMemory,
    count: usize,
    block_bytes: usize,
}

/// Bytes that `count` slots take.
pub(super) fn bytes_of(count: usize, block_bytes: usize) -> Option<usize> {
    block_bytes.checked_next_multiple_of(PAGE_BYTES)?.checked_mul(count)
}

impl Slots {
    pub(super) fn new(count: usize, block_bytes: usize) -> io::Result<Self> {
        let memory = SharedMemory::new(bytes_of(count, block_bytes).ok_or(io::ErrorKind::OutOfMemory)?)?;
        // SAFETY: the memory is private and `len()` bytes long. It is not filled with zeros: see `payload::Block`.
        unsafe { std::ptr::write_bytes(memory.as_ptr(), 0xA5, memory.len()) };
        Ok(Self { memory, count, block_bytes })
    }

    fn at(&self, span: Span) -> *mut u8 {
        assert!(span.slot < self.count && span.from <= span.to && span.to <= self.block_bytes);
        self.memory
            .as_ptr()
            .wrapping_add(span.slot * self.block_bytes.next_multiple_of(PAGE_BYTES) + span.from)
    }

    /// A slot's bytes. The kernel uses the slots in flight; the lane does not give those to the task.
    pub(super) fn bytes(&mut self, span: Span) -> &mut [u8] {
        // SAFETY: `at` checked that the span lies in a slot; the memory is initialised and ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at(span), span.to - span.from) }
    }

    /// Registers each slot as the buffer with the slot's number, so that the kernel does not look up its pages for each request.
    pub(super) fn register_with(&self, submitter: &Submitter<'_>) -> io::Result<()> {
        let whole = |slot| libc::iovec {
            iov_base: self.at(Span { slot, from: 0, to: self.block_bytes }).cast(),
            iov_len: self.block_bytes,
        };
        let buffers: Vec<libc::iovec> = (0..self.count).map(whole).collect();
        // SAFETY: the ring is dropped before the slots (`Resources` in stream.rs); the kernel also pins the pages.
        unsafe { submitter.register_buffers(&buffers) }
    }

    /// The request to write `span`.
    pub(super) fn write(&self, plan: &Plan, to: RawFd, span: Span, flags: Flags) -> squeue::Entry {
        let (at, len, slot) = (self.at(span).cast_const(), (span.to - span.from) as u32, span.slot as u16);
        let request = match (plan.fixed, plan.socket) {
            (true, _) => opcode::WriteFixed::new(types::Fixed(to as u32), at, len, slot)
                .offset(CURRENT_POSITION)
                .build(),
            (false, false) => opcode::Write::new(types::Fd(to), at, len).offset(CURRENT_POSITION).build(),
            (false, true) => opcode::Send::new(types::Fd(to), at, len)
                .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
                .build(),
        };
        request.flags(flags).user_data(span.slot as u64)
    }

    /// The request to read into `span`.
    pub(super) fn read(&self, plan: &Plan, from: RawFd, span: Span, flags: Flags) -> squeue::Entry {
        let (at, len, slot) = (self.at(span), (span.to - span.from) as u32, span.slot as u16);
        let request = match (plan.fixed, plan.socket) {
            (true, _) => opcode::ReadFixed::new(types::Fixed(from as u32), at, len, slot)
                .offset(CURRENT_POSITION)
                .build(),
            (false, false) => opcode::Read::new(types::Fd(from), at, len).offset(CURRENT_POSITION).build(),
            (false, true) => opcode::Recv::new(types::Fd(from), at, len).build(),
        };
        request.flags(flags).user_data(span.slot as u64)
    }
}
