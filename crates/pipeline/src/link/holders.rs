//! The processes that hold a link's file open for writing, found in /proc (proc(5)), and how they are stopped.
//!
//! Whoever holds the file has it from us: it has no name, or one that only this user may open. So it does not
//! matter whose child a writer is by now; over a pipe SIGPIPE reaches it too.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, Stat, fstat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long a writer may go on after SIGPIPE, which it can ignore.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long somebody may go on whom nobody can find: another user's process, which we may not look into. Short-lived
/// writers come and go unseen, too, but not without a [`BREAK`].
const PATIENCE_WITH_THE_UNSEEN: Duration = Duration::from_secs(1);
const BREAK: Duration = Duration::from_millis(50);

/// What came of an attempt to stop writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// They were told, or were not found yet.
    MayEnd,
    /// Somebody goes on who was told long ago, or can be told nothing.
    GoesOn,
}

/// The holders of a file, and what each has written so far.
pub(super) struct Holders {
    file: Stat,
    /// The last part of the path that /proc shows for the file, whether it has a name or not.
    shown_as: String,
    known: HashMap<i32, Known>,
    /// The first and the last look in a row that found nobody who writes.
    in_vain: Option<(Instant, Instant)>,
}

#[derive(Default)]
struct Known {
    /// Bytes that each thread had written to anything, when last seen; `None` where that may not be asked.
    written_bytes: Option<Threads>,
    signalled: Option<Instant>,
}

/// Bytes by the numbers of threads.
type Threads = HashMap<i32, u64>;

impl Holders {
    /// Notes who holds the file now. From here on, those who have written more are taken for its writers.
    ///
    /// # Errors
    /// What fstat(2) answers.
    pub(super) fn of(file: &OwnedFd) -> io::Result<Self> {
        let shown_as = last_part(&format!("/proc/self/fd/{}", file.as_raw_fd()));
        let mut holders = Self {
            file: fstat(file)?,
            shown_as: shown_as.ok_or(io::ErrorKind::NotFound)?,
            known: HashMap::new(),
            in_vain: None,
        };
        for pid in holders.find() {
            let known = Known { written_bytes: written_bytes(pid), signalled: None };
            holders.known.insert(pid.as_raw_pid(), known);
        }
        Ok(holders)
    }

    /// The file has grown: sends SIGPIPE to those who wrote to it, once to each.
    ///
    /// The kernel does not say who it was. A holder that has written nothing since the last look (a shell that
    /// waits for its child) is left alone, as it would be over a pipe.
    pub(super) fn stop_writing(&mut self) -> Writing {
        let holders = self.find();
        let wrote: Vec<Pid> = holders.iter().copied().filter(|pid| self.has_written(*pid)).collect();
        let held = |pid: &i32| holders.iter().any(|holder| holder.as_raw_pid() == *pid);
        let before = self.known.len();
        self.known.retain(|pid, known| known.signalled.is_none() || held(pid));
        if self.known.len() < before {
            // These were the last bytes of one that was told, and not of who has written elsewhere meanwhile.
            return Writing::MayEnd;
        }
        let goes_on = if wrote.is_empty() {
            let now = Instant::now();
            let unbroken = self.in_vain.filter(|(_, last)| now - *last < BREAK);
            let (first, _) = *self.in_vain.insert((unbroken.map_or(now, |(first, _)| first), now));
            now - first > PATIENCE_WITH_THE_UNSEEN
        } else {
            self.in_vain = None;
            // All are told, whatever the first has to say.
            wrote.into_iter().map(|pid| self.tell(pid)).filter(|went_on| *went_on).count() > 0
        };
        if goes_on { Writing::GoesOn } else { Writing::MayEnd }
    }

    /// Whether a holder has written since the last look, or might have. One that is new has written all it ever did.
    fn has_written(&mut self, pid: Pid) -> bool {
        let now = written_bytes(pid);
        let fresh = Known { written_bytes: Some(Threads::new()), signalled: None };
        let known = self.known.entry(pid.as_raw_pid()).or_insert(fresh);
        let before = std::mem::replace(&mut known.written_bytes, now.clone());
        let (Some(before), Some(now)) = (before, now) else { return true };
        // Bytes that were spliced are not counted.
        now.iter().any(|(thread, bytes)| *bytes > before.get(thread).copied().unwrap_or(0))
            || self.is_splicing(pid)
    }

    /// Sends SIGPIPE, once; says whether it goes on although that is long ago.
    fn tell(&mut self, pid: Pid) -> bool {
        // The number may be another process's by now; the descriptor, once the process still holds the file, is not.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        if !self.is_held_by(pid) {
            return false;
        }
        let known = self.known.entry(pid.as_raw_pid()).or_default();
        if let Some(since) = known.signalled {
            return since.elapsed() > PATIENCE;
        }
        known.signalled = Some(Instant::now());
        // A writer beyond our reach goes on, and that is seen.
        let _ = pidfd_send_signal(&process, Signal::PIPE);
        false
    }

    /// Whether a thread of the process is in a call that puts bytes into the file without writing them
    /// (proc_pid_syscall(5): the call's number and arguments), or in one that may do anything.
    fn is_splicing(&self, pid: Pid) -> bool {
        let process = format!("/proc/{}", pid.as_raw_pid());
        let tasks = fs::read_dir(format!("{process}/task")).into_iter().flatten().flatten();
        let calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
        calls.into_iter().any(|call| {
            let words: Vec<&str> = call.split_whitespace().collect();
            let number = words.first().and_then(|word| word.parse::<libc::c_long>().ok());
            let at = match number {
                Some(libc::SYS_splice) => 3,
                Some(libc::SYS_sendfile) => 1,
                other => return other == Some(libc::SYS_io_uring_enter),
            };
            let fd =
                words.get(at).and_then(|word| i32::from_str_radix(word.trim_start_matches("0x"), 16).ok());
            fd.is_some_and(|fd| self.is_this_file(&process, &fd.to_string()))
        })
    }

    /// Every process, this one apart, that holds the file open for writing.
    fn find(&self) -> Vec<Pid> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let own = std::process::id().cast_signed();
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| *pid != own)
            .filter_map(Pid::from_raw)
            .filter(|pid| self.is_held_by(*pid))
            .collect()
    }

    fn is_held_by(&self, pid: Pid) -> bool {
        let process = format!("/proc/{}", pid.as_raw_pid());
        // Somebody else's process, or one that has just gone.
        let Ok(entries) = fs::read_dir(format!("{process}/fd")) else { return false };
        let descriptors = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        descriptors.into_iter().any(|fd| self.is_this_file(&process, &fd) && is_for_writing(&process, &fd))
    }

    /// Compares what /proc shows before it asks the file itself: asking one on a dead network disk may take forever.
    fn is_this_file(&self, process: &str, fd: &str) -> bool {
        let path = format!("{process}/fd/{fd}");
        last_part(&path).is_some_and(|shown_as| shown_as == self.shown_as)
            && fs::metadata(&path)
                .is_ok_and(|file| file.ino() == self.file.st_ino && file.dev() == self.file.st_dev)
    }
}

/// The last part of the path that a descriptor shows.
fn last_part(link: &str) -> Option<String> {
    let shown = fs::read_link(Path::new(link)).ok()?;
    shown.file_name()?.to_str().map(str::to_owned)
}

fn is_for_writing(process: &str, fd: &str) -> bool {
    let text = fs::read_to_string(format!("{process}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| OFlags::from_bits_retain(flags).intersects(OFlags::WRONLY | OFlags::RDWR))
}

/// Bytes that each thread of a process has handed to write(2) and its kin (proc_pid_io(5)). The process's own count has
/// those of the children in it that it has waited for.
fn written_bytes(pid: Pid) -> Option<Threads> {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_pid())).ok()?.flatten();
    let count = |task: fs::DirEntry| {
        let text = fs::read_to_string(task.path().join("io")).ok()?;
        let bytes = text.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok())?;
        Some((task.file_name().to_str()?.parse().ok()?, bytes))
    };
    Some(tasks.filter_map(count).collect::<Threads>()).filter(|threads| !threads.is_empty())
}
