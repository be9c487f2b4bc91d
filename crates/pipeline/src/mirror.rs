//! Waiting for an interactive shell, of which this program is only the frame: what is asked of this program is passed on to the shell,
//! and what happens to the shell happens to this program.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;

use crate::signals::was_ignored;
use crate::supervise::Ending;

/// What the shell is told that comes to this program. A key at the terminal is not: the kernel has sent it to whom it is for.
const PASSED_ON: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Signals that wait until they are looked at.
pub(crate) struct Mirror {
    set: libc::sigset_t,
}

/// What happened to the shell.
enum News {
    Stopped,
    Ended(Ending),
}

impl Mirror {
    /// Begins to hold the signals back, before there is a shell.
    pub(crate) fn begin() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the set is initialised by sigemptyset before anything reads it; neither call keeps a reference.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            for signal in PASSED_ON.into_iter().filter(|signal| !was_ignored(*signal)) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            Self { set: set.assume_init() }
        }
    }

    /// Waits until the shell has ended. The signals are let through again afterwards.
    ///
    /// # Errors
    /// What waitpid(2) answered.
    pub(crate) fn until_the_end(self, shell: i32) -> io::Result<Ending> {
        let ending = loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: the buffer is of the type that is filled, and valid as zeros.
            let (signal, info) =
                unsafe { (libc::sigwaitinfo(&raw const self.set, info.as_mut_ptr()), info.assume_init()) };
            let by_key = info.si_code == libc::SI_KERNEL && [libc::SIGINT, libc::SIGQUIT].contains(&signal);
            match signal {
                libc::SIGCHLD => {}
                // Interrupted: by the signal to go on, for example.
                ..=0 => continue,
                _ if by_key => continue,
                _ => send(shell, signal),
            }
            match news(shell)? {
                Some(News::Ended(ending)) => break ending,
                // One in this program's own group was stopped with it.
                Some(News::Stopped) if !is_in_our_group(shell) => {
                    // SAFETY: stops this process, until somebody lets it go on.
                    unsafe { libc::raise(libc::SIGSTOP) };
                    send(shell, libc::SIGCONT);
                }
                _ => {}
            }
        };
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.set, std::ptr::null_mut()) };
        Ok(ending)
    }
}

fn send(shell: i32, signal: i32) {
    // SAFETY: has no memory effects; the process is a child that has not been waited for, so the number is its.
    unsafe { libc::kill(shell, signal) };
}

fn is_in_our_group(shell: i32) -> bool {
    // SAFETY: both only ask.
    unsafe { libc::getpgid(shell) == libc::getpgrp() }
}

fn news(shell: i32) -> io::Result<Option<News>> {
    let mut status = 0;
    // SAFETY: fills the status of a child of ours.
    match unsafe { libc::waitpid(shell, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        _ if libc::WIFSTOPPED(status) => Ok(Some(News::Stopped)),
        _ if libc::WIFSIGNALED(status) => Ok(Some(News::Ended(Ending::Killed(libc::WTERMSIG(status))))),
        _ => Ok(Some(News::Ended(Ending::Left(libc::WEXITSTATUS(status))))),
    }
}
