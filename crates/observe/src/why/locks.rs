//! Who holds a lock that a process waits for (proc_locks(5), proc_pid_fdinfo(5)).

use std::fs;
use std::os::unix::fs::MetadataExt;

use process::proc::descriptors;

use super::needs::{Need, Resource};
use super::scene::{Holder, Scene};

/// The lock for which `pid` waits. `fd` is -1 if it is not known: then the table of locks says which file it is.
pub(super) fn need(scene: &Scene, pid: i32, fd: i32) -> Need {
    let file = Some(fd).filter(|fd| *fd >= 0).and_then(|fd| identity(pid, fd)).or_else(|| awaited(pid));
    let path = Some(fd).filter(|fd| *fd >= 0).and_then(|fd| crate::endpoint::path_of(pid, fd));
    let mut wakers = Vec::new();
    let mut name = path.unwrap_or_default();
    if let Some(file) = file {
        for other in scene.processes.keys().filter(|other| **other != pid) {
            let held =
                descriptors(*other).find(|fd| identity(*other, *fd) == Some(file) && has_lock(*other, *fd));
            if let Some(fd) = held {
                name = crate::endpoint::path_of(*other, fd).filter(|_| name.is_empty()).unwrap_or(name);
                wakers.push(Holder { pid: *other, fd: Some(fd) });
            }
        }
    }
    let outside = wakers.is_empty();
    Need { resource: Resource::Lock, what: name, detail: String::new(), wakers, outside }
}

/// The device and inode of an open file. Regular files only: others are not asked, as that may take for ever.
fn identity(pid: i32, fd: i32) -> Option<(u64, u64)> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let shown = fs::read_link(&path).ok()?;
    if !shown.starts_with("/") || shown.starts_with("/dev") {
        return None;
    }
    let stat = fs::metadata(path).ok()?;
    Some((stat.dev(), stat.ino()))
}

/// Whether the open file description has a lock.
fn has_lock(pid: i32, fd: i32) -> bool {
    let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    about.lines().any(|line| line.starts_with("lock:"))
}

/// The file of the lock for which a process waits: a line with `->`.
fn awaited(pid: i32) -> Option<(u64, u64)> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "->", _, _, _, owner, file, ..] = words[..] else { return None };
        let mut parts = file.split(':');
        let mut hexadecimal = || u32::from_str_radix(parts.next()?, 16).ok();
        let device = rustix::fs::makedev(hexadecimal()?, hexadecimal()?);
        let inode = parts.next()?.parse().ok()?;
        (owner.parse() == Ok(pid)).then_some((device, inode))
    })
}
