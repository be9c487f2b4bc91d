//! Whether a ring's ends really work on the same memory.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;

use model::ZeroCopy;

use super::{Copying, Ring, RingReceiver, RingSender, RingWait};
use crate::registry::evidence::judge;
use crate::{OpenError, Options};

/// Bytes in the block of the experiment.
const BLOCK_BYTES: usize = 4096;

/// What `Mechanism::zero_copy` says of these options; `make` makes a ring of some bytes to try it on.
pub(in super::super) fn evidence(
    options: &Options,
    make: impl FnOnce(usize) -> Result<Ring, OpenError>,
) -> Option<ZeroCopy> {
    if Copying::of(options) == Copying::InOut {
        return None;
    }
    let seen = make(4 * BLOCK_BYTES).map_err(io::Error::other).and_then(change_is_seen);
    Some(judge("what the sender changed after it had handed a block over", seen))
}

/// Hands over a block that begins with 1, makes that a 2 behind the receiver's back, and says whether the receiver saw both.
fn change_is_seen(ring: Ring) -> io::Result<bool> {
    let (ring, wait) = (Arc::new(ring), RingWait::Never);
    let mut sender = RingSender::new(ring.clone(), wait, Copying::InPlace);
    let mut receiver = RingReceiver::new(ring, wait, Copying::InPlace);
    let slot = sender.reserve(BLOCK_BYTES)?;
    slot[0] = 1;
    let first = slot.as_mut_ptr();
    sender.commit()?;
    let before = receiver.peek(BLOCK_BYTES)?[0];
    // SAFETY: the ring is alive, and nobody holds a reference into it at this moment.
    unsafe { first.write_volatile(2) };
    Ok((before, receiver.peek(BLOCK_BYTES)?[0]) == (1, 2))
}
