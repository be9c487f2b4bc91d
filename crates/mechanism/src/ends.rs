//! The two ends that each mechanism implements: [`Sender`] sends a block, [`Receiver`] receives one.

use std::io;

use payload::{Consumer, Producer};

use crate::ConnectionFacts;

/// The common methods of a sender and a receiver.
pub trait End: Send {
    /// Makes resources that must be made in the task that uses the end, such as a ring or a connection. Called once, in that
    /// task, before the barrier, so it is not measured. A task with both ends prepares its sender first: `prepare` of a
    /// receiver may wait for the other task's sender, but `prepare` of a sender waits for no receiver.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// System calls made so far; `None` if they are not counted.
    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }

    /// As [`crate::Endpoint::connection`].
    fn connection(&self) -> Option<ConnectionFacts> {
        None
    }
}

/// Implements [`End`] for a type by one of its fields, which prepares what it needs and counts the system calls.
macro_rules! delegate_end {
    ($end:ty, $($field:tt).+) => {
        impl End for $end {
            fn prepare(&mut self) -> io::Result<()> {
                self.$($field).+.prepare()
            }

            fn syscalls(&self) -> Option<u64> {
                self.$($field).+.syscalls()
            }
        }
    };
}
pub(crate) use delegate_end;

/// The sending end of one direction. Each mechanism has its own type, so that the loops are compiled for it.
pub trait Sender: End {
    /// Sends all bytes of one block, in as many system calls as necessary.
    ///
    /// # Errors
    /// The system's error; `WouldBlock` only if the end must never wait.
    fn send(&mut self, block: &[u8]) -> io::Result<()>;

    /// Produces the next block and sends it. A mechanism in whose memory the payload can be produced overrides this.
    #[inline]
    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        self.send(producer.next_block())
    }

    /// Produces and sends several small blocks; each can be received before the next one is sent. A mechanism that moves a block in a few
    /// nanoseconds overrides this.
    #[inline]
    fn send_many(&mut self, producer: &mut Producer, blocks: usize) -> io::Result<()> {
        (0..blocks).try_for_each(|_| self.send_next(producer))
    }

    /// Ends the stream.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Ends the stream for each of several receivers that compete for it. A mechanism whose receivers do not see that the last sender has
    /// closed overrides this, and sends each of them an empty message.
    fn finish_for(&mut self, _receivers: u32) -> io::Result<()> {
        self.finish()
    }

    /// A second handle to this sending end, for another task; `None` if tasks cannot share it.
    fn another(&self) -> Option<io::Result<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// The receiving end of one direction.
pub trait Receiver: End {
    /// Receives the bytes that are there, at most as many as fit into `room`; waits if there are none. Returns their number; 0
    /// is the end of the stream.
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Receives at most `most` bytes into the consumer. A mechanism in whose memory the payload can be checked overrides this.
    #[inline]
    fn recv_next(&mut self, consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        let received = self.recv(&mut consumer.room()[..most])?;
        consumer.accept(received);
        Ok(received)
    }

    /// Receives at most `pieces` pieces of at most `most` bytes, the consumer's block: waits for the first piece, and takes the others only
    /// if they are there. If it takes more than one piece, all are whole blocks. A mechanism that moves a block in a few nanoseconds
    /// overrides this.
    #[inline]
    fn recv_many(&mut self, consumer: &mut Consumer, most: usize, _pieces: usize) -> io::Result<usize> {
        self.recv_next(consumer, most)
    }

    /// A second handle to this receiving end, for another task; `None` if tasks cannot share it.
    fn another_receiver(&self) -> Option<io::Result<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// Both ends of one task.
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
