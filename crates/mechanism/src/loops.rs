//! The hot loops, written once and compiled for each mechanism: dynamic dispatch happens once per trial.

use std::io;
use std::time::Instant;

use hdrhistogram::Histogram;
use model::monotonic_ns;
use payload::BlockTotals;

use crate::endpoint::{Endpoint, EndpointRole, Job};
use crate::ends::End;
use crate::{ConnectionFacts, Pace, Receiver, Sender};

/// The ends that one task has, and its loop: a function compiled for the types of these ends, and called through a pointer
/// once in a trial.
struct Task<E> {
    role: EndpointRole,
    ends: E,
    run: fn(&mut E, &mut Job<'_>) -> io::Result<()>,
}

/// Makes a task's side of a channel.
pub(crate) fn endpoint<E: End + 'static>(
    role: EndpointRole,
    ends: E,
    run: fn(&mut E, &mut Job<'_>) -> io::Result<()>,
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

    fn run(&mut self, job: &mut Job<'_>) -> io::Result<()> {
        (self.run)(&mut self.ends, job)
    }

    fn syscalls(&self) -> Option<u64> {
        self.ends.syscalls()
    }

    fn connection(&self) -> Option<ConnectionFacts> {
        self.ends.connection()
    }
}

/// Sends every block, then ends the stream.
pub(crate) fn send_stream<S: Sender>(sender: &mut S, job: &mut Job<'_>) -> io::Result<()> {
    each_batch(job, |job, blocks| sender.send_many(&mut job.producer, blocks))?;
    sender.finish()
}

/// Receives every byte.
pub(crate) fn receive_stream<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    each_piece(job, |job, most, pieces| receiver.recv_many(&mut job.consumer, most, pieces))?;
    job.consumer.finish();
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

/// Sends every block, and leaves the end open: one sender must not end the stream of the others.
pub(crate) fn send_among_others<S: Sender>(sender: &mut S, job: &mut Job<'_>) -> io::Result<()> {
    let Some(mut tagger) = job.tagger.take() else {
        return each_block(job, |job| sender.send_next(&mut job.producer));
    };
    each_block(job, |_| sender.send(tagger.next_block()))
}

/// Receives the bytes of all senders. With a tag checker it collects whole blocks from the pieces that arrive and checks them.
pub(crate) fn receive_from_many<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    let mut tag_checker = job.tag_checker.take();
    // Bytes of the current block that have arrived.
    let mut have = 0;
    each_piece(job, |job, most, _| {
        let Some(tag_checker) = &mut tag_checker else { return receiver.recv_next(&mut job.consumer, most) };
        let room = job.consumer.room();
        let received = receiver.recv(&mut room[have..])?;
        have += received;
        if have == room.len() {
            tag_checker.check(room);
            have = 0;
        }
        Ok(received)
    })?;
    job.tag_checker = tag_checker;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

/// Sends every block to receivers that compete for them, then ends the stream for each of them.
pub(crate) fn send_to_many<S: Sender>(sender: &mut S, job: &mut Job<'_>) -> io::Result<()> {
    match job.tagger.take() {
        Some(mut tagger) => {
            let mut sent = BlockTotals::default();
            each_block(job, |_| {
                let block = tagger.next_block();
                sent.add(block, true);
                sender.send(block)
            })?;
            job.totals = Some(sent);
        }
        None => each_block(job, |job| sender.send_next(&mut job.producer))?,
    }
    sender.finish_for(job.receivers)
}

/// One of several receivers: receives until the end of the stream. With a tag checker it checks whether each piece is a whole block.
pub(crate) fn receive_among_others<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    let mut tag_checker = job.tag_checker.take();
    let mut totals = BlockTotals::default();
    loop {
        let received = match &mut tag_checker {
            None => receiver.recv_next(&mut job.consumer, job.block_bytes)?,
            Some(tag_checker) => {
                let room = job.consumer.room();
                let received = receiver.recv(room)?;
                let is_block = tag_checker.is_block(&room[..received]);
                totals.add(&room[..received], is_block);
                received
            }
        };
        if received == 0 {
            job.totals = tag_checker.map(|_| totals);
            return Ok(());
        }
        job.received_bytes += received as u64;
        job.progress.report(job.received_bytes);
    }
}

/// A task in a chain, as `cat` is in a pipeline: sends all bytes that it receives.
pub(crate) fn relay<S: Sender, R: Receiver>(
    (sender, receiver): &mut (S, R),
    job: &mut Job<'_>,
) -> io::Result<()> {
    each_piece(job, |job, _, _| {
        let received = receiver.recv(job.consumer.room())?;
        if received > 0 {
            sender.send(&job.consumer.room()[..received])?;
        }
        Ok(received)
    })?;
    sender.finish()
}

/// One task that sends each block and then receives it (Bradford's single-threaded program).
pub(crate) fn pass_blocks<S: Sender, R: Receiver>(ends: &mut (S, R), job: &mut Job<'_>) -> io::Result<()> {
    each_block(job, |job| pass(ends, job))?;
    job.consumer.finish();
    job.received_bytes = job.blocks * job.block_bytes as u64;
    ends.0.finish()
}

/// One task that moves a block in both directions: a round trip without a second task.
pub(crate) fn pass_there_and_back<S: Sender, R: Receiver>(
    ends: &mut ((S, R), (S, R)),
    job: &mut Job<'_>,
) -> io::Result<()> {
    let there_and_back = |(forth, back): &mut ((S, R), (S, R)), job: &mut Job<'_>| {
        pass(forth, job)?;
        pass(back, job)
    };
    time_round_trips(job, ends, |_, _| Ok(()), there_and_back)?;
    // The same consumer has received the bytes of both directions.
    job.received_bytes *= 2;
    Ok(())
}

/// The side that sends first, and times the round trips.
pub(crate) fn ask<C: Sender + Receiver>(ends: &mut C, job: &mut Job<'_>) -> io::Result<()> {
    time_round_trips(job, ends, |ends, job| ends.send_next(&mut job.producer), receive_block)?;
    ends.finish()
}

/// The side that answers.
pub(crate) fn answer<C: Sender + Receiver>(ends: &mut C, job: &mut Job<'_>) -> io::Result<()> {
    for round in 0..job.blocks {
        receive_block(ends, job)?;
        ends.send_next(&mut job.producer)?;
        report_round(job, round);
    }
    job.received_bytes = job.blocks * job.block_bytes as u64;
    ends.finish()
}

/// Calls `step` for each block of a stream, and reports progress.
#[inline(always)]
pub(crate) fn each_block(
    job: &mut Job<'_>,
    mut step: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    each_batch(job, |job, blocks| (0..blocks).try_for_each(|_| step(job)))
}

/// Calls `step` for the blocks of a stream, with the number of blocks up to the next report of progress.
#[inline(always)]
fn each_batch(
    job: &mut Job<'_>,
    mut step: impl FnMut(&mut Job<'_>, usize) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(pace) = job.pace.take() {
        return each_due(job, &pace, |job| step(job, 1));
    }
    let mut done: u64 = 0;
    while done < job.blocks {
        let blocks = blocks_between_reports(job).min(job.blocks - done);
        step(job, blocks as usize)?;
        done += blocks;
        job.progress.report(done * job.block_bytes as u64);
    }
    Ok(())
}

/// Calls `step` for each block when it is due, or at once if that time has passed: a receiver that is slow for a while delays the blocks
/// behind it, and changes no due time.
#[inline(never)]
fn each_due(
    job: &mut Job<'_>,
    pace: &Pace,
    mut step: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let began_ns = monotonic_ns();
    for number in 0..job.blocks {
        Pace::sleep_until(pace.due_ns(began_ns, number));
        step(job)?;
        job.progress.report((number + 1) * job.block_bytes as u64);
    }
    Ok(())
}

/// Receives a stream in pieces of at most a block, and reports progress. `step` gets the largest size of a piece in bytes and the largest
/// number of pieces, and returns the number of bytes. 0 is an end of the stream before the last byte; a number above one block is that
/// of several whole blocks.
#[inline(always)]
pub(crate) fn each_piece(
    job: &mut Job<'_>,
    mut step: impl FnMut(&mut Job<'_>, usize, usize) -> io::Result<usize>,
) -> io::Result<()> {
    let total = job.blocks * job.block_bytes as u64;
    let mut left = total;
    while left > 0 {
        let mut pieces = 0;
        while left > 0 && pieces < blocks_between_reports(job) {
            let most = if left < job.block_bytes as u64 { left as usize } else { job.block_bytes };
            let more = blocks_between_reports(job) - pieces;
            let moved = step(job, most, if more * most as u64 <= left { more as usize } else { 1 })?;
            if moved == 0 {
                return Err(closed_early(total - left, total));
            }
            left -= moved as u64;
            // Divides only if necessary: a division takes longer than to receive a small piece.
            pieces += if moved > most { (moved / most) as u64 } else { 1 };
        }
        job.progress.report(total - left);
    }
    Ok(())
}

/// Progress of blocks of up to this size is reported once for several blocks: the time of a report is a large part of the time of a block.
const SMALL_BYTES: usize = 4096;

#[inline]
fn blocks_between_reports(job: &Job<'_>) -> u64 {
    if job.block_bytes > SMALL_BYTES { 1 } else { job.blocks_between_reports }
}

/// Sends a block, then receives one.
#[inline]
fn pass<C: Sender + Receiver>(ends: &mut C, job: &mut Job<'_>) -> io::Result<()> {
    ends.send_next(&mut job.producer)?;
    receive_block(ends, job)
}

/// Receives exactly one block, in one or more pieces.
#[inline]
fn receive_block<R: Receiver>(receiver: &mut R, job: &mut Job<'_>) -> io::Result<()> {
    let mut left = job.block_bytes;
    while left > 0 {
        let received = receiver.recv_next(&mut job.consumer, left)?;
        if received == 0 {
            return Err(closed_early((job.block_bytes - left) as u64, job.block_bytes as u64));
        }
        left -= received;
    }
    Ok(())
}

/// Reports progress after a round trip, counted from 0; if blocks are small, only after one in many. After a sleep the counter's
/// page and cache line are cold, and a report took a hundredth of a round trip.
#[inline]
fn report_round(job: &mut Job<'_>, round: u64) {
    let rounds = blocks_between_reports(job);
    if round.is_multiple_of(rounds) {
        job.progress.report(round + 1);
    }
}

/// Makes the job's round trips, with one reading of the clock for each: a trip ends when the message of the next one was sent. So the clock
/// is read while a message is on its way: read between an answer and the next message, it would make the trip longer, by more than its own
/// time, because the CPU executes nothing ahead of it. If the job has a pace, it determines when trips begin.
fn time_round_trips<E>(
    job: &mut Job<'_>,
    ends: &mut E,
    mut send: impl FnMut(&mut E, &mut Job<'_>) -> io::Result<()>,
    mut receive: impl FnMut(&mut E, &mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(pace) = job.pace.take() {
        return time_paced_trips(job, pace, |job| {
            send(ends, job)?;
            receive(ends, job)
        });
    }
    let mut latencies = job.latencies_ns.take();
    let mut began = Instant::now();
    let mut end_trip = |latencies: &mut Option<Histogram<u64>>| {
        let ended = Instant::now();
        if let Some(latencies) = latencies {
            latencies.saturating_record(ended.duration_since(began).as_nanos() as u64);
        }
        began = ended;
    };
    for round in 0..job.blocks {
        send(ends, job)?;
        if round > 0 {
            end_trip(&mut latencies);
        }
        report_round(job, round);
        receive(ends, job)?;
    }
    end_trip(&mut latencies);
    job.latencies_ns = latencies;
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

/// The time of a trip counts from the instant at which it was due, also if the trip before had not ended by then. A program that starts
/// a trip only after the last one has ended does not see how many trips a stall delays (coordinated omission).
fn time_paced_trips(
    job: &mut Job<'_>,
    mut pace: Pace,
    mut round_trip: impl FnMut(&mut Job<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut latencies = job.latencies_ns.take();
    let began_ns = monotonic_ns();
    for round in 0..job.blocks {
        let due_ns = pace.due_ns(began_ns, round);
        let (began_trip_ns, timed_from_ns) = pace.begin_trip(due_ns);
        round_trip(job)?;
        let ended_ns = monotonic_ns();
        for (times, from_ns) in [(&mut pace.service_ns, began_trip_ns), (&mut latencies, timed_from_ns)] {
            if let Some(times) = times {
                times.saturating_record(ended_ns.saturating_sub(from_ns));
            }
        }
        // After each trip: 64 trips may take long, and the supervisor stops a trial that reports nothing for long.
        job.progress.report(round + 1);
    }
    job.latencies_ns = latencies;
    job.pace = Some(pace);
    job.received_bytes = job.blocks * job.block_bytes as u64;
    Ok(())
}

fn closed_early(received: u64, wanted: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the other end closed after {received} of {wanted} bytes"),
    )
}
