//! The two ends of a ring. What both ways of using it come down to: a slot is reserved, filled and committed; bytes
//! are peeked at and released.
#![allow(unsafe_code)]

use super::layout::{Ring, RingWait, SHORT_BYTES};
use super::wait::Side;
use crate::prelude::*;

/// Whether the payload is copied into and out of the ring, or made and looked at in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copying {
    InOut,
    InPlace,
}

impl Copying {
    pub(crate) fn from_options(options: &Options) -> Self {
        options.one_of("copy", &[("in-out", Self::InOut), ("in-place", Self::InPlace)])
    }
}

/// Copies between slices of one length. What fits in a slot is copied here, in steps that do not reach across two cache
/// lines of it: a call of memcpy(3) for so little was a tenth of a round trip. The last bytes go first, so that the
/// stamp's line, at which the receiver looks all the time, is written in one go with the stamp.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    const STEP: usize = size_of::<u128>();
    match (to, from) {
        ([to], [from]) => *to = *from,
        (to, from) if (STEP..=SHORT_BYTES).contains(&from.len()) && to.len() == from.len() => {
            let mut step = |at: usize| to[at..at + STEP].copy_from_slice(&from[at..at + STEP]);
            let mut at = from.len() - STEP;
            while at > STEP {
                step(at);
                at -= STEP;
            }
            step(at);
            step(0);
        }
        (to, from) => to.copy_from_slice(from),
    }
}

/// The end that sends.
pub(crate) struct RingSender {
    ring: Arc<Ring>,
    /// The number of the next message, from 1 on.
    next: u64,
    /// Bytes sent.
    head: u64,
    /// The message and the bytes that the receiver has released, as last seen.
    released: (u64, u64),
    /// Bytes that are lent, and how many of them there are.
    reserved: usize,
    wait: RingWait,
    copying: Copying,
    syscalls: u64,
}

impl RingSender {
    /// The only sender of a fresh ring.
    pub(crate) fn new(ring: Arc<Ring>, wait: RingWait, copying: Copying) -> Self {
        Self { ring, next: 1, head: 0, released: (0, 0), reserved: 0, wait, copying, syscalls: 0 }
    }

    /// Waits until all but the last `most` messages were released by the receiver.
    #[inline(always)]
    pub(crate) fn wait_until_left(&mut self, most: u64) -> io::Result<()> {
        self.wait_until_released((self.next - 1).saturating_sub(most), 0)
    }

    /// Waits until so much was released: this message and those before it, and this many bytes.
    #[inline(always)]
    fn wait_until_released(&mut self, message: u64, bytes: u64) -> io::Result<()> {
        let known = self.released.0 >= message && self.released.1 >= bytes;
        if known { Ok(()) } else { self.look_until_released(message, bytes) }
    }

    #[cold]
    #[inline(never)]
    fn look_until_released(&mut self, message: u64, bytes: u64) -> io::Result<()> {
        loop {
            self.released = self.ring.released();
            if self.released.0 >= message && self.released.1 >= bytes {
                return Ok(());
            }
            let moved = || self.ring.released() != self.released;
            self.syscalls += self.ring.wait(self.wait, Side::Sender, moved)?;
        }
    }

    /// Waits until there is room, and lends a part of it in one piece: `most` bytes, or less where that is more
    /// than one message takes.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, most: usize) -> io::Result<&mut [u8]> {
        let len = most.min(self.ring.piece_bytes());
        let bytes = (self.head + len as u64).saturating_sub(self.ring.bytes() as u64);
        self.wait_until_released(Ring::before_in_slot(self.next), bytes)?;
        self.reserved = len;
        // SAFETY: `len` bytes from there on are ours: the receiver has released what stood there, and reads them only
        // after they are committed, for which this borrow must have ended.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ring.message(self.next, self.head, len), len) })
    }

    /// Hands over what is lent, as one message.
    #[inline(always)]
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.ring.slot(self.next).publish(self.next, self.reserved);
        self.next += 1;
        self.head += self.reserved as u64;
        self.syscalls += self.ring.wake(self.wait, Side::Receiver)?;
        Ok(())
    }
}

impl End for RingSender {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring.populate();
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

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
}

/// The end that receives.
pub(crate) struct RingReceiver {
    ring: Arc<Ring>,
    /// The number of the message that is being received.
    current: u64,
    /// Bytes of it that were released.
    taken: usize,
    /// Its length, as last looked at.
    len: usize,
    /// Bytes received in all.
    tail: u64,
    wait: RingWait,
    copying: Copying,
    syscalls: u64,
}

impl RingReceiver {
    /// The only receiver of a fresh ring.
    pub(crate) fn new(ring: Arc<Ring>, wait: RingWait, copying: Copying) -> Self {
        Self { ring, current: 1, taken: 0, len: 0, tail: 0, wait, copying, syscalls: 0 }
    }

    /// Waits for the current message, and returns its length.
    #[inline(always)]
    fn arrived(&mut self) -> io::Result<usize> {
        match self.ring.slot(self.current).len_of(self.current) {
            Some(len) => Ok(len),
            None => self.look_until_arrived(),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_until_arrived(&mut self) -> io::Result<usize> {
        let slot = self.ring.slot(self.current);
        loop {
            if let Some(len) = slot.len_of(self.current) {
                return Ok(len);
            }
            slot.touch_second_line();
            let arrived = || slot.len_of(self.current).is_some();
            self.syscalls += self.ring.wait(self.wait, Side::Receiver, arrived)?;
        }
    }

    /// Waits for a message, and lends what is left of it: at most `most` bytes.
    #[inline(always)]
    pub(crate) fn peek(&mut self, most: usize) -> io::Result<&[u8]> {
        self.len = self.arrived()?;
        let begin = self.ring.message(self.current, self.tail - self.taken as u64, self.len);
        // SAFETY: these bytes were handed over by the sender, which writes them again only after they are released,
        // for which this borrow must have ended.
        let message = unsafe { std::slice::from_raw_parts(begin, self.len) };
        let left = &message[self.taken..];
        Ok(&left[..most.min(left.len())])
    }

    /// Gives back the first `len` bytes of what was lent.
    #[inline(always)]
    pub(crate) fn release(&mut self, len: usize) -> io::Result<()> {
        self.tail += len as u64;
        self.taken += len;
        if self.taken == self.len {
            (self.current, self.taken) = (self.current + 1, 0);
        }
        self.ring.release(self.current - 1, self.tail);
        self.syscalls += self.ring.wake(self.wait, Side::Sender)?;
        Ok(())
    }
}

impl End for RingReceiver {
    fn prepare(&mut self) -> io::Result<()> {
        self.ring.populate();
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A message to send, or a look at what is there.
    #[derive(Debug, Clone)]
    enum Step {
        Send(usize),
        Receive(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let len = || prop_oneof![1..SHORT_BYTES + 3, 1..3000usize];
        prop_oneof![len().prop_map(Step::Send), len().prop_map(Step::Receive)]
    }

    fn would_block(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::WouldBlock
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_order_however_it_is_cut(steps in prop::collection::vec(step(), 1..400)) {
            let ring = Arc::new(Ring::new(4096, RingWait::Never).expect("a ring"));
            let mut sender = RingSender::new(ring.clone(), RingWait::Never, Copying::InOut);
            let mut receiver = RingReceiver::new(ring, RingWait::Never, Copying::InOut);
            let (mut sent, mut received) = (0u64, 0u64);
            // No run of 251 bytes is like the next one of 256.
            let byte = |at: u64| (at % 251) as u8;
            for step in steps {
                match step {
                    Step::Send(len) => match sender.reserve(len) {
                        Ok(room) => {
                            let len = room.len();
                            (sent..).zip(room).for_each(|(at, place)| *place = byte(at));
                            sender.commit().expect("no sleeper");
                            sent += len as u64;
                            prop_assert!(sent - received <= 4096, "more on its way than the ring holds");
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
