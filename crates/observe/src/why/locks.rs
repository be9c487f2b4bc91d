//! Who holds a lock that a process waits for (proc_locks(5), proc_pid_fdinfo(5)).

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use process::proc::{descriptors, read_short_file};

use super::needs::{Need, Resource};
use super::scene::{Holder, Scene};
use crate::endpoint::path_of;
use crate::open_file::found_at;

/// A lock as the kernel shows it: kind, whether it binds, mode, owner, file, first and last byte.
type Lock = [String; 7];

/// How often the table is read again where a lock was given to another process while its holder was looked for.
const READS_MAX: u32 = 3;

/// A lock for which processes wait.
struct Awaited {
    lock: Lock,
    /// Those who wait: the process, -1 if the table does not show it, and the file.
    waiters: Vec<(i32, String)>,
    holders: Vec<Holder>,
}

/// The locks of this machine for which a process waits, read once for all who wait.
#[derive(Default)]
pub(super) struct Locks(OnceCell<Vec<Awaited>>);

impl Locks {
    /// The lock for which `pid` waits. `fd` is the descriptor of its file, -1 if that is not known.
    pub(super) fn need(&self, scene: &Scene, pid: i32, fd: i32) -> Need {
        let path = Some(fd).filter(|fd| *fd >= 0).and_then(|fd| path_of(pid, fd));
        let mut need = Need { what: path.unwrap_or_default(), ..Need::new(Resource::Lock) };
        let file = file_of(pid, fd);
        // Of a lock of an open file (fcntl(2), F_OFD_SETLKW) the table does not say who waits, but for which file.
        let waits =
            |(owner, of): &(i32, String)| *owner == pid || (*owner == -1 && file.as_ref() == Some(of));
        let awaited = self.0.get_or_init(|| read(scene));
        if let Some(found) = awaited.iter().find(|one| one.waiters.iter().any(waits)) {
            let path = found.holders.iter().find_map(|holder| path_of(holder.pid, holder.fd?));
            need.what = path.filter(|_| need.what.is_empty()).unwrap_or(need.what);
            need.wakers.clone_from(&found.holders);
        }
        need.outside = need.wakers.is_empty();
        need
    }
}

/// The locks for which processes wait, with their holders.
fn read(scene: &Scene) -> Vec<Awaited> {
    for _ in 1..READS_MAX {
        let found = with_holders(scene);
        if found.iter().all(|one| !one.holders.is_empty()) {
            return found;
        }
    }
    with_holders(scene)
}

fn with_holders(scene: &Scene) -> Vec<Awaited> {
    let mut awaited = table(&fs::read_to_string("/proc/locks").unwrap_or_default());
    if awaited.is_empty() {
        return awaited;
    }
    // The owner in the table is the process that has made the lock. One of flock(2) belongs to the open file, which others may have got.
    for pid in scene.processes.keys() {
        for fd in descriptors(*pid).filter(|fd| scene.end(*pid, *fd).is_none()) {
            let about = read_short_file(&format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
            for line in String::from_utf8_lossy(&about).lines().filter_map(|line| line.strip_prefix("lock:"))
            {
                let lock = parse(line.split_whitespace().skip(1));
                let held = awaited.iter_mut().find(|one| Some(&one.lock) == lock.as_ref());
                if let Some(one) = held.filter(|one| one.holders.last().is_none_or(|last| last.pid != *pid)) {
                    one.holders.push(Holder { pid: *pid, fd: Some(fd) });
                }
            }
        }
    }
    for one in awaited.iter_mut().filter(|one| one.holders.is_empty() && one.lock[0] == "POSIX") {
        let owner = one.lock[3].parse().ok().filter(|owner| *owner > 0);
        one.holders.extend(owner.map(|pid| Holder { pid, fd: None }));
    }
    awaited
}

/// The locks of /proc/locks for which a process waits: those who wait have an arrow, below the lock for which they wait.
fn table(text: &str) -> Vec<Awaited> {
    let mut all: Vec<Awaited> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        match (words.as_slice(), all.last_mut()) {
            (["->", _, _, _, owner, file, ..], Some(held)) => {
                held.waiters.push((owner.parse().unwrap_or(-1), (*file).to_owned()));
            }
            _ => {
                let (waiters, holders) = Default::default();
                all.extend(parse(words.into_iter()).map(|lock| Awaited { lock, waiters, holders }));
            }
        }
    }
    all.retain(|one| !one.waiters.is_empty());
    all
}

fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Option<Lock> {
    words.map(str::to_owned).collect::<Vec<_>>().try_into().ok()
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
