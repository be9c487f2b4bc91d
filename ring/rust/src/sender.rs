//! The end that sends.

use super::protocol::{
    ALIGN_FROM, ALIGNED, END, End, Error, Head, Port, RUN, Role, Run, SKIP, start, stride, whole,
};
use core::slice;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Beside the largest message, which lies at the first byte: what is before it, and the header behind it.
const BESIDE: u32 = 64 + 8;

/// The end that sends. (Two ends of one program are not in one cache line.)
#[repr(align(128))]
pub struct Sender<P: Port> {
    end: End<P>,
    /// The receiver's `room`, as last read.
    room: u32,
    /// Records may be written up to here, in one piece.
    limit: u32,
    /// Header of the first record that is not published.
    first: u32,
    reserved: Reserved,
}

/// Room of the next record; a start of 0: none is reserved. Bytes
#[derive(Clone, Copy, Default)]
struct Reserved {
    /// from the record to its first message,
    start: u32,
    /// of each message,
    length: u32,
    /// and from one to the next.
    stride: u32,
    /// Messages.
    count: u32,
}

impl<P: Port> Sender<P> {
    /// Goes on behind the records in memory; memory of zeros is an empty ring.
    ///
    /// # Safety
    /// `head` and `capacity` bytes, aligned to 64, in a program or in shared memory, live as long as this end; they have one sender and
    /// one receiver.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the words or the capacity (a power of two from 4096 to 2^30) make no sense.
    pub unsafe fn new(head: *const Head, bytes: *mut u8, capacity: u32, port: P) -> Result<Self, Error> {
        let mut end = End::new(head, bytes, capacity, Role::Sender, port)?;
        let room = end.given;
        end.own = room;
        while end.own.wrapping_sub(room) <= capacity - 8 {
            let header = end.header(end.own).load(Acquire);
            if header == 0 {
                end.given = end.own;
                let limit = end.own;
                return Ok(Self { end, room, limit, first: 0, reserved: Reserved::default() });
            }
            end.own = end.own.wrapping_add(end.record_bytes(header)?);
        }
        Err(Error::Damaged)
    }

    pub fn port(&self) -> &P {
        &self.end.port
    }

    /// Room for a message of up to `len` bytes, to be written in place; waits until there is. Then [`Self::stage`] or [`Self::commit`].
    ///
    /// # Errors
    /// As [`Error`] says; what was staged is kept.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let start = if self.fits(len) { 4 } else { self.make_room(4, len, len >= ALIGN_FROM)? };
        self.reserved = Reserved { start, length: len as u32, stride: 0, count: 1 };
        // SAFETY: there is room.
        Ok(unsafe { slice::from_raw_parts_mut(self.end.in_record(start), len) })
    }

    /// The reserved message is written, and this long; visible after [`Self::publish`].
    ///
    /// # Panics
    /// It was not reserved, or not as long.
    #[inline]
    pub fn stage(&mut self, len: usize) {
        let Reserved { start, length, stride, .. } = self.reserved;
        assert!(start > 0 && stride == 0 && len <= length as usize, "not reserved");
        self.put_message(start, len as u32);
    }

    /// The same, visible at once.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        self.stage(len);
        self.publish();
    }

    /// Room for up to `count` messages of `len` bytes each, which share a record: at least one, and no more than an eighth of the ring has
    /// room for. Waits until there is. Then [`Self::commit_run`].
    ///
    /// # Errors
    /// As [`Self::reserve`].
    ///
    /// # Panics
    /// The messages are empty.
    pub fn reserve_run(&mut self, len: usize, count: usize) -> Result<Run<&mut [u8]>, Error> {
        assert!(len > 0, "a run of empty messages");
        let most = self.end.capacity as usize / 8;
        if len > self.end.capacity as usize {
            return Err(Error::TooLarge(len));
        }
        let is_aligned = len >= ALIGN_FROM;
        let stride = stride(len as u32, is_aligned) as usize;
        let count = count.clamp(1, (most / stride).max(1));
        let bytes = (count - 1) * stride + len;
        let start = self.make_room(8, bytes, is_aligned)?;
        self.reserved = Reserved { start, length: len as u32, stride: stride as u32, count: count as u32 };
        // SAFETY: there is room.
        let bytes = unsafe { slice::from_raw_parts_mut(self.end.in_record(start), bytes) };
        Ok(Run { bytes, length: len, stride, count })
    }

    /// The first `count` messages of the reserved run are written; visible at once.
    ///
    /// # Panics
    /// They were not reserved.
    pub fn commit_run(&mut self, count: usize) {
        let Reserved { start, length, stride, count: most } = self.reserved;
        assert!(start > 0 && stride > 0 && count <= most as usize, "not reserved");
        let Some(before) = (count as u32).checked_sub(1) else { return };
        let stop = start + before * stride + length;
        // SAFETY: it is behind the header of the record.
        unsafe { self.end.in_record(4).cast::<u32>().write(stop) };
        let aligned = if length as usize >= ALIGN_FROM { ALIGNED } else { 0 };
        self.put((length + 1) | RUN | aligned, whole(stop));
        self.publish();
    }

    /// Copies a message into the ring; visible after [`Self::publish`].
    ///
    /// # Errors
    /// As [`Self::reserve`].
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), Error> {
        if !self.fits(message.len()) {
            return self.push_anew(message);
        }
        // SAFETY: there is room.
        unsafe { self.end.in_record(4).copy_from_nonoverlapping(message.as_ptr(), message.len()) };
        self.put_message(4, message.len() as u32);
        Ok(())
    }

    /// The same, visible at once.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.push(message)?;
        self.publish();
        Ok(())
    }

    /// Makes visible what is staged: the receiver comes to its first header, which is written last.
    #[inline]
    pub fn publish(&mut self) {
        let end = &mut self.end;
        let (next, header, first) = (end.header(end.own), end.header(end.given), self.first);
        if end.given != end.own {
            end.given = end.own;
            next.store(0, Relaxed);
            header.store(first, Release);
            end.tell(Role::Receiver);
        }
    }

    /// After the last message: the receiver gets [`Error::Ended`] after all messages before.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn finish(&mut self) -> Result<(), Error> {
        self.wait_for_room(8)?;
        self.put(END, 8);
        self.publish();
        Ok(())
    }

    /// Whether the receiver has done with all that was published.
    pub fn is_drained(&self) -> bool {
        self.end.head().taken.0.load(Acquire) == self.end.given
    }

    /// Before poll(2) for the end's eventfd: true if there is nothing to do now, and the other end will write to it.
    pub fn arm(&self) -> bool {
        self.end.arm(&self.end.head().room.0, self.room)
    }

    /// Whether there is room for a message right behind its header, known without a look at the receiver's words.
    #[inline]
    fn fits(&self, len: usize) -> bool {
        len < ALIGN_FROM && whole(4 + len as u32) <= self.limit.wrapping_sub(self.end.own)
    }

    #[cold]
    fn push_anew(&mut self, message: &[u8]) -> Result<(), Error> {
        self.reserve(message.len())?.copy_from_slice(message);
        self.stage(message.len());
        Ok(())
    }

    /// Waits for room for a record of so many bytes behind its start, and the header behind it; the start. A record is in one piece: one
    /// that does not fit before the end of the bytes begins at the first byte.
    #[cold]
    fn make_room(&mut self, header_bytes: u32, len: usize, is_aligned: bool) -> Result<u32, Error> {
        self.reserved = Reserved::default();
        if len > (self.end.capacity - BESIDE) as usize {
            return Err(Error::TooLarge(len));
        }
        let (bytes, (at, left)) = (len as u32, self.end.place(self.end.own));
        let mut start = start(at, header_bytes, is_aligned);
        if start + bytes > left {
            self.wait_for_room(left)?;
            self.put(SKIP, left);
            start = self::start(0, header_bytes, is_aligned);
        }
        self.wait_for_room(whole(start + bytes))?;
        Ok(start)
    }

    /// Waits for room for a record and the header behind it. Every record is put after this or below the limit that it leaves, so the limit
    /// is never behind `own`.
    fn wait_for_room(&mut self, bytes: u32) -> Result<(), Error> {
        while self.end.own.wrapping_add(bytes + 8).wrapping_sub(self.room) > self.end.capacity {
            self.publish(); // the receiver must take what is there
            let now = self.end.wait(&self.end.head().room.0, self.room)?;
            if now & 7 != 0 || self.end.own.wrapping_sub(now) > self.end.capacity {
                return Err(Error::Damaged);
            }
            self.room = now;
        }
        let end = &self.end;
        let room = self.room.wrapping_add(end.capacity - 8).wrapping_sub(end.own);
        self.limit = end.own.wrapping_add(room.min(end.place(end.own).1));
        Ok(())
    }

    #[inline]
    fn put_message(&mut self, start: u32, bytes: u32) {
        self.put((bytes + 1) | if start > 4 { ALIGNED } else { 0 }, whole(start + bytes));
    }

    #[inline]
    fn put(&mut self, header: u32, bytes: u32) {
        let end = &mut self.end;
        let own = end.own;
        end.own = own.wrapping_add(bytes);
        self.reserved.start = 0; // it was at the old position
        match own == end.given {
            true => self.first = header,
            false => end.header(own).store(header, Relaxed),
        }
    }
}

impl<P: Port> Drop for Sender<P> {
    fn drop(&mut self) {
        self.publish();
    }
}
