//! Programs that hold their output back in a buffer. There are two signs. The first is output in the buffer of glibc's stdout (`stdout_buffer`). A
//! program that does not use that buffer is judged by its writes: it writes only whole blocks, with long pauses in which it reads. (Without this
//! condition a program that drops most of its input could not be distinguished from one that buffers.)

use std::collections::HashMap;
use std::fs;

use model::HeldBack;
use process::proc::Stat;

use crate::flow::Calls;
use crate::line_buffering;
use crate::stdout_buffer::{StdoutBuffer, StdoutFinder, buffer_at};

/// Shortest time after which output in a buffer counts as held back.
const HELD_MIN_NS: u64 = 500_000_000;
/// Shortest mean time between two writes of a program that is judged by the sizes of its writes alone.
const BLOCK_PAUSE_MIN_NS: u64 = 1_000_000_000;
/// Smallest number of reads for each write of such a program.
const READS_PER_BLOCK_MIN: u64 = 4;
/// Usual sizes of buffers, which are powers of two.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4096..=131_072;
/// Shortest time between two samples of one process.
const SAMPLE_PAUSE_NS: u64 = 50_000_000;
/// Time after which stdout is searched again in a process in which it was not found.
const SEARCH_PAUSE_NS: u64 = 250_000_000;

/// Follows the output of processes.
#[derive(Debug, Default)]
pub(crate) struct HeldBackTracker {
    processes: HashMap<i32, History>,
    finder: StdoutFinder,
}

/// The counters of a process (proc_pid_io(5)), and its buffer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct OutputCounters {
    calls: Calls,
    /// `None` where it is not known.
    buffer: Option<StdoutBuffer>,
}

/// The samples of one process.
#[derive(Debug, Default)]
struct History {
    /// Time of the last sample.
    sampled_ns: u64,
    /// When glibc's stdout was last searched, and where it is.
    searched_ns: u64,
    address: Option<u64>,
    /// The name of its program's file.
    file: String,
    /// When it was started (CLOCK_MONOTONIC).
    started_ns: u64,
    /// The first sample of this program. The counters include those of the program that the process executed before.
    first: (u64, OutputCounters),
    /// The first sample after its last write, and the time of that sample.
    since_write: Option<(u64, OutputCounters)>,
    held_back: Option<HeldBack>,
}

impl HeldBackTracker {
    /// Samples a process at a time of CLOCK_MONOTONIC. `is_blocked`: there is no room for its output, so that its buffer shows nothing. `writes_it`:
    /// whether its standard output is this link.
    pub(crate) fn sample(
        &mut self,
        pid: i32,
        now_ns: u64,
        is_blocked: bool,
        writes_it: impl FnOnce() -> bool,
    ) -> Option<HeldBack> {
        let history = self.processes.entry(pid).or_default();
        if is_blocked {
            (history.since_write, history.held_back) = (None, None);
            return None;
        }
        if history.sampled_ns > 0 && now_ns - history.sampled_ns < SAMPLE_PAUSE_NS {
            return history.held_back.clone();
        }
        history.sampled_ns = now_ns;
        if !writes_it() {
            history.held_back = None;
            return None;
        }
        let Some(counters) = history.read(pid, now_ns, &mut self.finder) else {
            self.processes.remove(&pid);
            return None;
        };
        if line_buffering::writes_blocks(&history.file) {
            return None;
        }
        history.held_back = history.detect_held_back(pid, now_ns, counters);
        history.held_back.clone()
    }

    /// Keeps only the processes for which `keep` is true.
    pub(crate) fn retain(&mut self, keep: impl Fn(i32) -> bool) {
        self.processes.retain(|pid, _| keep(*pid));
    }
}

impl History {
    /// Reads the counters and the buffer of a process; `None` if it has ended, or is another user's.
    fn read(&mut self, pid: i32, now_ns: u64, finder: &mut StdoutFinder) -> Option<OutputCounters> {
        let mut counters = OutputCounters { calls: Calls::of(pid)?, buffer: None };
        counters.buffer = self.address.and_then(|address| buffer_at(pid, address));
        if counters.buffer.is_none() && (self.searched_ns == 0 || now_ns - self.searched_ns > SEARCH_PAUSE_NS)
        {
            self.searched_ns = now_ns;
            // The process is new, or has executed another program.
            let file = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
            self.file = file.file_name()?.to_string_lossy().into_owned();
            self.started_ns = Stat::of(pid)?.started_ns();
            self.address = finder.address(pid);
            (self.since_write, self.first) = (None, (now_ns, counters));
            counters.buffer = self.address.and_then(|address| buffer_at(pid, address));
        }
        Some(counters)
    }

    fn detect_held_back(&mut self, pid: i32, now_ns: u64, counters: OutputCounters) -> Option<HeldBack> {
        let wrote = |before: &OutputCounters| before.calls.writes != counters.calls.writes;
        // Only what was read and not passed on counts, so the time begins with it: until then there was nothing to hold back. (The buffer of a
        // program that has not written to glibc's stdout yet, or does not use it, has size 0.)
        let had_nothing = |before: &OutputCounters| match counters.buffer {
            Some(StdoutBuffer { size_bytes: 1.., .. }) => {
                before.buffer.is_none_or(|buffer| buffer.held_bytes == 0)
            }
            _ => before.calls.read_bytes == counters.calls.read_bytes,
        };
        if self.since_write.as_ref().is_none_or(|(_, before)| wrote(before) || had_nothing(before)) {
            self.since_write = Some((now_ns, counters));
        }
        let (since_ns, before) = self.since_write.as_ref()?;
        let for_ns = now_ns - since_ns;
        if for_ns < HELD_MIN_NS {
            return None;
        }
        let (held_bytes, buffer_bytes, per_s) = match counters.buffer {
            Some(StdoutBuffer { held_bytes: held @ 1.., size_bytes }) => {
                let grown = held.saturating_sub(before.buffer.map_or(0, |buffer| buffer.held_bytes));
                (Some(held), size_bytes, grown as f64 * 1e9 / for_ns as f64)
            }
            Some(StdoutBuffer { size_bytes: 1.., .. }) => return None,
            _ => {
                let is_known = line_buffering::known_program(&self.file).is_some();
                let all = [(self.started_ns, OutputCounters::default()), self.first];
                all.iter().find_map(|(from_ns, first)| {
                    let ns = now_ns.saturating_sub(*from_ns).max(1);
                    let block = counters.block_bytes(first, before, ns, is_known)?;
                    let written = counters.calls.written_bytes - first.calls.written_bytes;
                    Some((None, block, written as f64 * 1e9 / ns as f64))
                })?
            }
        };
        // If the bytes in the buffer are not known, they are estimated from the rate so far.
        let held = held_bytes.map_or(per_s * for_ns as f64 / 1e9, |held| held as f64);
        let full_in_ns = (buffer_bytes as f64 - held).max(0.0) / per_s * 1e9;
        Some(HeldBack {
            pid,
            held_bytes,
            buffer_bytes,
            for_ns,
            bytes_per_s: (per_s > 0.0).then_some(per_s.ceil() as u64),
            full_in_ns: (per_s > 0.0).then_some(full_in_ns as u64),
            cure: line_buffering::advice(&self.file, held_bytes.is_some()),
        })
    }
}

impl OutputCounters {
    /// The size of a program's buffer, if it has written only whole buffers since `first`, with long pauses, and has read since its last write. A
    /// program that is known to hold lines back may have written a little less than a block, up to the end of a line.
    fn block_bytes(&self, first: &Self, last: &Self, ns: u64, is_known: bool) -> Option<u64> {
        let calls = self.calls.writes.saturating_sub(first.calls.writes);
        let written = self.calls.written_bytes.saturating_sub(first.calls.written_bytes);
        let bytes = written.checked_div(calls)?;
        let block = bytes.next_power_of_two();
        let is_whole = bytes * calls == written && bytes == block;
        let is_nearly = is_known && bytes >= block - block / 8;
        let reads_on = self.calls.read_bytes > last.calls.read_bytes
            && self.calls.reads.saturating_sub(first.calls.reads) >= READS_PER_BLOCK_MIN * calls;
        let pauses = ns / calls >= BLOCK_PAUSE_MIN_NS;
        (BLOCK_BYTES.contains(&block) && (is_whole || is_nearly) && reads_on && pauses).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn judged(looks: &[(u64, OutputCounters)]) -> Option<HeldBack> {
        let mut history = History { file: "grep".to_owned(), ..History::default() };
        looks.iter().map(|(at, look)| history.detect_held_back(7, *at, *look)).last().flatten()
    }

    fn with(held_bytes: u64, write_calls: u64) -> OutputCounters {
        OutputCounters {
            calls: Calls { writes: write_calls, ..Calls::default() },
            buffer: Some(StdoutBuffer { held_bytes, size_bytes: 4096 }),
        }
    }

    #[test]
    fn what_lies_in_a_buffer_is_held_back_after_half_a_second() {
        let held = judged(&[(S, with(0, 3)), (2 * S, with(96, 3)), (4 * S, with(1096, 3))]).expect("held");
        assert_eq!((held.held_bytes, held.buffer_bytes, held.for_ns), (Some(1096), 4096, 2 * S));
        assert_eq!((held.bytes_per_s, held.full_in_ns), (Some(500), Some(6 * S)));
        assert_eq!(held.cure.as_deref(), Some("`grep --line-buffered`"));
        let still = judged(&[(S, with(96, 3)), (4 * S, with(96, 3))]).expect("held");
        assert_eq!((still.bytes_per_s, still.full_in_ns), (None, None));
    }

    #[test]
    fn nothing_is_held_back_by_one_that_writes_or_has_nothing() {
        assert_eq!(judged(&[(S, with(0, 3)), (9 * S, with(0, 3))]), None, "nothing in it");
        assert_eq!(judged(&[(S, with(90, 3)), (9 * S, with(90, 4))]), None, "it wrote meanwhile");
        assert_eq!(judged(&[(S, with(90, 3)), (S + S / 4, with(90, 3))]), None, "too short");
        // Happened: "held its output back: 86 B for 998 ms", of `uniq -c` behind a sort that took 998 ms.
        let before_its_first_line = OutputCounters::default();
        let late = [(S, before_its_first_line), (9 * S, with(86, 0)), (9 * S + S / 4, with(99, 0))];
        assert_eq!(judged(&late), None, "its first line came a quarter of a second ago");
    }

    #[test]
    fn writes_of_whole_blocks_with_long_pauses_tell_too() {
        let look = |read_bytes, written_bytes, write_calls| OutputCounters {
            calls: Calls { reads: 90, read_bytes, writes: write_calls, written_bytes },
            buffer: None,
        };
        let twice = |first, then| judged(&[(10 * S, first), (12 * S, then)]);
        let held = twice(look(9000, 16384, 2), look(9500, 16384, 2)).expect("held");
        assert_eq!((held.held_bytes, held.buffer_bytes, held.for_ns), (None, 8192, 2 * S));
        assert_eq!(twice(look(9000, 16384, 2), look(9000, 16384, 2)), None, "it reads nothing");
        assert_eq!(twice(look(9000, 12000, 2), look(9500, 12000, 2)), None, "no blocks");
        assert_eq!(
            twice(look(9000, 163_840, 20), look(9500, 163_840, 20)),
            None,
            "no pauses, too many writes"
        );
        assert_eq!(twice(look(9000, 0, 0), look(9500, 0, 0)), None, "nothing was written");
        let nearly =
            twice(look(9000, 16040, 2), look(9500, 16040, 2)).expect("whole lines in blocks of 8 KiB");
        assert_eq!(nearly.buffer_bytes, 8192);
    }
}
