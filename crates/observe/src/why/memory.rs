//! Waits at an address of memory (futex(2)): who has the same memory, and who holds the mutex of the C library that is there.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use process::proc::field_value;

use super::needs::{Need, Resource};
use super::scene::{Holder, Scene};
use crate::open_file::found_at;
use crate::waits::memory;

/// Where the C library keeps POSIX semaphores.
pub(super) const SEMAPHORES: &str = "/dev/shm/sem.";
/// glibc's `pthread_mutex_t` on 64-bit machines: the lock word, a count, the thread that holds it, the number of its users, its kind.
const MUTEX_BYTES: u64 = 20;
/// Its lock word where others wait, of a plain mutex; of one that is robust or inherits priorities this bit beside the thread (futex(2), FUTEX_WAITERS).
const CONTENDED: u32 = 2;
const WAITERS: u32 = 1 << 31;
const THREAD_BITS: u32 = (1 << 30) - 1;
/// Bits of the kind: it is shared by processes; any larger number is no mutex.
const KIND_SHARED: u32 = 0x80;
const KIND_MAX: u32 = 0x3ff;
const USERS: Range<u32> = 1..1 << 16;

/// A part of a process's memory that others may share (proc_pid_maps(5)).
struct Mapping {
    addresses: Range<u64>,
    /// Device and inode of its file.
    file: String,
    name: String,
}

/// The shared memory of processes, read once for all who wait.
#[derive(Default)]
pub(super) struct Memory {
    mappings: RefCell<HashMap<i32, Rc<[Mapping]>>>,
    sharers: OnceCell<HashMap<String, Vec<i32>>>,
}

impl Memory {
    /// Who can wake one that waits at an address: the holder of the mutex, those that have mapped the same file, or the process itself.
    pub(super) fn need(&self, scene: &Scene, pid: i32, address: u64, is_private: bool) -> Need {
        if let Some(owner) = mutex_owner(pid, address, is_private) {
            let process = process_of(pid, owner, is_private);
            let wakers = process.into_iter().map(|pid| Holder { pid, fd: None }).collect();
            return Need { wakers, ..Need::new(Resource::Mutex { owner }) };
        }
        let mappings = if is_private { Rc::default() } else { self.of(pid) };
        let Some(found) = mappings.iter().find(|one| one.addresses.contains(&address)) else {
            let wakers = vec![Holder { pid, fd: None }];
            return Need { wakers, ..Need::new(Resource::Memory { is_shared: false }) };
        };
        let sharers = self.sharers.get_or_init(|| self.all(scene));
        let others = sharers.get(&found.file).into_iter().flatten().filter(|other| **other != pid);
        let wakers = others.map(|pid| Holder { pid: *pid, fd: None }).collect();
        Need { what: name_of(found), wakers, ..Need::new(Resource::Memory { is_shared: true }) }
    }

    fn of(&self, pid: i32) -> Rc<[Mapping]> {
        let mut known = self.mappings.borrow_mut();
        let read = || {
            let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            text.lines().filter_map(mapping).collect()
        };
        known.entry(pid).or_insert_with(read).clone()
    }

    fn all(&self, scene: &Scene) -> HashMap<String, Vec<i32>> {
        let mut sharers: HashMap<String, Vec<i32>> = HashMap::new();
        for pid in scene.processes.keys() {
            for mapping in self.of(*pid).iter() {
                let all = sharers.entry(mapping.file.clone()).or_default();
                if all.last() != Some(pid) {
                    all.push(*pid);
                }
            }
        }
        sharers
    }
}

/// A line of /proc/PID/maps, if it is of memory that is shared.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let range = words.next()?;
    words.next().filter(|access| access.ends_with('s'))?;
    let (device, inode) = (words.nth(1)?, words.next().filter(|inode| *inode != "0")?);
    let (from, to) = range.split_once('-')?;
    let at = |text: &str| u64::from_str_radix(text, 16).ok();
    let name = words.collect::<Vec<_>>().join(" ");
    Some(Mapping { addresses: at(from)?..at(to)?, file: format!("{device} {inode}"), name })
}

/// Its name. The C library makes a POSIX semaphore as a file with another name, which is shown as deleted.
fn name_of(mapping: &Mapping) -> String {
    let is_it = |path: &Path| {
        let Some((_, (device, inode), _)) = found_at(path) else { return false };
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        format!("{major:02x}:{minor:02x} {inode}") == mapping.file
    };
    let is_renamed = mapping.name.starts_with(SEMAPHORES) && mapping.name.ends_with(" (deleted)");
    let folder = is_renamed.then(|| fs::read_dir("/dev/shm").ok()).flatten().into_iter().flatten().flatten();
    let mut paths =
        folder.map(|entry| entry.path()).filter(|path| path.to_string_lossy().starts_with(SEMAPHORES));
    paths
        .find(|path| is_it(path))
        .map_or_else(|| mapping.name.clone(), |path| path.to_string_lossy().into_owned())
}

/// The thread that holds the mutex at an address; `None` if there is none, as far as its fields show.
fn mutex_owner(pid: i32, address: u64, is_private: bool) -> Option<i32> {
    let bytes = memory(pid, address, MUTEX_BYTES)?;
    let field = |at: usize| Some(u32::from_ne_bytes(bytes.get(at * 4..at * 4 + 4)?.try_into().ok()?));
    let (word, owner, users, kind) = (field(0)?, field(2)?, field(3)?, field(4)?);
    let is_held = word == CONTENDED || (word & WAITERS != 0 && word & THREAD_BITS == owner);
    let is_mutex = USERS.contains(&users) && kind <= KIND_MAX && (kind & KIND_SHARED == 0) == is_private;
    let owner = i32::try_from(owner).ok().filter(|owner| *owner > 0 && is_held && is_mutex)?;
    // In a container its numbers of threads are others.
    let numbers = field_value(&format!("/proc/{pid}/status"), "NSpid")?;
    (numbers.split_whitespace().count() == 1).then_some(owner)
}

/// The process of the thread that holds a mutex. Of a process's own memory that is one of its threads: another one was left behind by fork(2).
fn process_of(pid: i32, owner: i32, is_private: bool) -> Option<i32> {
    if Path::new(&format!("/proc/{pid}/task/{owner}")).exists() {
        return Some(pid);
    }
    let process = field_value(&format!("/proc/{owner}/status"), "Tgid")?.parse().ok()?;
    (!is_private).then_some(process)
}
