//! `shm-ring`: a ring of bytes in shared memory, one sender, one receiver, no system call while both keep up.

use super::ring::{
    COPY_OPTION, Copying, Ring, RingWait, SIZE_OPTION, WAIT_OPTION, evidence, payload_direction, ring_bytes,
};
use crate::prelude::*;

pub(super) static SHM_RING: Mechanism = Mechanism {
    name: "shm-ring",
    summary: "a ring in shared memory; no system call while both ends keep up",
    capabilities: Capabilities::HAS_NAME,
    waits: BLOCK_OR_SPIN,
    options: &[SIZE_OPTION, WAIT_OPTION, COPY_OPTION],
    limits: "size: 128 MiB; unread in the channel: 1024 slots of 56 bytes for short messages sent one at a time, or of 64 KiB for others",
    man_pages: &["mmap(2)", "memfd_create(2)", "futex(2)", "eventfd(2)"],
    default_specs: &["shm-ring:wait=spin", "shm-ring:wait=futex"],
    more_specs: &[
        "shm-ring:wait=eventfd",
        "shm-ring:copy=in-place,size=256KiB,wait=spin",
        "shm-ring:copy=in-place,wait=futex",
    ],
    in_place: Copying::is_in_place,
    zero_copy,
    ..Mechanism::stream(open_channel)
};

fn zero_copy(options: &Options) -> Option<ZeroCopy> {
    evidence(options, |bytes| Ring::new(bytes, RingWait::Never))
}

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let bytes = ring_bytes(request)?;
    one_way(request, || Ok(payload_direction(request, Ring::new(bytes, RingWait::for_request(request))?)))
}
