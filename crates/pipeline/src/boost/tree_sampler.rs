//! Samples the pipes of a tree of processes, and enlarges those that are full. What a process waits for mostly says whether its
//! pipe can be full: one that waits for something else than its output has none, and one that sleeps in a write has a full pipe.
//! Only pipes of processes that run are opened, and of these only those that can grow: idle ones are never touched.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use model::{SeenCopies, SlowBuffer};
use observe::buffers::BufferOffsets;
use observe::end::{End, Joint, end, ends, nameless};
use observe::fullness::Gauge;
use observe::open_file::Identity;
use observe::pace::Pace;
use observe::waits::{Awaited, Waits};
use process::proc::{Stat, command_line, named, value};
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use super::Boosted;
use super::larger::{Growth, LargerPipes};
use super::process_tree::{ProcessTree, TreeProcess};

/// Between two samples: the least is short against what people wait for, the most lets an idle pipeline sleep.
const PAUSE_MIN: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(32);
/// The most descriptors of one process that are read.
const ENDS_MAX: usize = 32;
/// The most processes whose buffers are noted.
const BUFFERS_MAX: usize = 64;
/// How long nothing grows after the quota was found spent.
const NO_ROOM: Duration = Duration::from_secs(1);

/// Samples of a pipe at one look, and the time between two. Ends that wake each other fill and empty a pipe thousands of times in a
/// second: a few samples close together say as much as looks that are far apart.
const SAMPLES: u32 = 4;
const BETWEEN: Duration = Duration::from_micros(500);

/// What is written is measured before a pipe is enlarged for the first time: for so long and so many times its size at the least, and
/// never longer than the last.
const BEFORE: Duration = Duration::from_millis(20);
const BEFORE_SIZES: u64 = 16;
const BEFORE_MOST: Duration = Duration::from_millis(200);
/// Of a process that was started less long ago nothing is measured: its first moments say nothing of what it does later.
const SETTLED: Duration = Duration::from_millis(500);
/// And afterwards for so long at the least: filling the room that is new is no flow.
const AFTER: Duration = Duration::from_millis(100);

/// How long ago a process was started.
fn age(pid: i32) -> Option<Duration> {
    let started = Duration::from_millis(Stat::of(pid)?.started_ticks * 1000 / clock_ticks_per_second());
    Some(Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?.saturating_sub(started))
}

/// How much an end of a pipe moves.
struct Flow {
    pid: i32,
    /// In /proc/PID/io.
    counter: &'static str,
    found: Instant,
    /// Since when it is measured, and what had been moved by then.
    since: Instant,
    moved: Option<u64>,
    flows: bool,
}

impl Flow {
    fn begin(pid: i32, writes: bool) -> Self {
        let counter = if writes { "wchar" } else { "rchar" };
        let now = Instant::now();
        let mut flow = Self { pid, counter, found: now, since: now, moved: None, flows: false };
        flow.moved = flow.moved_by_now().filter(|_| age(pid).is_some_and(|age| age >= SETTLED));
        flow
    }

    fn moved_by_now(&self) -> Option<u64> {
        value(&format!("/proc/{}/io", self.pid), self.counter)?.parse().ok()
    }

    /// Whether what flows before a pipe of this size is enlarged has been measured, as far as it can be. It begins when something has
    /// flowed: a reader that has just been started does not read yet.
    fn is_measured(&mut self, size: u64) -> bool {
        let (Some(now), Some(moved)) = (self.moved_by_now(), self.moved) else { return true };
        if !self.flows && now > moved {
            (self.flows, self.since, self.moved) = (true, Instant::now(), Some(now));
            return false;
        }
        let enough = self.since.elapsed() >= BEFORE && now - moved >= BEFORE_SIZES * size;
        enough || self.found.elapsed() >= BEFORE_MOST
    }

    /// Bytes a second, of so long at the least; `None` where it was shorter, or all of it was one long call.
    fn bytes_per_s(&self, least: Duration) -> Option<u64> {
        let seconds = Some(self.since.elapsed()).filter(|time| *time >= least)?.as_secs_f64();
        let bytes = self.moved_by_now()?.saturating_sub(self.moved?);
        Some((bytes as f64 / seconds) as u64).filter(|rate| *rate > 0)
    }
}

/// A pipe that was looked at, or is larger than it was.
#[derive(Default)]
struct PipeHistory {
    /// The number of the last look at it.
    look: u64,
    /// It cannot grow.
    stays: bool,
    /// Its last sample was full, or any at this look.
    full: bool,
    any_full: bool,
    /// Looks in a row at which no sample was full: it is sampled less often.
    quiet: u32,
    /// Its place among those that were made larger.
    at: Option<usize>,
    /// What flows since it was found full, or since it has grown.
    flow: Option<Flow>,
}

/// An end at which a pipe may be full.
#[derive(Clone, Copy)]
struct PipeEnd {
    pipe: Identity,
    pid: i32,
    fd: i32,
    /// A thread sleeps in a write to it: it is full.
    asleep: bool,
}

/// The only descriptor that a thread waits for.
fn sole(waits: &Waits) -> Option<Awaited> {
    match waits {
        Waits::For(fds) => <[Awaited; 1]>::try_from(&fds[..]).ok().map(|[only]| only),
        _ => None,
    }
}

pub(super) struct TreeSampler {
    tree: ProcessTree,
    pace: Pace,
    gauge: Gauge,
    larger: LargerPipes,
    seen: HashMap<Identity, PipeHistory>,
    /// What the first process reads, where that is a pipe: its writers may be outside the tree.
    input: Option<(i32, Identity)>,
    unseen: BTreeSet<i32>,
    looks: u64,
    last: Instant,
    no_room_until: Instant,
    /// Where buffers lie, and the command lines of their processes; `None` where that is not asked for.
    buffers: Option<HashMap<i32, (String, BufferOffsets)>>,
}

impl TreeSampler {
    pub(super) fn new(root: i32, notes_buffers: bool) -> Self {
        let input = end(root, 0).filter(|end| end.reads).and_then(|end| end.joint.pipe());
        let now = Instant::now();
        Self {
            tree: ProcessTree::new(root),
            pace: Pace::new(PAUSE_MIN, PAUSE_MIN, PAUSE_MAX),
            gauge: Gauge::default(),
            larger: LargerPipes::new(),
            seen: HashMap::new(),
            input: input.map(|pipe| (root, pipe)),
            unseen: BTreeSet::new(),
            looks: 0,
            last: now,
            no_room_until: now,
            buffers: notes_buffers.then(HashMap::new),
        }
    }

    /// Takes a sample if one is due; how long it is until the next one.
    pub(super) fn sample(&mut self) -> Duration {
        if !self.pace.begin() {
            return self.pace.left();
        }
        let now = Instant::now();
        let since = now.duration_since(std::mem::replace(&mut self.last, now));
        self.looks += 1;
        let processes = self.tree.processes();
        self.note_buffers(&processes);
        let mut places: Vec<PipeEnd> =
            processes.iter().flat_map(|process| self.written_by(process)).collect();
        places.extend(self.read_first(&processes));
        // What is certain goes before what must be asked.
        places.sort_by_key(|place| !place.asleep);
        let mut met = HashSet::new();
        places.retain(|place| met.insert(place.pipe));
        for place in &places {
            let seen = self.seen.entry(place.pipe).or_default();
            (seen.look, seen.full, seen.any_full) = (self.looks, false, false);
        }
        let mut again = places.clone();
        for round in 0..SAMPLES {
            if round > 0 && !again.is_empty() {
                std::thread::sleep(BETWEEN);
            }
            again.retain(|place| self.sample_pipe(*place, round, &processes));
        }
        let may_grow = places.iter().filter(|place| self.account(place.pipe, since)).count();
        let look = self.looks;
        self.seen.retain(|_, seen| seen.at.is_some() || seen.look == look);
        self.pace.end(may_grow > 0);
        self.pace.left()
    }

    fn note_buffers(&mut self, processes: &[TreeProcess]) {
        let Some(buffers) = &mut self.buffers else { return };
        for TreeProcess { pid, waits } in processes {
            if buffers.len() >= BUFFERS_MAX && !buffers.contains_key(pid) {
                continue;
            }
            let (_, offsets) =
                buffers.entry(*pid).or_insert_with(|| (command_line(*pid), BufferOffsets::default()));
            offsets.sample(&[*pid], waits.len() as u64, None);
        }
    }

    /// Processes whose buffers lie where this machine may copy slowly.
    fn slow_buffers(&self) -> Vec<SlowBuffer> {
        let slow = |(pid, (command, offsets)): (&i32, &(String, BufferOffsets))| {
            let seen = SlowBuffer {
                pid: *pid,
                command: command.clone(),
                read_buffer_offset: offsets.of_reads(),
                write_buffer_offset: offsets.of_writes(),
            };
            let [read_offset, write_offset] = [seen.read_buffer_offset, seen.write_buffer_offset];
            SeenCopies { read_offset, write_offset, ..SeenCopies::default() }.may_be_slow().then_some(seen)
        };
        let mut slow: Vec<SlowBuffer> = self.buffers.iter().flatten().filter_map(slow).collect();
        slow.sort_by_key(|process| process.pid);
        slow
    }

    /// Where a process may find a pipe full.
    fn written_by(&mut self, process: &TreeProcess) -> Vec<PipeEnd> {
        let pid = process.pid;
        let place = |end: End, asleep| {
            let pipe = end.joint.pipe().filter(|_| end.writes)?;
            Some(PipeEnd { pipe, pid, fd: end.fd, asleep })
        };
        let mut places = Vec::new();
        let mut any = false;
        for waits in &process.waits {
            match waits {
                Waits::For(fds) => {
                    let written = fds.iter().filter(|awaited| awaited.writes);
                    places.extend(
                        written.filter_map(|awaited| {
                            place(end(pid, awaited.fd)?, sole(waits) == Some(*awaited))
                        }),
                    );
                }
                Waits::Not | Waits::ToWrite | Waits::Somewhere => any = true,
                Waits::ToRead | Waits::Children | Waits::Time | Waits::Other => {}
            }
        }
        if any {
            match ends(pid) {
                Ok(ends) => places.extend(ends.take(ENDS_MAX).filter_map(|end| place(end, false))),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    self.unseen.insert(pid);
                }
                Err(_) => {}
            }
        }
        // Whoever opens a FIFO's reading end lets go on who waits for a reader: only one that has a sleeping writer surely has a
        // reader, too.
        places.retain(|place| place.asleep || Some(place.pipe.0) == nameless());
        places
    }

    /// What the first process reads, unless somebody sleeps until there is something in it.
    fn read_first(&self, processes: &[TreeProcess]) -> Option<PipeEnd> {
        let (pid, pipe) = self.input.filter(|(_, pipe)| Some(pipe.0) == nameless())?;
        let is_awaited = |process: &TreeProcess| {
            let read = process.waits.iter().filter_map(sole).filter(|awaited| awaited.reads);
            let mut ends = read.filter_map(|awaited| end(process.pid, awaited.fd));
            ends.any(|end| end.joint == Joint::Pipe(pipe))
        };
        (!processes.iter().any(is_awaited)).then_some(PipeEnd { pipe, pid, fd: 0, asleep: false })
    }

    /// Whether a pipe is full, which a sample before it may have been, too: then it grows. True where it is to be sampled again.
    fn sample_pipe(&mut self, place: PipeEnd, round: u32, processes: &[TreeProcess]) -> bool {
        let PipeEnd { pipe, pid, fd, asleep } = place;
        let waits = Instant::now() < self.no_room_until;
        let Some(seen) = self.seen.get_mut(&pipe) else { return false };
        let asleep = asleep && round == 0;
        if asleep || seen.stays || waits {
            (seen.full, seen.any_full) = (asleep, asleep);
            return asleep && !seen.stays && !waits;
        }
        let Some(fill) = self.gauge.pipe(pid, fd, Some(pipe)) else { return false };
        let bytes = fill.capacity_bytes;
        // A reader that has just taken a block has left at least so much in it.
        let before = std::mem::replace(&mut seen.full, fill.held_bytes * 4 >= bytes * 3);
        seen.any_full |= seen.full;
        seen.stays = self.larger.next_size(bytes).is_none();
        if seen.stays || !(before && seen.full) {
            return !seen.stays && (seen.any_full || round + 1 < SAMPLES >> seen.quiet.min(SAMPLES));
        }
        let writes = self.input.is_none_or(|(reader, input)| (reader, input) != (pid, pipe));
        let flow = seen.flow.get_or_insert_with(|| Flow::begin(pid, writes));
        if seen.at.is_none() && !flow.is_measured(bytes) {
            return true;
        }
        let before = flow.bytes_per_s(BEFORE);
        match self.larger.grow(pipe, (pid, fd), bytes) {
            Growth::To(at) => {
                seen.flow = Some(Flow::begin(pid, writes));
                let is_new = seen.at.replace(at).is_none();
                if is_new {
                    self.larger.enlarged[at].before_bytes_per_s = before;
                }
                // At its first growth a shell may still have the end that it made for a program.
                self.name_ends(place, at, processes);
            }
            Growth::NoRoom => self.no_room_until = Instant::now() + NO_ROOM,
            Growth::Never => seen.stays = true,
        }
        false
    }

    /// Puts the time since the last look down to a pipe. True where it may soon grow.
    fn account(&mut self, pipe: Identity, since: Duration) -> bool {
        let Some(seen) = self.seen.get_mut(&pipe) else { return false };
        if let Some(enlarged) = seen.at.and_then(|at| self.larger.enlarged.get_mut(at)) {
            let ns = since.as_nanos() as u64;
            enlarged.watched_ns += ns;
            enlarged.full_ns += if seen.any_full { ns } else { 0 };
            let rate = seen.flow.as_ref().and_then(|flow| flow.bytes_per_s(AFTER));
            enlarged.after_bytes_per_s = rate.or(enlarged.after_bytes_per_s);
        }
        seen.quiet = if seen.any_full { 0 } else { seen.quiet + 1 };
        seen.any_full && !seen.stays && Instant::now() >= self.no_room_until
    }

    /// Says of a pipe that was enlarged who is at its ends.
    fn name_ends(&mut self, place: PipeEnd, at: usize, processes: &[TreeProcess]) {
        let has = |pid: i32, fd: i32, reads: bool| {
            end(pid, fd).is_some_and(|end| end.joint == Joint::Pipe(place.pipe) && end.reads == reads)
        };
        let writer = has(place.pid, place.fd, false).then_some(place.pid);
        let reader = processes.iter().map(|process| process.pid).find(|pid| has(*pid, 0, true));
        let enlarged = &mut self.larger.enlarged[at];
        enlarged.writer = writer.and_then(named).or(enlarged.writer.take());
        enlarged.reader = reader.and_then(named).or(enlarged.reader.take());
    }

    /// Gives back what was enlarged and lives on, and says what was done.
    pub(super) fn end(mut self, boosted: Boosted) -> Boosted {
        self.larger.give_back();
        let slow_buffers = self.slow_buffers();
        Boosted {
            pipe_quota: self.larger.pipe_quota,
            looks: self.looks,
            cpu: self.pace.cost(),
            pipes: self.larger.enlarged,
            refused: self.larger.refused,
            unseen: self.unseen.len() as u64,
            slow_buffers,
            ..boosted
        }
    }
}
