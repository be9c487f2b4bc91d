//! `memcpy`: one core copies private memory. The ceiling: nothing that copies once can be faster.

use crate::endpoint::{EndpointRole, Transfer};
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

fn open_channel(_: &Request<'_>) -> Result<Channel, OpenError> {
    let copier = endpoint(EndpointRole::Both, Copier, copy_blocks);
    Ok(Channel { endpoints: vec![copier], granted: Granted::new(), keep: Vec::new() })
}

/// Copies from the producer's buffer to the consumer's.
struct Copier;

impl End for Copier {}

fn copy_blocks(_: &mut Copier, transfer: &mut Transfer<'_>) -> io::Result<()> {
    each_block(transfer, |transfer| {
        let room = transfer.consumer.room();
        room.copy_from_slice(transfer.producer.next_block());
        // The copy is "used": the compiler may not leave it out.
        std::hint::black_box(room.as_mut_ptr());
        transfer.consumer.accept(transfer.block_bytes);
        Ok(())
    })?;
    transfer.consumer.finish();
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    Ok(())
}
