//! A process that finishes when the one that started it ends (PR_SET_PDEATHSIG, prctl(2)).

use std::io;

use nix::sys::signal::Signal;

/// From now on this process is asked to finish (SIGTERM) when the one that started it ends.
///
/// # Errors
/// What prctl(2) answered.
pub fn finish_with_parent() -> io::Result<()> {
    let parent = rustix::process::getppid();
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    if rustix::process::getppid() != parent {
        // The parent ended before the call, so there is no signal.
        nix::sys::signal::raise(Signal::SIGTERM)?;
    }
    Ok(())
}
