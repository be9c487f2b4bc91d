//! A ring of bytes in shared memory, one sender, one receiver: what `shm-ring`, `mmap-file` and `process-vm` share.
//! It makes no system call while both ends keep up; where it lies, and what it carries, is theirs to say.

mod ends;
mod evidence;
mod layout;
mod wait;

pub(super) use ends::{Copying, RingReceiver, RingSender};
pub(super) use evidence::evidence;
pub(super) use layout::{Ring, control_bytes, mapped_bytes};
pub(super) use wait::RingWait;

use std::sync::Arc;

use model::ByteSize;

use crate::channel::{Granted, OpenError, Request};
use crate::descriptor::{OptionKind, OptionSpec};
use crate::loops::Direction;
use layout::{BYTES_MAX, DEFAULT_BYTES};

/// `size=`.
pub(super) const SIZE_OPTION: OptionSpec = OptionSpec {
    name: "size",
    kind: OptionKind::Size,
    default: "1MiB",
    help: "bytes the ring holds (rounded up to a power of two)",
};

/// `wait=`.
pub(super) const WAIT_OPTION: OptionSpec = OptionSpec {
    name: "wait",
    kind: OptionKind::Choice(&["spin", "futex", "eventfd"]),
    default: "futex, or what --wait says",
    help: "how an end waits: looking again at once, or asleep in futex(2), or in read(2) of an eventfd",
};

/// `copy=`.
pub(super) const COPY_OPTION: OptionSpec = OptionSpec {
    name: "copy",
    kind: OptionKind::Choice(&["in-out", "in-place"]),
    default: "in-out",
    help: "in-place: the ends work on the payload where it lies, in the ring (the loan of iceoryx)",
};

/// The size asked for, rounded up as the ring needs it.
///
/// # Errors
/// More than a ring may have.
pub(super) fn ring_bytes(request: &Request<'_>) -> Result<usize, OpenError> {
    let bytes = request.options.size("size").unwrap_or(DEFAULT_BYTES);
    if bytes <= BYTES_MAX {
        return Ok(bytes.next_power_of_two() as usize);
    }
    Err(OpenError::Limit {
        message: format!("a ring of {} (limit {})", ByteSize(bytes), ByteSize(BYTES_MAX)),
        remedy: "a smaller size=".to_owned(),
    })
}

/// A ring that carries the payload, as one direction of a channel.
pub(super) fn payload_direction(request: &Request<'_>, ring: Ring) -> Direction<RingSender, RingReceiver> {
    let ring = Arc::new(ring);
    let granted = Granted::from([("ring_bytes".to_owned(), ring.bytes() as u64)]);
    let (wait, copying) = (RingWait::of(request), Copying::of(request.options));
    Direction {
        sender: RingSender::new(ring.clone(), wait, copying),
        receiver: RingReceiver::new(ring, wait, copying),
        granted,
    }
}
