//! A ring of bytes in shared memory with one sender and one receiver: the common code of `shm-ring`, `mmap-file` and
//! `process-vm`. It makes no system call while no end has to wait. Each mechanism determines its memory and the content.
#![allow(unsafe_code)]

mod cache;
mod ends;
mod layout;
mod protocol;
mod wait;

pub(super) use ends::{Copying, RingReceiver, RingSender};
pub(super) use layout::{Ring, RingWait, control_bytes, mapped_bytes};

use super::evidence::verdict;
use crate::prelude::*;
use layout::{BYTES_MAX, DEFAULT_BYTES};

/// Bytes in the block of the experiment `change_is_seen`.
const BLOCK_BYTES: usize = 4096;

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
    default: "futex, or the value of --wait",
    help: "how an end waits: checking again at once; or, after some checks, asleep in futex(2), or in read(2) of an eventfd",
};

/// `copy=`.
pub(super) const COPY_OPTION: OptionSpec = OptionSpec {
    name: "copy",
    kind: OptionKind::Choice(&["in-out", "in-place"]),
    default: "in-out",
    help: "in-place: the ends make and check the payload in the ring, without copies (as loaned samples of iceoryx)",
};

/// The requested size in bytes, rounded up to a power of two.
///
/// # Errors
/// More than a ring may have.
pub(super) fn ring_bytes(request: &Request<'_>) -> Result<usize, OpenError> {
    let bytes = request.options.size(SIZE_OPTION.name).unwrap_or(DEFAULT_BYTES);
    if bytes <= BYTES_MAX {
        return Ok(bytes.next_power_of_two() as usize);
    }
    let message = format!("a ring of {} (limit {})", ByteSize(bytes), ByteSize(BYTES_MAX));
    Err(OpenError::limit(message, "a smaller size="))
}

/// A ring that carries the payload, as one direction of a channel.
pub(super) fn payload_direction(request: &Request<'_>, ring: Ring) -> Direction<RingSender, RingReceiver> {
    let bytes = ring.bytes as u64;
    let ring = Arc::new(ring);
    let (wait, copying) = (RingWait::for_request(request), Copying::from_options(request.options));
    let sender = RingSender::new(ring.clone(), wait, copying);
    Direction::new(sender, RingReceiver::new(ring, wait, copying)).granted([("ring_bytes", bytes)])
}

/// The result of `Mechanism::zero_copy` for these options. `make` makes a ring with a number of bytes for the experiment.
pub(super) fn evidence(
    options: &Options,
    make: impl FnOnce(usize) -> Result<Ring, OpenError>,
) -> Option<ZeroCopy> {
    if Copying::from_options(options) == Copying::InOut {
        return None;
    }
    let seen = make(4 * BLOCK_BYTES).map_err(io::Error::other).and_then(change_is_seen);
    Some(verdict("the sender changed a byte after it had sent the block", seen))
}

/// Hands over a block that begins with 1, changes that byte to 2 without another announcement, and returns whether the receiver saw both.
fn change_is_seen(ring: Ring) -> io::Result<bool> {
    let (ring, wait) = (Arc::new(ring), RingWait::Never);
    let mut sender = RingSender::new(ring.clone(), wait, Copying::InPlace);
    let mut receiver = RingReceiver::new(ring, wait, Copying::InPlace);
    let slot = sender.reserve(BLOCK_BYTES)?;
    slot[0] = 1;
    let first = slot.as_mut_ptr();
    sender.commit()?;
    let before = receiver.peek(BLOCK_BYTES)?[0];
    // SAFETY: the ring is alive, and no reference into it is held now.
    unsafe { first.write_volatile(2) };
    Ok((before, receiver.peek(BLOCK_BYTES)?[0]) == (1, 2))
}
