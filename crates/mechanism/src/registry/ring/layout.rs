//! The memory layout of a ring: its bytes, the shared control data, and the eventfds on which ends sleep.
#![allow(unsafe_code)]

use rustix::event::{EventfdFlags, eventfd};
use rustix::param::page_size;
use rustix::thread::{MembarrierCommand, membarrier};

use super::protocol::{self, AsWritten, Position, ReceiverCursor, SenderCursor};
use crate::prelude::*;

/// Bytes in a ring when `size=` is not given.
pub(super) const DEFAULT_BYTES: u64 = 1 << 20;

/// The largest ring: larger than the caches of most machines; more memory would not make it faster.
pub(super) const BYTES_MAX: u64 = 128 << 20;

/// Most bytes that an end copies before it publishes them: the sender's copy of one piece then overlaps the
/// receiver's copy of the piece before. At most a quarter of the ring, so that this also works in a small ring.
const PIECE_BYTES_MAX: usize = 64 << 10;
const _: () = assert!(PIECE_BYTES_MAX < 1 << protocol::LEN_BITS);

/// Number of slots: enough for short messages that are sent one at a time. All slots fit into the L2 cache of a core.
const SLOTS: usize = 1024;
pub(super) type Control = protocol::Control<SLOTS>;

/// A receiver returns slots, or bytes, to the sender when it has received 1/8 of the ring's slots, or bytes.
const RETURN_DIVISOR: u64 = 8;

/// How an end of a ring waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingWait {
    /// Checks again at once.
    Spin,
    /// Sleeps in futex(2).
    Futex,
    /// Sleeps in read(2) of an eventfd(2), as a program would that also waits for other descriptors.
    Eventfd,
    /// Never waits: a single task would wait for itself for ever.
    Never,
}

impl RingWait {
    /// How the ends of this request wait: as the spec's option `wait` says, or else as the request says.
    pub(crate) fn for_request(request: &Request<'_>) -> Self {
        match (request.tasks, request.options.word("wait"), request.wait) {
            (Tasks::Single, ..) => Self::Never,
            (_, Some("spin"), _) | (_, None, Wait::Spin) => Self::Spin,
            (_, Some("eventfd"), _) => Self::Eventfd,
            _ => Self::Futex,
        }
    }

    #[inline]
    pub(super) fn sleeps(self) -> bool {
        matches!(self, Self::Futex | Self::Eventfd)
    }
}

/// The eventfds on which the ends sleep with `wait=eventfd`.
pub(super) struct WakeFds {
    pub(super) sender: OwnedFd,
    pub(super) receiver: OwnedFd,
}

/// Size of the control data in bytes, rounded up to whole pages.
pub(crate) fn control_bytes() -> usize {
    size_of::<Control>().next_multiple_of(page_size())
}

/// Size of a ring's bytes in memory, rounded up to whole pages.
pub(crate) fn mapped_bytes(ring_bytes: usize) -> usize {
    ring_bytes.next_multiple_of(page_size())
}

/// Allows the other end to make this process execute a fence by membarrier(2), also after fork(2).
pub(super) fn register_for_barriers() -> io::Result<()> {
    Ok(membarrier(MembarrierCommand::RegisterGlobalExpedited)?)
}

/// The ring in memory: its bytes, mapped twice one after the other so that every message is contiguous, then the control data.
pub(crate) struct Ring {
    memory: SharedMemory,
    /// The number of bytes that it holds.
    pub(super) bytes: usize,
    mapped_bytes: usize,
    /// Most bytes of one announcement; see [`PIECE_BYTES_MAX`].
    pub(super) piece_bytes: usize,
    pub(super) wake_fds: Option<WakeFds>,
    /// Whether the ends use membarrier(2), as `wait.rs` explains.
    pub(super) barriers: bool,
}

impl Ring {
    /// A ring in anonymous memory. `bytes` is a power of two.
    pub(crate) fn new(bytes: usize, wait: RingWait) -> Result<Self, OpenError> {
        let memory = SharedMemory::twice(mapped_bytes(bytes), control_bytes());
        Self::over(memory.in_call("mmap(MAP_SHARED) of the ring")?, bytes, wait)
    }

    /// A ring in memory from [`SharedMemory::twice`] that is all zeros. `bytes` is a power of two.
    pub(crate) fn over(memory: SharedMemory, bytes: usize, wait: RingWait) -> Result<Self, OpenError> {
        let mapped_bytes = mapped_bytes(bytes);
        assert!(bytes.is_power_of_two() && memory.len() >= 2 * mapped_bytes + control_bytes());
        let wake_fd = || eventfd(0, EventfdFlags::CLOEXEC).in_call("eventfd2");
        let wake_fds = match wait {
            RingWait::Eventfd => Some(WakeFds { sender: wake_fd()?, receiver: wake_fd()? }),
            RingWait::Spin | RingWait::Futex | RingWait::Never => None,
        };
        let piece_bytes = (bytes / 4).clamp(1, PIECE_BYTES_MAX);
        let barriers = wait.sleeps() && register_for_barriers().is_ok();
        Ok(Self { memory, bytes, mapped_bytes, piece_bytes, wake_fds, barriers })
    }

    /// Maps all pages into this task's page table, to avoid page faults later: fork(2) does not copy entries of shared
    /// mappings.
    pub(super) fn populate(&self) {
        self.memory.populate();
    }

    #[inline]
    pub(super) fn control(&self) -> &Control {
        // SAFETY: the mapping is page-aligned and long enough (see `over`), zeroed (a valid Control), and all
        // fields are atomics or guarded by them, so that shared references from several tasks are sound.
        unsafe { &*self.memory.as_ptr().add(2 * self.mapped_bytes).cast::<Control>() }
    }

    /// The address of a message. A position in the ring is followed by as many bytes as the ring holds.
    #[inline]
    pub(super) fn at(&self, position: Position) -> *mut u8 {
        match position {
            // SAFETY: a message in a slot is within the slot's bytes.
            Position::Slot(number, at) => unsafe { self.control().slot(number).short().add(at) },
            // SAFETY: the index is less than the bytes of the first copy.
            Position::Ring(offset) => unsafe {
                self.memory.as_ptr().add(offset as usize & (self.mapped_bytes - 1))
            },
        }
    }

    pub(super) fn sender_cursor(&self) -> SenderCursor<AsWritten> {
        SenderCursor::new(self.control(), self.bytes as u64, self.piece_bytes)
    }

    /// The cursor of a receiver. If `keeps` is false, it returns each message's bytes at once: a single task, or a sender that waits
    /// until all messages are received, would otherwise wait for ever.
    pub(super) fn receiver_cursor(&self, keeps: bool) -> ReceiverCursor<AsWritten> {
        let share = |all: usize| if keeps { all as u64 / RETURN_DIVISOR } else { 0 };
        ReceiverCursor::new(share(SLOTS), share(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mechanisms_on_a_ring_say_how_much_fits() {
        let limits = |name: &str| crate::all().iter().find(|has| has.name == name).map(|has| has.limits);
        let slots = format!("{SLOTS} slots of {} bytes", protocol::SHORT_BYTES);
        for name in ["shm-ring", "mmap-file"] {
            assert!(limits(name).is_some_and(|limits| limits.contains(&slots)), "{name}");
        }
    }
}
