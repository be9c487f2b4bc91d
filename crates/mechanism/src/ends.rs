//! The two things a mechanism must know: how to send a block, how to receive one.

use std::io;

use payload::{Consumer, Producer};

use crate::ConnectionFacts;

/// What a sender and a receiver have in common.
pub trait End: Send {
    /// Makes what must be made in the task that uses the end (a ring, a connection). Called once, in that task,
    /// before the barrier, so it is not measured. A task with both ends prepares its sender first: `prepare` of a
    /// receiver may wait for the other task's sender, never the other way round.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// System calls made so far; `None` where they are not counted.
    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }

    /// As [`crate::Endpoint::connection`].
    fn connection(&self) -> Option<ConnectionFacts> {
        None
    }
}

/// An end that prepares nothing, and makes the system calls that a field of it counts.
macro_rules! counted_by {
    ($end:ty, $($field:tt).+) => {
        impl End for $end {
            fn syscalls(&self) -> Option<u64> {
                self.$($field).+.syscalls()
            }
        }
    };
}
pub(crate) use counted_by;

/// The sending end of one direction. A concrete type per mechanism, so that loops over it are compiled for it.
pub trait Sender: End {
    /// Hands over one block, all of it, however many calls that takes.
    ///
    /// # Errors
    /// What the system answered; `WouldBlock` only where the end must never wait.
    fn send(&mut self, block: &[u8]) -> io::Result<()>;

    /// Produces the next block and hands it over. A mechanism that can have the payload produced in place
    /// overrides this.
    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        self.send(producer.next_block())
    }

    /// Produces and hands over several small blocks, each as one that a receiver can receive by itself. A mechanism that moves a block in
    /// a few nanoseconds overrides this.
    #[inline]
    fn send_many(&mut self, producer: &mut Producer, blocks: usize) -> io::Result<()> {
        (0..blocks).try_for_each(|_| self.send_next(producer))
    }

    /// Ends the stream.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Ends the stream for each of several receivers that compete for it. A mechanism whose last sender's end is no end for its
    /// receivers overrides this, and sends each of them an empty message.
    fn finish_for(&mut self, _receivers: u32) -> io::Result<()> {
        self.finish()
    }

    /// A second handle to this sending end, for another task; `None` where tasks cannot share it.
    fn another(&self) -> Option<io::Result<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// The receiving end of one direction.
pub trait Receiver: End {
    /// Receives what is there, at most as much as there is room for; waits if there is nothing.
    /// 0 is the end of the stream.
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Receives at most `most` bytes into the consumer. A mechanism whose payload can be looked at where it
    /// lies overrides this.
    #[inline]
    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        let received = self.recv(&mut consumer.room()[..most])?;
        consumer.accept(received);
        Ok(received)
    }

    /// Receives at most `pieces` pieces of at most `most` bytes, the consumer's block: waits for the first, and takes the others if they
    /// are there. More than one piece are whole blocks. A mechanism that moves a block in a few nanoseconds overrides this.
    #[inline]
    fn recv_many(&mut self, consumer: &mut Consumer, most: usize, _pieces: usize) -> io::Result<usize> {
        self.recv_next(consumer, most)
    }

    /// A second handle to this receiving end, for another task; `None` where tasks cannot share it.
    fn another_receiver(&self) -> Option<io::Result<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// The ends that one task holds.
impl<A: End, B: End> End for (A, B) {
    fn prepare(&mut self) -> io::Result<()> {
        self.0.prepare()?;
        self.1.prepare()
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.0.syscalls()? + self.1.syscalls()?)
    }
}

/// A task with both ends sends with the first and receives with the second.
impl<A: Sender, B: End> Sender for (A, B) {
    #[inline(always)]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.0.send(block)
    }

    #[inline(always)]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        self.0.send_next(producer)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }
}

impl<A: End, B: Receiver> Receiver for (A, B) {
    #[inline(always)]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.1.recv(room)
    }

    #[inline(always)]
    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.1.recv_next(consumer, most)
    }
}
