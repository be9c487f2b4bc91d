//! How the tasks of a trial use their rings.

/// The settings of the tasks and their rings, read from a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) socket: bool,
    /// Buffers and descriptors are registered.
    pub(super) fixed: bool,
    pub(super) sqpoll: bool,
    pub(super) spins: bool,
    /// A single task has both ends: a read that would wait for its own write fails instead.
    pub(super) alone: bool,
    /// Each message is answered by the other task. The answer shows that all of the message was written, so the kernel does not
    /// report that write (IOSQE_CQE_SKIP_SUCCESS), and the task is woken once. Short writes and errors are still reported.
    pub(super) answered: bool,
    /// Buffers in each direction; each is in a request in flight, or is filled or checked by the task.
    pub(super) depth: usize,
    pub(super) block_bytes: usize,
}

impl Plan {
    /// Most requests in one chain: half of the buffers are in flight while the task fills or checks the others.
    pub(super) fn batch(&self) -> usize {
        (self.depth / 2).max(1)
    }
}
