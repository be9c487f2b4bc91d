//! What the primitives share that carry no data: a knock, and a wait for it. They run round trips only; the
//! size of a block is nothing to them.

use std::io;

use payload::{Consumer, Producer};

use crate::{Receiver, Sender};

/// The side that knocks.
pub(super) trait Knock: Send {
    /// Tells the other side once.
    fn knock(&mut self) -> io::Result<()>;

    /// System calls made so far, where they are counted.
    fn syscalls(&self) -> Option<u64>;
}

/// The side that waits for a knock.
pub(super) trait Hear: Send {
    /// What must be done in the waiting task before anybody knocks.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns when the other side has knocked once more.
    fn hear(&mut self) -> io::Result<()>;

    /// System calls made so far, where they are counted.
    fn syscalls(&self) -> Option<u64>;
}

/// A knock for each block, which itself stays where it is.
pub(super) struct Knocker<K>(pub(super) K);

impl<K: Knock> Sender for Knocker<K> {
    #[inline]
    fn send(&mut self, _block: &[u8]) -> io::Result<()> {
        self.0.knock()
    }

    #[inline]
    fn send_next(&mut self, _producer: &mut Producer) -> io::Result<()> {
        self.0.knock()
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}

/// Says after each knock that a whole block came.
pub(super) struct Hearer<H>(pub(super) H);

impl<H: Hear> Receiver for Hearer<H> {
    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()
    }

    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.hear()?;
        Ok(room.len())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.0.hear()?;
        Ok(most)
    }

    fn syscalls(&self) -> Option<u64> {
        self.0.syscalls()
    }
}
