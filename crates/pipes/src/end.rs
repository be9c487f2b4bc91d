//! Ends the shell, and all that it has started, when hosepipe is killed, whose child it is.
//!
//! The kernel then sends the shell a signal (PR_SET_PDEATHSIG). SIGKILL would end it at once, and what it has started would have no parent by which
//! the server of hosepipe finds it. So it is a signal with a handler, in which the shell starts nothing more and waits for the server. Where there is
//! no server yet, the handler does the same as the server.

use core::ffi::{CStr, c_int};

use crate::session::SESSION;
use crate::sys::{self, SIGKILL, SIGSTOP};

/// SIGRTMAX, which shells leave as it is.
const PARENT_ENDED: c_int = 64;
/// The server kills everything within this time, except on a busy machine.
const SERVER_MS: i64 = 100;
/// Longest list of children that is read, and the most generations. Children beyond that are left.
const CHILDREN_BYTES_MAX: usize = 2048;
const GENERATIONS_MAX: u32 = 16;

/// The shell ends, with all that it has started, when its parent does; it ends now if `parent` is its parent no longer.
pub(crate) fn end_with(parent: u64) {
    let handled = sys::handle(PARENT_ENDED, parent_ended);
    sys::signal_at_end_of_parent(if handled { PARENT_ENDED } else { SIGKILL });
    if sys::getppid() as u64 != parent {
        sys::kill(sys::getpid(), SIGKILL);
    }
}

/// Calls `execute`, which returns if it fails. A program that the shell becomes has no handler, and may ignore the signal: SIGKILL takes its place.
pub(crate) fn over_exec(execute: impl FnOnce() -> isize) -> isize {
    let parent = SESSION.config().parent;
    // A child of the shell has another parent, and is sent no signal.
    let is_tied = parent != 0 && sys::getppid() as u64 == parent;
    if is_tied {
        sys::signal_at_end_of_parent(SIGKILL);
    }
    let error = execute();
    if is_tied {
        end_with(parent);
    }
    error
}

extern "C" fn parent_ended(_: c_int) {
    sys::sleep(SERVER_MS);
    end_children(c"/proc/thread-self/children", GENERATIONS_MAX);
    sys::kill(sys::getpid(), SIGKILL);
}

/// Kills the processes in such a file (proc_tid_children(5)) and all that they have started. A process is stopped first, so that it starts no other.
/// Children of threads other than the first are not found.
fn end_children(file: &CStr, generations: u32) {
    let mut list = [0; CHILDREN_BYTES_MAX];
    let len = sys::read_file(file, &mut list);
    // Each number has a space behind it. The beginning of a longer number, at the end of a full list, is another process.
    for number in list[..len].split_inclusive(|byte| *byte == b' ') {
        let Some(digits) = number.strip_suffix(b" ") else { break };
        let child = digits.iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
        sys::kill(child, SIGSTOP);
        let mut path = [0; 64];
        let parts: [&[u8]; 5] = [b"/proc/", digits, b"/task/", digits, b"/children"];
        path.iter_mut().zip(parts.into_iter().flatten()).for_each(|(place, byte)| *place = *byte);
        if let Ok(file) = CStr::from_bytes_until_nul(&path)
            && generations > 0
        {
            end_children(file, generations - 1);
        }
        sys::kill(child, SIGKILL);
    }
}
