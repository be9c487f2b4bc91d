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
        let sent_by_each = threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Errno::IO)));
        let sent = sent_by_each.sum::<Result<u64, Errno>>();
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
    /// The current message of each writer.
    open: [OpenMessage; FIRST as usize],
    /// The writer of the last byte.
    last: u8,
    torn: u64,
}

#[derive(Clone, Copy)]
struct OpenMessage {
    missing_bytes: usize,
    /// Whether it was counted as torn.
    is_counted: bool,
}

impl TornCounter {
    fn new(message_bytes: usize) -> Self {
        let none = OpenMessage { missing_bytes: 0, is_counted: false };
        Self { message_bytes, open: [none; FIRST as usize], last: 0, torn: 0 }
    }

    fn add(&mut self, byte: u8) {
        let id = byte & !FIRST;
        if id != self.last {
            let interrupted = &mut self.open[self.last as usize];
            if interrupted.missing_bytes > 0 && !interrupted.is_counted {
                interrupted.is_counted = true;
                self.torn += 1;
            }
            self.last = id;
        }
        let message = &mut self.open[id as usize];
        if byte & FIRST != 0 {
            *message = OpenMessage { missing_bytes: self.message_bytes - 1, is_counted: false };
        } else {
            message.missing_bytes = message.missing_bytes.saturating_sub(1);
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
