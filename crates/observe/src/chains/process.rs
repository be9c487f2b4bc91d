//! Samples a process of a chain. Its files in /proc are kept open: opening them again takes longer than reading them, and an open
//! one never shows another process that got the same PID.

use std::fs::File;
use std::time::Instant;

use process::proc::{self, Stat};

use crate::activity::{self, Activity, Slice, queued_from};
use crate::buffers::BufferOffsets;
use crate::flow::Moved;
use crate::waits::{self, Waits};

/// Most threads of a process that are sampled.
const THREADS_MAX: usize = 64;

/// A file in /proc that is read again and again.
struct Kept {
    path: String,
    file: Option<File>,
}

impl Kept {
    fn new(pid: i32, name: &str, keep: bool) -> Self {
        let path = format!("/proc/{pid}/{name}");
        Self { file: if keep { File::open(&path).ok() } else { None }, path }
    }

    fn read(&self) -> Option<Vec<u8>> {
        self.file.as_ref().map_or_else(|| proc::short(&self.path), proc::read_at)
    }
}

/// One sample of a process.
#[derive(Clone)]
pub(crate) struct ProcessSample {
    at: Instant,
    activity: Activity,
    /// `None` where only its user may read it.
    pub(crate) moved: Option<Moved>,
}

/// Its files in /proc.
struct Files {
    stat: Kept,
    io: Kept,
    schedstat: Kept,
    syscall: Kept,
}

/// A process that is looked at.
pub(crate) struct SampledProcess {
    files: Files,
    pid: i32,
    /// The name of its program.
    pub(crate) name: String,
    /// Its command line.
    pub(crate) command: String,
    /// `R`, `S` and so on (proc_pid_stat(5)).
    pub(crate) state: char,
    /// What each of its threads waits for.
    pub(crate) waits: Vec<Waits>,
    pub(crate) buffers: BufferOffsets,
    /// The sample at the last `mark`, from which rates are computed; `None` if the process began after it.
    marked: Option<ProcessSample>,
    pub(crate) last: ProcessSample,
    /// What it did since the previous sample.
    pub(crate) slice: Slice,
    /// Bytes that its ended children had moved before the mark, or for another stage. The kernel has added them to this process's
    /// counters, so rates subtract them.
    pub(crate) not_its_own: Moved,
    /// Its counters may hold more such bytes, of children that were not sampled: its rates are upper bounds.
    pub(crate) at_most: bool,
    /// Its last sample is an old one.
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
    /// Takes the first sample. `began_meanwhile`: the process began after the mark. `None` if it has gone.
    pub(crate) fn new(pid: i32, keep: bool, began_meanwhile: bool) -> Option<Self> {
        let [stat, io, schedstat, syscall] =
            ["stat", "io", "schedstat", "syscall"].map(|name| Kept::new(pid, name, keep));
        let files = Files { stat, io, schedstat, syscall };
        let (state, name, last) = look(pid, &files)?;
        let marked = (!began_meanwhile).then(|| last.clone());
        let mut buffers = BufferOffsets::default();
        let (waits, command) = (waits(pid, &last, &files, &mut buffers), proc::command_line(pid));
        let (slice, not_its_own) = (Slice { idle: true, ..Slice::default() }, Moved::default());
        Some(Self {
            files,
            pid,
            name,
            command,
            state,
            waits,
            buffers,
            marked,
            last,
            slice,
            not_its_own,
            at_most: false,
            is_stale: false,
        })
    }

    /// Whether it has run since the last sample. If it slept then and has used no CPU time since, nothing else has changed.
    pub(crate) fn has_run(&self) -> bool {
        self.state != 'S' || activity::cpu_time_ns(self.pid) != Some(self.last.activity.cpu_ns)
    }

    /// Takes another sample; `None` if it has gone.
    pub(crate) fn look(&mut self, has_run: bool) -> Option<()> {
        if !has_run {
            let now = Instant::now();
            let ns = now.duration_since(self.last.at).as_nanos() as u64;
            self.slice = Slice::between(&self.last.activity, &self.last.activity, ns);
            (self.last.at, self.is_stale) = (now, false);
            return Some(());
        }
        let (state, name, mut now) = look(self.pid, &self.files)?;
        if state == 'Z' {
            // Of a zombie only root may open `io`.
            now.moved = now.moved.or(self.last.moved);
        }
        if name != self.name {
            (self.name, self.command) = (name, proc::command_line(self.pid));
        }
        let ns = now.at.duration_since(self.last.at).as_nanos() as u64;
        self.slice = Slice::between(&self.last.activity, &now.activity, ns);
        self.waits = waits(self.pid, &now, &self.files, &mut self.buffers);
        (self.state, self.last, self.is_stale) = (state, now, false);
        Some(())
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Makes the last sample the start of the time that rates cover.
    pub(crate) fn mark(&mut self) {
        self.marked = Some(self.last.clone());
        (self.not_its_own, self.at_most) = (Moved::default(), false);
    }

    /// Notes that a child has ended, of the same stage or of another one: the kernel adds the child's counters to this process's.
    pub(crate) fn has_lost(&mut self, child: &Self, of_the_same_stage: bool) {
        let marked = child.marked.as_ref().map_or(Some(Moved::default()), |look| look.moved);
        match if of_the_same_stage { marked } else { child.last.moved } {
            Some(moved) => {
                self.not_its_own.read += moved.read + child.not_its_own.read;
                self.not_its_own.written += moved.written + child.not_its_own.written;
                // What the other stage did after it was last looked at is not known.
                self.at_most |= child.at_most || child.is_stale || !of_the_same_stage;
            }
            None => self.at_most = true,
        }
    }

    /// Its rates since the last mark, which was at `mark`.
    pub(crate) fn rates(&self, mark: Instant) -> Rates {
        let (at, cpu_ns, moved) = match &self.marked {
            Some(look) => (look.at, look.activity.cpu_ns, look.moved),
            None => (mark, 0, Some(Moved::default())),
        };
        let seconds = self.last.at.duration_since(at).as_secs_f64();
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

fn look(pid: i32, files: &Files) -> Option<(char, String, ProcessSample)> {
    let bytes = files.stat.read()?;
    let stat = Stat::parse(&bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let name = text.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
    let at = Instant::now();
    let activity =
        activity::alone(pid, &stat, || files.schedstat.read().map_or(0, |bytes| queued_from(&bytes)));
    let moved = files.io.read().and_then(|bytes| Moved::parse(&bytes));
    Some((stat.state, name, ProcessSample { at, activity, moved }))
}

/// What its threads wait for; large calls among that are noted.
fn waits(pid: i32, look: &ProcessSample, files: &Files, buffers: &mut BufferOffsets) -> Vec<Waits> {
    let mut of_thread = |folder: &str, syscall: Option<Vec<u8>>| {
        buffers.note(pid, syscall.as_deref(), look.moved);
        waits::from_syscall(pid, folder, syscall)
    };
    let waits = match look.activity.threads {
        0 | 1 => of_thread(&format!("/proc/{pid}"), files.syscall.read()).into_iter().collect(),
        _ => {
            let threads = proc::threads(pid).take(THREADS_MAX);
            threads
                .filter_map(|(_, folder)| of_thread(&folder, proc::short(&format!("{folder}/syscall"))))
                .collect()
        }
    };
    buffers.end_sample(look.moved);
    waits
}
