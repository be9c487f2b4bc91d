//! `hosepipe __round`: runs the trials of one round of a benchmark, for the hosepipe that has executed it.

use std::process::ExitCode;

/// Runs trials until standard input ends.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let _ = rustix::thread::set_name(c"hosepipe-round");
    engine::serve_round()?;
    Ok(ExitCode::SUCCESS)
}
