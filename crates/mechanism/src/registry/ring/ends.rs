//! The two ends of a ring. What both ways of using it come down to: a slot is reserved, filled and committed; bytes
//! are peeked at and released.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use payload::{Consumer, Producer};

use super::layout::{Head, Ring};
use super::wait::{RingWait, Side};
use crate::{Options, RecvEnd, SendEnd};

/// Whether the payload is copied into and out of the ring, or made and looked at in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Copying {
    InOut,
    InPlace,
}

impl Copying {
    pub(in super::super) fn of(options: &Options) -> Self {
        if options.word("copy") == Some("in-place") { Self::InPlace } else { Self::InOut }
    }
}

/// Copies between slices of one length. A single byte is not worth the call to memcpy(3), which was a tenth of a
/// round trip.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    match (to, from) {
        ([to], [from]) => *to = *from,
        (to, from) => to.copy_from_slice(from),
    }
}

/// The end that sends.
pub(in super::super) struct RingSender {
    ring: Arc<Ring>,
    /// Bytes sent (ours to write).
    head: u64,
    /// Bytes received, as last seen.
    tail: u64,
    wait: RingWait,
    copying: Copying,
    syscalls: u64,
}

impl RingSender {
    /// The only sender of a fresh ring.
    pub(in super::super) fn new(ring: Arc<Ring>, wait: RingWait, copying: Copying) -> Self {
        Self { ring, head: 0, tail: 0, wait, copying, syscalls: 0 }
    }

    /// Waits until all but `most` of the bytes sent were released by the receiver.
    #[inline]
    pub(in super::super) fn wait_until_left(&mut self, most: u64) -> io::Result<()> {
        if self.head - self.tail <= most {
            return Ok(());
        }
        let tail = &self.ring.control().receiver.tail;
        loop {
            self.tail = tail.load(Acquire);
            if self.head - self.tail <= most {
                return Ok(());
            }
            let moved = || tail.load(Acquire) != self.tail;
            self.syscalls += self.ring.wait(self.wait, Side::Sender, moved)?;
        }
    }

    /// Waits until there is room, and lends a part of it in one piece: `most` bytes, or less where that is more
    /// than one publication takes.
    #[inline]
    pub(in super::super) fn reserve(&mut self, most: usize) -> io::Result<&mut [u8]> {
        let len = most.min(self.ring.piece_bytes());
        self.wait_until_left((self.ring.bytes() - len) as u64)?;
        // SAFETY: `len` bytes from there on are ours: the receiver has released what stood there, and reads them only
        // after they are committed, for which this borrow must have ended.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ring.place(self.head), len) })
    }

    /// Publishes the first `len` bytes of the reserved slot.
    #[inline]
    pub(in super::super) fn commit(&mut self, len: usize) -> io::Result<()> {
        let (control, before) = (self.ring.control(), self.head);
        // SAFETY: the slot that was reserved, still ours.
        let slot = unsafe { std::slice::from_raw_parts(self.ring.place(before), len) };
        self.head += len as u64;
        control.sender.publish(self.head, slot, || {
            self.tail = control.receiver.tail.load(Acquire);
            self.tail == before
        });
        self.syscalls += self.ring.wake(self.wait, Side::Receiver)?;
        Ok(())
    }
}

impl SendEnd for RingSender {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring.populate();
        Ok(())
    }

    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let mut rest = block;
        while !rest.is_empty() {
            let slot = self.reserve(rest.len())?;
            let len = slot.len();
            copy(slot, &rest[..len]);
            self.commit(len)?;
            rest = &rest[len..];
        }
        Ok(())
    }

    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        if self.copying == Copying::InOut {
            return self.send(producer.next_block());
        }
        let mut left = producer.block_bytes();
        while left > 0 {
            let slot = self.reserve(left)?;
            let len = slot.len();
            producer.fill(slot);
            self.commit(len)?;
            left -= len;
        }
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

/// The end that receives.
pub(in super::super) struct RingReceiver {
    ring: Arc<Ring>,
    /// How far the sender has come, as last seen.
    head: Head,
    /// The bytes of a very short message, out of the head.
    short: [u8; 8],
    /// Bytes received (ours to write).
    tail: u64,
    wait: RingWait,
    copying: Copying,
    syscalls: u64,
}

impl RingReceiver {
    /// The only receiver of a fresh ring.
    pub(in super::super) fn new(ring: Arc<Ring>, wait: RingWait, copying: Copying) -> Self {
        Self { ring, head: Head::START, short: [0; 8], tail: 0, wait, copying, syscalls: 0 }
    }

    /// Waits until there is something, and returns how much.
    #[inline]
    fn available(&mut self) -> io::Result<usize> {
        let line = &self.ring.control().sender;
        loop {
            let available = self.head.ahead_of(self.tail);
            if available > 0 {
                return Ok(available);
            }
            self.head = line.head();
            if self.head.ahead_of(self.tail) == 0 {
                let filled = || line.head().ahead_of(self.tail) > 0;
                self.syscalls += self.ring.wait(self.wait, Side::Receiver, filled)?;
            }
        }
    }

    /// Waits until there is something, and lends a part of it in one piece: at most `most` bytes.
    #[inline]
    pub(in super::super) fn peek(&mut self, most: usize) -> io::Result<&[u8]> {
        let available = self.available()?;
        let len = most.min(available).min(self.ring.piece_bytes());
        let short = self.head.short();
        if available > short {
            // SAFETY: these bytes were published by the sender, which writes them again only after they are
            // released, for which this borrow must have ended.
            return Ok(unsafe { std::slice::from_raw_parts(self.ring.place(self.tail), len) });
        }
        let from = short - available;
        if let Some(bytes) = self.head.bytes() {
            self.short = bytes;
            return Ok(&self.short[from..from + len]);
        }
        let line = self.ring.control().sender.short();
        // SAFETY: as above; the line holds the last `short` bytes that were published.
        Ok(unsafe { std::slice::from_raw_parts(line.add(from), len) })
    }

    /// Gives back the first `len` bytes of what was lent.
    #[inline]
    pub(in super::super) fn release(&mut self, len: usize) -> io::Result<()> {
        self.tail += len as u64;
        self.ring.control().receiver.tail.store(self.tail, Release);
        self.syscalls += self.ring.wake(self.wait, Side::Sender)?;
        Ok(())
    }
}

impl RecvEnd for RingReceiver {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring.populate();
        Ok(())
    }

    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.peek(room.len())?;
        let len = bytes.len();
        copy(&mut room[..len], bytes);
        self.release(len)?;
        Ok(len)
    }

    #[inline]
    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        if self.copying == Copying::InOut {
            let received = self.recv(&mut consumer.room()[..most])?;
            consumer.accept(received);
            return Ok(received);
        }
        let bytes = self.peek(most)?;
        let len = bytes.len();
        consumer.inspect(bytes);
        self.release(len)?;
        Ok(len)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}
