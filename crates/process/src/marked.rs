//! Finds processes by a mark in their environment. Children inherit the mark, and /proc shows it, even if they have another process group or
//! session, or init has become their parent.

use std::ffi::CStr;
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc::{other_processes, stat_fields};

/// The process name of a cleaner.
pub(crate) const CLEANER: &CStr = c"hosepipe-clean";

/// The variable whose value is the mark.
pub const VARIABLE: &str = "HOSEPIPE_RUN";

/// Largest number of searches for processes with the mark. Killed processes are found again until they have ended.
const SEARCHES_MAX: u32 = 200;
const SEARCH_PAUSE: Duration = Duration::from_millis(2);

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
    let mut found = false;
    for pid in other_processes() {
        // The pidfd is opened first: it refers to the examined process even if the number is reused.
        let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let Some(process) = process else { continue };
        let is_marked = has_mark(pid, mark);
        if is_marked == Some(true) {
            // It is no error if it has just ended.
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
        found |= is_marked != Some(false);
    }
    found
}

/// Whether a process has the mark in its environment; `None` if it has no environment yet. False if the environment may not be read, and for the
/// cleaner of another hosepipe that a marked process has started: it ends by itself.
fn has_mark(pid: i32, mark: &[u8]) -> Option<bool> {
    let file = |name| fs::read(format!("/proc/{pid}/{name}"));
    let (Ok(name), Ok(environment)) = (file("comm"), file("environ")) else { return Some(false) };
    if name.strip_suffix(b"\n") == Some(CLEANER.to_bytes()) {
        return Some(false);
    }
    if !environment.is_empty() {
        return Some(environment.windows(mark.len()).any(|text| text == mark));
    }
    (!file("stat").is_ok_and(|stat| gets_environment(&stat))).then_some(false)
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
            // Behind other variables.
            command.arg("1000").env_clear().env("A", "x".repeat(10_000));
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
