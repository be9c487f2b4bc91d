//! Samples the stages and links of a shell's ledger: what each stage does, and how full each link is. The time between two samples is attributed to
//! the stages for which the others waited (`observe::blame`).

mod side_pipes;

use std::collections::{BTreeMap, HashMap};

use model::{HeldBack, LinkRecord, StageRecord};
use observe::activity::{Activity, Awaits, Slice, peak_memory};
use observe::blame::{LinkState, StageState, assign_waiting};
use observe::brief_pipe::is_unread;
use observe::end::{end, process_files};
use observe::flow::Moved;
use observe::fullness::{Fill, Gauge};
use observe::held_back::HeldBackTracker;
use observe::line_buffering::needs_all_input;
use observe::locale::Locale;
use observe::open_file::Identity;
use observe::stage_processes::{KEPT_PROCESSES_MAX, StageProcesses};
use process::proc::read_short_file;

use crate::ledger::{Ledger, Process};
use crate::text::StageSnapshot;
use crate::tips;
use side_pipes::program_at_side_pipe;

/// CPU time after which a program counts as started up: it has read its own files (libraries, locales).
const STARTUP_CPU_NS: u64 = 1_000_000_000;

/// Longest time before a sample for which it is evidence where the previous sample showed another stage: on a busy machine samples may be half a
/// second apart, and the stage that is waited for now was then waited for during an unknown part of that.
const SPEAKS_FOR_NS: f64 = 100_000_000.0;

/// How to find out how full a link is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FillSource {
    /// From this pipe, by its reader's descriptor.
    Pipe(Identity),
    /// From a pair of sockets, by the descriptors of both ends.
    Sockets,
    /// It is known without a sample.
    Known(Fill),
}

/// Finds the source of a link; `None` if it is not known how full the link is.
pub(crate) type FillSources<'a> = dyn Fn(u64) -> Option<FillSource> + 'a;

/// The time for which the pipeline waited for one stage, divided by what the stage did meanwhile; and the time for which the stage itself waited for
/// programs that are not stages.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Blame {
    /// The time for which the pipeline waited for it.
    pub(crate) total_ns: f64,
    /// The number of samples with this stage.
    pub(crate) samples: u32,
    /// Parts of it: the stage computed, queued for a CPU, waited for a disk.
    pub(crate) cpu_ns: f64,
    pub(crate) queued_ns: f64,
    pub(crate) disk_ns: f64,
    /// Part of it: the stage was stopped by a signal.
    pub(crate) stopped_ns: f64,
    /// Part of it: the rest of the time before samples in which the stage slept.
    pub(crate) slept_ns: f64,
    /// Part of it: the stage was idle at a pipe that is not a link; by the program at the pipe's other end.
    pub(crate) aside_ns: BTreeMap<String, f64>,
    /// The stage ran on although no process read its output any more.
    pub(crate) unread_ns: f64,
    /// The stage waited for the standard input of the pipeline, or for its standard output.
    pub(crate) before_ns: f64,
    pub(crate) after_ns: f64,
    /// The stage may have waited for the standard input: it is not known whether it reads it.
    pub(crate) perhaps_before_ns: f64,
}

#[derive(Default)]
struct StageHistory {
    processes: StageProcesses,
    /// Time of the last sample in which it lived.
    seen_ns: u64,
    /// Their activity until the last sample.
    last: Option<Activity>,
    /// Their times until the last sample, and the output that one of its programs holds back now.
    so_far: StageSnapshot,
    peak_bytes: u64,
    /// Bytes that its processes and their ended children have moved; only for a stage with a link.
    moved: Option<Moved>,
    /// Whether its standard input is not a link and had bytes.
    has_input: bool,
    blame: Blame,
    /// The locale of its program, where a tip may depend on that.
    locale: Option<Locale>,
    /// The share of the waiting that the last sample assigned to it.
    last_share: f64,
    /// The output that was held back for the longest time.
    longest_held_back: Option<HeldBack>,
}

#[derive(Debug, Default)]
struct LinkHistory {
    watched_ns: u64,
    full_ns: u64,
    empty_ns: u64,
    /// Bytes that its reader has read between samples in which it had no other file open.
    read_bytes: u64,
    /// Bytes that the reader's only thread had read in total at the last sample, if it had no other file open then.
    last_read: Option<u64>,
    /// The same reader, and the counters of its process then.
    last_moved: Option<(i32, Moved)>,
    /// Whether the reader has waited for its standard input, or has used [`STARTUP_CPU_NS`].
    has_started_up: bool,
}

/// The samples of the stages and links.
#[derive(Default)]
pub(crate) struct StageSampler {
    gauge: Gauge,
    held_back: HeldBackTracker,
    stages: HashMap<usize, StageHistory>,
    links: HashMap<u64, LinkHistory>,
    last_ns: u64,
    shell_peak_bytes: u64,
}

/// One sample: what each running stage did since the last one, and how full the links between them are.
struct Sample<'a> {
    ledger: &'a Ledger,
    slices: BTreeMap<usize, Slice>,
    fills: HashMap<u64, Fill>,
}

impl Sample<'_> {
    fn process(&self, index: usize) -> &Process {
        &self.ledger.processes[index]
    }

    fn writer(&self, link: u64) -> Option<&Process> {
        self.slices.keys().map(|index| self.process(*index)).find(|process| process.writes == Some(link))
    }

    fn fill(&self, link: Option<u64>) -> Option<Fill> {
        self.fills.get(&link?).copied()
    }

    /// Whether a stage's reader has ended, and no other process reads what it writes.
    fn is_unread(&self, index: usize) -> bool {
        let process = self.process(index);
        let Some(link) = process.writes else { return false };
        let has_reader = self.slices.keys().any(|other| self.process(*other).reads == Some(link));
        !has_reader && self.ledger.end_of(link, false).is_some() && is_unread(process.pid, 1)
    }
}

impl StageSampler {
    /// Takes a sample of all running stages.
    pub(crate) fn sample(&mut self, ledger: &Ledger, source: &FillSources<'_>) {
        let now_ns = model::monotonic_ns();
        let kept: usize = self.stages.values().map(|stage| stage.processes.pids.len()).sum();
        let keep = kept < KEPT_PROCESSES_MAX;
        let slice = |index| Some((index, self.slice(ledger, index, now_ns, keep)?));
        let slices = ledger.running().filter_map(slice).collect();
        let mut sample = Sample { ledger, slices, fills: HashMap::new() };
        sample.fills = self.fills(&sample, source);
        for index in sample.slices.keys() {
            self.note_waits(&sample, *index);
            self.note_held_back(&sample, *index, now_ns);
        }
        let ended = self.stages.iter_mut().filter(|(index, _)| !sample.slices.contains_key(index));
        ended.for_each(|(_, stage)| stage.processes.end());
        let lives = |pid| self.stages.values().any(|stage| stage.processes.pids.contains(&pid));
        self.held_back.retain(lives);
        self.attribute_waiting(&sample);
        self.last_ns = now_ns;
    }

    /// What a stage did since the last sample; `None` if it has ended.
    fn slice(&mut self, ledger: &Ledger, index: usize, now_ns: u64, keep: bool) -> Option<Slice> {
        let process = &ledger.processes[index];
        let is_shell = ledger.is_shell(process);
        let stage = self.stages.entry(index).or_default();
        stage.processes.sample(process.pid, !is_shell, &process.earlier_children, keep)?;
        stage.seen_ns = now_ns;
        let activity = stage.processes.activity;
        let ns = now_ns.saturating_sub(self.last_ns.max(process.began_ns));
        let peak = peak_memory(process.pid).unwrap_or(0);
        if is_shell {
            self.shell_peak_bytes = self.shell_peak_bytes.max(peak);
        }
        stage.peak_bytes = stage.peak_bytes.max(peak);
        if !is_shell && (process.reads.is_some() || process.writes.is_some()) {
            stage.moved = stage.processes.moved();
        }
        // The activity of a process before its first sample is not known.
        let (last, ns) = match stage.last.replace(activity) {
            Some(last) => (last, ns),
            None => (activity, 0),
        };
        let slice = Slice::between(&last, &activity, ns);
        // The sum over several threads may exceed the elapsed time.
        stage.so_far.queued_ns += (slice.ns * slice.queued) as u64;
        stage.so_far.cpu_ns = activity.cpu_ns;
        if stage.locale.is_none()
            && slice.cpu > 0.0
            && let Some(program) = ledger.program(index).filter(|program| tips::needs_locale(program))
        {
            stage.locale = stage.processes.locale_of(program);
        }
        Some(slice)
    }

    fn fills(&mut self, sample: &Sample<'_>, source: &FillSources<'_>) -> HashMap<u64, Fill> {
        let mut fills = HashMap::new();
        for (index, slice) in &sample.slices {
            let reader = sample.process(*index);
            let Some((link, source)) = reader.reads.and_then(|link| Some((link, source(link)?))) else {
                continue;
            };
            let writer = || sample.writer(link).map(|writer| writer.pid);
            let fill = match source {
                FillSource::Pipe(file) => self.gauge.pipe(reader.pid, 0, Some(file)),
                FillSource::Sockets => observe::fullness::socket_pair_fill(reader.pid, writer()),
                FillSource::Known(fill) => Some(fill),
            };
            fills.extend(fill.map(|fill| (link, fill)));
            if matches!(source, FillSource::Known(_)) {
                continue;
            }
            let seen = self.links.entry(link).or_default();
            if let Some(stage) = self.stages.get(index) {
                seen.note_read(&stage.processes);
            }
            if let Some(fill) = fill {
                let has_writer = !fill.holds || writer().is_some();
                seen.watched_ns += slice.ns as u64;
                seen.full_ns += if fill.is_full() { slice.ns as u64 } else { 0 };
                seen.empty_ns += if fill.is_empty() && has_writer { slice.ns as u64 } else { 0 };
            }
        }
        fills
    }

    fn note_waits(&mut self, sample: &Sample<'_>, index: usize) {
        let (process, slice) = (sample.process(index), sample.slices[&index]);
        let Some(stage) = self.stages.get_mut(&index).filter(|_| slice.idle) else { return };
        if sample.fill(process.reads).is_some_and(|fill| fill.is_empty() && !fill.holds) {
            stage.so_far.blocked_read_ns += slice.ns as u64;
        } else if sample.fill(process.writes).is_some_and(|fill| fill.is_full())
            || stage.processes.awaits_room()
        {
            stage.so_far.blocked_write_ns += slice.ns as u64;
        } else {
            stage.so_far.asleep_ns += slice.ns as u64;
        }
    }

    /// Records the output that a stage's programs hold back although there is room for it.
    fn note_held_back(&mut self, sample: &Sample<'_>, index: usize, now_ns: u64) {
        let process = sample.process(index);
        // Before a stage that needs all its input, the next one or a later one, and directly behind one, lines that come earlier would change
        // nothing.
        let ledger = sample.ledger;
        let behind = |at: &usize| ledger.end_of(sample.process(*at).writes?, false);
        let later = std::iter::successors(behind(&index), behind).take(sample.slices.len());
        let before = process.reads.and_then(|link| ledger.end_of(link, true));
        let mut others = later.chain(before);
        if ledger.is_shell(process) || others.any(|other| needs_all_input(&ledger.name(other))) {
            return;
        }
        let Some(stage) = self.stages.get_mut(&index) else { return };
        let fill = match process.writes {
            Some(link) => sample.fill(Some(link)),
            None => self.gauge.pipe(process.pid, 1, None),
        };
        let pids = stage.processes.pids.iter();
        let mut writers = pids.filter(|pid| end(**pid, 1).is_some_and(|end| end.writes));
        let is_blocked = fill.is_some_and(Fill::is_full);
        let held = writers.find_map(|pid| self.held_back.sample(*pid, now_ns, is_blocked));
        let for_ns = |held: &Option<HeldBack>| held.as_ref().map_or(0, |held| held.for_ns);
        if for_ns(&held) > for_ns(&stage.longest_held_back) {
            stage.longest_held_back.clone_from(&held);
        }
        stage.so_far.held_back = held;
    }

    /// Attributes the time since the last sample to the stages for which others waited, and to the readers of the pipeline's output.
    fn attribute_waiting(&mut self, sample: &Sample<'_>) {
        let stages: Vec<usize> = sample.slices.keys().copied().collect();
        let mut links: BTreeMap<u64, LinkState> = BTreeMap::new();
        for (at, index) in stages.iter().enumerate() {
            let process = sample.process(*index);
            for (link, writes) in [(process.reads, false), (process.writes, true)] {
                let Some(link) = link else { continue };
                let state = links
                    .entry(link)
                    .or_insert_with(|| LinkState { fill: sample.fill(Some(link)), ..LinkState::default() });
                if writes { &mut state.writers } else { &mut state.readers }.push(at);
            }
        }
        let mut links: Vec<LinkState> = links.into_values().collect();
        let own = links.len();
        for (at, index) in stages.iter().enumerate().filter(|(_, index)| sample.slices[index].idle) {
            if sample.process(*index).writes.is_none() {
                let fill = self.gauge.pipe(sample.process(*index).pid, 1, None);
                links.push(LinkState { writers: vec![at], readers: Vec::new(), fill });
            }
        }
        let mut states: Vec<StageState> = stages.iter().map(|index| self.state(sample, *index)).collect();
        for (index, state) in stages.iter().zip(&mut states).filter(|(index, _)| sample.is_unread(**index)) {
            state.is_unread = true;
            if let Some(stage) = self.stages.get_mut(index) {
                stage.blame.unread_ns += sample.slices[index].ns;
            }
        }
        let waiting = assign_waiting(&states, &links);
        for (index, share) in stages.iter().zip(waiting.stages) {
            self.attribute(sample.ledger, *index, &sample.slices[index], share);
        }
        for (link, share) in links.iter().zip(waiting.outside).skip(own) {
            let index = stages[link.writers[0]];
            let ns = sample.slices[&index].ns * share;
            if let Some(stage) = self.stages.get_mut(&index) {
                stage.blame.after_ns += ns;
                stage.so_far.blocked_write_ns += ns as u64;
            }
        }
    }

    fn state(&self, sample: &Sample<'_>, index: usize) -> StageState {
        let (process, slice) = (sample.process(index), sample.slices[&index]);
        let may_wait = slice.idle
            && process.reads.is_some()
            && !sample.fill(process.reads).is_some_and(|fill| fill.holds);
        let stage = self.stages.get(&index).filter(|_| may_wait);
        let passes_time = slice.is_stopped || stage.is_some_and(|stage| stage.processes.pass_time());
        StageState { idle: slice.idle, rests: slice.rests(), passes_time, ..StageState::default() }
    }

    fn attribute(&mut self, ledger: &Ledger, index: usize, slice: &Slice, share: f64) {
        let process = &ledger.processes[index];
        let Some(stage) = self.stages.get_mut(&index) else { return };
        let before = std::mem::replace(&mut stage.last_share, share);
        let ns = slice.ns * share.min(before) + slice.ns.min(SPEAKS_FOR_NS) * (share - before).max(0.0);
        stage.blame.samples += 1;
        if ns <= 0.0 {
            return;
        }
        if slice.idle || slice.rests() {
            if let Some(name) =
                program_at_side_pipe(&mut self.gauge, ledger, process.pid, &stage.processes.pids)
            {
                *stage.blame.aside_ns.entry(name).or_default() += ns;
            } else if slice.idle
                && !slice.is_stopped
                && process.reads.is_none()
                && let Some(input) = self.gauge.pipe(process.pid, 0, None)
            {
                stage.has_input |= input.share > 0.0 || input.over;
                match if input.is_empty() { stage.processes.awaits_input() } else { Awaits::Other } {
                    Awaits::Input => {
                        stage.blame.before_ns += ns;
                        stage.so_far.blocked_read_ns += ns as u64;
                        return;
                    }
                    Awaits::Perhaps => return stage.blame.perhaps_before_ns += ns,
                    Awaits::Other => {}
                }
            }
        }
        let blame = &mut stage.blame;
        blame.total_ns += ns;
        blame.cpu_ns += ns * slice.cpu;
        blame.queued_ns += ns * slice.queued;
        let rest_ns = ns * (1.0 - slice.cpu - slice.queued);
        if slice.at_disk {
            blame.disk_ns += rest_ns;
        } else if slice.is_stopped {
            blame.stopped_ns += rest_ns;
        } else if !slice.is_ready {
            blame.slept_ns += rest_ns;
        }
    }

    /// The time for which the pipeline waited for a stage.
    pub(crate) fn blame(&self, index: usize) -> Blame {
        let Some(stage) = self.stages.get(&index) else { return Blame::default() };
        let mut blame = stage.blame.clone();
        // Waits between two samples are divided in the same proportion as the sampled waits.
        let aside_ns: f64 = blame.aside_ns.values().sum();
        let known_ns = blame.cpu_ns + blame.queued_ns + blame.stopped_ns + aside_ns;
        let waited_ns = (blame.total_ns - known_ns).max(0.0);
        blame.disk_ns *= waited_ns / (blame.disk_ns + blame.slept_ns).max(1.0);
        if stage.has_input {
            blame.before_ns += std::mem::take(&mut blame.perhaps_before_ns);
        }
        blame
    }

    /// The locale of a stage's program; `None` if it is not known.
    pub(crate) fn locale(&self, index: usize) -> Option<Locale> {
        self.stages.get(&index)?.locale
    }

    /// Completes the record of a stage.
    pub(crate) fn complete_stage(&self, index: usize, record: &mut StageRecord) {
        // The maximum includes the time before the program was executed, when the process was a copy of the shell. So only a figure above the
        // shell's is the program's own.
        record.max_rss_bytes = record.max_rss_bytes.filter(|bytes| *bytes > self.shell_peak_bytes);
        let Some(stage) = self.stages.get(&index) else { return };
        record.max_rss_bytes = record.max_rss_bytes.max(Some(stage.peak_bytes).filter(|bytes| *bytes > 0));
        if record.unseen_end.is_some() {
            record.user_ns = stage.so_far.cpu_ns;
        }
        record.queued_ns = Some(stage.so_far.queued_ns.min(record.wall_ns));
        record.blocked_read_ns = Some(stage.so_far.blocked_read_ns.min(record.wall_ns));
        record.blocked_write_ns = Some(stage.so_far.blocked_write_ns.min(record.wall_ns));
        record.held_up_ns = Some((stage.blame.total_ns as u64).min(record.wall_ns));
        record.held_back.clone_from(&stage.longest_held_back);
        record.read_buffer_offset = stage.processes.buffers.of_reads();
        record.write_buffer_offset = stage.processes.buffers.of_writes();
    }

    /// Time of the last sample in which a stage lived; `None` if there was none.
    pub(crate) fn last_seen_ns(&self, index: usize) -> Option<u64> {
        self.stages.get(&index).map(|stage| stage.seen_ns).filter(|ns| *ns > 0)
    }

    /// Completes the record of a link.
    pub(crate) fn complete_link(&self, id: u64, record: &mut LinkRecord) {
        let Some(link) = self.links.get(&id) else { return };
        record.watched_ns = Some(link.watched_ns);
        record.full_ns = Some(link.full_ns);
        record.empty_ns = Some(link.empty_ns);
    }

    /// Bytes that a running stage has read and written so far.
    pub(crate) fn moved(&self, index: usize) -> Option<Moved> {
        self.stages.get(&index)?.moved
    }

    /// Lower bound of the bytes that were read from a link.
    pub(crate) fn seen_read(&self, link: u64) -> u64 {
        self.links.get(&link).map_or(0, |link| link.read_bytes)
    }

    /// The reader of a link that had no other file open at the last sample, and what it had moved by then.
    pub(crate) fn last_of_reader(&self, link: u64) -> Option<(i32, Moved)> {
        self.links.get(&link)?.last_moved
    }

    /// The processes of a stage at the last sample.
    pub(crate) fn pids(&self, index: usize) -> &[i32] {
        self.stages.get(&index).map_or(&[], |stage| &stage.processes.pids)
    }

    /// What a stage has done so far.
    pub(crate) fn so_far(&self, index: usize) -> StageSnapshot {
        self.stages.get(&index).map_or(StageSnapshot::default(), |stage| StageSnapshot {
            buffer_offsets: [stage.processes.buffers.of_reads(), stage.processes.buffers.of_writes()],
            ..stage.so_far.clone()
        })
    }
}

impl LinkHistory {
    /// Adds the bytes that the reader has read since the last sample, if it had no other file open in both samples.
    fn note_read(&mut self, reader: &StageProcesses) {
        self.has_started_up |=
            reader.activity.cpu_ns >= STARTUP_CPU_NS || reader.awaits_input() == Awaits::Input;
        let read = if self.has_started_up { read_by_only_thread(reader) } else { None };
        self.read_bytes += read.zip(self.last_read).map_or(0, |(read, last)| read.saturating_sub(last));
        self.last_read = read;
        // Read after the counters of the thread, so that no byte counts twice.
        let now = |pid: &i32| Some((*pid, Moved::parse(&read_short_file(&format!("/proc/{pid}/io"))?)?));
        self.last_moved = read.and_then(|_| now(reader.pids.first()?));
    }
}

/// Bytes that a reader with one thread has read in total; `None` if it could read from another file than its standard input. (The counters of a
/// thread do not include ended children, unlike those of a process.)
fn read_by_only_thread(reader: &StageProcesses) -> Option<u64> {
    let ([pid], 1) = (&reader.pids[..], reader.activity.threads) else { return None };
    let held = process_files(*pid).ok().filter(|held| !held.reads_elsewhere)?;
    let reads_another = held.ends.iter().any(|end| end.reads && !(0..=2).contains(&end.fd));
    let counters = read_short_file(&format!("/proc/{pid}/task/{pid}/io")).filter(|_| !reads_another)?;
    Some(Moved::parse(&counters)?.read)
}
