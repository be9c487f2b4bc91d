//! Finds processes by a mark in their environment. Children inherit the mark, and /proc shows it, even if they have another process group or
//! session, or init has become their parent.
//!
//! The cleaner calls this after a fork: nothing here allocates memory.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir, open, openat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc::{Stat, stat_fields};

/// The process name of a cleaner.
pub(crate) const CLEANER: &CStr = c"hosepipe-clean";

/// The variable whose value is the mark.
pub const VARIABLE: &str = "HOSEPIPE_RUN";

/// Largest number of searches for processes with the mark. Killed processes are found again until they have ended.
const SEARCHES_MAX: u32 = 200;
const SEARCH_PAUSE: Duration = Duration::from_millis(2);

/// Bytes of an environment that are read at a time.
const PART_BYTES: usize = 4096;

/// Kills every process that has this text in its environment, as far as this user may.
pub(crate) fn end_marked(mark: &[u8]) {
    for _ in 0..SEARCHES_MAX {
        if !end_all_found(mark) {
            return;
        }
        std::thread::sleep(SEARCH_PAUSE);
    }
}

/// Kills the marked processes that exist now. Returns whether there were any, or may be.
fn end_all_found(mark: &[u8]) -> bool {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(processes) = open("/proc", folder, Mode::empty()) else { return false };
    let mut room = [MaybeUninit::uninit(); PART_BYTES];
    let mut entries = RawDir::new(&processes, &mut room);
    let mut found = false;
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_str().unwrap_or_default();
        let Some(pid) = name.parse().ok().and_then(Pid::from_raw) else { continue };
        // The pidfd is opened first: it refers to the examined process even if the number is reused.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let is_marked = has_mark(processes.as_fd(), name, mark);
        if is_marked == Some(true) {
            // It is no error if it has just ended.
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
        found |= is_marked != Some(false);
    }
    found
}

/// The start time of the process with this number, in clock ticks; `None` if there is none.
pub(crate) fn started_ticks(pid: &str) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let processes = open("/proc", flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let process = openat(processes, pid, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let stat = openat(process, "stat", flags, Mode::empty()).ok()?;
    let mut bytes = [0u8; PART_BYTES];
    let len = read(&stat, &mut bytes).ok()?;
    Some(Stat::parse(&bytes[..len])?.started_ticks)
}

/// Whether a process has the mark in its environment; `None` if it has no environment yet. False if the environment may not be read, and for the
/// cleaner of another hosepipe that a marked process has started: it ends by itself.
fn has_mark(processes: BorrowedFd<'_>, pid: &str, mark: &[u8]) -> Option<bool> {
    let read_only = OFlags::RDONLY | OFlags::CLOEXEC;
    let process = openat(processes, pid, read_only | OFlags::DIRECTORY, Mode::empty());
    let file = |name| process.as_ref().ok().and_then(|it| openat(it, name, read_only, Mode::empty()).ok());
    let (Some(name), Some(environment)) = (file("comm"), file("environ")) else { return Some(false) };
    let mut part = [0u8; 2 * PART_BYTES];
    let len = read(&name, &mut part).unwrap_or(0);
    if part[..len].strip_suffix(b"\n") == Some(CLEANER.to_bytes()) {
        return Some(false);
    }
    let mut kept = 0;
    while let Ok(len @ 1..) = read(&environment, &mut part[kept..]) {
        let filled = kept + len;
        if part[..filled].windows(mark.len()).any(|text| text == mark) {
            return Some(true);
        }
        // The end of this part may be the beginning of a mark.
        kept = filled.min(mark.len());
        part.copy_within(filled - kept..filled, 0);
    }
    let Some(stat) = file("stat").filter(|_| kept == 0) else { return Some(false) };
    let len = read(&stat, &mut part).unwrap_or(0);
    (!gets_environment(&part[..len])).then_some(false)
}

fn read(file: &OwnedFd, room: &mut [u8]) -> rustix::io::Result<usize> {
    rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *room))
}

/// Whether a process whose environment was empty has got one since, or will: its `stat` shows memory, and not yet where in it the environment ends.
/// For some milliseconds of execve(2) that is so.
fn gets_environment(stat: &[u8]) -> bool {
    let fields = stat_fields(stat).unwrap_or_default();
    let field = |field: usize| fields.split_ascii_whitespace().nth(field - 3);
    let number = |number| field(number).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    // A kernel thread and a process that has ended have no memory.
    let (memory_bytes, begins, ends) = (number(23), number(50), number(51));
    memory_bytes > 0 && (ends == 0 || ends > begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Happened: a shell was killed while its child executed a program and so had no environment: the child went on.
    #[test]
    fn a_process_that_begins_a_program_is_ended_too() {
        let mark = format!("{}-begins.1", std::process::id());
        for _ in 0..200 {
            // The child has its new memory when `spawn` returns, and perhaps nothing in it.
            let mut child = Command::new("sleep").arg("2").env(VARIABLE, &mark).spawn().expect("sleep runs");
            end_marked(format!("{VARIABLE}={mark}\0").as_bytes());
            assert_eq!(child.wait().expect("waited for").signal(), Some(libc::SIGKILL));
        }
    }

    #[test]
    fn only_processes_with_the_mark_are_ended() {
        let sleeper = |mark: &str| {
            let mut command = Command::new("sleep");
            // At any place of an environment of several parts.
            command.arg("1000").env_clear().env("A", "x".repeat(3 * PART_BYTES - 20));
            command.env(VARIABLE, mark).env("Z", "z").spawn().expect("sleep runs")
        };
        let own = format!("{}-test.1", std::process::id());
        let (mut marked, mut other) = (sleeper(&own), sleeper(&format!("{own}0")));
        end_marked(format!("{VARIABLE}={own}\0").as_bytes());
        assert_eq!(marked.wait().expect("waited for").signal(), Some(libc::SIGKILL));
        assert_eq!(other.try_wait().expect("looked at"), None);
        other.kill().expect("it runs");
        other.wait().expect("waited for");
    }
}
