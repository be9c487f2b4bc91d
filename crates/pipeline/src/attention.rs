//! Who a pipeline waits for, look by look: from its last stage upstream, past every stage that is idle because its input is
//! empty, to the one that has something to do. The time between two looks is put down to that one.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use model::{LinkRecord, StageRecord};
use observe::activity::{self, Activity, Awaits, Slice};
use observe::end::end;
use observe::fullness::{Fill, Gauge};
use observe::open_file::{Identity, OpenFile};
use process::proc::descriptors;
use rustix::time::{ClockId, clock_gettime};

use crate::ledger::{Ledger, Process};
use crate::serve::Glance;

/// Between two looks: short against what people wait for.
const PAUSE: Duration = Duration::from_millis(5);
/// Looking takes at most one part in so many of a CPU's time: for how long it waited for one says nothing of what it costs.
const COST: u32 = 50;
/// A process has no more descriptors that are looked at for pipes of a process substitution.
const SIDE_DESCRIPTORS_MAX: usize = 32;

/// What is known of a link to whoever looks at it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sight {
    /// A pipe at its reader's end, which is this file.
    Pipe(Identity),
    /// A pair of sockets.
    Sockets,
    /// It is known without looking.
    Known(Fill),
}

/// What was put down to one stage, or to nobody of ours.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Held {
    /// For how long the pipeline waited for it.
    pub(crate) total_ns: f64,
    /// Of that: computing, queueing for a CPU, waiting for a disk.
    pub(crate) cpu_ns: f64,
    pub(crate) queued_ns: f64,
    pub(crate) disk_ns: f64,
    /// The rest of the looks at which it slept.
    pub(crate) slept_ns: f64,
    /// Of that: idle before a pipe that is no link, by what stands at its other end.
    pub(crate) aside_ns: BTreeMap<String, f64>,
    /// Idle before the standard input of the whole, or the standard output.
    pub(crate) before_ns: f64,
    pub(crate) after_ns: f64,
    /// The same, if the stage reads its standard input at all.
    pub(crate) perhaps_before_ns: f64,
}

#[derive(Debug, Default)]
struct OfStage {
    last: Option<Activity>,
    queued_ns: u64,
    blocked_read_ns: u64,
    blocked_write_ns: u64,
    peak_bytes: u64,
    /// Something came by at its standard input, which is no link.
    has_input: bool,
    held: Held,
}

#[derive(Debug, Default)]
struct OfLink {
    watched_ns: u64,
    full_ns: u64,
    empty_ns: u64,
}

/// What was seen of the stages and links of a shell.
pub(crate) struct Attention {
    gauge: Gauge,
    stages: HashMap<usize, OfStage>,
    links: HashMap<u64, OfLink>,
    last_ns: u64,
    next: Instant,
    shell_peak_bytes: u64,
}

/// One look: what lives, and how full the links between are.
struct Look<'a> {
    ledger: &'a Ledger,
    slices: HashMap<usize, Slice>,
    fills: HashMap<u64, Fill>,
}

impl Look<'_> {
    fn process(&self, index: usize) -> &Process {
        &self.ledger.processes[index]
    }

    fn find(&self, is_it: impl Fn(&Process) -> bool) -> Option<usize> {
        self.slices.keys().copied().find(|index| is_it(self.process(*index)))
    }

    fn fill(&self, link: Option<u64>) -> Option<Fill> {
        self.fills.get(&link?).copied()
    }
}

impl Attention {
    pub(crate) fn new() -> Self {
        Self {
            gauge: Gauge::default(),
            stages: HashMap::new(),
            links: HashMap::new(),
            last_ns: model::monotonic_ns(),
            next: Instant::now(),
            shell_peak_bytes: 0,
        }
    }

    /// How long nothing is to be looked at.
    pub(crate) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks at everything that lives, if it is time to.
    pub(crate) fn look(&mut self, ledger: &Ledger, sight: &dyn Fn(u64) -> Option<Sight>) {
        if Instant::now() < self.next {
            return;
        }
        let began = own_cpu_time();
        let now_ns = model::monotonic_ns();
        let living = ledger.played();
        let slices = living.filter_map(|index| Some((index, self.slice(ledger, index, now_ns)?))).collect();
        let mut look = Look { ledger, slices, fills: HashMap::new() };
        look.fills = self.fills(&look, sight);
        for index in look.slices.keys() {
            self.note_waits(&look, *index);
            let reader_lives = |link| look.find(|process| process.reads == Some(link)).is_some();
            // One without any link is a stage alone, or no stage at all; that is told apart later.
            if !look.process(*index).writes.is_some_and(reader_lives) {
                self.walk(&look, *index);
            }
        }
        self.last_ns = now_ns;
        self.next = Instant::now() + PAUSE.max(own_cpu_time().saturating_sub(began) * COST);
    }

    /// What a stage did since the last look; `None` where it has gone.
    fn slice(&mut self, ledger: &Ledger, index: usize, now_ns: u64) -> Option<Slice> {
        let process = &ledger.processes[index];
        let is_shell = ledger.is_shell(process);
        let activity = activity::of(process.pid, !is_shell, &process.aside)?;
        let ns = now_ns.saturating_sub(self.last_ns.max(process.began_ns));
        let stage = self.stages.entry(index).or_default();
        let peak = activity::peak_memory(process.pid).unwrap_or(0);
        if is_shell {
            self.shell_peak_bytes = self.shell_peak_bytes.max(peak);
        }
        stage.peak_bytes = stage.peak_bytes.max(peak);
        let last = stage.last.replace(activity.clone());
        // What a process did before it was first seen nobody knows.
        let ns = if last.is_some() { ns } else { 0 };
        let last = last.unwrap_or_else(|| activity.clone());
        let slice = Slice::between(&last, &activity, ns);
        // What several threads waited for together may be more than the time.
        stage.queued_ns += (slice.ns * slice.queued) as u64;
        Some(slice)
    }

    fn fills(&mut self, look: &Look<'_>, sight: &dyn Fn(u64) -> Option<Sight>) -> HashMap<u64, Fill> {
        let mut fills = HashMap::new();
        for (index, slice) in &look.slices {
            let reader = look.process(*index);
            let Some((link, sight)) = reader.reads.and_then(|link| Some((link, sight(link)?))) else {
                continue;
            };
            let writer = || look.find(|process| process.writes == Some(link)).map(|at| look.process(at).pid);
            let fill = match sight {
                Sight::Pipe(file) => self.gauge.pipe(reader.pid, 0, Some(file)),
                Sight::Sockets => observe::fullness::of_sockets(reader.pid, writer()),
                Sight::Known(fill) => Some(fill),
            };
            let Some(fill) = fill else { continue };
            fills.insert(link, fill);
            if !matches!(sight, Sight::Known(_)) {
                let has_writer = !fill.holds || writer().is_some();
                let seen = self.links.entry(link).or_default();
                seen.watched_ns += slice.ns as u64;
                seen.full_ns += if fill.is_full() { slice.ns as u64 } else { 0 };
                seen.empty_ns += if fill.is_empty() && has_writer { slice.ns as u64 } else { 0 };
            }
        }
        fills
    }

    fn note_waits(&mut self, look: &Look<'_>, index: usize) {
        let (process, slice) = (look.process(index), look.slices[&index]);
        let Some(stage) = self.stages.get_mut(&index).filter(|_| slice.idle) else { return };
        if look.fill(process.reads).is_some_and(|fill| fill.is_empty() && !fill.holds) {
            stage.blocked_read_ns += slice.ns as u64;
        } else if look.fill(process.writes).is_some_and(|fill| fill.is_full()) {
            stage.blocked_write_ns += slice.ns as u64;
        }
    }

    /// Puts the time of a slice down to stages, from the last one upstream.
    fn walk(&mut self, look: &Look<'_>, last: usize) {
        let (mut index, mut left) = (last, 1.0);
        let slice = look.slices[&last];
        if look.process(last).writes.is_none() && slice.idle {
            // Whoever reads the output of the whole may be the slow one.
            let output = self.gauge.pipe(look.process(last).pid, 1, None);
            let taken = output.filter(|fill| fill.is_full()).map_or(0.0, Fill::up_to_reader);
            if let Some(stage) = self.stages.get_mut(&last) {
                stage.held.after_ns += slice.ns * taken;
                stage.blocked_write_ns += (slice.ns * taken) as u64;
            }
            left -= taken;
        }
        for _ in 0..look.slices.len() {
            let (process, slice) = (look.process(index), look.slices[&index]);
            let writer = process.reads.and_then(|link| look.find(|other| other.writes == Some(link)));
            let fill = look.fill(process.reads);
            let may_wait = slice.idle && !fill.is_some_and(|fill| fill.holds);
            let here = match process.reads {
                None => 1.0,
                // Nobody else is waited for by one who only lets time pass.
                Some(_) if may_wait && self.passes_time(index) => 1.0,
                Some(_) => match Fill::up_to(fill, slice.idle, writer.is_some()) {
                    Some(share) => share,
                    None => return,
                },
            };
            self.put_down(look.ledger, index, &slice, left * here);
            left *= 1.0 - here;
            match writer.filter(|_| left > 0.0) {
                Some(writer) => index = writer,
                None => return,
            }
        }
    }

    fn passes_time(&self, index: usize) -> bool {
        self.stages.get(&index).and_then(|stage| stage.last.as_ref()).is_some_and(Activity::passes_time)
    }

    fn put_down(&mut self, ledger: &Ledger, index: usize, slice: &Slice, share: f64) {
        let process = &ledger.processes[index];
        let ns = slice.ns * share;
        if ns <= 0.0 {
            return;
        }
        let Some(stage) = self.stages.get_mut(&index) else { return };
        if slice.idle || slice.rests() {
            let pids = stage.last.as_ref().map(|last| last.pids.clone()).unwrap_or_default();
            if let Some(name) = aside(&mut self.gauge, ledger, process.pid, &pids) {
                *stage.held.aside_ns.entry(name).or_default() += ns;
            } else if slice.idle
                && process.reads.is_none()
                && let Some(input) = self.gauge.pipe(process.pid, 0, None)
            {
                stage.has_input |= input.share > 0.0 || input.over;
                match if input.is_empty() { activity::awaits_input(&pids) } else { Awaits::Other } {
                    Awaits::Input => {
                        stage.held.before_ns += ns;
                        stage.blocked_read_ns += ns as u64;
                        return;
                    }
                    Awaits::Perhaps => return stage.held.perhaps_before_ns += ns,
                    Awaits::Other => {}
                }
            }
        }
        let held = &mut stage.held;
        held.total_ns += ns;
        held.cpu_ns += ns * slice.cpu;
        held.queued_ns += ns * slice.queued;
        let rest_ns = ns * (1.0 - slice.cpu - slice.queued);
        if slice.at_disk {
            held.disk_ns += rest_ns;
        } else if !slice.is_ready {
            held.slept_ns += rest_ns;
        }
    }

    /// What the pipeline waited for at one stage.
    pub(crate) fn held(&self, index: usize) -> Held {
        let Some(stage) = self.stages.get(&index) else { return Held::default() };
        let mut held = stage.held.clone();
        // What it waited for before a look at which it ran again, the other looks tell.
        let aside_ns: f64 = held.aside_ns.values().sum();
        let waited_ns = (held.total_ns - held.cpu_ns - held.queued_ns - aside_ns).max(0.0);
        held.disk_ns *= waited_ns / (held.disk_ns + held.slept_ns).max(1.0);
        if stage.has_input {
            held.before_ns += std::mem::take(&mut held.perhaps_before_ns);
        }
        held
    }

    /// Completes the record of a stage.
    pub(crate) fn complete_stage(&self, index: usize, record: &mut StageRecord) {
        // A new program begins in the memory of the shell: a figure no larger than that says nothing of it.
        let counted = record.max_rss_bytes.filter(|bytes| *bytes > self.shell_peak_bytes);
        let Some(stage) = self.stages.get(&index) else {
            record.max_rss_bytes = counted;
            return;
        };
        record.max_rss_bytes = counted.max(Some(stage.peak_bytes).filter(|bytes| *bytes > 0));
        record.queued_ns = Some(stage.queued_ns.min(record.wall_ns));
        record.blocked_read_ns = Some(stage.blocked_read_ns.min(record.wall_ns));
        record.blocked_write_ns = Some(stage.blocked_write_ns.min(record.wall_ns));
        record.held_up_ns = Some((stage.held.total_ns as u64).min(record.wall_ns));
    }

    /// Completes the record of a link.
    pub(crate) fn complete_link(&self, id: u64, record: &mut LinkRecord) {
        let Some(link) = self.links.get(&id) else { return };
        record.watched_ns = Some(link.watched_ns);
        record.full_ns = Some(link.full_ns);
        record.empty_ns = Some(link.empty_ns);
    }

    /// The processes of a stage, as they were seen last.
    pub(crate) fn pids(&self, index: usize) -> &[i32] {
        self.stages.get(&index).and_then(|stage| stage.last.as_ref()).map_or(&[], |last| &last.pids)
    }

    /// What a stage has done so far.
    pub(crate) fn so_far(&self, index: usize) -> Glance {
        self.stages.get(&index).map_or(Glance::default(), |stage| Glance {
            cpu_ns: stage.last.as_ref().map_or(0, |last| last.cpu_ns),
            queued_ns: stage.queued_ns,
            blocked_read_ns: stage.blocked_read_ns,
            blocked_write_ns: stage.blocked_write_ns,
            ..Glance::default()
        })
    }
}

/// CPU time of this thread so far.
fn own_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// What stands at the other end of a pipe, no link, before which a stage may be idle: an empty one it reads, or a full one it
/// writes, as a process substitution makes them. `None` where there is none.
fn aside(gauge: &mut Gauge, ledger: &Ledger, stage: i32, pids: &[i32]) -> Option<String> {
    for pid in pids {
        let side = descriptors(*pid).filter(|fd| *fd > 2).take(SIDE_DESCRIPTORS_MAX);
        for end in side.filter_map(|fd| end(*pid, fd)) {
            let Some(pipe) = end.joint.pipe() else { continue };
            let Some(fill) = gauge.pipe(*pid, end.fd, Some(pipe)) else { continue };
            if (end.reads && fill.is_empty()) || (!end.reads && fill.is_full()) {
                return at_other_end(ledger, &OpenFile::pipe(pipe), i32::from(end.reads), stage);
            }
        }
    }
    None
}

/// The program that has this file as its standard input or output.
fn at_other_end(ledger: &Ledger, file: &OpenFile, fd: i32, but: i32) -> Option<String> {
    let has = |index: &usize| {
        let pid = ledger.processes[*index].pid;
        pid != but && file.is(pid, fd)
    };
    ledger.played().find(has).map(|index| ledger.name(index))
}
