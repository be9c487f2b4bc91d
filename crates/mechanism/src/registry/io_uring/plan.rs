//! What a task's ring is for.

/// What a request asks of the tasks and their rings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) socket: bool,
    /// Buffers and descriptors are registered.
    pub(super) fixed: bool,
    pub(super) sqpoll: bool,
    pub(super) spins: bool,
    /// The only task there is: a read that would wait for its own write fails instead.
    pub(super) alone: bool,
    /// The task asks and is answered: an answer says that the question was written, all of it, so that the
    /// kernel need not say so too (IOSQE_CQE_SKIP_SUCCESS) and we are woken once. A short write it does tell.
    pub(super) answered: bool,
    /// Buffers, and so requests in flight or being prepared, in each direction.
    pub(super) depth: usize,
    pub(super) block_bytes: usize,
}

impl Plan {
    /// Half of the buffers are in flight while the others are worked on.
    pub(super) fn batch(&self) -> usize {
        (self.depth / 2).max(1)
    }
}
