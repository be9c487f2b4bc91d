//! `eventfd`: a pair of counters in the kernel, eventfd(2): 8 bytes written add to it, a read takes all of it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};

use super::knock::{Hear, Hearer, Knock, Knocker};
use crate::descriptor::Descriptor;
use crate::fd::{FdReceiver, FdSender, FdWait};
use crate::loops::{Direction, one_way};
use crate::{Channel, Mechanism, OpenError, Request};
use crate::{Receiver, Sender};

pub(crate) struct Eventfd;

impl Mechanism for Eventfd {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "eventfd",
            summary: "a pair of event counters, written and read",
            waits: Descriptor::STREAM.waits,
            man_pages: &["eventfd(2)"],
            more_specs: &["eventfd"],
            ..Descriptor::NOTIFICATION
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let wait = FdWait::of(request);
        one_way(request, || {
            let reads = eventfd(0, EventfdFlags::CLOEXEC).map_err(OpenError::system("eventfd2"))?;
            let writes: OwnedFd = reads.try_clone().map_err(OpenError::system("dup"))?;
            Ok(Direction {
                sender: Knocker(FdSender::new(writes, wait)?),
                receiver: Hearer(FdReceiver::new(reads, wait)?),
                granted: Default::default(),
            })
        })
    }
}

impl Knock for FdSender {
    #[inline]
    fn knock(&mut self) -> io::Result<()> {
        self.send(&1u64.to_ne_bytes())
    }

    fn syscalls(&self) -> Option<u64> {
        Sender::syscalls(self)
    }
}

impl Hear for FdReceiver {
    #[inline]
    fn hear(&mut self) -> io::Result<()> {
        // What was counted is one knock: each is answered before the next.
        self.recv(&mut [0; size_of::<u64>()]).map(|_| ())
    }

    fn syscalls(&self) -> Option<u64> {
        Receiver::syscalls(self)
    }
}
