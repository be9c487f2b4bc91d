//! `eventfd`: a counter in the kernel for each direction, eventfd(2). A write of 8 bytes adds to it; a read returns it and sets
//! it to 0.

use rustix::event::{EventfdFlags, eventfd};

use super::notify::Notification;
use crate::prelude::*;

pub(super) static EVENTFD: Mechanism = Mechanism {
    name: "eventfd",
    summary: "a pair of event counters, written and read",
    waits: ANY_WAIT,
    man_pages: &["eventfd(2)"],
    more_specs: &["eventfd"],
    ..Mechanism::notification(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let wait = FdWait::for_request(request);
    one_way(request, || {
        let reads = eventfd(0, EventfdFlags::CLOEXEC).in_call("eventfd2")?;
        let writes = reads.try_clone().in_call("dup")?;
        let (mut writes, mut reads) = (FdEnd::new(writes, wait)?, FdEnd::new(reads, wait)?);
        let notify = move || {
            let before = writes.syscalls;
            writes.send(&1u64.to_ne_bytes())?;
            Ok(Some(writes.syscalls - before))
        };
        let wait = move || {
            let before = reads.syscalls;
            // The counter is 1: each notification is answered before the next one.
            reads.recv(&mut [0; size_of::<u64>()])?;
            Ok(Some(reads.syscalls - before))
        };
        Ok(Direction::new(Notification::new(notify), Notification::new(wait)))
    })
}
