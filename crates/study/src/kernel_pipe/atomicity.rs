//! Whether messages of several writers arrive whole: up to PIPE_BUF bytes they must, longer ones may be torn
//! (pipe(7)). Every message is looked at; nothing is inferred from the manual.

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
        run.progress(&what, Some(index as f64 / count as f64));
        let each = (run.amount(choice.writer_bytes.value) / bytes).max(16);
        let found = contend(choice.writers, each, bytes as usize).map_err(refused("writers at once"))?;
        run.measured(&format!("{bytes} bytes: sent"), "messages", vec![found.sent as f64]);
        run.measured(&format!("{bytes} bytes: torn"), "messages", vec![found.torn as f64]);
    }
    Ok(())
}

/// The reader takes a page at a time: a writer seldom finds room for all of a long message then.
const READ_BYTES: usize = 4096;

/// What arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    sent: u64,
    torn: u64,
}

/// Lets writers write at once, and reads what they wrote.
fn contend(writers: u32, messages_each: u64, message_bytes: usize) -> io::Result<Found> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut ends = (1..writers).map(|_| writer.try_clone()).collect::<io::Result<Vec<OwnedFd>>>()?;
    ends.push(writer);
    std::thread::scope(|scope| {
        let start = |(end, id)| {
            Builder::new().spawn_scoped(scope, move || send(&end, id, messages_each, message_bytes))
        };
        // After an error, writers that were started end with EPIPE.
        let threads = ends.into_iter().zip(0u8..).map(start).collect::<io::Result<Vec<_>>>()?;
        let torn = receive(&reader, message_bytes);
        // Writers that still wait for room end with EPIPE.
        drop(reader);
        let sent = threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Errno::IO)));
        let sent = sent.sum::<Result<u64, Errno>>();
        Ok(Found { torn: torn?, sent: sent? })
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

/// Reads to the end and counts the messages into which bytes of another writer were put.
fn receive(reader: &OwnedFd, message_bytes: usize) -> io::Result<u64> {
    let mut room = [0; READ_BYTES];
    let mut judge = Judge::new(message_bytes);
    loop {
        match read(reader, &mut room[..]) {
            Ok(0) => return Ok(judge.torn),
            Ok(len) => room[..len].iter().for_each(|byte| judge.take(*byte)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Follows the messages of all writers byte by byte.
struct Judge {
    message_bytes: usize,
    /// Bytes still to come of each writer's message, and whether it was counted as torn.
    open: [(usize, bool); FIRST as usize],
    /// Whose byte came last.
    last: u8,
    torn: u64,
}

impl Judge {
    fn new(message_bytes: usize) -> Self {
        Self { message_bytes, open: [(0, false); FIRST as usize], last: 0, torn: 0 }
    }

    fn take(&mut self, byte: u8) {
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
        let judge = |bytes: &[u8]| {
            let mut judge = Judge::new(4);
            bytes.iter().for_each(|byte| judge.take(*byte));
            judge.torn
        };
        let (a, b) = (FIRST | 1, FIRST | 2);
        assert_eq!(judge(&[a, 1, 1, 1, b, 2, 2, 2, a, 1, 1, 1]), 0);
        assert_eq!(judge(&[a, 1, b, 2, 2, 2, 1, 1]), 1);
        assert_eq!(judge(&[a, 1, b, 2, 1, 2, 1, 2]), 2);
    }

    #[test]
    fn messages_of_pipe_buf_arrive_whole() {
        let found = contend(4, 500, rustix::pipe::PIPE_BUF).expect("a pipe");
        assert_eq!(found, Found { sent: 2000, torn: 0 });
    }

    #[test]
    fn longer_messages_are_torn() {
        let found = contend(4, 10, 1 << 18).expect("a pipe");
        assert!(found.sent == 40 && found.torn > 0, "{found:?}");
    }
}
