//! Processes of others, as /proc shows them (proc(5)), and the files they hold.

use std::fs;

use rustix::fs::{Stat, stat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What tells a file from every other one: its device and its inode.
pub(crate) type Identity = (u64, u64);

/// What tells a file from every other one.
pub(crate) fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

/// The entries of a folder that are numbers; none where it cannot be read: a process that has gone, or somebody else's.
fn numbers(folder: &str) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Every process but this one.
pub(crate) fn others() -> impl Iterator<Item = i32> {
    let own = std::process::id().cast_signed();
    numbers("/proc").filter(move |pid| *pid != own)
}

/// The descriptors of a process.
pub(crate) fn descriptors(pid: i32) -> impl Iterator<Item = i32> {
    numbers(&format!("/proc/{pid}/fd"))
}

/// The folders of a process's threads, by their numbers.
pub(crate) fn threads(pid: i32) -> impl Iterator<Item = (i32, String)> {
    numbers(&format!("/proc/{pid}/task")).map(move |thread| (thread, format!("/proc/{pid}/task/{thread}")))
}

/// The children of all threads of a process (proc_pid_task_children(5)).
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let lists = threads(pid).filter_map(|(_, thread)| fs::read_to_string(thread + "/children").ok());
    let pids =
        |list: String| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>();
    lists.flat_map(pids).collect()
}

/// The fields of /proc/PID/stat behind the program's name: the state, the parent, and so on (proc_pid_stat(5)).
pub(crate) fn fields(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have blanks and parentheses in it.
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// What stands behind a word and a colon in a file of lines such as /proc/PID/status.
pub(crate) fn value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next().map(|value| value.trim().to_owned())
}

/// An open file, to be found among the descriptors of processes.
#[derive(Debug, Clone)]
pub(crate) struct OpenFile {
    identity: Identity,
    /// The last part of what /proc shows for it, whether it has a name or not.
    shown_as: String,
}

impl OpenFile {
    /// The file of a descriptor.
    pub(crate) fn of(pid: i32, fd: i32) -> Option<Self> {
        let path = format!("/proc/{pid}/fd/{fd}");
        Some(Self { shown_as: shown_as(&path)?, identity: identity(&stat(path).ok()?) })
    }

    /// A pipe.
    pub(crate) fn pipe(identity: Identity) -> Self {
        Self { identity, shown_as: format!("pipe:[{}]", identity.1) }
    }

    /// Whether a descriptor is of this file. What is shown is compared first: to ask a file on a dead network disk may take forever.
    pub(crate) fn is(&self, pid: i32, fd: i32) -> bool {
        let path = format!("/proc/{pid}/fd/{fd}");
        shown_as(&path).is_some_and(|shown_as| shown_as == self.shown_as)
            && stat(path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Ends every process but this one that holds the file, which is a pipe's reading end. `shell` holds the ends of pipes that it
    /// makes for others: it is meant only where it reads by itself, and at a prompt it is interrupted as by Ctrl-C, and lives on.
    pub(crate) fn end_readers(&self, shell: i32, at_prompt: bool) {
        for pid in others() {
            let is_shell = pid == shell;
            let reads =
                || if is_shell { self.is(pid, 0) } else { descriptors(pid).any(|fd| self.is(pid, fd)) };
            let signal = if is_shell && at_prompt { Signal::INT } else { Signal::KILL };
            signal_if(pid, signal, reads);
        }
    }
}

fn shown_as(descriptor: &str) -> Option<String> {
    fs::read_link(descriptor).ok()?.file_name()?.to_str().map(str::to_owned)
}

/// Sends a signal to a process that `is_meant`. One beyond our reach goes on, and that is seen elsewhere.
pub(crate) fn signal_if(pid: i32, signal: Signal, is_meant: impl FnOnce() -> bool) {
    // The number may be another process's later; this descriptor's process, of which is asked next, is always the same.
    let process = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(process) = process.filter(|_| is_meant()) {
        let _ = pidfd_send_signal(&process, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn readers_are_ended_and_nobody_else() {
        let spawn = || Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let (mut reader, mut other) = (spawn(), spawn());
        let pipe = OpenFile::of(reader.id() as i32, 0).expect("its pipe");
        assert_eq!(OpenFile::pipe(pipe.identity).shown_as, pipe.shown_as);
        pipe.end_readers(-1, false);
        assert_eq!(reader.wait().expect("ended").signal(), Some(9));
        assert!(other.try_wait().expect("asked").is_none());
        drop(other.stdin.take());
        assert!(other.wait().expect("ended").success());
    }
}
