//! How full a link is, seen from outside: its reading end is opened briefly through /proc/PID/fd. If it stayed open, the writer would not notice
//! that its reader has ended.

use std::os::fd::OwnedFd;
use std::time::Duration;

use process::ready_within;
use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, recv};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, pipe_with, tee};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::activity::Slice;
use crate::brief_pipe::BriefPipe;
use crate::open_file::Identity;

/// A pipe with less room makes a writer of a whole block wait (pipe(7), PIPE_BUF).
const BLOCK_BYTES: u64 = 4096;
/// Share of its size below which a pipe counts as empty: its reader is about to take the bytes.
const EMPTY: f64 = 0.1;
/// Share from which on a pipe counts as full: small writes do not fill its pages, so half of the space may be unusable.
const FULL: f64 = 0.5;

/// Smallest share of the time since the previous sample in which a process computed or waited for a CPU, if it never waited for anything else.
const ALWAYS_SHARE_MIN: f64 = 0.9;
/// Largest share of a CPU of a writer that waits for its reader, and not the reader for it.
const WRITER_CPU_MAX: f64 = 0.5;

/// What a link holds now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fill {
    /// The share of its capacity, from 0 to 1.
    pub share: f64,
    /// It has bytes.
    pub holds: bool,
    /// It has no bytes and no writer.
    pub over: bool,
    /// Bytes that can be read from it.
    pub held_bytes: u64,
    /// The capacity of a pipe (F_GETPIPE_SZ); 0 if that is not known.
    pub capacity_bytes: u64,
}

impl Fill {
    /// All data and the end were written before the reader began: it never waits.
    pub const ALL_THERE: Self =
        Self { share: 0.0, holds: false, over: true, held_bytes: 0, capacity_bytes: 0 };
    /// There is no data yet, and room for some.
    pub const NOTHING_YET: Self = Self { over: false, ..Self::ALL_THERE };

    /// A writer waits.
    pub(crate) const NO_ROOM: Self = Self { share: 1.0, holds: true, ..Self::NOTHING_YET };

    /// Whether a reader waits.
    pub fn is_empty(self) -> bool {
        self.share < EMPTY && !self.over
    }

    /// Whether a writer waits.
    pub fn is_full(self) -> bool {
        self.share >= FULL
    }

    /// How full a link was since the previous sample, by what the stages at its ends did. `self` is of one instant: a reader that never waited for
    /// input may just have emptied it.
    pub(crate) fn over_time(self, readers: &[Slice], writers: &[Slice]) -> Self {
        let never_waited = |slice: &Slice| slice.cpu + slice.queued >= ALWAYS_SHARE_MIN;
        let may_wait = |slice: &Slice| slice.cpu < WRITER_CPU_MAX && !slice.at_disk;
        let is_seen = !readers.is_empty() && !writers.is_empty();
        if is_seen && readers.iter().all(never_waited) && writers.iter().all(may_wait) {
            Self { share: 1.0, holds: true, ..self }
        } else {
            self
        }
    }

    /// The share, from 0 to 1, to which the flow depends on the reader and not on the writer.
    pub fn reader_share(self) -> f64 {
        if self.over { 1.0 } else { ((self.share - EMPTY) / (FULL - EMPTY)).clamp(0.0, 1.0) }
    }

    /// The same if it is known whether the reader is idle, and whether the link has a writer. `None` if the link cannot be opened and nothing is
    /// known.
    pub fn reader_share_if_known(fill: Option<Self>, reader_is_idle: bool, has_writer: bool) -> Option<f64> {
        match fill {
            // The reader does not take the bytes, or they are the last ones.
            Some(fill) if fill.holds && (reader_is_idle || !has_writer) => Some(1.0),
            Some(fill) => Some(fill.reader_share()),
            None if reader_is_idle => None,
            None => Some(1.0),
        }
    }
}

/// Reads how full pipes are.
#[derive(Default)]
pub struct Gauge {
    /// tee(2) into this pipe shows whether an empty pipe has a writer, and takes nothing. Made when it is needed first.
    probe: Option<(OwnedFd, OwnedFd)>,
}

impl Gauge {
    /// How full the pipe is that a process has as this descriptor; `None` if that is no pipe, is not the expected one, or belongs to another
    /// user.
    pub fn pipe(&mut self, pid: i32, fd: i32, expected: Option<Identity>) -> Option<Fill> {
        let pipe = BriefPipe::open(pid, fd, expected).ok()?;
        let bytes = ioctl_fionread(&pipe).ok()?;
        let capacity = fcntl_getpipe_size(&pipe).ok()? as u64;
        let over = bytes == 0 && self.is_over(&pipe);
        let share =
            if bytes > 0 && capacity < bytes + BLOCK_BYTES { 1.0 } else { bytes as f64 / capacity as f64 };
        Some(Fill { share, holds: bytes > 0, over, held_bytes: bytes, capacity_bytes: capacity })
    }

    /// Whether an empty pipe has no writer.
    fn is_over(&mut self, pipe: &BriefPipe) -> bool {
        if self.probe.is_none() {
            self.probe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok();
        }
        let Some((_, write)) = &self.probe else { return false };
        let copied = tee(pipe, write, 1, SpliceFlags::NONBLOCK);
        if copied.is_ok_and(|bytes| bytes > 0) {
            // Meanwhile there are bytes: the copy in the probe is discarded.
            self.probe = None;
        }
        copied == Ok(0)
    }
}

/// How full a pair of sockets is. /proc/PID/fd opens no sockets, so each end is copied (pidfd_getfd(2)) and closed at once. `None` if this user may
/// not do that (ptrace(2), "ptrace access mode checking").
pub(crate) fn socket_pair_fill(reader: i32, writer: Option<i32>) -> Option<Fill> {
    let read_end = borrow(reader, 0)?;
    let held_bytes = ioctl_fionread(&read_end).ok()?;
    if held_bytes == 0 {
        let over = match recv(&read_end, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, bytes)) => bytes == 0,
            Err(error) => error != Errno::AGAIN,
        };
        return Some(Fill { over, ..Fill::NOTHING_YET });
    }
    let Some(write_end) = writer.and_then(|pid| borrow(pid, 1)) else {
        return Some(Fill { share: EMPTY, holds: true, held_bytes, ..Fill::NOTHING_YET });
    };
    let has_room = ready_within(&write_end, PollFlags::OUT, Some(Duration::ZERO)).ok()?;
    let share = if has_room { EMPTY } else { 1.0 };
    Some(Fill { share, holds: true, held_bytes, ..Fill::NOTHING_YET })
}

/// A copy of a process's descriptor, to be closed soon.
pub(crate) fn borrow(pid: i32, fd: i32) -> Option<OwnedFd> {
    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::read;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_pipe_is_empty_then_full_then_over() {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let own = std::process::id() as i32;
        let fd = reader.as_raw_fd();
        let mut gauge = Gauge::default();
        let mut look = || gauge.pipe(own, fd, None).expect("a pipe");
        assert!(look().is_empty() && look().reader_share() == 0.0);
        let mut writer = File::from(writer);
        writer.write_all(&[1; 60 << 10]).expect("room");
        assert!(look().is_full() && look().reader_share() == 1.0);
        let mut taken = [0; 60 << 10];
        assert_eq!(read(&reader, &mut taken), Ok(60 << 10), "reading the fill takes nothing");
        assert!(look().is_empty());
        drop(writer);
        // A process that another test has just forked holds a copy of the writing end until it calls execve(2).
        let gone = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            look().over
        });
        assert!(gone && !look().is_empty() && look().reader_share() == 1.0);
        assert_eq!(gauge.pipe(own, fd, Some((0, 0))), None, "another file");
    }

    fn slice(cpu: f64, queued: f64) -> Slice {
        Slice { cpu, queued, ..Slice::default() }
    }

    /// Expected: the reader. Happened: in 2 of 14 runs of `cat | tr | gzip -9 | wc` no stage was named, as gzip had just emptied its input.
    #[test]
    fn a_reader_that_never_waited_had_input() {
        let empty = Fill::NOTHING_YET;
        let is_full = |readers: &[Slice], writers: &[Slice]| empty.over_time(readers, writers).is_full();
        assert!(is_full(&[slice(1.0, 0.0)], &[slice(0.1, 0.0)]));
        assert!(is_full(&[slice(0.4, 0.6)], &[slice(0.1, 0.5)]), "with one CPU they queue for it");
        assert!(!is_full(&[slice(0.6, 0.0)], &[slice(0.1, 0.0)]), "it waits for a slow source");
        assert!(!is_full(&[slice(1.0, 0.0)], &[slice(0.9, 0.0)]), "both compute");
        assert!(!is_full(&[slice(1.0, 0.0)], &[]), "a writer that is not visible");
    }
}
