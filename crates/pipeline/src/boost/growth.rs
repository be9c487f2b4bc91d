//! Enlarges the full pipes of a tree of processes ([`observe::written`]), and measures what that changes.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use model::{BoostRecord, CopyFigures, SlowBuffer, monotonic_ns};
use observe::buffers::BufferOffsets;
use observe::endpoint::{IpcFile, endpoint};
use observe::open_file::Identity;
use observe::sampler::Sampler;
use observe::sampler::process::Detail;
use observe::topology::{Held, Link, Topology};
use observe::written::WriterTree;
use process::proc::{Stat, command_line, field_value, named};

use super::larger::{Growth, LargerPipes};

/// Largest number of processes whose buffers are recorded.
const BUFFERS_MAX: usize = 64;
/// Time without attempts to enlarge a pipe after the quota was exhausted.
const QUOTA_PAUSE: Duration = Duration::from_secs(1);

/// Number of times that a pipe is checked within one sample, and the pause between two checks. Ends that wake each other fill and empty a pipe
/// thousands of times in a second, so a few checks in quick succession show as much as separate samples.
const CHECKS: u32 = 4;
const CHECK_PAUSE: Duration = Duration::from_micros(500);

/// Before a pipe is enlarged for the first time its rate is measured: for at least `BEFORE_TIME_MIN` and `BEFORE_SIZES` times its size in bytes, but
/// for at most `BEFORE_TIME_MAX`.
const BEFORE_TIME_MIN: Duration = Duration::from_millis(20);
const BEFORE_SIZES: u64 = 16;
const BEFORE_TIME_MAX: Duration = Duration::from_millis(200);
/// Smallest age of a process whose rate is measured: the rate at its start is not typical.
const AGE_MIN: Duration = Duration::from_millis(500);
/// Shortest measurement after a pipe was enlarged: at first the additional capacity fills.
const AFTER_TIME_MIN: Duration = Duration::from_millis(100);

/// The time since a process was started.
fn age(pid: i32) -> Option<Duration> {
    Some(Duration::from_nanos(monotonic_ns().saturating_sub(Stat::of(pid)?.started_ns())))
}

/// The rate at which a process moves bytes through an end of a pipe.
struct Rate {
    pid: i32,
    /// The name of its counter in /proc/PID/io.
    counter: &'static str,
    found: Instant,
    /// When the measurement began, and the bytes that had been moved by then.
    since: Instant,
    moved: Option<u64>,
    has_moved: bool,
}

impl Rate {
    fn begin(held: Held) -> Self {
        let (pid, counter) = (held.pid, if held.writes { "wchar" } else { "rchar" });
        let now = Instant::now();
        let mut rate = Self { pid, counter, found: now, since: now, moved: None, has_moved: false };
        rate.moved = rate.moved_by_now().filter(|_| age(pid).is_some_and(|age| age >= AGE_MIN));
        rate
    }

    fn moved_by_now(&self) -> Option<u64> {
        field_value(&format!("/proc/{}/io", self.pid), self.counter)?.parse().ok()
    }

    /// Whether the rate has been measured, as far as possible, so that the pipe of this size can be enlarged. The measurement begins when bytes have
    /// been moved: a process that was just started does not read yet.
    fn is_measured(&mut self, size: u64) -> bool {
        let (Some(now), Some(moved)) = (self.moved_by_now(), self.moved) else { return true };
        if !self.has_moved && now > moved {
            (self.has_moved, self.since, self.moved) = (true, Instant::now(), Some(now));
            return false;
        }
        let enough = self.since.elapsed() >= BEFORE_TIME_MIN && now - moved >= BEFORE_SIZES * size;
        enough || self.found.elapsed() >= BEFORE_TIME_MAX
    }

    /// Bytes per second; `None` if it was measured for less than `least`, or if no call has returned.
    fn bytes_per_s(&self, least: Duration) -> Option<u64> {
        let seconds = Some(self.since.elapsed()).filter(|time| *time >= least)?.as_secs_f64();
        let bytes = self.moved_by_now()?.saturating_sub(self.moved?);
        Some((bytes as f64 / seconds) as u64).filter(|rate| *rate > 0)
    }
}

/// A pipe that was sampled or enlarged.
#[derive(Default)]
struct PipeHistory {
    /// The number of its last sample.
    sample: u64,
    /// Whether it cannot be enlarged.
    cannot_grow: bool,
    /// Whether it was full at the last check, and at any check of this sample.
    full: bool,
    any_full: bool,
    /// Number of consecutive samples in which it was not full. The more there are, the fewer checks are made.
    quiet: u32,
    /// Its index among the enlarged pipes.
    at: Option<usize>,
    /// The rate since it was found full, or since it has grown.
    rate: Option<Rate>,
}

/// Enlarges the pipes of a tree of processes.
pub(super) struct PipeGrowth {
    tree: WriterTree,
    sampler: Sampler,
    larger: LargerPipes,
    seen: HashMap<Identity, PipeHistory>,
    samples: u64,
    last: Instant,
    quota_pause_until: Instant,
    /// By PID, the command line of a process and the offsets of its buffers; `None` if they are not recorded.
    buffers: Option<BTreeMap<i32, (String, BufferOffsets)>>,
}

impl PipeGrowth {
    pub(super) fn new(root: i32, notes_buffers: bool) -> Self {
        let now = Instant::now();
        Self {
            tree: WriterTree::new(root),
            sampler: Sampler::new(Detail::Waits),
            larger: LargerPipes::new(),
            seen: HashMap::new(),
            samples: 0,
            last: now,
            quota_pause_until: now,
            buffers: notes_buffers.then(BTreeMap::new),
        }
    }

    /// Takes a sample. Returns whether a pipe may be enlarged soon.
    pub(super) fn sample(&mut self) -> bool {
        let now = Instant::now();
        let since = now.duration_since(std::mem::replace(&mut self.last, now));
        self.samples += 1;
        let topology = self.tree.topology(&mut self.sampler);
        self.note_buffers(&topology);
        let pipes: Vec<(Identity, &Link)> =
            topology.links.iter().filter_map(|link| Some((link.id.pipe()?, link))).collect();
        for (pipe, _) in &pipes {
            let seen = self.seen.entry(*pipe).or_default();
            (seen.sample, seen.full, seen.any_full) = (self.samples, false, false);
        }
        let mut again = pipes.clone();
        for round in 0..CHECKS {
            if round > 0 && !again.is_empty() {
                std::thread::sleep(CHECK_PAUSE);
            }
            again.retain(|(pipe, link)| self.sample_pipe(*pipe, link, round, &topology));
        }
        let may_grow = pipes.iter().filter(|(pipe, _)| self.account(*pipe, since)).count();
        let sample = self.samples;
        self.seen.retain(|_, seen| seen.at.is_some() || seen.sample == sample);
        may_grow > 0
    }

    fn note_buffers(&mut self, topology: &Topology) {
        let Some(buffers) = &mut self.buffers else { return };
        for pid in topology.stages.iter().flat_map(|stage| &stage.pids) {
            if buffers.len() >= BUFFERS_MAX && !buffers.contains_key(pid) {
                continue;
            }
            let (_, offsets) =
                buffers.entry(*pid).or_insert_with(|| (command_line(*pid), BufferOffsets::default()));
            offsets.sample(*pid, self.sampler.stage(&[*pid]).threads());
        }
    }

    /// Processes with buffers at addresses where this machine may copy slowly.
    fn slow_buffers(&self) -> Vec<SlowBuffer> {
        let slow = |(pid, (command, offsets)): (&i32, &(String, BufferOffsets))| {
            let (read_offset, write_offset) = (offsets.of_reads(), offsets.of_writes());
            let figures = CopyFigures { read_offset, write_offset, ..CopyFigures::default() };
            figures.may_be_slow().then(|| SlowBuffer {
                pid: *pid,
                command: command.clone(),
                read_buffer_offset: read_offset,
                write_buffer_offset: write_offset,
            })
        };
        self.buffers.iter().flatten().filter_map(slow).collect()
    }

    /// Checks whether a pipe is full, and enlarges it if it was also full at the previous check. Returns whether it must be checked again.
    fn sample_pipe(&mut self, pipe: Identity, link: &Link, round: u32, topology: &Topology) -> bool {
        let waits = Instant::now() < self.quota_pause_until;
        let (Some(seen), Some(held)) = (self.seen.get_mut(&pipe), link.held.first()) else { return false };
        // A writer sleeps because the pipe is full.
        let asleep = !link.fill.is_sampled() && round == 0;
        if asleep || seen.cannot_grow || waits {
            (seen.full, seen.any_full) = (asleep, asleep);
            return asleep && !seen.cannot_grow && !waits;
        }
        let Some(fill) = self.sampler.pipe(held.pid, held.fd, Some(pipe)) else { return false };
        let bytes = fill.capacity_bytes;
        // Three quarters count as full, because a reader may just have read a block.
        let before = std::mem::replace(&mut seen.full, fill.held_bytes * 4 >= bytes * 3);
        seen.any_full |= seen.full;
        seen.cannot_grow = self.larger.next_size(bytes).is_none();
        if seen.cannot_grow || !(before && seen.full) {
            return !seen.cannot_grow && (seen.any_full || round + 1 < CHECKS >> seen.quiet.min(CHECKS));
        }
        let rate = seen.rate.get_or_insert_with(|| Rate::begin(*held));
        if seen.at.is_none() && !rate.is_measured(bytes) {
            return true;
        }
        let before = rate.bytes_per_s(BEFORE_TIME_MIN);
        match self.larger.grow(pipe, *held, bytes) {
            Growth::To(at) => {
                seen.rate = Some(Rate::begin(*held));
                let is_new = seen.at.replace(at).is_none();
                if is_new {
                    self.larger.enlarged[at].before_bytes_per_s = before;
                }
                // At the first growth the shell may still have the end that it made for a program, so the names are read each time.
                self.name_ends(pipe, *held, at, topology);
            }
            Growth::NoRoom => self.quota_pause_until = Instant::now() + QUOTA_PAUSE,
            Growth::Never => seen.cannot_grow = true,
        }
        false
    }

    /// Adds the time since the last sample to the figures of a pipe. Returns whether the pipe may be enlarged soon.
    fn account(&mut self, pipe: Identity, since: Duration) -> bool {
        let Some(seen) = self.seen.get_mut(&pipe) else { return false };
        if let Some(enlarged) = seen.at.and_then(|at| self.larger.enlarged.get_mut(at)) {
            let ns = since.as_nanos() as u64;
            enlarged.watched_ns += ns;
            enlarged.full_ns += if seen.any_full { ns } else { 0 };
            let rate = seen.rate.as_ref().and_then(|rate| rate.bytes_per_s(AFTER_TIME_MIN));
            enlarged.after_bytes_per_s = rate.or(enlarged.after_bytes_per_s);
        }
        seen.quiet = if seen.any_full { 0 } else { seen.quiet + 1 };
        seen.any_full && !seen.cannot_grow && Instant::now() >= self.quota_pause_until
    }

    /// Records the processes at the ends of a pipe that was enlarged.
    fn name_ends(&mut self, pipe: Identity, held: Held, at: usize, topology: &Topology) {
        let has = |pid: i32, fd: i32, reads: bool| {
            endpoint(pid, fd).is_some_and(|end| end.ipc_file == IpcFile::Pipe(pipe) && end.reads == reads)
        };
        let writer = has(held.pid, held.fd, false).then_some(held.pid);
        let mut pids = topology.stages.iter().flat_map(|stage| &stage.pids).copied();
        let reader = pids.find(|pid| has(*pid, 0, true));
        let enlarged = &mut self.larger.enlarged[at];
        enlarged.writer = writer.and_then(named).or(enlarged.writer.take());
        enlarged.reader = reader.and_then(named).or(enlarged.reader.take());
    }

    /// Gives the remaining pipes their old sizes, and completes the record.
    pub(super) fn finish(mut self, record: &mut BoostRecord) {
        self.larger.give_back();
        record.slow_buffers = self.slow_buffers();
        record.pipe_quota = self.larger.pipe_quota;
        record.samples = self.samples;
        record.boosted = self.larger.enlarged;
        record.refused = self.larger.refused;
        record.unseen = self.tree.unseen.len() as u64;
    }
}
