//! Signals. Those that request the end of the program are noted, so that finished results are still printed and saved; a second one ends it
//! (`process::signals`). Inherited dispositions that would cause wrong results are reset.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::terminal;
use anyhow::Context;
use model::StopReason;
use process::signals::{ignore, note_as_stop, note_stop, stop_signal, to_default};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGXFSZ};

/// The first signal that requested the end of the program, if any.
#[derive(Clone)]
pub(crate) struct StopRequest(());

impl StopRequest {
    /// Installs handlers: from now on the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the program.
    ///
    /// # Errors
    /// The system refused to install a handler.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let stop = Self(());
        [SIGINT, SIGTERM, SIGHUP].into_iter().try_for_each(|signal| stop.listen_also(signal))?;
        Ok(stop)
    }

    /// Handles one more signal. A signal that was ignored at the start (nohup(1)) stays ignored.
    pub(crate) fn listen_also(&self, signal: i32) -> anyhow::Result<()> {
        note_as_stop(signal).context("cannot install a signal handler")
    }

    /// Whether the program should end.
    pub(crate) fn is_set(&self) -> bool {
        stop_signal().is_some()
    }

    /// Sleeps for `duration`, or until the program should end.
    pub(crate) fn wait(&self, duration: Duration) {
        const POLL_INTERVAL: Duration = Duration::from_millis(50);
        let end = Instant::now() + duration;
        while !self.is_set() && Instant::now() < end {
            std::thread::sleep(POLL_INTERVAL.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Notes a signal that a child has received.
    pub(crate) fn note(&self, signal: Option<i32>) {
        signal.into_iter().for_each(note_stop);
    }

    /// The signal that requested the end.
    pub(crate) fn signal(&self) -> Option<i32> {
        stop_signal()
    }

    /// What ended a run early: one of these signals, or else its time.
    pub(crate) fn reason(&self) -> StopReason {
        match self.signal() {
            None => StopReason::Time,
            Some(SIGTERM) => StopReason::Terminate,
            Some(SIGHUP) => StopReason::HangUp,
            Some(_) => StopReason::Interrupt,
        }
    }

    /// The exit status that a shell shows for the signal: 130 for Ctrl-C.
    pub(crate) fn exit_status(&self) -> Option<u8> {
        self.signal().map(|signal| 128 + signal as u8)
    }

    /// As [`Self::exit_code`]; where nothing was measured, a sentence and status 1.
    pub(crate) fn exit_code_of(&self, is_empty: bool, failed: bool) -> ExitCode {
        if is_empty && !self.is_set() {
            terminal::remark("hosepipe: nothing was measured: each row has its reason");
        }
        self.exit_code(is_empty || failed)
    }

    /// That status, or else 1 if anything failed.
    pub(crate) fn exit_code(&self, failed: bool) -> ExitCode {
        self.exit_status().unwrap_or(u8::from(failed)).into()
    }
}

/// Ignores SIGXFSZ, so that a file beyond RLIMIT_FSIZE gives EFBIG with a message, and resets SIGCHLD: if it were ignored, as
/// inherited from a parent, wait(2) could not return the status of children.
pub(crate) fn reset_signals() {
    ignore(&[SIGXFSZ]);
    to_default(&[SIGCHLD]);
}

/// Restores the default of SIGPIPE, which the Rust runtime ignores: the process ends when its reader has ended (status 141 in a
/// shell), as in `yes | head`.
pub(crate) fn die_of_sigpipe() {
    to_default(&[SIGPIPE]);
}
