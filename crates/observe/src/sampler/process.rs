//! Samples one process. Its files in /proc are kept open: opening them takes longer than reading them, and an open file never refers to
//! another process that has got the same PID.

use std::cell::OnceCell;
use std::fs::File;

use model::monotonic_ns;
use process::proc::{self, Stat};

use crate::activity::{self, Activity, Slice, queued_from};
use crate::buffers::{BufferOffsets, LargeCall};
use crate::flow::Moved;
use crate::line_buffering::needs_all_input;
use crate::waits::{self, Blocked};

/// Largest number of threads of a process that are sampled.
const THREADS_MAX: usize = 64;

/// What is read of each process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What it did and moved, and what it waits for.
    #[default]
    Activity,
    /// Only what it waits for.
    Waits,
}

/// A file in /proc that is read repeatedly, and may be kept open.
#[derive(Default)]
struct ProcFile {
    path: String,
    keep: bool,
    file: OnceCell<Option<File>>,
}

impl ProcFile {
    fn new(pid: i32, name: &str, keep: bool) -> Self {
        Self { path: format!("/proc/{pid}/{name}"), keep, file: OnceCell::new() }
    }

    fn read(&self) -> Option<Vec<u8>> {
        if !self.keep {
            return proc::read_short_file(&self.path);
        }
        self.file.get_or_init(|| File::open(&self.path).ok()).as_ref().and_then(proc::read_at)
    }
}

/// One sample of a process.
#[derive(Default, Clone)]
pub(crate) struct ProcessSample {
    /// Its time (CLOCK_MONOTONIC).
    pub(crate) at_ns: u64,
    pub(crate) activity: Activity,
    /// `None` if this user may not read it.
    pub(crate) moved: Option<Moved>,
}

/// The files of a process in /proc.
#[derive(Default)]
struct Files {
    stat: ProcFile,
    io: ProcFile,
    schedstat: ProcFile,
    syscall: ProcFile,
}

/// A process that is sampled repeatedly.
#[derive(Default)]
pub struct SampledProcess {
    files: Files,
    detail: Detail,
    pub pid: i32,
    pub(crate) parent: i32,
    started_ticks: u64,
    /// The name of its program.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) command: String,
    /// Its program is known to read all of its input before it writes.
    pub(crate) needs_all_input: bool,
    /// `R`, `S` and so on (proc_pid_stat(5)).
    pub(crate) state: char,
    /// What each of its threads waits for.
    pub(crate) waits: Vec<Blocked>,
    /// The folders of its threads.
    threads: Vec<String>,
    children: Vec<i32>,
    /// The reads and writes with large buffers in which threads were at the last sample, and the offsets of all such buffers so far.
    pub large_calls: Vec<LargeCall>,
    pub(crate) buffers: BufferOffsets,
    /// The sample at the last `mark`, from which rates are computed; `None` if the process began after it.
    pub(crate) marked: Option<ProcessSample>,
    pub(crate) last: ProcessSample,
    /// The sample before it.
    before: ProcessSample,
    /// Whether it had run between these two.
    pub has_run: bool,
    /// The CPU time, at their last samples, of its children that have ended since the sample before: from now on it is a part of its own.
    ended_children_ns: u64,
    /// What it did between these two samples.
    pub(crate) slice: Slice,
    /// Bytes that its ended children had moved before the mark, or as another stage. The kernel has added them to this process's
    /// counters, so rates subtract them.
    pub(crate) not_its_own: Moved,
    /// Whether its counters may include bytes of children that were not sampled, so that its rates are upper bounds.
    pub(crate) at_most: bool,
    /// The number of the last round that included it.
    pub(crate) round: u64,
}

/// Rates of a process since the mark.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Rates {
    pub(crate) read: Option<f64>,
    pub(crate) written: Option<f64>,
    pub(crate) at_most: bool,
    /// `None` before its second sample.
    pub(crate) cpus: Option<f64>,
}

impl SampledProcess {
    /// Takes the first sample; `None` if it has ended. With `keep` its files in /proc stay open. `began_after`: a time of CLOCK_MONOTONIC, in ns, at
    /// which it did not exist; `None` if nothing is known of what it did before.
    pub(crate) fn new(pid: i32, detail: Detail, keep: bool, began_after: Option<u64>) -> Option<Self> {
        let open = |name| ProcFile::new(pid, name, keep);
        let [stat, io, schedstat, syscall] = ["stat", "io", "schedstat", "syscall"].map(open);
        let files = Files { stat, io, schedstat, syscall };
        let mut process = Self { files, detail, pid, ..Self::default() };
        process.sample(true)?;
        process.marked = began_after.is_none().then(|| process.last.clone());
        process.before = match began_after {
            Some(at_ns) => ProcessSample { at_ns, ..ProcessSample::default() },
            None => process.last.clone(),
        };
        Some(process)
    }

    /// Whether it has run since the last sample. If it slept at that sample and has used no CPU time since, none of its other figures has changed.
    pub(crate) fn runs_on(&self) -> bool {
        self.state != 'S' || activity::cpu_time_ns(self.pid) != Some(self.last.activity.cpu_ns)
    }

    /// Takes another sample; `None` if it has ended.
    pub(crate) fn sample(&mut self, has_run: bool) -> Option<()> {
        self.has_run = has_run;
        if !has_run {
            self.large_calls.clear();
            self.before = self.last.clone();
            self.last.at_ns = monotonic_ns();
            return Some(());
        }
        let bytes = self.files.stat.read()?;
        let stat = Stat::parse(&bytes)?;
        self.before = std::mem::take(&mut self.last);
        self.last.at_ns = monotonic_ns();
        (self.state, self.parent, self.started_ticks) = (stat.state, stat.parent, stat.started_ticks);
        self.threads.clear();
        match stat.threads {
            0 | 1 => self.threads.push(format!("/proc/{0}/task/{0}", self.pid)),
            _ => self.threads.extend(proc::threads(self.pid).map(|(_, folder)| folder)),
        }
        if self.detail == Detail::Activity {
            self.sample_activity(&stat, &bytes);
        } else {
            (self.last.activity.cpu_ns, self.last.activity.threads) =
                (activity::cpu_time_ns(self.pid)?, stat.threads);
        }
        self.sample_threads();
        Some(())
    }

    fn sample_activity(&mut self, stat: &Stat, bytes: &[u8]) {
        let queued_ns = || self.files.schedstat.read().map_or(0, |bytes| queued_from(&bytes));
        self.last.activity = Activity::read(self.pid, stat, &self.threads, queued_ns);
        self.last.moved = self.files.io.read().and_then(|bytes| Moved::parse(&bytes));
        if stat.state == 'Z' {
            // Only root may open `io` of a zombie.
            self.last.moved = self.last.moved.or(self.before.moved);
        }
        let name = proc::name_in_stat(bytes);
        // In the middle of an execve(2) it has its new name, and no command line yet.
        if name != self.name || self.command.is_empty() {
            (self.name, self.command) = (name, proc::command_line(self.pid));
            self.needs_all_input = needs_all_input(&self.command);
        }
    }

    /// Samples what its threads wait for; large calls are weighted by the bytes since the sample before.
    fn sample_threads(&mut self) {
        let (pid, moved) = (self.pid, self.last.moved.zip(self.before.moved));
        self.waits.clear();
        self.large_calls.clear();
        let has_calls = self.detail == Detail::Activity;
        let mut add = |folder: &str, syscall: Option<Vec<u8>>| {
            if has_calls {
                self.large_calls.extend(LargeCall::read(pid, syscall.as_deref(), moved));
            }
            self.waits.extend(waits::from_syscall(pid, folder, syscall));
        };
        if self.last.activity.threads > 1 {
            for folder in self.threads.iter().take(THREADS_MAX) {
                add(folder, proc::read_short_file(&format!("{folder}/syscall")));
            }
        } else {
            add(&format!("/proc/{pid}"), self.files.syscall.read());
        }
        self.buffers.add(&self.large_calls);
    }

    /// Its children. A process that has not run has started none.
    pub(super) fn children(&mut self) -> &[i32] {
        if self.has_run {
            self.children = self.threads.iter().flat_map(|folder| proc::children_of_thread(folder)).collect();
        }
        &self.children
    }

    /// Ends a round of samples: what it did since the sample before.
    pub(crate) fn end_round(&mut self) {
        let (mut before, now) = (self.before.activity, &self.last);
        before.children_cpu_ns += std::mem::take(&mut self.ended_children_ns);
        self.slice = Slice::between(&before, &now.activity, now.at_ns.saturating_sub(self.before.at_ns));
    }

    /// Whether it is still there; a process that got the number later is another one.
    pub(crate) fn is_there(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| stat.started_ticks == self.started_ticks)
    }

    /// Makes the last sample the start of the time for which rates are computed.
    pub(crate) fn mark(&mut self) {
        self.marked = Some(self.last.clone());
        (self.not_its_own, self.at_most) = (Moved::default(), false);
    }

    /// Notes that a child has ended, of the same stage or of another one: the kernel adds the child's counters to this process's.
    pub(crate) fn note_ended_child(&mut self, child: &Self, of_the_same_stage: bool) {
        let used = &child.last.activity;
        self.ended_children_ns += used.cpu_ns + used.children_cpu_ns;
        let marked = child.marked.as_ref().map_or(Some(Moved::default()), |sample| sample.moved);
        match if of_the_same_stage { marked } else { child.last.moved } {
            Some(moved) => {
                self.not_its_own.read += moved.read + child.not_its_own.read;
                self.not_its_own.written += moved.written + child.not_its_own.written;
                // The bytes that the other stage has moved after its last sample are not known.
                self.at_most |= child.at_most || !of_the_same_stage;
            }
            None => self.at_most = true,
        }
    }

    /// Its rates since the last mark, which was made at `mark_ns`.
    pub(crate) fn rates(&self, mark_ns: u64) -> Rates {
        let (at_ns, cpu_ns, moved) = match &self.marked {
            Some(sample) => (sample.at_ns, sample.activity.cpu_ns, sample.moved),
            None => (mark_ns, 0, Some(Moved::default())),
        };
        let seconds = self.last.at_ns.saturating_sub(at_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return Rates::default();
        }
        let rate = |of: fn(&Moved) -> u64| {
            let (before, now) = (of(&moved?), of(&self.last.moved?));
            let others = of(&self.not_its_own);
            Some(now.saturating_sub(before).saturating_sub(others) as f64 / seconds)
        };
        Rates {
            read: rate(|moved| moved.read),
            written: rate(|moved| moved.written),
            at_most: self.at_most,
            cpus: Some(self.last.activity.cpu_ns.saturating_sub(cpu_ns) as f64 / 1e9 / seconds),
        }
    }
}
