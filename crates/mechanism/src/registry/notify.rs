//! What the primitives share that carry no data: one side notifies, the other waits for the notification. They run
//! round trips only; the size of a block is nothing to them.

use crate::prelude::*;

/// A call for each block, which itself stays where it is: it notifies, or it waits for the next notification. The call
/// says how many system calls it made, or `None` where that is not known.
pub(super) struct Notification<F> {
    call: F,
    /// What the task does first.
    prepare: Option<Box<dyn FnMut() -> io::Result<()> + Send>>,
    syscalls: Option<u64>,
}

impl<F: FnMut() -> io::Result<Option<u64>> + Send> Notification<F> {
    pub(super) fn new(call: F) -> Self {
        Self { call, prepare: None, syscalls: Some(0) }
    }

    /// With something to do in the task that uses it, before the barrier.
    pub(super) fn prepared_by(self, prepare: impl FnMut() -> io::Result<()> + Send + 'static) -> Self {
        Self { prepare: Some(Box::new(prepare)), ..self }
    }

    #[inline(always)]
    fn pass(&mut self) -> io::Result<()> {
        let made = (self.call)()?;
        self.syscalls = self.syscalls.zip(made).map(|(before, made)| before + made);
        Ok(())
    }
}

impl<F: FnMut() -> io::Result<Option<u64>> + Send> End for Notification<F> {
    fn prepare(&mut self) -> io::Result<()> {
        self.prepare.as_mut().map_or(Ok(()), |prepare| prepare())
    }

    fn syscalls(&self) -> Option<u64> {
        self.syscalls
    }
}

impl<F: FnMut() -> io::Result<Option<u64>> + Send> Sender for Notification<F> {
    #[inline]
    fn send(&mut self, _block: &[u8]) -> io::Result<()> {
        self.pass()
    }

    #[inline]
    fn send_next(&mut self, _producer: &mut Producer) -> io::Result<()> {
        self.pass()
    }
}

impl<F: FnMut() -> io::Result<Option<u64>> + Send> Receiver for Notification<F> {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.pass()?;
        Ok(room.len())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        self.pass()?;
        Ok(most)
    }
}
