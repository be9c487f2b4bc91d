//! How a process ended, and what it used (wait4(2)).
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use model::{EndUsage, signal_name};
use rustix::process::Pid;

/// How a process ended, as the rest of a sentence: "exited with 3", "was ended by SIGSEGV".
pub fn describe_ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was ended by {}", signal_name(signal)),
        None => format!("exited with {}", status.code().unwrap_or_default()),
    }
}

/// A status as a shell shows it: 128 and the signal's number for a process that was killed.
pub fn shown_status(ended: ExitStatus) -> i32 {
    ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or_default())
}

/// Waits for a child to end and reaps it. The usage includes that of the child's own children for which it has waited.
///
/// # Errors
/// ECHILD if it is no child of this process.
pub fn reap(pid: Pid) -> io::Result<(ExitStatus, EndUsage)> {
    match wait4(pid, 0)? {
        Some((status, usage)) => Ok((status, end_usage(&usage))),
        None => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// wait4(2) with these options; `None` if no child has changed its state yet.
pub(crate) fn wait4(pid: Pid, options: i32) -> io::Result<Option<(ExitStatus, libc::rusage)>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        let pid = pid.as_raw_nonzero().get();
        // SAFETY: both buffers are of the types wait4 fills, and valid as zeros.
        match unsafe { libc::wait4(pid, &raw mut status, options, usage.as_mut_ptr()) } {
            0 => return Ok(None),
            // SAFETY: valid as zeros, and wait4 has filled it.
            1.. => return Ok(Some((ExitStatus::from_raw(status), unsafe { usage.assume_init() }))),
            _ => {}
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The result of getrusage(2) or wait4(2), as records have it.
pub fn end_usage(usage: &libc::rusage) -> EndUsage {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    EndUsage {
        syscalls: None,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        minor_faults: usage.ru_minflt as u64,
        blocks_stored: usage.ru_oublock as u64,
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    /// Of a process that has ended the usage is all of its CPU time, however short it was: no part since the last tick is missing.
    #[test]
    fn the_cpu_time_of_an_ended_process_is_all_of_it() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; cat /proc/$$/schedstat";
        for _ in 0..5 {
            // `reap` waits for it.
            #[allow(clippy::zombie_processes)]
            let mut child =
                Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("sh");
            let mut said = String::new();
            child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
            let (status, usage) = reap(Pid::from_child(&child)).expect("our child");
            let least_ns = said.split(' ').next().and_then(|ns| ns.parse::<u64>().ok());
            // Without the file the kernel keeps no such account. Each of both times is cut to microseconds.
            let Some(least_ns) = least_ns.filter(|_| status.success()) else { continue };
            let used_ns = usage.user_ns + usage.system_ns;
            assert!(used_ns + 2000 >= least_ns, "{used_ns} of at least {least_ns} ns");
        }
    }
}
