//! Common code of the two kinds of message queue: an end with a message buffer. The payload is produced and checked in that
//! buffer.

use crate::prelude::*;

/// The properties that both mechanisms have.
pub(super) const fn queue(open_channel: OpenChannel) -> Mechanism {
    Mechanism {
        capabilities: Capabilities::KEEPS_BOUNDARIES
            .union(Capabilities::STORES_DATA)
            .union(Capabilities::NEEDS_CLEANUP)
            .union(Capabilities::MANY_SENDERS),
        waits: BLOCK_OR_SPIN,
        ..Mechanism::messages(open_channel)
    }
}

/// A queue of messages in the kernel; both ends have a reference to it.
pub(super) trait Queue: Send + Sync {
    /// Bytes of a message buffer before the payload.
    const HEADER: &'static [u8] = &[];

    /// Sends a message, which begins with the header.
    fn send(&self, message: &[u8]) -> io::Result<()>;

    /// Receives a message; returns the length of its payload in bytes.
    fn receive(&self, message: &mut [u8]) -> io::Result<usize>;
}

/// Whether a queue is opened in non-blocking mode: an end that spins tries again, and a single task would wait for itself.
pub(super) fn is_nonblocking(request: &Request<'_>) -> bool {
    matches!(FdWait::for_request(request), FdWait::Never | FdWait::Spin)
}

/// Either end of a queue.
pub(super) struct QueueEnd<Q> {
    queue: Arc<Q>,
    message: Vec<u8>,
    spins: bool,
    syscalls: u64,
}

impl<Q: Queue> QueueEnd<Q> {
    pub(super) fn new(queue: &Arc<Q>, request: &Request<'_>) -> Self {
        let mut message = Q::HEADER.to_vec();
        message.resize(Q::HEADER.len() + request.block_bytes, 0xA5);
        Self {
            queue: queue.clone(),
            message,
            spins: FdWait::for_request(request) == FdWait::Spin,
            syscalls: 0,
        }
    }

    fn payload(&mut self) -> &mut [u8] {
        &mut self.message[Q::HEADER.len()..]
    }

    /// Sends the payload in the buffer.
    fn hand_over(&mut self) -> io::Result<()> {
        self.retry(|queue, message| queue.send(message))
    }

    /// Receives a payload into the buffer.
    fn take(&mut self) -> io::Result<&[u8]> {
        let received = self.retry(|queue, message| queue.receive(message))?;
        Ok(&self.payload()[..received])
    }

    #[inline]
    fn retry<T>(&mut self, call: impl Fn(&Q, &mut [u8]) -> io::Result<T>) -> io::Result<T> {
        loop {
            self.syscalls += 1;
            let done = call(&self.queue, &mut self.message);
            match done.as_ref().err().and_then(io::Error::raw_os_error) {
                Some(libc::EINTR) => {}
                // ENOMSG: there is no message (msgop(2)).
                Some(libc::EAGAIN | libc::ENOMSG) if self.spins => {}
                _ => return done,
            }
        }
    }
}

impl<Q: Queue> End for QueueEnd<Q> {
    fn syscalls(&self) -> Option<u64> {
        Some(self.syscalls)
    }
}

impl<Q: Queue> Sender for QueueEnd<Q> {
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        self.payload().copy_from_slice(block);
        self.hand_over()
    }

    fn send_next(&mut self, producer: &mut Producer) -> io::Result<()> {
        producer.fill(self.payload());
        self.hand_over()
    }

    fn finish_for(&mut self, receivers: u32) -> io::Result<()> {
        (0..receivers).try_for_each(|_| self.retry(|queue, message| queue.send(&message[..Q::HEADER.len()])))
    }

    fn another(&self) -> Option<io::Result<Self>> {
        let (queue, message) = (self.queue.clone(), self.message.clone());
        Some(Ok(Self { queue, message, spins: self.spins, syscalls: 0 }))
    }
}

impl<Q: Queue> Receiver for QueueEnd<Q> {
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let received = self.take()?;
        room[..received.len()].copy_from_slice(received);
        Ok(received.len())
    }

    fn recv_next(&mut self, consumer: &mut Consumer, _most: usize) -> io::Result<usize> {
        let received = self.take()?;
        consumer.inspect(received);
        Ok(received.len())
    }

    fn another_receiver(&self) -> Option<io::Result<Self>> {
        self.another()
    }
}
