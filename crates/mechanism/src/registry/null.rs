//! `null`: moves nothing. Its time is the time of the harness.

use crate::prelude::*;

pub(super) static NULL: Mechanism = Mechanism {
    name: "null",
    summary: "moves nothing: the floor, what the harness itself costs",
    role: Role::Floor,
    tasks: ONE_TASK,
    waits: BLOCK_ONLY,
    data: &[DataLevel::None],
    default_specs: &["null"],
    ..Mechanism::messages(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let direction = || Direction::new(Nothing, Nothing);
    let back = (request.workload == Workload::PingPong).then(direction);
    Ok(assemble(request, direction(), back))
}

/// Drops every block that is sent, and returns the requested number of bytes at every receive, without writing any.
pub(super) struct Nothing;

impl End for Nothing {}

impl Sender for Nothing {
    #[inline]
    fn send(&mut self, block: &[u8]) -> io::Result<()> {
        std::hint::black_box(block.as_ptr());
        Ok(())
    }
}

impl Receiver for Nothing {
    #[inline]
    fn recv(&mut self, room: &mut [u8]) -> io::Result<usize> {
        Ok(room.len())
    }

    #[inline]
    fn recv_next(&mut self, _consumer: &mut Consumer, most: usize) -> io::Result<usize> {
        Ok(most)
    }
}
