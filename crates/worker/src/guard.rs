//! The guard: a process that outlives this one for as long as it takes to end what was started.
//!
//! A worker has a process group of its own, which its owner's drop ends; a caught signal takes the same road. SIGKILL
//! runs no destructor: then the guard, in a session of its own, sees that its maker is gone and ends every group that
//! it was told of, and whoever left them with its mark.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use model::describe_errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::marked::{VARIABLE, end_marked};
use crate::remove::remove;

/// Process groups that can stand at a time: far more than builds and ends that run side by side.
const GROUPS_MAX: usize = 256;

/// The message that sends the guard home.
const GO_HOME: i32 = 0;

/// A running guard. Dropping it sends it home.
#[derive(Debug)]
pub struct Guard {
    tells: OwnedFd,
    pid: Option<Pid>,
    /// What the marks of everything it guards begin with.
    name: String,
    marks: AtomicU64,
}

/// What the processes of one run carry in their environment.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

impl Mark {
    /// The value of [`VARIABLE`].
    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// Ends everybody who carries it.
    pub(crate) fn end_all(&self) {
        end_marked(format!("{VARIABLE}={}\0", self.0).as_bytes());
    }
}

impl Guard {
    /// Starts a guard.
    ///
    /// # Errors
    /// What pipe2(2) or fork(2) answered.
    pub fn start() -> io::Result<Self> {
        Self::start_over(None)
    }

    /// One that removes a folder where its owner cannot do it any more.
    pub(crate) fn start_over(folder: Option<&Path>) -> io::Result<Self> {
        let folder = folder.map(|folder| CString::new(folder.as_os_str().as_bytes())).transpose()?;
        let (hears, tells) = pipe_with(PipeFlags::CLOEXEC)?;
        let name = format!("{}-{:016x}.", std::process::id(), fastrand::u64(..));
        let marks = format!("{VARIABLE}={name}");
        // SAFETY: this process may have threads, so the child makes nothing but async-signal-safe calls
        // (signal-safety(7)) and allocates no memory.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                stand_guard(hears.as_raw_fd(), marks.as_bytes(), folder.as_deref());
                // SAFETY: leaves at once; destructors and exit handlers belong to the parent.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { tells, pid: Pid::from_raw(pid), name, marks: AtomicU64::new(0) }),
        }
    }

    /// A new mark for what is to be started together.
    pub(crate) fn mark(&self) -> Mark {
        Mark(format!("{}{}", self.name, self.marks.fetch_add(1, Ordering::Relaxed)))
    }

    /// From now on the group ends with this process.
    pub(crate) fn watch(&self, group: Pid) {
        self.tell(group.as_raw_nonzero().get());
    }

    /// The group has ended; its number may become another's.
    pub(crate) fn forget(&self, group: Pid) {
        self.tell(-group.as_raw_nonzero().get());
    }

    fn tell(&self, message: i32) {
        // Without a guard (somebody killed it) everything works as long as this process ends orderly.
        let _ = rustix::io::write(&self.tells, &message.to_ne_bytes());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Not merely closed: a process forked meanwhile may hold a copy of this end.
        self.tell(GO_HOME);
        if let Some(pid) = self.pid.take() {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

/// Listens until it is sent home, or until its maker is gone.
fn stand_guard(hears: RawFd, marks: &[u8], folder: Option<&CStr>) {
    // SAFETY: none of these calls touches memory of ours but the constant name. Signals to the maker's process group
    // are not for the guard, and whoever waits for the end of the maker's output must not wait for it.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"hosepipe-guard".as_ptr());
        libc::dup2(hears, 0);
        libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
    }
    let mut groups = [0i32; GROUPS_MAX];
    loop {
        let mut message = [0u8; 4];
        // SAFETY: the buffer has the length given. Messages are written in one piece, which a pipe keeps together.
        match unsafe { libc::read(0, message.as_mut_ptr().cast(), message.len()) } {
            4 => match i32::from_ne_bytes(message) {
                GO_HOME => return,
                group if group > 0 => replace(&mut groups, 0, group),
                group => replace(&mut groups, -group, 0),
            },
            // SAFETY: errno of this thread.
            -1 if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            _ => break,
        }
    }
    for group in groups.into_iter().filter(|group| *group > 1) {
        // SAFETY: has no memory effects; the group is not reaped before it is forgotten, so it is no other's.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    end_marked(marks);
    if let Some(folder) = folder {
        remove(folder);
    }
}

fn replace(groups: &mut [i32], old: i32, new: i32) {
    if let Some(place) = groups.iter_mut().find(|group| **group == old) {
        *place = new;
    }
}

/// What is said where a guard cannot be started.
pub(crate) fn no_guard(error: &io::Error) -> String {
    format!("cannot start the process that ends workers after us: {}", describe_errno(error))
}
