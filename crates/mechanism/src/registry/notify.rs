//! Common code of the mechanisms that carry no data: one side notifies, the other waits for the notification. They run
//! round trips only, and ignore the size of a block.

use crate::prelude::*;

/// An end that makes one call for each block: the call notifies, or it waits for the next notification; the block is not
/// moved. The call returns the number of system calls that it made, or `None` if that is not known.
pub(super) struct Notification<F> {
    call: F,
    /// Called in the task that uses the end, before the barrier.
    prepare: Option<Box<dyn FnMut() -> io::Result<()> + Send>>,
    syscalls: Option<u64>,
}

impl<F: FnMut() -> io::Result<Option<u64>> + Send> Notification<F> {
    pub(super) fn new(call: F) -> Self {
        Self { call, prepare: None, syscalls: Some(0) }
    }

    /// The same with `prepare`, which the task that uses the end calls before the barrier.
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
