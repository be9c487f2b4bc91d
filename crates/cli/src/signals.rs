//! Signals: those that ask the program to end are noted, so that what was finished is still printed and saved;
//! those that a parent has set in a way that would spoil our work are set back.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// The first signal that asked the program to end, if one did.
#[derive(Clone)]
pub(crate) struct StopRequest(Arc<AtomicUsize>);

impl StopRequest {
    /// From now on SIGINT, SIGTERM and SIGHUP are noted instead of ending the program.
    ///
    /// # Errors
    /// The system refused to install a handler.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let noted = Arc::new(AtomicUsize::new(0));
        // A signal ignored from the beginning (nohup(1)) stays ignored.
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
            signal_hook::flag::register_usize(signal, noted.clone(), signal as usize)
                .context("cannot install a signal handler")?;
        }
        Ok(Self(noted))
    }

    /// Whether the program should end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit status a shell would show for the signal: 130 for Ctrl-C.
    pub(crate) fn exit_status(&self) -> Option<u8> {
        let signal = self.0.load(Ordering::Relaxed);
        (signal != 0).then(|| 128 + signal as u8)
    }
}

/// Takes care of what a parent may have left behind and of what would end the program without a word: a file that
/// grows beyond RLIMIT_FSIZE shall be EFBIG with a sentence, not SIGXFSZ; and ends shall be there to be waited
/// for, which an inherited SIGCHLD=SIG_IGN would prevent (wait(2)).
pub(crate) fn settle() {
    // SAFETY: both are valid actions for these signals, and no other thread runs yet.
    unsafe {
        libc::signal(SIGXFSZ, libc::SIG_IGN);
        libc::signal(SIGCHLD, libc::SIG_DFL);
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the action without setting one; the buffer is of the type it fills, and valid as zeros.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
