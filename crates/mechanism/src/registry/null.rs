//! `null`: moves nothing. What it costs is what the harness costs.

use std::io;

use model::{DataLevel, Role, Wait, Workload};
use payload::Consumer;

use crate::descriptor::{BLOCK_ONLY, Descriptor, ONE_TASK};
use crate::loops::{Direction, assemble};
use crate::{Channel, Mechanism, OpenError, Request};
use crate::{Options, Receiver, Sender};

pub(crate) struct Null;

impl Mechanism for Null {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "null",
            summary: "moves nothing: the floor, what the harness itself costs",
            role: Role::Floor,
            tasks: ONE_TASK,
            waits: BLOCK_ONLY,
            data: &[DataLevel::None],
            default_specs: &["null"],
            ..Descriptor::MESSAGES
        }
    }

    fn wait(&self, _options: &Options) -> Wait {
        Wait::Block
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let line = || Direction { sender: Nowhere, receiver: Nothing, granted: Default::default() };
        let back = (request.workload == Workload::PingPong).then(line);
        Ok(assemble(request, line(), back))
    }
}

/// Takes blocks and forgets them.
struct Nowhere;

impl Sender for Nowhere {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        std::hint::black_box(block.as_ptr());
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }
}

/// The receiver of what was never sent: says that all of it came.
pub(super) struct Nothing;

impl Receiver for Nothing {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        Ok(room.len())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        Ok(most)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }
}
