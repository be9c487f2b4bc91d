//! Finds processes that have a file open, by their descriptors in /proc (proc_pid_fd(5)).

use std::fs;
use std::path::Path;

use process::proc::{descriptors, other_processes, signal_if};
use rustix::fs::{AtFlags, CWD, FileType, Stat, StatxFlags, makedev, stat, statx};
use rustix::process::Signal;

/// Identifies a file: its device and its inode.
pub type Identity = (u64, u64);

/// The identity of a file.
pub fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

/// The type, the identity and the size of a file. Does not wait for an unreachable network file system (statx(2), `AT_STATX_DONT_SYNC`).
pub(crate) fn found_at(path: &Path) -> Option<(FileType, Identity, u64)> {
    let asked = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE;
    let found = statx(CWD, path, AtFlags::STATX_DONT_SYNC, asked).ok()?;
    let identity = (makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino);
    Some((FileType::from_raw_mode(found.stx_mode.into()), identity, found.stx_size))
}

/// A file that is looked for among the descriptors of processes.
#[derive(Debug, Clone)]
pub struct OpenFile {
    identity: Identity,
    /// The last component of the target that /proc shows for its descriptors, such as `pipe:[123]`.
    shown_as: String,
}

impl OpenFile {
    /// The file to which a descriptor refers.
    pub fn of(pid: i32, fd: i32) -> Option<Self> {
        let path = format!("/proc/{pid}/fd/{fd}");
        Some(Self { shown_as: shown_as(&path)?, identity: identity(&stat(path).ok()?) })
    }

    /// The pipe of this identity.
    pub fn pipe(identity: Identity) -> Self {
        Self { identity, shown_as: format!("pipe:[{}]", identity.1) }
    }

    /// Whether a descriptor refers to this file. The target is compared first, because stat(2) on a dead network disk may take forever.
    pub fn is(&self, pid: i32, fd: i32) -> bool {
        let path = format!("/proc/{pid}/fd/{fd}");
        shown_as(&path).is_some_and(|shown_as| shown_as == self.shown_as)
            && stat(path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Kills every other process that has the file, a pipe's reading end, open. `shell` has ends open of the pipes that it makes for its children,
    /// so it is killed only if the pipe is its standard input; at a prompt it gets SIGINT instead, as by Ctrl-C.
    pub fn end_readers(&self, shell: i32, at_prompt: bool) {
        for pid in other_processes() {
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn readers_are_ended_and_no_other_process() {
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
