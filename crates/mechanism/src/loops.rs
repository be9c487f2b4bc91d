//! The hot loops, written once and compiled for each mechanism: dynamic dispatch happens once per trial.

use std::io;
use std::time::Instant;

use hdrhistogram::Histogram;
use model::monotonic_ns;

use crate::endpoint::{Endpoint, EndpointRole, Transfer};
use crate::ends::End;
use crate::{ConnectionFacts, Pace, Receiver, Sender};

/// The ends that one task has, and its loop: a function compiled for the types of these ends, and called through a pointer
/// once in a trial.
struct Task<E> {
    role: EndpointRole,
    ends: E,
    run: fn(&mut E, &mut Transfer<'_>) -> io::Result<()>,
}

/// Makes a task's side of a channel.
pub(crate) fn endpoint<E: End + 'static>(
    role: EndpointRole,
    ends: E,
    run: fn(&mut E, &mut Transfer<'_>) -> io::Result<()>,
) -> Box<dyn Endpoint> {
    Box::new(Task { role, ends, run })
}

impl<E: End> Endpoint for Task<E> {
    fn role(&self) -> EndpointRole {
        self.role
    }

    fn prepare(&mut self) -> io::Result<()> {
        self.ends.prepare()
    }

    fn run(&mut self, transfer: &mut Transfer<'_>) -> io::Result<()> {
        (self.run)(&mut self.ends, transfer)
    }

    fn syscalls(&self) -> Option<u64> {
        self.ends.syscalls()
    }

    fn connection(&self) -> Option<ConnectionFacts> {
        self.ends.connection()
    }
}

/// Sends every block, then ends the stream.
pub(crate) fn send_stream<S: Sender>(sender: &mut S, transfer: &mut Transfer<'_>) -> io::Result<()> {
    each_batch(transfer, |transfer, blocks| sender.send_many(&mut transfer.producer, blocks))?;
    sender.finish()
}

/// Receives every byte.
pub(crate) fn receive_stream<R: Receiver>(receiver: &mut R, transfer: &mut Transfer<'_>) -> io::Result<()> {
    each_piece(transfer, |transfer, most, pieces| receiver.recv_many(&mut transfer.consumer, most, pieces))?;
    transfer.consumer.finish();
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    Ok(())
}

/// Sends every block, and leaves the end open: one sender must not end the stream of the others.
pub(crate) fn send_among_others<S: Sender>(sender: &mut S, transfer: &mut Transfer<'_>) -> io::Result<()> {
    each_block(transfer, |transfer| send_block(sender, transfer))
}

/// Receives the bytes of all senders. Blocks with tags are collected from the pieces that arrive.
pub(crate) fn receive_from_many<R: Receiver>(
    receiver: &mut R,
    transfer: &mut Transfer<'_>,
) -> io::Result<()> {
    each_piece(transfer, |transfer, most, _| {
        if !transfer.consumer.is_tagged() {
            return receiver.recv_next(&mut transfer.consumer, most);
        }
        let received = receiver.recv(transfer.consumer.rest_of_block())?;
        transfer.consumer.accept_part(received);
        Ok(received)
    })?;
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    Ok(())
}

/// Sends every block to receivers that compete for them, then ends the stream for each of them.
pub(crate) fn send_to_many<S: Sender>(sender: &mut S, transfer: &mut Transfer<'_>) -> io::Result<()> {
    each_block(transfer, |transfer| send_block(sender, transfer))?;
    sender.finish_for(transfer.receivers)
}

/// Sends the next block. One with a tag is made in the producer's buffer, whatever the mechanism.
#[inline]
fn send_block<S: Sender>(sender: &mut S, transfer: &mut Transfer<'_>) -> io::Result<()> {
    match transfer.producer.is_tagged() {
        true => sender.send(transfer.producer.next_block()),
        false => sender.send_next(&mut transfer.producer),
    }
}

/// One of several receivers: receives until the end of the stream. Of blocks with tags it is checked whether each piece is a whole one.
pub(crate) fn receive_among_others<R: Receiver>(
    receiver: &mut R,
    transfer: &mut Transfer<'_>,
) -> io::Result<()> {
    loop {
        let received = if transfer.consumer.is_tagged() {
            let received = receiver.recv(transfer.consumer.rest_of_block())?;
            transfer.consumer.accept_piece(received);
            received
        } else {
            receiver.recv_next(&mut transfer.consumer, transfer.block_bytes)?
        };
        if received == 0 {
            return Ok(());
        }
        transfer.received_bytes += received as u64;
        transfer.progress.report(transfer.received_bytes);
    }
}

/// A task in a chain, as `cat` is in a pipeline: sends all bytes that it receives.
pub(crate) fn relay<S: Sender, R: Receiver>(
    (sender, receiver): &mut (S, R),
    transfer: &mut Transfer<'_>,
) -> io::Result<()> {
    each_piece(transfer, |transfer, _, _| {
        let received = receiver.recv(transfer.consumer.room())?;
        if received > 0 {
            sender.send(&transfer.consumer.room()[..received])?;
        }
        Ok(received)
    })?;
    sender.finish()
}

/// One task that sends each block and then receives it (Bradford's single-threaded program).
pub(crate) fn pass_blocks<S: Sender, R: Receiver>(
    ends: &mut (S, R),
    transfer: &mut Transfer<'_>,
) -> io::Result<()> {
    each_block(transfer, |transfer| pass(ends, transfer))?;
    transfer.consumer.finish();
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    ends.0.finish()
}

/// One task that moves a block in both directions: a round trip without a second task.
pub(crate) fn pass_there_and_back<S: Sender, R: Receiver>(
    ends: &mut ((S, R), (S, R)),
    transfer: &mut Transfer<'_>,
) -> io::Result<()> {
    let there_and_back = |(forth, back): &mut ((S, R), (S, R)), transfer: &mut Transfer<'_>| {
        pass(forth, transfer)?;
        pass(back, transfer)
    };
    time_round_trips(transfer, ends, |_, _| Ok(()), there_and_back)?;
    // The same consumer has received the bytes of both directions.
    transfer.received_bytes *= 2;
    Ok(())
}

/// The side that sends first, and times the round trips.
pub(crate) fn ask<C: Sender + Receiver>(ends: &mut C, transfer: &mut Transfer<'_>) -> io::Result<()> {
    time_round_trips(transfer, ends, |ends, transfer| ends.send_next(&mut transfer.producer), receive_block)?;
    ends.finish()
}

/// The side that answers.
pub(crate) fn answer<C: Sender + Receiver>(ends: &mut C, transfer: &mut Transfer<'_>) -> io::Result<()> {
    for round in 0..transfer.blocks {
        receive_block(ends, transfer)?;
        ends.send_next(&mut transfer.producer)?;
        report_round(transfer, round);
    }
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    ends.finish()
}

/// Calls `step` for each block of a stream, and reports progress.
#[inline(always)]
pub(crate) fn each_block(
    transfer: &mut Transfer<'_>,
    mut step: impl FnMut(&mut Transfer<'_>) -> io::Result<()>,
) -> io::Result<()> {
    each_batch(transfer, |transfer, blocks| (0..blocks).try_for_each(|_| step(transfer)))
}

/// Calls `step` for the blocks of a stream, with the number of blocks up to the next report of progress.
#[inline(always)]
fn each_batch(
    transfer: &mut Transfer<'_>,
    mut step: impl FnMut(&mut Transfer<'_>, usize) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(pace) = transfer.pace.take() {
        return each_due(transfer, &pace, |transfer| step(transfer, 1));
    }
    let mut done: u64 = 0;
    while done < transfer.blocks {
        let blocks = blocks_between_reports(transfer).min(transfer.blocks - done);
        step(transfer, blocks as usize)?;
        done += blocks;
        transfer.progress.report(done * transfer.block_bytes as u64);
    }
    Ok(())
}

/// Calls `step` for each block when it is due, or at once if that time has passed: a receiver that is slow for a while delays the blocks
/// behind it, and changes no due time.
#[inline(never)]
fn each_due(
    transfer: &mut Transfer<'_>,
    pace: &Pace,
    mut step: impl FnMut(&mut Transfer<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let began_ns = monotonic_ns();
    for number in 0..transfer.blocks {
        Pace::sleep_until(pace.due_ns(began_ns, number));
        step(transfer)?;
        transfer.progress.report((number + 1) * transfer.block_bytes as u64);
    }
    Ok(())
}

/// Receives a stream in pieces of at most a block, and reports progress. `step` gets the largest size of a piece in bytes and the largest
/// number of pieces, and returns the number of bytes. 0 is an end of the stream before the last byte; a number above one block is that
/// of several whole blocks.
#[inline(always)]
pub(crate) fn each_piece(
    transfer: &mut Transfer<'_>,
    mut step: impl FnMut(&mut Transfer<'_>, usize, usize) -> io::Result<usize>,
) -> io::Result<()> {
    let total = transfer.blocks * transfer.block_bytes as u64;
    let mut left = total;
    while left > 0 {
        let mut pieces = 0;
        while left > 0 && pieces < blocks_between_reports(transfer) {
            let most = if left < transfer.block_bytes as u64 { left as usize } else { transfer.block_bytes };
            let more = blocks_between_reports(transfer) - pieces;
            let moved = step(transfer, most, if more * most as u64 <= left { more as usize } else { 1 })?;
            if moved == 0 {
                return Err(closed_early(total - left, total));
            }
            left -= moved as u64;
            // Divides only if necessary: a division takes longer than to receive a small piece.
            pieces += if moved > most { (moved / most) as u64 } else { 1 };
        }
        transfer.progress.report(total - left);
    }
    Ok(())
}

/// Progress of blocks of up to this size is reported once for several blocks: the time of a report is a large part of the time of a block.
const SMALL_BYTES: usize = 4096;

/// The comparison stays in the loop: a number that is read from memory instead cost 1.5 ns a block.
#[inline]
fn blocks_between_reports(transfer: &Transfer<'_>) -> u64 {
    if transfer.block_bytes > SMALL_BYTES { 1 } else { transfer.progress.small_blocks_between_reports }
}

/// Sends a block, then receives one.
#[inline]
fn pass<C: Sender + Receiver>(ends: &mut C, transfer: &mut Transfer<'_>) -> io::Result<()> {
    ends.send_next(&mut transfer.producer)?;
    receive_block(ends, transfer)
}

/// Receives exactly one block, in one or more pieces.
#[inline]
fn receive_block<R: Receiver>(receiver: &mut R, transfer: &mut Transfer<'_>) -> io::Result<()> {
    let mut left = transfer.block_bytes;
    while left > 0 {
        let received = receiver.recv_next(&mut transfer.consumer, left)?;
        if received == 0 {
            return Err(closed_early((transfer.block_bytes - left) as u64, transfer.block_bytes as u64));
        }
        left -= received;
    }
    Ok(())
}

/// Reports progress after a round trip, counted from 0; if blocks are small, only after one in many. After a sleep the counter's
/// page and cache line are cold, and a report took a hundredth of a round trip.
#[inline]
fn report_round(transfer: &mut Transfer<'_>, round: u64) {
    let rounds = blocks_between_reports(transfer);
    if round.is_multiple_of(rounds) {
        transfer.progress.report(round + 1);
    }
}

/// Makes the round trips of the transfer, with one reading of the clock for each: a trip ends when the message of the next one was sent. So the clock
/// is read while a message is on its way: read between an answer and the next message, it would make the trip longer, by more than its own
/// time, because the CPU executes nothing ahead of it. If it has a pace, it determines when trips begin.
fn time_round_trips<E>(
    transfer: &mut Transfer<'_>,
    ends: &mut E,
    mut send: impl FnMut(&mut E, &mut Transfer<'_>) -> io::Result<()>,
    mut receive: impl FnMut(&mut E, &mut Transfer<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(pace) = transfer.pace.take() {
        return time_paced_trips(transfer, pace, |transfer| {
            send(ends, transfer)?;
            receive(ends, transfer)
        });
    }
    let mut latencies = transfer.latencies_ns.take();
    let mut began = Instant::now();
    let mut end_trip = |latencies: &mut Option<Histogram<u64>>| {
        let ended = Instant::now();
        if let Some(latencies) = latencies {
            latencies.saturating_record(ended.duration_since(began).as_nanos() as u64);
        }
        began = ended;
    };
    for round in 0..transfer.blocks {
        send(ends, transfer)?;
        if round > 0 {
            end_trip(&mut latencies);
        }
        report_round(transfer, round);
        receive(ends, transfer)?;
    }
    end_trip(&mut latencies);
    transfer.latencies_ns = latencies;
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    Ok(())
}

/// The time of a trip counts from the instant at which it was due, also if the trip before had not ended by then. A program that starts
/// a trip only after the last one has ended does not see how many trips a stall delays (coordinated omission).
fn time_paced_trips(
    transfer: &mut Transfer<'_>,
    mut pace: Pace,
    mut round_trip: impl FnMut(&mut Transfer<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut latencies = transfer.latencies_ns.take();
    let began_ns = monotonic_ns();
    for round in 0..transfer.blocks {
        let due_ns = pace.due_ns(began_ns, round);
        let (began_trip_ns, timed_from_ns) = pace.begin_trip(due_ns);
        round_trip(transfer)?;
        let ended_ns = monotonic_ns();
        for (times, from_ns) in [(&mut pace.service_ns, began_trip_ns), (&mut latencies, timed_from_ns)] {
            if let Some(times) = times {
                times.saturating_record(ended_ns.saturating_sub(from_ns));
            }
        }
        // After each trip: 64 trips may take long, and the supervisor stops a trial that reports nothing for long.
        transfer.progress.report(round + 1);
    }
    transfer.latencies_ns = latencies;
    transfer.pace = Some(pace);
    transfer.received_bytes = transfer.blocks * transfer.block_bytes as u64;
    Ok(())
}

fn closed_early(received: u64, wanted: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the other end closed after {received} of {wanted} bytes"),
    )
}
