//! Signals: those that ask the program to end are noted, so that what was finished is still printed and saved;
//! those that a parent has set in a way that would spoil our work are set back.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use process::signals::{ignore, to_default, was_ignored};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ};

/// The first signal that asked the program to end, if one did.
#[derive(Clone)]
pub(crate) struct StopRequest(Arc<AtomicUsize>);

impl StopRequest {
    /// From now on SIGINT, SIGTERM and SIGHUP are noted instead of ending the program.
    ///
    /// # Errors
    /// The system refused to install a handler.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let stop = Self(Arc::new(AtomicUsize::new(0)));
        [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(|signal| stop.listen_also(signal))?;
        Ok(stop)
    }

    /// Listens to one more signal. One that was ignored from the beginning (nohup(1)) stays ignored.
    pub(crate) fn listen_also(&self, signal: i32) -> anyhow::Result<()> {
        if !was_ignored(signal) {
            signal_hook::flag::register_usize(signal, Arc::clone(&self.0), signal as usize)
                .context("cannot install a signal handler")?;
        }
        Ok(())
    }

    /// Whether the program should end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Sleeps for so long, or until the program should end.
    pub(crate) fn wait(&self, duration: Duration) {
        const LOOK_AGAIN: Duration = Duration::from_millis(50);
        let end = Instant::now() + duration;
        while !self.is_set() && Instant::now() < end {
            std::thread::sleep(LOOK_AGAIN.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Notes a signal that came another way: to a program that was waited for.
    pub(crate) fn note(&self, signal: Option<i32>) {
        if let Some(signal) = signal {
            self.0.store(signal as usize, Ordering::Relaxed);
        }
    }

    /// The signal that asked for it.
    pub(crate) fn signal(&self) -> Option<i32> {
        let signal = self.0.load(Ordering::Relaxed);
        (signal != 0).then_some(signal as i32)
    }

    /// The exit status a shell would show for the signal: 130 for Ctrl-C.
    pub(crate) fn exit_status(&self) -> Option<u8> {
        self.signal().map(|signal| 128 + signal as u8)
    }

    /// That, or else whether anything failed.
    pub(crate) fn exit_code(&self, failed: bool) -> ExitCode {
        self.exit_status().unwrap_or(u8::from(failed)).into()
    }
}

/// Takes care of what a parent may have left behind and of what would end the program without a word: a file that
/// grows beyond RLIMIT_FSIZE shall be EFBIG with a sentence, not SIGXFSZ; and ends shall be there to be waited
/// for, which an inherited SIGCHLD=SIG_IGN would prevent (wait(2)).
pub(crate) fn settle() {
    ignore(&[SIGXFSZ]);
    to_default(&[SIGCHLD]);
}

/// Lets this process die of SIGPIPE (status 141 in a shell) when its reader goes away, as `yes | head` does: the Rust
/// runtime ignores the signal from the start.
pub(crate) fn die_of_sigpipe() {
    to_default(&[SIGPIPE]);
}
