//! Names of errors and signals, the folders for temporary files and for those of a session, programs in PATH, `sudo`,
//! whether vmsplice(2) is refused, the clocks.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};

/// The name and text of a system call's error: `ENOSPC (No space left on device)`. Another error's own text.
pub fn describe_errno(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => {
            let errno = Errno::from_raw(code);
            format!("{errno:?} ({})", errno.desc())
        }
        None => error.to_string(),
    }
}

/// The name of a signal, such as `SIGKILL` (signal(7)).
pub fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => known.as_str().to_owned(),
        Err(_) => format!("signal {signal}"),
    }
}

/// The folder for temporary files: TMPDIR, or /tmp if TMPDIR is unset or empty, as in mktemp(1).
pub fn temporary_folder() -> PathBuf {
    let set: Option<OsString> = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    set.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// XDG_RUNTIME_DIR, the user's folder for names that end with the session; `None` if it is unset or relative.
pub fn runtime_folder() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// The first file with this name in PATH, executable or not.
pub fn file_on_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file())
}

/// The prefix of a command for root if there is no sudo.
pub const AS_ROOT: &str = "as root: ";

/// The prefix of a command for root: empty for root, `sudo ` if it exists, else [`AS_ROOT`].
pub fn sudo() -> &'static str {
    match (nix::unistd::geteuid().is_root(), file_on_path("sudo").is_some()) {
        (true, _) => "",
        (false, true) => "sudo ",
        (false, false) => AS_ROOT,
    }
}

/// What to do where this user may not see what another user's process has open (ptrace(2), "Ptrace access mode checking"): run
/// `command` as root. Root itself may lack what that takes.
pub fn to_see_other_users(command: &str) -> String {
    match sudo() {
        "" => "here root lacks CAP_SYS_PTRACE or CAP_DAC_READ_SEARCH for it, as in a container (--cap-add SYS_PTRACE)"
            .to_owned(),
        sudo => format!("{sudo}{command}"),
    }
}

/// The error with which vmsplice(2) is refused here, whatever it is given: EPERM, EACCES or ENOSYS of a filter of system calls such as a
/// container's (seccomp(2)), or ENOSYS of a kernel without it. `None` if it may be called.
pub fn vmsplice_refusal() -> Option<io::Error> {
    let (_reader, writer) = nix::unistd::pipe().ok()?;
    match nix::fcntl::vmsplice(&writer, &[], nix::fcntl::SpliceFFlags::SPLICE_F_NONBLOCK) {
        Err(refusal @ (Errno::EPERM | Errno::EACCES | Errno::ENOSYS)) => Some(refusal.into()),
        _ => None,
    }
}

/// Replaces `sudo ` in a command by this user's prefix ([`sudo`]).
pub fn for_root(command: &str, sudo: &str) -> String {
    match sudo {
        "sudo " => command.to_owned(),
        before if command.contains("sudo ") => format!("{before}{}", command.replace("sudo ", "")),
        _ => command.to_owned(),
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the same clock in every process of the machine (clock_gettime(2)).
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

/// The CPU time of the calling thread in nanoseconds (CLOCK_THREAD_CPUTIME_ID of clock_gettime(2)).
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What needs vmsplice(2) is tested where it may be called, and that is so in CI.
    #[test]
    fn vmsplice_may_be_called_in_ci() {
        if let Some(refusal) = vmsplice_refusal() {
            assert!(std::env::var_os("CI").is_none(), "{refusal}");
            let said = format!("SKIPPED: what needs vmsplice(2): {}\n", describe_errno(&refusal));
            io::Write::write_all(&mut io::stderr(), said.as_bytes()).expect("standard error");
        }
    }

    #[test]
    fn errors_are_named() {
        let error = io::Error::from_raw_os_error(28);
        assert_eq!(describe_errno(&error), "ENOSPC (No space left on device)");
        assert_eq!(describe_errno(&io::Error::other("no luck")), "no luck");
    }

    #[test]
    fn commands_for_root_have_the_users_prefix() {
        let command = "echo max | sudo tee /sys/x && sudo sync";
        assert_eq!(for_root(command, "sudo "), command);
        assert_eq!(for_root(command, ""), "echo max | tee /sys/x && sync");
        assert_eq!(for_root(command, AS_ROOT), "as root: echo max | tee /sys/x && sync");
        assert_eq!(for_root("ps -e", AS_ROOT), "ps -e");
    }

    #[test]
    fn signals_have_names() {
        for (signal, name) in
            [(9, "SIGKILL"), (11, "SIGSEGV"), (13, "SIGPIPE"), (34, "signal 34"), (100, "signal 100")]
        {
            assert_eq!(signal_name(signal), name);
        }
    }

    #[test]
    fn the_clock_is_the_one_of_every_process() {
        let clock = || {
            let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
            std::time::Duration::from(now).as_nanos()
        };
        let (before, read, after) = (clock(), u128::from(monotonic_ns()), clock());
        assert!((before..=after).contains(&read), "{before} {read} {after}");
    }
}
