//! Who holds a lock that a process waits for (proc_locks(5), proc_pid_fdinfo(5)).

use std::fs;
use std::path::{Path, PathBuf};

use process::proc::descriptors;

use super::needs::{Need, Resource};
use super::scene::{Holder, Scene};
use crate::endpoint::path_of;
use crate::open_file::found_at;

/// A lock as the kernel shows it: kind, whether it binds, mode, owner, file, first and last byte.
type Lock = [String; 7];

/// The lock for which `pid` waits. `fd` is the descriptor of its file, -1 if that is not known.
pub(super) fn need(scene: &Scene, pid: i32, fd: i32) -> Need {
    let path = Some(fd).filter(|fd| *fd >= 0).and_then(|fd| path_of(pid, fd));
    let mut need = Need { what: path.unwrap_or_default(), ..Need::new(Resource::Lock) };
    if let Some(lock) = awaited(pid, fd) {
        // The owner in the table is the process that has made the lock. One of flock(2) belongs to the open file, which others may have got.
        for other in scene.processes.keys() {
            if let Some(fd) = descriptors(*other).find(|fd| has(*other, *fd, &lock)) {
                need.what = path_of(*other, fd).filter(|_| need.what.is_empty()).unwrap_or(need.what);
                need.wakers.push(Holder { pid: *other, fd: Some(fd) });
            }
        }
        let owner = lock[3].parse().ok().filter(|owner| *owner > 0 && lock[0] == "POSIX");
        if need.wakers.is_empty() {
            need.wakers.extend(owner.map(|pid| Holder { pid, fd: None }));
        }
    }
    need.outside = need.wakers.is_empty();
    need
}

/// Whether a process's open file has this lock (the lines `lock:`).
fn has(pid: i32, fd: i32, lock: &Lock) -> bool {
    let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    let mut locks = about.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks.any(|line| parse(line.split_whitespace().skip(1)).as_ref() == Some(lock))
}

fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Option<Lock> {
    words.map(str::to_owned).collect::<Vec<_>>().try_into().ok()
}

/// The lock that keeps a process waiting: in /proc/locks those who wait have an arrow, below the lock for which they wait. Of a lock of an open file
/// (fcntl(2), F_OFD_SETLKW) the table does not say who waits, but for which file.
fn awaited(pid: i32, fd: i32) -> Option<Lock> {
    let table = fs::read_to_string("/proc/locks").ok()?;
    let file = file_of(pid, fd);
    let mut held = None;
    for line in table.lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        match words.strip_prefix(&["->"]) {
            None => held = parse(words.into_iter()),
            Some([_, _, _, owner, of, ..])
                if owner.parse() == Ok(pid) || (*owner == "-1" && file.as_deref() == Some(of)) =>
            {
                return held;
            }
            Some(_) => {}
        }
    }
    None
}

/// An open file as the table names it. Only regular files have locks; others are not asked, as that may take for ever.
fn file_of(pid: i32, fd: i32) -> Option<String> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let may_have = |shown: &PathBuf| shown.starts_with("/") && !shown.starts_with("/dev");
    fs::read_link(&path).ok().filter(may_have)?;
    // Does not wait for a network file system that does not answer.
    let (_, (device, inode), _) = found_at(Path::new(&path))?;
    Some(format!("{:02x}:{:02x}:{inode}", rustix::fs::major(device), rustix::fs::minor(device)))
}
