//! `memcpy`: one core copies private memory. The ceiling: nothing that copies once can be faster.

use payload::Block;

use crate::endpoint::{EndpointRole, Job};
use crate::loops::{each_block, endpoint};
use crate::prelude::*;

pub(super) static MEMCPY: Mechanism = Mechanism {
    name: "memcpy",
    summary: "copies private memory on one core: the ceiling",
    role: Role::Ceiling,
    workloads: STREAM_ONLY,
    tasks: ONE_TASK,
    waits: BLOCK_ONLY,
    man_pages: &["memcpy(3)"],
    default_specs: &["memcpy"],
    ..Mechanism::messages(open_channel)
};

fn open_channel(request: &Request<'_>) -> Result<Channel, OpenError> {
    let copier = endpoint(EndpointRole::Both, Copy(Block::new(request.block_bytes)), copy_blocks);
    Ok(Channel { endpoints: vec![copier], granted: Granted::new(), keep: Vec::new() })
}

/// Where each block is copied to, from the producer's buffer.
struct Copy(Block);

impl End for Copy {}

fn copy_blocks(Copy(copy): &mut Copy, job: &mut Job<'_>) -> io::Result<()> {
    each_block(job, |job| {
        copy.copy_from_slice(job.producer.next_block());
        // The copy is "used": the compiler may not leave it out.
        std::hint::black_box(copy.as_mut_ptr());
        job.consumer.inspect(copy);
        Ok(())
    })?;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}
