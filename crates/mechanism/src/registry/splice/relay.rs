//! The relays of a chain: what comes is spliced on, and no byte comes near their memory.

use std::io;
use std::os::fd::OwnedFd;

use super::super::pipe::size_as_asked;
use super::onward::{Awaits, Onward};
use super::{is_to_socket, own_pipe};
use crate::endpoint::{Endpoint, EndpointRole, Job};
use crate::fd::FdWait;
use crate::{OpenError, Request};

/// A task in a chain that moves what comes without looking at it, as `cat` does between two pipes.
pub(super) struct SpliceRelay {
    /// From the hop before.
    inward: Onward,
    /// To the hop after, by way of a pipe of the relay's own, where neither hop is a pipe.
    onward: Option<Onward>,
}

impl SpliceRelay {
    pub(super) fn new(request: &Request<'_>, from: OwnedFd, to: OwnedFd) -> Result<Self, OpenError> {
        let wait = FdWait::of(request);
        wait.apply(&from)?;
        wait.apply(&to)?;
        if !is_to_socket(request.options) {
            return Ok(Self { inward: Onward::new(from, to, wait), onward: None });
        }
        let (read_end, write_end) = own_pipe()?;
        size_as_asked(request, &write_end)?;
        let onward = Some(Onward::new(read_end, to, wait));
        Ok(Self { inward: Onward::new(from, write_end, wait), onward })
    }

    #[inline]
    fn move_some(&mut self, most: usize) -> io::Result<usize> {
        let moved = self.inward.some(most, Awaits::Both)?;
        if let Some(onward) = &mut self.onward {
            onward.all(moved)?;
        }
        Ok(moved)
    }
}

impl Endpoint for SpliceRelay {
    fn role(&self) -> EndpointRole {
        EndpointRole::Relay
    }

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        let total = job.blocks * job.block_bytes as u64;
        let mut passed: u64 = 0;
        while passed < total {
            let moved = self.move_some(job.block_bytes)?;
            if moved == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("the other end closed after {passed} of {total} bytes"),
                ));
            }
            passed += moved as u64;
            job.progress.tell(passed);
        }
        self.inward.to = None;
        self.onward = None;
        Ok(())
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.inward.syscalls + self.onward.as_ref().map_or(0, |onward| onward.syscalls))
    }
}
