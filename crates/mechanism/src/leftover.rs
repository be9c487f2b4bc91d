//! Names that outlive their users unless they are removed.
//!
//! Every name is owned by a value whose drop removes it. If this process is killed before that, the cleaner removes the
//! name: each name is announced to it.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use process::{Announcer, Cleaner, DetachedCleaner};
use rustix::process::geteuid;

/// Where names are announced.
static ANNOUNCER: Mutex<Option<Announcer>> = Mutex::new(None);
/// The cleaner that [`ensure_cleaner`] has started.
static ENSURED: Mutex<Option<Cleaner>> = Mutex::new(None);

/// Starts the cleaner of all names that mechanisms make from now on. Call it while this process has one thread.
///
/// # Errors
/// As [`Cleaner::start`].
pub fn start_cleaner() -> io::Result<Cleaner> {
    let cleaner = Cleaner::start_with(remove_queues_of)?;
    announce_to(Some(cleaner.announcer().clone()));
    Ok(cleaner)
}

/// Starts a cleaner of all names that this process and the processes that it forks make from now on, unless one was started. It ends
/// when the last of these processes has ended.
///
/// # Errors
/// As [`Cleaner::start`].
pub fn ensure_cleaner() -> io::Result<()> {
    if lock(&ANNOUNCER).is_none() {
        let cleaner = Cleaner::start()?;
        announce_to(Some(cleaner.announcer().clone()));
        *lock(&ENSURED) = Some(cleaner);
    }
    Ok(())
}

/// Lets the cleaner that [`ensure_cleaner`] has started, if any, remove the names that are left, and end. Call it in the last process
/// that announces names to it.
pub fn end_cleaner() {
    announce_to(None);
    drop(lock(&ENSURED).take());
}

/// Gives up the cleaner, if there is one; it goes on for the other processes that announce names to it.
pub fn leave_cleaner() -> Option<DetachedCleaner> {
    announce_to(None);
    lock(&ENSURED).take().and_then(Cleaner::detach)
}

/// Makes a queue for a moment. If this process is killed meanwhile, a cleaner removes it: one for this call where none was started.
pub(crate) fn with_cleaner<T>(make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let is_started = lock(&ANNOUNCER).is_some();
    let _cleaner = (!is_started).then(|| Cleaner::start_with(remove_queues_of)).transpose()?;
    make()
}

/// Where names that are made now are announced.
pub(crate) fn announcer() -> Announcer {
    lock(&ANNOUNCER).clone().unwrap_or_default()
}

pub(crate) fn announce_to(announcer: Option<Announcer>) {
    *lock(&ANNOUNCER) = announcer;
}

/// Ignores a poisoned lock: a panic elsewhere does not make the values wrong.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Most queues that a process may have at the same time.
const QUEUES_MAX: i32 = 64;

/// The keys of the queues that a process makes: the hexadecimal digit 6, its PID (22 bits: pid_max in proc_sys_kernel(5)), and
/// 6 bits that count. A queue with such a key whose process does not exist is a leftover.
pub(crate) fn queue_keys(process: u32) -> Range<i32> {
    let first = 0x6000_0000 | ((process & 0x3f_ffff) << 6) as i32;
    first..first + QUEUES_MAX
}

/// Removes a queue by its number; one that is gone already is no error.
pub(crate) fn remove_queue(id: i32) {
    // SAFETY: IPC_RMID ignores the buffer.
    unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
}

/// The name for mq_open(3) and the key for msgget(2) of the message queue that a program run by this process makes, by a number below
/// 64. The cleaner removes queues with this name, with this name and the suffix `.back`, and with this key.
pub fn queue_of_program(number: u32) -> (String, i32) {
    let process = std::process::id();
    (queue_name(process, number), queue_keys(process).start + number as i32)
}

/// Removes the queues that were left by programs which this process has run and which have ended.
pub fn remove_queues_of_programs() {
    remove_queues_of(std::process::id());
}

fn queue_name(process: u32, number: u32) -> String {
    format!("/hosepipe-{process}-{number}")
}

/// Removes the message queues that a dead process, or a program that it ran, has left.
fn remove_queues_of(process: u32) {
    for number in 0..QUEUES_MAX as u32 {
        let name = queue_name(process, number);
        for name in [format!("{name}.back"), name] {
            // SAFETY: a C string. That there is no such queue is no error.
            let _ = CString::new(name).map(|name| unsafe { libc::mq_unlink(name.as_ptr()) });
        }
    }
    // System V queues have no name that could be announced; they are found by key and creator (proc(5), sysvipc/msg).
    let table = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    queues_made_by(&table, process, geteuid().as_raw()).into_iter().for_each(remove_queue);
}

/// The queues in `table` (/proc/sysvipc/msg) that `process` of `user` made. Columns: 1 the key, 2 the queue, 10 the user who made it.
/// The table does not contain the process, but our keys do; the user is compared because other programs may use the same keys.
fn queues_made_by(table: &str, process: u32, user: u32) -> Vec<i32> {
    let keys = queue_keys(process);
    let made_by_us = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (key, queue): (i32, i32) = (columns.first()?.parse().ok()?, columns.get(1)?.parse().ok()?);
        let maker: u32 = columns.get(9)?.parse().ok()?;
        (maker == user && keys.contains(&key)).then_some(queue)
    };
    table.lines().skip(1).filter_map(made_by_us).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_queues_are_found() {
        let [ours, others] = [77, 78].map(|process| queue_keys(process).start);
        let table = format!(
            "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime\n\
             {ours:10} 5 600 0 0 0 0 3 3 3 3 0\n{others:10} 6 600 0 0 0 0 3 3 3 3 0\n\
             {:10} 7 600 0 0 0 0 3 3 3 3 0\n         0 8 600 0 0 0 0 3 3 3 3 0\n\
             {:10} 9 666 0 0 0 0 4 4 4 4 0\n",
            ours + 1,
            ours + 2
        );
        assert_eq!(queues_made_by(&table, 77, 3), vec![5, 7], "the last is another user's");
    }
}
