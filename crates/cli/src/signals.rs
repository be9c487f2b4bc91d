//! Signals that ask the program to end: noted, so that what was finished is still printed and saved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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
        for signal in [SIGINT, SIGTERM, SIGHUP] {
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
