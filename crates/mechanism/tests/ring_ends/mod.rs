//! The two ends of a ring as the model checkers run them: over the protocol, with the memory and the kernel of each checker.

use crate::protocol::{Control, Kernel, Position, Protocol, ReceiverCursor, SenderCursor, wait_until, wake};

/// The bytes of a ring and of its slots, each a variable that the model checker follows.
pub(crate) struct Bytes<T, const SLOTS: usize, const SHORT_BYTES: usize, const RING_BYTES: usize> {
    slots: [[T; SHORT_BYTES]; SLOTS],
    ring: [T; RING_BYTES],
}

impl<T, const SLOTS: usize, const SHORT_BYTES: usize, const RING_BYTES: usize>
    Bytes<T, SLOTS, SHORT_BYTES, RING_BYTES>
{
    pub(crate) fn new(byte: impl Fn(usize) -> T) -> Self {
        Self {
            slots: core::array::from_fn(|_| core::array::from_fn(&byte)),
            ring: core::array::from_fn(&byte),
        }
    }

    pub(crate) fn at(&self, position: Position, at: usize) -> &T {
        match position {
            Position::Slot(number, from) => &self.slots[number as usize % SLOTS][from + at],
            Position::Ring(offset) => &self.ring[(offset as usize + at) % RING_BYTES],
        }
    }
}

/// What the byte of this number in the stream is, never 0 in short streams, as fresh memory is.
fn value(number: usize) -> u8 {
    (number + 1) as u8
}

/// Sends messages of these lengths, each in the ring if the second value is true; `write` writes a byte.
pub(crate) fn send<P: Protocol, K: Kernel, const SLOTS: usize>(
    (kernel, control): (&K, &Control<SLOTS>),
    mut cursor: SenderCursor<P>,
    messages: impl Iterator<Item = (usize, bool)>,
    write: impl Fn(Position, usize, u8),
) {
    let mut sent = 0;
    for (len, long) in messages {
        cursor.begin(control, len, long);
        if !cursor.has_room(len, long) {
            let _ = wait_until(kernel, &control.sleepers.sender, 1, || {
                cursor.refresh(control);
                cursor.has_room(len, long)
            });
        }
        for at in 0..len {
            write(cursor.position(), at, value(sent));
            sent += 1;
        }
        cursor.announce(control, len, len);
        let _ = wake(kernel, &control.sleepers.receiver);
    }
}

/// Receives this many bytes and checks each; `read` reads a byte. A return of room wakes the sender if `wakes`.
pub(crate) fn receive<P: Protocol, K: Kernel, const SLOTS: usize>(
    (kernel, control): (&K, &Control<SLOTS>),
    mut cursor: ReceiverCursor<P>,
    total: usize,
    wakes: bool,
    read: impl Fn(Position, usize) -> u8,
) {
    let mut received = 0;
    while received < total {
        if cursor.left() == 0 {
            let _ = wait_until(kernel, &control.sleepers.receiver, 1, || cursor.has_bytes(control));
        }
        let len = cursor.left();
        for at in 0..len {
            assert_eq!(read(cursor.position(), at), value(received + at), "byte {}", received + at);
        }
        received += len;
        if cursor.take(control, len) && wakes {
            let _ = wake(kernel, &control.sleepers.sender);
        }
    }
}
