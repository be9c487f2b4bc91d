//! What a thread does at this moment: it runs, or sleeps in a system call (proc_pid_syscall(5), proc_pid_wchan(5)).

use process::proc;

/// What a thread is doing. A descriptor is `None` where only the kernel function is known in which it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// It runs, or is ready to, or changed between the two while it was looked at.
    Runs,
    /// Asleep while it reads from this descriptor.
    Reads(Option<i32>),
    /// Asleep while it writes to this descriptor.
    Writes(Option<i32>),
    /// Asleep in splice(2) and its kin: it waits for the one or for the other.
    Moves {
        /// The descriptor that is read.
        from: i32,
        /// The descriptor that is written.
        to: i32,
    },
    /// Asleep in epoll_wait(2) on this descriptor; where that is not known, perhaps in poll(2) or select(2).
    Polls(Option<i32>),
    /// Asleep in poll(2) with an array of entries in its memory.
    Poll {
        /// The first entry.
        array: u64,
        /// How many there are.
        count: u64,
    },
    /// Asleep in select(2) with these sets of descriptors, by their addresses; 0 is none.
    Select {
        /// One more than the highest descriptor in them.
        count: u64,
        /// What is to be read.
        reads: u64,
        /// What is to be written.
        writes: u64,
    },
    /// It waits for a child (wait4(2), waitid(2)).
    Children,
    /// It waits for time to pass (clock_nanosleep(2)).
    Sleeps,
    /// Asleep somewhere else.
    Other,
}

impl Call {
    /// What the process (its first thread) or the thread does whose folder this is; `None` where it has gone, or may not be looked at
    /// (ptrace(2), "ptrace access mode checking").
    pub fn at(folder: &str) -> Option<Self> {
        Self::from_syscall(proc::short(&format!("{folder}/syscall")), folder)
    }

    /// The same where `syscall` of that folder was read already.
    pub fn from_syscall(syscall: Option<Vec<u8>>, folder: &str) -> Option<Self> {
        match syscall {
            Some(bytes) => Some(by_number(&String::from_utf8_lossy(&bytes))),
            // A system that lets only parents look at more (kernel documentation, admin-guide/LSM/Yama.rst).
            None => Some(by_function(&String::from_utf8_lossy(&proc::short(&format!("{folder}/wchan"))?))),
        }
    }
}

/// By the system call's number and its arguments.
fn by_number(text: &str) -> Call {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first == "running" {
        return Call::Runs;
    }
    let arguments: Vec<&str> = words.collect();
    let value = |at: usize| {
        let digits = arguments.get(at).and_then(|word| word.strip_prefix("0x"));
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
    };
    let fd = |at: usize| value(at).map_or(-1, |value| value as i32);
    let poll = || Call::Poll { array: value(0).unwrap_or(0), count: value(1).unwrap_or(0) };
    let select = || {
        let [count, reads, writes] = [0, 1, 2].map(|at| value(at).unwrap_or(0));
        Call::Select { count, reads, writes }
    };
    match first.parse::<i64>().unwrap_or(-1) {
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => Call::Reads(Some(fd(0))),
        libc::SYS_write | libc::SYS_writev | libc::SYS_vmsplice | libc::SYS_sendto | libc::SYS_sendmsg => {
            Call::Writes(Some(fd(0)))
        }
        libc::SYS_splice => Call::Moves { from: fd(0), to: fd(2) },
        libc::SYS_tee => Call::Moves { from: fd(0), to: fd(1) },
        libc::SYS_sendfile => Call::Moves { from: fd(1), to: fd(0) },
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Call::Polls(Some(fd(0))),
        libc::SYS_ppoll => poll(),
        libc::SYS_pselect6 => select(),
        libc::SYS_wait4 | libc::SYS_waitid => Call::Children,
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => Call::Sleeps,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => Call::Polls(Some(fd(0))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => poll(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => select(),
        _ => Call::Other,
    }
}

/// By the function of the kernel in which it sleeps; one that runs is in none ("0").
fn by_function(name: &str) -> Call {
    let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match name.trim() {
        "" | "0" => Call::Runs,
        _ if is(&["pipe_read"]) => Call::Reads(None),
        _ if is(&["pipe_write"]) => Call::Writes(None),
        // Before Linux 5.5 readers and writers of pipes slept in one function.
        _ if is(&["pipe_wait", "poll", "select"]) => Call::Polls(None),
        _ if is(&["do_wait"]) => Call::Children,
        _ if is(&["nanosleep"]) => Call::Sleeps,
        _ => Call::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_reader_a_writer_and_a_sleeper_are_told_apart() {
        for (program, expected) in [
            ("exec cat", Call::Reads(Some(0))),
            ("exec yes", Call::Writes(Some(1))),
            ("while :; do :; done", Call::Runs),
            ("exec sleep 100", Call::Sleeps),
        ] {
            let mut child = Command::new("sh")
                .args(["-c", program])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("started");
            let folder = format!("/proc/{}", child.id());
            let deadline = Instant::now() + Duration::from_secs(20);
            let mut seen = Call::at(&folder);
            while seen != Some(expected) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
                seen = Call::at(&folder);
            }
            child.kill().and_then(|()| child.wait()).expect("ended");
            assert_eq!((seen, Call::at(&folder)), (Some(expected), None), "{program}");
        }
    }

    #[test]
    fn texts_of_the_kernel_are_read() {
        assert_eq!(by_number("running\n"), Call::Runs);
        let splice = format!("{} 0x3 0x0 0x1 0x0 0x10000 0x1 0x7ffe 0x7f12\n", libc::SYS_splice);
        assert_eq!(by_number(&splice), Call::Moves { from: 3, to: 1 });
        assert_eq!(by_number("-1 0x7ffe 0x7f12"), Call::Other);
        assert_eq!(by_number(""), Call::Other);
        let told = ["0", "anon_pipe_write", "pipe_read", "do_sys_poll", "do_wait"].map(by_function);
        assert_eq!(
            told,
            [Call::Runs, Call::Writes(None), Call::Reads(None), Call::Polls(None), Call::Children]
        );
    }
}
