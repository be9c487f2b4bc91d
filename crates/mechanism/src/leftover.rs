//! Names that outlive their users unless they are removed.
//!
//! Every name is owned by a value whose drop removes it. Should this process be killed before it can drop
//! anything, whoever was told of the names ([`announce_leftovers_to`]) removes them in its stead.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where names are announced, one path a line.
static LISTENER: Mutex<Option<OwnedFd>> = Mutex::new(None);

fn listener() -> MutexGuard<'static, Option<OwnedFd>> {
    // A panic elsewhere does not make the descriptor wrong.
    LISTENER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, announces every path made to `to`, one a line.
pub fn announce_leftovers_to(to: OwnedFd) {
    *listener() = Some(to);
}

/// Closes the way announcements went.
pub fn stop_announcing() {
    *listener() = None;
}

/// Announces a path that is about to be made.
pub fn announce(path: &Path) {
    if let Some(listener) = listener().as_ref() {
        let mut line = path.as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        // A listener that has gone away is no reason not to measure.
        let _ = rustix::io::write(listener, &line);
    }
}

/// A path that is removed when this value is dropped, by the process that made it (its forked children
/// hold copies of the value, and must not remove what the others still use).
pub(crate) struct NamedPath {
    path: PathBuf,
    owner: u32,
}

impl NamedPath {
    /// Takes charge of a path that is about to be made.
    pub(crate) fn about_to_make(path: PathBuf) -> Self {
        announce(&path);
        Self { path, owner: std::process::id() }
    }

    /// The path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for NamedPath {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the System V message queues a process made and can no longer remove, having died.
/// They have no name that could be announced; the kernel remembers their maker (proc(5), sysvipc/msg).
pub fn remove_message_queues_of(process: u32) {
    let Ok(table) = fs::read_to_string("/proc/sysvipc/msg") else { return };
    for queue in queues_made_by(&table, process) {
        crate::registry::remove_queue(queue);
    }
}

/// Column 1 is the key, column 2 the queue. The table does not name the maker: our keys do.
fn queues_made_by(table: &str, process: u32) -> Vec<i32> {
    let first_key = crate::registry::queue_key(process);
    let made_by_us = |line: &str| {
        let mut columns = line.split_whitespace();
        let key: i32 = columns.next()?.parse().ok()?;
        let queue: i32 = columns.next()?.parse().ok()?;
        (first_key..first_key + 4).contains(&key).then_some(queue)
    };
    table.lines().skip(1).filter_map(made_by_us).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_queues_are_found() {
        let (ours, others) = (crate::registry::queue_key(77), crate::registry::queue_key(78));
        let table = format!(
            "       key      msqid perms      cbytes       qnum lspid lrpid   uid\n\
             {ours:10} 5 600 0 0 0 0 0\n{others:10} 6 600 0 0 0 0 0\n{:10} 7 600 0 0 0 0 0\n         0 8 600 0 0 0 0 0\n",
            ours + 1
        );
        assert_eq!(queues_made_by(&table, 77), vec![5, 7]);
    }

    #[test]
    fn a_named_path_goes_with_its_value() {
        let folder = tempfile::tempdir().expect("temp dir");
        let name = NamedPath::about_to_make(folder.path().join("x"));
        fs::write(name.path(), b"x").expect("write");
        let path = name.path().to_owned();
        drop(name);
        assert!(!path.exists());
    }
}
