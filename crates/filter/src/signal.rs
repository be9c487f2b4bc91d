//! SIGPIPE as every other filter has it.
#![allow(unsafe_code)]

/// Lets the process die of SIGPIPE (status 141 in a shell) when its reader goes away, as `yes | head` does:
/// the Rust runtime ignores the signal from the start. For programs only: it holds for the whole process.
pub fn die_of_sigpipe() {
    // SAFETY: SIG_DFL runs no code of ours, so there is no handler that could be unsound.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
