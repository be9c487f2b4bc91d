//! Looking at stages while they run: what each one sleeps in, and what it has moved so far. Works for an ordinary
//! user: the stages are our own children (proc(5), "ptrace access mode").

use std::time::{Duration, Instant};

use crate::supervise::{Child, Io, read_io};

/// Between two looks: short against what people wait for, long against what a look costs (some 20 µs a stage).
const INTERVAL: Duration = Duration::from_millis(5);
/// What a look may cost, for each stage: with hundreds of stages looks are made less often.
const INTERVAL_PER_STAGE: Duration = Duration::from_micros(400);
/// How far down a shell's children are followed to the one that works.
const DEPTH_MAX: usize = 4;

/// What was seen of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Time asleep in a read of standard input.
    pub blocked_read: Duration,
    /// Time asleep in a write to standard output.
    pub blocked_write: Duration,
    /// Bytes read so far, or when it was last seen.
    pub read_bytes: Option<u64>,
    /// Bytes written so far, or when it was last seen.
    pub written_bytes: Option<u64>,
    /// Its largest resident memory so far, in bytes.
    pub max_rss_bytes: Option<u64>,
    /// Whether it has ended.
    pub ended: bool,
}

/// Shows what is seen, while it is seen: called after every look with the commands of the pipeline's stages, and with
/// what was seen of each one started so far.
pub type Show<'a> = dyn FnMut(&[String], &[Seen]) + 'a;

/// Looks at the stages of one pipeline at a time.
pub struct Watch<'a> {
    commands: Vec<String>,
    seen: Vec<Seen>,
    last_look: Instant,
    show: Option<&'a mut Show<'a>>,
}

impl<'a> Watch<'a> {
    /// A watch that, with `show`, shows what it sees.
    pub fn new(show: Option<&'a mut Show<'a>>) -> Self {
        Self { commands: Vec::new(), seen: Vec::new(), last_look: Instant::now(), show }
    }

    /// A watch that goes on where another one was let go.
    pub(crate) fn resumed(commands: &[String], seen: Vec<Seen>) -> Self {
        Self { commands: commands.to_vec(), seen, last_look: Instant::now(), show: None }
    }

    /// What was seen of all stages so far.
    pub(crate) fn all_seen(&self) -> Vec<Seen> {
        self.seen.clone()
    }

    /// Forgets the last pipeline, and looks at one of these commands from now on.
    pub(crate) fn begin(&mut self, commands: &[&str]) {
        self.commands = commands.iter().map(|&command| command.to_owned()).collect();
        self.seen.clear();
        self.last_look = Instant::now();
    }

    /// What was seen of a stage.
    pub(crate) fn seen(&self, stage: usize) -> Seen {
        self.seen.get(stage).copied().unwrap_or_default()
    }

    /// How long to wait before the next look.
    pub(crate) fn interval(&self) -> Duration {
        INTERVAL.max(INTERVAL_PER_STAGE * u32::try_from(self.seen.len()).unwrap_or(u32::MAX))
    }

    /// Looks at the stages that were started, in their order.
    pub(crate) fn look(&mut self, stages: &[Child]) {
        let since = self.last_look.elapsed();
        if since < INTERVAL && stages.len() == self.seen.len() {
            return;
        }
        self.last_look = Instant::now();
        self.seen.resize(stages.len(), Seen::default());
        for (seen, stage) in self.seen.iter_mut().zip(stages) {
            match &stage.account {
                Some(_) => seen.ended = true,
                // One that was started since the last look cannot have slept for longer than it has been there.
                None => look_at(stage.pid, since.min(stage.started.elapsed()), seen),
            }
        }
        if let Some(show) = &mut self.show {
            show(&self.commands, &self.seen);
        }
    }
}

fn look_at(pid: i32, since: Duration, seen: &mut Seen) {
    match asleep_in(pid, DEPTH_MAX) {
        Some(Sleep::Read) => seen.blocked_read += since,
        Some(Sleep::Write) => seen.blocked_write += since,
        None => {}
    }
    if let Some(Io { read_bytes, written_bytes }) = read_io(pid) {
        seen.read_bytes = Some(read_bytes);
        seen.written_bytes = Some(written_bytes);
    }
    if let Some(peak) = peak_memory(pid) {
        seen.max_rss_bytes = Some(peak);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Read,
    Write,
}

/// What a process sleeps in; a shell that waits for a child sleeps in whatever that child sleeps in.
fn asleep_in(pid: i32, depth: usize) -> Option<Sleep> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let (number, descriptor) = call(&text)?;
    match (number, descriptor) {
        (libc::SYS_read | libc::SYS_readv, 0) => Some(Sleep::Read),
        (libc::SYS_write | libc::SYS_writev, 1) => Some(Sleep::Write),
        // Both ends are in the call: the function it sleeps in tells which.
        (libc::SYS_splice | libc::SYS_sendfile | libc::SYS_copy_file_range | libc::SYS_tee, _) => {
            let function = std::fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
            if function.contains("writable") || function.contains("write") {
                Some(Sleep::Write)
            } else {
                function.contains("read").then_some(Sleep::Read)
            }
        }
        (libc::SYS_wait4 | libc::SYS_waitid, _) if depth > 0 => {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            asleep_in(children.split_whitespace().next()?.parse().ok()?, depth - 1)
        }
        _ => None,
    }
}

/// The system call's number and its first argument, out of /proc/PID/syscall; `None` where the process runs.
fn call(text: &str) -> Option<(i64, u64)> {
    let mut fields = text.split_whitespace();
    let number = fields.next()?.parse().ok()?;
    let first = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
    Some((number, first))
}

/// `VmHWM` of /proc/PID/status, in bytes.
pub(crate) fn peak_memory(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn calls_are_read() {
        assert_eq!(call("0 0x0 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe 0x7f1\n"), Some((0, 0)));
        assert_eq!(call("1 0x1 0x2"), Some((1, 1)));
        assert_eq!(call("running\n"), None);
        assert_eq!(call("-1 0x7ffc 0x7f\n"), Some((-1, 0x7ffc)));
    }

    #[test]
    fn a_sleeper_is_seen_where_it_sleeps() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let deadline = Instant::now() + Duration::from_secs(5);
        let pid = cat.id() as i32;
        while asleep_in(pid, 0) != Some(Sleep::Read) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let seen = asleep_in(pid, 0);
        assert!(peak_memory(pid).is_some_and(|bytes| bytes > 100_000));
        drop(cat.stdin.take());
        cat.wait().expect("waited for");
        assert_eq!(seen, Some(Sleep::Read));
    }
}
