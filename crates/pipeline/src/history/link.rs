//! What is kept of the samples of one link: for how long it was full and empty, and which bytes its reader was seen to read.

use observe::activity::StdinWait;
use observe::endpoint::process_files;
use observe::flow::Moved;
use observe::sampler::stage::StageProcesses;
use process::proc::read_short_file;

/// CPU time after which a program counts as started up: it has read its own files (libraries, locales).
const STARTUP_CPU_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct LinkHistory {
    pub(super) watched_ns: u64,
    pub(super) full_ns: u64,
    pub(super) empty_ns: u64,
    /// Bytes that its reader has read between samples in which it had no other file open.
    pub(super) read_bytes: u64,
    /// Bytes that the reader's only thread had read in total at the last sample, if it had no other file open then.
    last_read: Option<u64>,
    /// The same reader, and the counters of its process then.
    pub(super) last_moved: Option<(i32, Moved)>,
    /// Whether the reader has waited for its standard input, or has used [`STARTUP_CPU_NS`].
    has_started_up: bool,
}

impl LinkHistory {
    /// Adds the bytes that the reader has read since the last sample, if it had no other file open in both samples.
    pub(super) fn note_read(&mut self, reader: StageProcesses<'_>, is_shell: bool) {
        if self.last_read.is_some() && !reader.each().any(|process| process.has_run) {
            return;
        }
        self.has_started_up |=
            reader.cpu_ns(!is_shell) >= STARTUP_CPU_NS || reader.awaits_input() == StdinWait::Certain;
        let read = if self.has_started_up { read_by_only_thread(reader) } else { None };
        self.read_bytes += read.zip(self.last_read).map_or(0, |(read, last)| read.saturating_sub(last));
        self.last_read = read;
        // Read after the counters of the thread, so that no byte counts twice.
        let now = |pid: &i32| Some((*pid, Moved::parse(&read_short_file(&format!("/proc/{pid}/io"))?)?));
        self.last_moved = read.and_then(|_| now(&reader.each().next()?.pid));
    }
}

/// Bytes that a reader with one thread has read in total; `None` if it could read from another file than its standard input. (The counters of a
/// thread do not include ended children, unlike those of a process.)
fn read_by_only_thread(reader: StageProcesses<'_>) -> Option<u64> {
    let pid = reader.each().next().filter(|_| reader.threads() == 1)?.pid;
    let held = process_files(pid).ok().filter(|held| !held.reads_elsewhere)?;
    let reads_another = held.endpoints.iter().any(|end| end.reads && !(0..=2).contains(&end.fd));
    let counters = read_short_file(&format!("/proc/{pid}/task/{pid}/io")).filter(|_| !reads_another)?;
    Some(Moved::parse(&counters)?.read)
}
