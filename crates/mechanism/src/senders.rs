//! Many senders on one channel: each holds the sending end, one task receives.

use std::io;

use model::{Tasks, Workload, describe_errno};

use crate::endpoint::{EndpointRole, Job};
use crate::loops::{Direction, each_block, each_piece, endpoint};
use crate::{Channel, OpenError, Receiver, Request, Sender};

/// A channel of one direction whose sending end several tasks share.
pub(crate) fn many_senders<S: Sender + 'static, R: Receiver + 'static>(
    request: &Request<'_>,
    count: u32,
    direction: Direction<S, R>,
) -> Result<Channel, OpenError> {
    if request.workload != Workload::Stream || request.tasks == Tasks::Single || request.relays > 0 {
        return Err(OpenError::unsupported(
            "many senders send a stream to one receiver",
            "--workload stream, --tasks processes or threads, and no --chain",
        ));
    }
    let Direction { sender, receiver, granted, keep } = direction;
    let mut senders = vec![sender];
    while senders.len() < count as usize {
        let another = senders[0].another().ok_or_else(no_second_sender)?;
        senders.push(another.map_err(|error| OpenError::Limit {
            message: format!("sender {} of {count}: {}", senders.len() + 1, describe_errno(&error)),
            remedy: "fewer --senders, or where descriptors ran out (EMFILE), ulimit -n 4096".to_owned(),
        })?);
    }
    let senders = senders.into_iter().map(|sender| endpoint(EndpointRole::Sender, sender, send_among_others));
    let receiver = endpoint(EndpointRole::Receiver, receiver, receive_from_many);
    Ok(Channel { endpoints: senders.chain([receiver]).collect(), granted, keep: Vec::from_iter(keep) })
}

/// Why there is no second sender.
pub(crate) fn no_second_sender() -> OpenError {
    OpenError::unsupported(
        "its sending end has one holder",
        "without --senders, or a mechanism that can have many (`hosepipe list`)",
    )
}

/// Sends every block, and leaves the end open: what one sender says of the end would hold for all of them.
fn send_among_others<S: Sender>(sender: &mut S, job: &mut Job<'_>) -> io::Result<()> {
    let Some(mut tagger) = job.tagger.take() else {
        return each_block(job, |job| sender.send_next(&mut job.producer));
    };
    each_block(job, |_| sender.send(tagger.next_block()))
}

/// Receives the bytes of all senders; with a sorter block by block, in whatever pieces they come.
fn receive_from_many<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    let mut sorter = job.sorter.take();
    let mut have = 0;
    each_piece(job, |job, most| {
        let Some(sorter) = &mut sorter else { return receiver.recv_next(&mut job.consumer, most) };
        let room = job.consumer.room();
        let received = receiver.recv(&mut room[have..])?;
        have += received;
        if have == room.len() {
            sorter.take(room);
            have = 0;
        }
        Ok(received)
    })?;
    job.sorter = sorter;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}
