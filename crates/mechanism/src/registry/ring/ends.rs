//! The two ends of a ring. The sender reserves, fills and commits room; the receiver peeks at bytes and releases them. Copying
//! ends and ends that work in place both use these calls.
#![allow(unsafe_code)]

use super::cache::{copy, copy_each, prefetch, prefetch_for_write};
use super::layout::{Control, Ring, RingWait};
use super::protocol::{AsWritten, Position, ReceiverCursor, SHORT_BYTES, SenderCursor};
use super::wait::{Side, Waiter};
use crate::prelude::*;

/// Whether the payload is copied into and out of the ring, or made and checked in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copying {
    InOut,
    InPlace,
}

impl Copying {
    pub(crate) fn from_options(options: &Options) -> Self {
        options.one_of("copy", &[("in-out", Self::InOut), ("in-place", Self::InPlace)])
    }

    /// Whether these options let the ends work on the payload in the ring.
    pub(crate) fn is_in_place(options: &Options) -> bool {
        Self::from_options(options) == Self::InPlace
    }
}

/// Most bytes that are copied before they are checked.
const CHECKED_BYTES_MAX: usize = 16 << 10;

/// Pause instructions after a check that found no message, in a stream of small messages: about 50 ns, less than a cache line
/// takes to the other CPU and back.
const PAUSES: u32 = 2;

/// The longest blocks of which one call moves many: for longer ones the cost of a call is small, and buffers of many blocks take more
/// of the L1 cache than one block does.
const MANY_BYTES_MAX: usize = 1 << 10;

/// Most bytes that are written before they are announced, of messages that follow one another at once. Each announcement is a store to a
/// cache line that the other CPU reads; to write this many bytes takes as long as that line takes to the other CPU and back.
const ANNOUNCED_BYTES_MAX: usize = 4 << 10;

/// The end that sends.
pub(crate) struct RingSender {
    ring: Arc<Ring>,
    cursor: SenderCursor<AsWritten>,
    waiter: Waiter,
    /// Length of the room that [`Self::reserve`] returned last, in bytes.
    reserved: usize,
    copying: Copying,
}

impl RingSender {
    /// The only sender of a new ring.
    pub(crate) fn new(ring: Arc<Ring>, wait: RingWait, copying: Copying) -> Self {
        let cursor = ring.sender_cursor();
        Self { cursor, waiter: Waiter::new(ring.clone(), wait, Side::Sender), ring, reserved: 0, copying }
    }

    /// Waits until the receiver has returned all bytes except at most the last `most`.
    #[inline(always)]
    pub(crate) fn wait_until_unreturned(&mut self, most: u64) -> io::Result<()> {
        let Self { ring, cursor, waiter, .. } = self;
        if cursor.head() - cursor.returned_bytes() <= most {
            return Ok(());
        }
        waiter.wait_until(|| {
            cursor.refresh(ring.control());
            cursor.head() - cursor.returned_bytes() <= most
        })
    }

    /// Changes to the next slot if this one cannot take the message, and waits until there is room.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, len: usize, long: bool) -> io::Result<()> {
        let Self { ring, cursor, waiter, .. } = self;
        let control: &Control = ring.control();
        cursor.begin(control, len, long);
        if cursor.has_room(len, long) {
            return Ok(());
        }
        waiter.wait_until(|| {
            cursor.refresh(control);
            cursor.has_room(len, long)
        })
    }

    /// Sends consecutive blocks of `len` bytes, each copied as a message, and announces up to [`ANNOUNCED_BYTES_MAX`] at once. A receiver that
    /// sleeps is woken after all blocks that fit: they take nanoseconds, and its wake-up takes microseconds.
    #[inline(always)]
    fn send_each(&mut self, mut blocks: &[u8], len: usize) -> io::Result<()> {
        while !blocks.is_empty() {
            if !self.cursor.has_room(len, true) {
                self.make_room(len, true)?;
            }
            // A local copy, so that the compiler keeps it in registers.
            let mut cursor = self.cursor;
            let fitting = cursor.free_bytes() / len * len;
            let (now, rest) = blocks.split_at(fitting.min(blocks.len()));
            for together in now.chunks(ANNOUNCED_BYTES_MAX / len * len) {
                // SAFETY: as in `reserve`; there is room for all of `now`.
                let places = unsafe {
                    std::slice::from_raw_parts_mut(self.ring.at(cursor.position()), together.len())
                };
                copy_each(places, together, len);
                cursor.announce(self.ring.control(), together.len(), len);
            }
            self.cursor = cursor;
            self.waiter.wake_other()?;
            blocks = rest;
        }
        Ok(())
    }

    /// Waits until there is room, and returns a contiguous part of it: `most` bytes, or the largest message if that is less.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, most: usize) -> io::Result<&mut [u8]> {
        let len = most.min(self.ring.piece_bytes);
        let long = len > SHORT_BYTES;
        prefetch_for_write(self.cursor.slot_in(self.ring.control()));
        if !self.cursor.has_room(len, long) {
            self.make_room(len, long)?;
        }
        self.reserved = len;
        // SAFETY: only this sender uses these `len` bytes: the receiver has returned what was there before, and reads them only
        // after they are announced, for which this borrow must have ended.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ring.at(self.cursor.position()), len) })
    }

    /// Announces the reserved bytes to the receiver.
    #[inline(always)]
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.cursor.announce(self.ring.control(), self.reserved, self.reserved);
        self.waiter.wake_other()
    }
}

delegate_end!(RingSender, waiter);

impl Sender for RingSender {
    #[inline(always)]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        let mut rest = block;
        while !rest.is_empty() {
            let slot = self.reserve(rest.len())?;
            let len = slot.len();
            copy(slot, &rest[..len]);
            self.commit()?;
            rest = &rest[len..];
        }
        Ok(())
    }

    #[inline(always)]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        if self.copying == Copying::InOut {
            return self.send(producer.next_block());
        }
        let mut left = producer.block_bytes();
        while left > 0 {
            let slot = self.reserve(left)?;
            let len = slot.len();
            producer.fill(slot);
            self.commit()?;
            left -= len;
        }
        Ok(())
    }

    #[inline(always)]
    fn send_many(&mut self, producer: &mut Producer, blocks: usize) -> io::Result<()> {
        let (len, most) = (producer.block_bytes(), self.ring.piece_bytes.min(MANY_BYTES_MAX));
        if self.copying == Copying::InPlace || blocks == 1 || !(1..=most).contains(&len) {
            return (0..blocks).try_for_each(|_| self.send_next(producer));
        }
        let mut left = blocks * len;
        while left > 0 {
            let ready = producer.next_blocks(left / len);
            left -= ready.len();
            // For each of these lengths the compiler makes a loop with one fixed copy.
            match len {
                4 => self.send_each(ready, 4),
                8 => self.send_each(ready, 8),
                64 => self.send_each(ready, 64),
                _ => self.send_each(ready, len),
            }?;
        }
        Ok(())
    }
}

/// The end that receives.
pub(crate) struct RingReceiver {
    ring: Arc<Ring>,
    cursor: ReceiverCursor<AsWritten>,
    waiter: Waiter,
    copying: Copying,
}

impl RingReceiver {
    /// The only receiver of a new ring.
    pub(crate) fn new(ring: Arc<Ring>, wait: RingWait, copying: Copying) -> Self {
        let cursor = ring.receiver_cursor(wait != RingWait::Never);
        Self { cursor, waiter: Waiter::new(ring.clone(), wait, Side::Receiver), ring, copying }
    }

    /// The same, but returns room after each message, for a sender that waits until all messages are received.
    pub(crate) fn returning_at_once(self) -> Self {
        Self { cursor: self.ring.receiver_cursor(false), ..self }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_bytes(&mut self) -> io::Result<()> {
        let Self { ring, cursor, waiter, .. } = self;
        let control: &Control = ring.control();
        if cursor.has_bytes(control) {
            return Ok(());
        }
        waiter.wait_until(|| {
            if let Position::Ring(_) = cursor.position() {
                prefetch(ring.at(cursor.position()));
            }
            cursor.has_bytes(control)
        })
    }

    /// The same in a stream of small messages. If none has come yet, it checks again after a pause: each check takes the cache line of the
    /// announcements away from the sender, and so does a prefetch of the message.
    #[cold]
    #[inline(never)]
    fn wait_for_small_messages(&mut self) -> io::Result<()> {
        let Self { ring, cursor, waiter, .. } = self;
        let control: &Control = ring.control();
        if cursor.has_bytes(control) {
            return Ok(());
        }
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
        waiter.wait_until(|| cursor.has_bytes(control))
    }

    /// Receives messages of `len` bytes one by one, until there are no more or `room` is full.
    #[inline(always)]
    fn recv_each(&mut self, room: &mut [u8], len: usize) -> io::Result<usize> {
        if self.cursor.left() == 0 {
            self.wait_for_small_messages()?;
        }
        let bytes = self.peek(room.len())?;
        if bytes.len() < len {
            return self.recv(&mut room[..len]);
        }
        copy_each(room, bytes, len);
        let received = bytes.len() / len * len;
        self.release(received)?;
        Ok(received)
    }

    /// Waits for bytes, and returns those that have come and are contiguous, at most `most`.
    #[inline(always)]
    pub(crate) fn peek(&mut self, most: usize) -> io::Result<&[u8]> {
        if self.cursor.left() == 0 {
            self.wait_for_bytes()?;
        }
        let len = most.min(self.cursor.left());
        // SAFETY: the sender has announced these bytes, and writes them again only after they are returned, for which this borrow
        // must have ended.
        Ok(unsafe { std::slice::from_raw_parts(self.ring.at(self.cursor.position()), len) })
    }

    /// Releases the first `len` bytes that [`Self::peek`] returned.
    #[inline(always)]
    pub(crate) fn release(&mut self, len: usize) -> io::Result<()> {
        let returned = self.cursor.take(self.ring.control(), len);
        if returned { self.waiter.wake_other() } else { Ok(()) }
    }
}

delegate_end!(RingReceiver, waiter);

impl Receiver for RingReceiver {
    #[inline(always)]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let bytes = self.peek(room.len())?;
        let len = bytes.len();
        copy(&mut room[..len], bytes);
        self.release(len)?;
        Ok(len)
    }

    #[inline(always)]
    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        if self.copying == Copying::InOut {
            // Bytes that are checked are copied in small pieces, so that they are still in the L1 cache.
            let most = if consumer.checks() { most.min(CHECKED_BYTES_MAX) } else { most };
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

    #[inline(always)]
    fn recv_many(&mut self, consumer: &mut Consumer, most: usize, pieces: usize) -> io::Result<usize> {
        if self.copying == Copying::InPlace || pieces == 1 || most > MANY_BYTES_MAX {
            return self.recv_next(consumer, most);
        }
        let room = consumer.room_for(pieces);
        let received = match most {
            4 => self.recv_each(room, 4),
            8 => self.recv_each(room, 8),
            64 => self.recv_each(room, 64),
            _ => self.recv_each(room, most),
        }?;
        consumer.accept(received);
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message to send, or the largest number of bytes to receive.
    #[derive(Debug, Clone)]
    enum Step {
        Send(usize),
        Receive(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let len = || prop_oneof![1..10usize, 1..SHORT_BYTES + 3, 1..3000usize];
        prop_oneof![len().prop_map(Step::Send), len().prop_map(Step::Receive)]
    }

    fn would_block(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::WouldBlock
    }

    #[test]
    fn small_blocks_arrive_in_order_many_in_a_call_or_alone() {
        let make = |kind| payload::Tile::make(kind, 1, payload::Period::Bench).expect("no file involved");
        let tile = Arc::new(make(&model::PayloadKind::Random));
        let buffering = payload::Buffering { batches: true, offset: 0 };
        for len in [1, 3, 4, 8, 56, 57, 64, 1000] {
            let ring = Arc::new(Ring::new(4096, RingWait::Never).expect("a ring"));
            let mut sender = RingSender::new(ring.clone(), RingWait::Never, Copying::InOut);
            let mut receiver = RingReceiver::new(ring, RingWait::Never, Copying::InOut);
            let mut producer = Producer::new(tile.clone(), DataLevel::Verify, len, buffering);
            let check = model::Check::Xxh3;
            let mut consumer = Consumer::new(DataLevel::Verify, check, &tile, len, buffering);
            let mut blocks = 0;
            for many in (1..=64).map(|many| many.min(4000 / len)) {
                sender.send_many(&mut producer, many).expect("room for all");
                let mut left = many * len;
                while left > 0 {
                    let received =
                        receiver.recv_many(&mut consumer, len, left / len).expect("bytes are there");
                    assert!(received > 0 && received % len == 0, "{received} of {len}");
                    left -= received;
                }
                blocks += many;
            }
            consumer.finish();
            let expected = payload::expected_checksum(&tile, check, (blocks * len) as u64, &|| false);
            assert_eq!(consumer.checksum(), expected, "{len}");
        }
    }

    proptest! {
        #[test]
        fn bytes_arrive_in_order_with_any_sizes_of_messages(steps in prop::collection::vec(step(), 1..400)) {
            let ring = Arc::new(Ring::new(4096, RingWait::Never).expect("a ring"));
            let mut sender = RingSender::new(ring.clone(), RingWait::Never, Copying::InOut);
            let mut receiver = RingReceiver::new(ring, RingWait::Never, Copying::InOut);
            let (mut sent, mut received) = (0u64, 0u64);
            // A period of 251 bytes, so that a message at a wrong offset in the ring is noticed.
            let byte = |at: u64| (at % 251) as u8;
            for step in steps {
                match step {
                    Step::Send(len) => match sender.reserve(len) {
                        Ok(room) => {
                            let len = room.len();
                            (sent..).zip(room).for_each(|(at, place)| *place = byte(at));
                            sender.commit().expect("no sleeper");
                            sent += len as u64;
                            prop_assert!(sent - received <= 4096, "more in flight than the ring holds");
                        }
                        Err(error) => prop_assert!(would_block(&error), "{error}"),
                    },
                    Step::Receive(most) => {
                        let mut room = vec![0; most];
                        match receiver.recv(&mut room) {
                            Ok(len) => {
                                let expected: Vec<u8> = (received..).take(len).map(byte).collect();
                                prop_assert_eq!(&room[..len], &expected);
                                received += len as u64;
                            }
                            Err(error) => prop_assert!(would_block(&error) && sent == received, "{error}"),
                        }
                    }
                }
            }
        }
    }
}
