//! Starting a program with posix_spawn(3), which glibc makes of a vfork-like clone(2): its cost does not grow with
//! the memory of this process, and it may be called from a program with threads.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

/// Signals that this process, or the Rust runtime, may treat otherwise than a program expects to find them.
const RESET: [i32; 12] = [
    libc::SIGPIPE,
    libc::SIGXFSZ,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGWINCH,
];

/// Starts the program at `path`. Of each pair in `copies`, the second descriptor becomes a copy of the first, which is none that is
/// copied to. Signals that were ignored when we were started (nohup(1)) stay ignored.
///
/// # Errors
/// What execve(2), or an earlier step, answered in the child.
pub(crate) fn spawn(
    path: &CStr,
    arguments: &[CString],
    environment: &[CString],
    copies: &[(RawFd, RawFd)],
) -> io::Result<i32> {
    let mut attributes = Attributes::new()?;
    attributes.set()?;
    let mut file_actions = FileActions::new()?;
    for (source, number) in copies {
        file_actions.add_copy(*source, *number)?;
    }
    let argv = pointers(arguments);
    let envp = pointers(environment);
    let mut pid = 0;
    // SAFETY: every pointer is valid for the call: path, argv and envp are NUL-terminated strings in
    // NULL-terminated arrays that outlive it, attributes and actions were initialised.
    let answer = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            &raw const file_actions.0,
            &raw const attributes.0,
            argv.as_ptr(),
            envp.as_ptr(),
        )
    };
    check(answer)?;
    Ok(pid)
}

/// The posix_spawn family returns its error.
fn check(answer: i32) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: initialises what it is given.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: just initialised.
        Ok(Self(unsafe { attributes.assume_init() }))
    }

    fn set(&mut self) -> io::Result<()> {
        let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        let mask = crate::signals::mask_at_start().ok_or(io::ErrorKind::NotFound)?;
        let mut reset = MaybeUninit::uninit();
        // SAFETY: the set is initialised by sigemptyset before anything reads it; the attributes are valid.
        unsafe {
            libc::sigemptyset(reset.as_mut_ptr());
            for signal in RESET {
                if !crate::signals::was_ignored(signal) {
                    libc::sigaddset(reset.as_mut_ptr(), signal);
                }
            }
            check(libc::posix_spawnattr_setsigmask(&raw mut self.0, &raw const mask))?;
            check(libc::posix_spawnattr_setsigdefault(&raw mut self.0, reset.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&raw mut self.0, flags as libc::c_short))
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, not used again.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: initialises what it is given.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: just initialised.
        Ok(Self(unsafe { actions.assume_init() }))
    }

    fn add_copy(&mut self, source: RawFd, number: RawFd) -> io::Result<()> {
        // SAFETY: the actions are valid; the numbers are checked by the callee.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, source, number) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, not used again.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}
