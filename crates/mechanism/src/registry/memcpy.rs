//! `memcpy`: one core copies private memory. The ceiling: nothing that copies once can be faster.

use std::io;

use model::Role;
use payload::Block;

use crate::descriptor::{BLOCK_ONLY, Descriptor, ONE_TASK, STREAM_ONLY};
use crate::endpoint::{Endpoint, EndpointRole, Job};
use crate::{Channel, Mechanism, OpenError, Request};

pub(crate) struct Memcpy;

impl Mechanism for Memcpy {
    fn descriptor(&self) -> &'static Descriptor {
        &Descriptor {
            name: "memcpy",
            summary: "copies private memory on one core: the ceiling",
            role: Role::Ceiling,
            workloads: STREAM_ONLY,
            tasks: ONE_TASK,
            waits: BLOCK_ONLY,
            man_pages: &["memcpy(3)"],
            default_specs: &["memcpy"],
            ..Descriptor::MESSAGES
        }
    }

    fn open(&self, request: &Request<'_>) -> Result<Channel, OpenError> {
        let copier = Copier { copy: Block::new(request.block_bytes) };
        Ok(Channel { endpoints: vec![Box::new(copier)], granted: Default::default(), keep: Vec::new() })
    }
}

/// Copies each block once, from the producer's buffer to one of its own.
struct Copier {
    copy: Block,
}

impl Endpoint for Copier {
    fn role(&self) -> EndpointRole {
        EndpointRole::Both
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        let mut copied: u64 = 0;
        for _ in 0..job.blocks {
            self.copy.copy_from_slice(job.producer.next_block());
            // The copy is "used": the compiler may not leave it out.
            std::hint::black_box(self.copy.as_mut_ptr());
            job.consumer.inspect(&self.copy);
            copied += job.block_bytes as u64;
            job.progress.tell(copied);
        }
        job.received_bytes = copied;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(0)
    }
}
