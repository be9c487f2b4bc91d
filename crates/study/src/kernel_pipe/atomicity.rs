//! Whether messages of several simultaneous writers arrive whole: messages of up to PIPE_BUF bytes must, longer ones may be torn
//! (pipe(7)). The reader examines every byte.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::Builder;

use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{KernelPipe, STUDY};
use crate::run::{PartRun, refused};

/// Marks the first byte of a message; the other bits name the writer.
const FIRST: u8 = 0x80;

pub(super) fn run(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let choice = STUDY.parameters::<KernelPipe>().choice;
    run.set("writers", format!("{} threads", choice.writers));
    let count = choice.message_sizes.len();
    for (index, size) in choice.message_sizes.iter().enumerate() {
        if run.is_over() {
            break;
        }
        let bytes = size.value;
        let what = format!("{} writers, messages of {bytes} bytes", choice.writers);
        run.observer.progress(&what, Some(index as f64 / count as f64));
        let each = (run.request.scale.amount(choice.writer_bytes.value) / bytes).max(16);
        let counts =
            write_simultaneously(choice.writers, each, bytes as usize).map_err(refused("writers at once"))?;
        run.measured(&format!("{bytes} bytes: sent"), "messages", vec![counts.sent as f64]);
        run.measured(&format!("{bytes} bytes: torn"), "messages", vec![counts.torn as f64]);
    }
    Ok(())
}

/// The reader reads one page at a time, so that a long message seldom fits into the pipe as a whole.
const READ_BYTES: usize = 4096;

/// Numbers of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    sent: u64,
    torn: u64,
}

/// Starts the writers together, and reads all their messages.
fn write_simultaneously(writers: u32, messages_each: u64, message_bytes: usize) -> io::Result<Counts> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut ends = (1..writers).map(|_| writer.try_clone()).collect::<io::Result<Vec<OwnedFd>>>()?;
    ends.push(writer);
    std::thread::scope(|scope| {
        let start = |(end, id)| {
            Builder::new().spawn_scoped(scope, move || send(&end, id, messages_each, message_bytes))
        };
        // If a thread cannot be started, the running writers end with EPIPE.
        let threads = ends.into_iter().zip(0u8..).map(start).collect::<io::Result<Vec<_>>>()?;
        let torn = receive(&reader, message_bytes);
        // Writers that still wait for room end with EPIPE.
        drop(reader);
        let sent = threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Errno::IO)));
        let sent = sent.sum::<Result<u64, Errno>>();
        Ok(Counts { torn: torn?, sent: sent? })
    })
}

fn send(end: &OwnedFd, id: u8, messages: u64, message_bytes: usize) -> Result<u64, Errno> {
    let mut message = vec![id; message_bytes];
    message[0] |= FIRST;
    for _ in 0..messages {
        let mut left = &message[..];
        while !left.is_empty() {
            match write(end, left) {
                Ok(len) => left = &left[len..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(messages)
}

/// Reads to the end and counts the messages that are interrupted by bytes of another writer.
fn receive(reader: &OwnedFd, message_bytes: usize) -> io::Result<u64> {
    let mut buffer = [0; READ_BYTES];
    let mut counter = TornCounter::new(message_bytes);
    loop {
        match read(reader, &mut buffer[..]) {
            Ok(0) => return Ok(counter.torn),
            Ok(len) => buffer[..len].iter().for_each(|byte| counter.add(*byte)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Counts torn messages, byte by byte.
struct TornCounter {
    message_bytes: usize,
    /// For each writer: the missing bytes of its current message, and whether that was counted as torn.
    open: [(usize, bool); FIRST as usize],
    /// The writer of the last byte.
    last: u8,
    torn: u64,
}

impl TornCounter {
    fn new(message_bytes: usize) -> Self {
        Self { message_bytes, open: [(0, false); FIRST as usize], last: 0, torn: 0 }
    }

    fn add(&mut self, byte: u8) {
        let id = byte & !FIRST;
        if id != self.last {
            let (left, counted) = &mut self.open[self.last as usize];
            if *left > 0 && !*counted {
                *counted = true;
                self.torn += 1;
            }
            self.last = id;
        }
        let (left, counted) = &mut self.open[id as usize];
        if byte & FIRST != 0 {
            (*left, *counted) = (self.message_bytes - 1, false);
        } else {
            *left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_message_is_counted_once() {
        let torn = |bytes: &[u8]| {
            let mut counter = TornCounter::new(4);
            bytes.iter().for_each(|byte| counter.add(*byte));
            counter.torn
        };
        let (a, b) = (FIRST | 1, FIRST | 2);
        assert_eq!(torn(&[a, 1, 1, 1, b, 2, 2, 2, a, 1, 1, 1]), 0);
        assert_eq!(torn(&[a, 1, b, 2, 2, 2, 1, 1]), 1);
        assert_eq!(torn(&[a, 1, b, 2, 1, 2, 1, 2]), 2);
    }

    #[test]
    fn messages_of_pipe_buf_arrive_whole() {
        let counts = write_simultaneously(4, 500, rustix::pipe::PIPE_BUF).expect("a pipe");
        assert_eq!(counts, Counts { sent: 2000, torn: 0 });
    }

    #[test]
    fn longer_messages_are_torn() {
        let counts = write_simultaneously(4, 10, 1 << 18).expect("a pipe");
        assert!(counts.sent == 40 && counts.torn > 0, "{counts:?}");
    }
}
