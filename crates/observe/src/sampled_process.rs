//! Samples one process. Its files in /proc are kept open: opening them takes longer than reading them, and an open file never refers to
//! another process that has got the same PID.

use std::fs::File;

use model::monotonic_ns;
use process::proc::{self, Stat};

use crate::activity::{self, Activity, Slice, queued_from};
use crate::buffers::{BufferOffsets, LargeCall};
use crate::flow::Moved;
use crate::waits::{self, Waits};

/// Largest number of threads of a process that are sampled.
const THREADS_MAX: usize = 64;

/// A file in /proc that is read repeatedly, and may be kept open.
struct ProcFile {
    path: String,
    file: Option<File>,
}

impl ProcFile {
    fn new(pid: i32, name: &str, keep: bool) -> Self {
        let path = format!("/proc/{pid}/{name}");
        Self { file: if keep { File::open(&path).ok() } else { None }, path }
    }

    fn read(&self) -> Option<Vec<u8>> {
        self.file.as_ref().map_or_else(|| proc::read_short_file(&self.path), proc::read_at)
    }
}

/// One sample of a process.
#[derive(Clone)]
pub(crate) struct ProcessSample {
    /// Its time (CLOCK_MONOTONIC).
    at_ns: u64,
    pub(crate) activity: Activity,
    /// `None` if this user may not read it.
    pub(crate) moved: Option<Moved>,
}

/// The files of a process in /proc.
struct Files {
    stat: ProcFile,
    io: ProcFile,
    schedstat: ProcFile,
    syscall: ProcFile,
}

/// A process that is sampled repeatedly.
pub(crate) struct SampledProcess {
    files: Files,
    pub(crate) pid: i32,
    /// The name of its program.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) command: String,
    /// `R`, `S` and so on (proc_pid_stat(5)).
    pub(crate) state: char,
    /// What each of its threads waits for.
    pub(crate) waits: Vec<Waits>,
    /// The reads and writes with large buffers in which threads were at the last sample, and the offsets of all such buffers so far.
    pub(crate) large_calls: Vec<LargeCall>,
    pub(crate) buffers: BufferOffsets,
    /// The sample at the last `mark`, from which rates are computed; `None` if the process began after it.
    marked: Option<ProcessSample>,
    pub(crate) last: ProcessSample,
    /// What it did since the previous sample.
    pub(crate) slice: Slice,
    /// Bytes that its ended children had moved before the mark, or as another stage. The kernel has added them to this process's
    /// counters, so rates subtract them.
    pub(crate) not_its_own: Moved,
    /// Whether its counters may include bytes of children that were not sampled, so that its rates are upper bounds.
    pub(crate) at_most: bool,
    /// Whether the latest sample of the chains did not include it.
    pub(crate) is_stale: bool,
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
    /// Takes the first sample. `began_meanwhile`: the process began after the mark. `None` if it has ended.
    pub(crate) fn new(pid: i32, keep: bool, began_meanwhile: bool) -> Option<Self> {
        let open = |name| ProcFile::new(pid, name, keep);
        let [stat, io, schedstat, syscall] = ["stat", "io", "schedstat", "syscall"].map(open);
        let files = Files { stat, io, schedstat, syscall };
        let (state, name, last) = read(pid, &files)?;
        let marked = (!began_meanwhile).then(|| last.clone());
        let (slice, not_its_own) = (Slice { idle: true, ..Slice::default() }, Moved::default());
        let mut process = Self {
            files,
            pid,
            name,
            command: proc::command_line(pid),
            state,
            waits: Vec::new(),
            large_calls: Vec::new(),
            buffers: BufferOffsets::default(),
            marked,
            last,
            slice,
            not_its_own,
            at_most: false,
            is_stale: false,
        };
        process.sample_threads(None);
        Some(process)
    }

    /// Whether it has run since the last sample. If it slept at that sample and has used no CPU time since, none of its other figures has changed.
    pub(crate) fn has_run(&self) -> bool {
        self.state != 'S' || activity::cpu_time_ns(self.pid) != Some(self.last.activity.cpu_ns)
    }

    /// Takes another sample; `None` if it has ended.
    pub(crate) fn sample(&mut self, has_run: bool) -> Option<()> {
        if !has_run {
            self.large_calls.clear();
            let now_ns = monotonic_ns();
            self.slice = Slice::between(&self.last.activity, &self.last.activity, now_ns - self.last.at_ns);
            (self.last.at_ns, self.is_stale) = (now_ns, false);
            return Some(());
        }
        let (state, name, mut now) = read(self.pid, &self.files)?;
        if state == 'Z' {
            // Only root may open `io` of a zombie.
            now.moved = now.moved.or(self.last.moved);
        }
        if name != self.name {
            (self.name, self.command) = (name, proc::command_line(self.pid));
        }
        self.slice = Slice::between(&self.last.activity, &now.activity, now.at_ns - self.last.at_ns);
        let before = std::mem::replace(&mut self.last, now).moved;
        (self.state, self.is_stale) = (state, false);
        self.sample_threads(before);
        Some(())
    }

    /// Samples what its threads wait for. `before` is the number of bytes that it had moved at the previous sample; its large calls
    /// are weighted by the bytes since then.
    fn sample_threads(&mut self, before: Option<Moved>) {
        let (pid, moved) = (self.pid, self.last.moved.zip(before));
        self.waits.clear();
        self.large_calls.clear();
        let mut add = |folder: &str, syscall: Option<Vec<u8>>| {
            self.large_calls.extend(LargeCall::read(pid, syscall.as_deref(), moved));
            self.waits.extend(waits::from_syscall(pid, folder, syscall));
        };
        if self.last.activity.threads > 1 {
            for (_, folder) in proc::threads(pid).take(THREADS_MAX) {
                add(&folder, proc::read_short_file(&format!("{folder}/syscall")));
            }
        } else {
            add(&format!("/proc/{pid}"), self.files.syscall.read());
        }
        self.buffers.add(&self.large_calls);
    }

    /// Makes the last sample the start of the time for which rates are computed.
    pub(crate) fn mark(&mut self) {
        self.marked = Some(self.last.clone());
        (self.not_its_own, self.at_most) = (Moved::default(), false);
    }

    /// Notes that a child has ended, of the same stage or of another one: the kernel adds the child's counters to this process's.
    pub(crate) fn note_ended_child(&mut self, child: &Self, of_the_same_stage: bool) {
        let marked = child.marked.as_ref().map_or(Some(Moved::default()), |sample| sample.moved);
        match if of_the_same_stage { marked } else { child.last.moved } {
            Some(moved) => {
                self.not_its_own.read += moved.read + child.not_its_own.read;
                self.not_its_own.written += moved.written + child.not_its_own.written;
                // The bytes that the other stage has moved after its last sample are not known.
                self.at_most |= child.at_most || child.is_stale || !of_the_same_stage;
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

fn read(pid: i32, files: &Files) -> Option<(char, String, ProcessSample)> {
    let bytes = files.stat.read()?;
    let stat = Stat::parse(&bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let name = text.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
    let at_ns = monotonic_ns();
    let activity =
        Activity::read(pid, &stat, || files.schedstat.read().map_or(0, |bytes| queued_from(&bytes)));
    let moved = files.io.read().and_then(|bytes| Moved::parse(&bytes));
    Some((stat.state, name, ProcessSample { at_ns, activity, moved }))
}
