//! What a thread does now: it runs, or waits in a system call (proc_pid_syscall(5), proc_pid_wchan(5)). The arguments of the call, and the lists
//! of poll, select and epoll, show for which descriptors it waits.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use process::proc;

/// Most entries of poll(2), and most bytes of a set of select(2), that are read (FD_SETSIZE is 1024).
const POLL_ENTRIES_MAX: u64 = 4096;
const SET_BYTES_MAX: u64 = 8192;
/// Events of poll(2) and epoll_ctl(2), which have the same bits.
const IN: u32 = libc::POLLIN as u32;
const OUT: u32 = libc::POLLOUT as u32;

/// A descriptor that a thread waits for, or watches together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchedFd {
    /// Its number.
    pub fd: i32,
    /// Until there is something to be read.
    pub reads: bool,
    /// Until there is room.
    pub writes: bool,
}

/// In what a thread is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// Nothing: it runs.
    Nothing,
    /// The first of these descriptors.
    On(Vec<WatchedFd>),
    /// In a read from a pipe; from which one is not known.
    InRead,
    /// In a write to a pipe; to which one is not known.
    InWrite,
    /// In poll(2) or its like; for which descriptors is not known.
    InPoll,
    /// A child of its own.
    Children,
    /// Time to pass.
    Time,
    /// Something else.
    Other,
}

impl Blocked {
    /// The descriptors for which it waits; empty if it waits for something else, or they are not known.
    pub(crate) fn watched_fds(&self) -> &[WatchedFd] {
        if let Self::On(fds) = self { fds } else { &[] }
    }
}

/// What a thread, or the first thread of a process, waits for, by its folder in /proc; `None` if it has ended, or this user may not inspect it
/// (ptrace(2), "ptrace access mode checking").
pub fn at(pid: i32, folder: &str) -> Option<Blocked> {
    from_syscall(pid, folder, proc::read_short_file(&format!("{folder}/syscall")))
}

/// The same if `syscall` of that folder was read already.
pub(crate) fn from_syscall(pid: i32, folder: &str, syscall: Option<Vec<u8>>) -> Option<Blocked> {
    match syscall {
        Some(bytes) => Some(by_number(pid, &String::from_utf8_lossy(&bytes))),
        // On a system that lets only parents read `syscall` (kernel documentation, admin-guide/LSM/Yama.rst).
        None => {
            Some(by_function(&String::from_utf8_lossy(&proc::read_short_file(&format!("{folder}/wchan"))?)))
        }
    }
}

/// Whether all of these sleep until time has passed, or until a child that does so ends.
pub(crate) fn pass_time<'a>(mut all: impl Iterator<Item = &'a Blocked> + Clone) -> bool {
    all.clone().all(|waits| matches!(waits, Blocked::Time | Blocked::Children))
        && all.any(|waits| *waits == Blocked::Time)
}

/// A system call in which a thread sleeps.
pub(crate) struct Call {
    pub(crate) number: i64,
    arguments: Vec<u64>,
}

impl Call {
    /// From the text of `syscall`; `None` where the thread runs.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next().filter(|word| *word != "running")?.parse().unwrap_or(-1);
        let value = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        Some(Self { number, arguments: words.map(|word| value(word).unwrap_or(0)).collect() })
    }

    pub(crate) fn argument(&self, at: usize) -> u64 {
        self.arguments.get(at).copied().unwrap_or(0)
    }
}

/// By the system call's number and its arguments.
fn by_number(pid: i32, text: &str) -> Blocked {
    let Some(call) = Call::parse(text) else {
        return if text.trim_end() == "running" { Blocked::Nothing } else { Blocked::Other };
    };
    let value = |at: usize| call.argument(at);
    let read = |at: usize| WatchedFd { fd: value(at) as i32, reads: true, writes: false };
    let write = |at: usize| WatchedFd { fd: value(at) as i32, reads: false, writes: true };
    let known = |fds: Option<Vec<WatchedFd>>| fds.map_or(Blocked::InPoll, Blocked::On);
    let poll = || match value(1) {
        0 => Blocked::Time,
        count => known(polled(pid, value(0), count)),
    };
    let select = || known(selected(pid, value(0), [value(1), value(2)]));
    let epoll = || known(watched(pid, value(0) as i32));
    match call.number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
            Blocked::On(vec![read(0)])
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_vmsplice | libc::SYS_sendto | libc::SYS_sendmsg => {
            Blocked::On(vec![write(0)])
        }
        // These wait for one of both.
        libc::SYS_splice => Blocked::On(vec![read(0), write(2)]),
        libc::SYS_tee => Blocked::On(vec![read(0), write(1)]),
        libc::SYS_sendfile => Blocked::On(vec![read(1), write(0)]),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => epoll(),
        libc::SYS_ppoll => poll(),
        libc::SYS_pselect6 => select(),
        libc::SYS_wait4 | libc::SYS_waitid => Blocked::Children,
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => Blocked::Time,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => epoll(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => poll(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => select(),
        _ => Blocked::Other,
    }
}

/// By the function of the kernel in which it sleeps; of a running thread that is "0".
fn by_function(name: &str) -> Blocked {
    let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    match name.trim() {
        "" | "0" => Blocked::Nothing,
        _ if is(&["pipe_read"]) => Blocked::InRead,
        _ if is(&["pipe_write"]) => Blocked::InWrite,
        // Before Linux 5.5 readers and writers of pipes slept in one function.
        _ if is(&["pipe_wait", "poll", "select"]) => Blocked::InPoll,
        // Others have this in their names, too: futex_do_wait.
        name if name.split('.').next() == Some("do_wait") => Blocked::Children,
        _ if is(&["nanosleep"]) => Blocked::Time,
        _ => Blocked::Other,
    }
}

/// The descriptors that an epoll descriptor watches (proc_pid_fdinfo(5)).
pub(crate) fn watched(pid: i32, epoll: i32) -> Option<Vec<WatchedFd>> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).ok()?;
    let one = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = words.nth(1).and_then(|hex| u32::from_str_radix(hex, 16).ok())?;
        Some(WatchedFd { fd, reads: events & IN != 0, writes: events & OUT != 0 })
    };
    Some(text.lines().filter_map(one).collect())
}

/// The entries of poll(2), from the process's memory, which only a user who may trace it may read (proc_pid_mem(5)).
fn polled(pid: i32, array: u64, count: u64) -> Option<Vec<WatchedFd>> {
    let bytes = memory(pid, array, count.min(POLL_ENTRIES_MAX) * 8)?;
    let one = |entry: &[u8]| {
        let fd = i32::from_ne_bytes(entry.get(..4)?.try_into().ok()?);
        let events = u32::from(u16::from_ne_bytes(entry.get(4..6)?.try_into().ok()?));
        Some(WatchedFd { fd, reads: events & IN != 0, writes: events & OUT != 0 })
    };
    // Negative descriptors are ignored.
    Some(bytes.chunks_exact(8).filter_map(one).filter(|entry| entry.fd >= 0).collect())
}

/// The descriptors in the sets of select(2).
fn selected(pid: i32, count: u64, sets: [u64; 2]) -> Option<Vec<WatchedFd>> {
    let set = |address: u64| match address {
        0 => Some(Vec::new()),
        address => memory(pid, address, count.div_ceil(8).min(SET_BYTES_MAX)),
    };
    let [reads, writes] = [set(sets[0])?, set(sets[1])?];
    let is_in = |set: &[u8], fd: u64| set.get(fd as usize / 8).is_some_and(|byte| byte >> (fd % 8) & 1 != 0);
    let one = |fd: u64| WatchedFd { fd: fd as i32, reads: is_in(&reads, fd), writes: is_in(&writes, fd) };
    Some((0..count.min(SET_BYTES_MAX * 8)).map(one).filter(|one| one.reads || one.writes).collect())
}

/// Bytes of a process's memory (proc_pid_mem(5)).
pub(crate) fn memory(pid: i32, address: u64, bytes: u64) -> Option<Vec<u8>> {
    let mut read = vec![0; bytes as usize];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut read, address).ok()?;
    Some(read)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// What a script of Python waits for that never gets anything.
    fn waits(script: &str) -> Blocked {
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let (pid, folder) = (child.id() as i32, format!("/proc/{}", child.id()));
        let mut ready = [0];
        std::io::Read::read(child.stdout.as_mut().expect("piped"), &mut ready).expect("it says when");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = at(pid, &folder);
        while !matches!(seen, Some(Blocked::On(_) | Blocked::Time)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
            seen = at(pid, &folder);
        }
        child.kill().and_then(|()| child.wait()).expect("ended");
        seen.expect("it lived")
    }

    #[test]
    fn descriptors_of_poll_epoll_and_select_are_known() {
        let begin = "import os, select, time; os.write(1, b'.')";
        let both = vec![
            WatchedFd { fd: 0, reads: true, writes: false },
            WatchedFd { fd: 9, reads: true, writes: false },
        ];
        let poll =
            "os.dup2(0, 9); p = select.POLLER(); [p.register(fd, select.EPOLLIN) for fd in (0, 9)]; p.poll()";
        let cases = [
            (poll.replace("POLLER", "poll"), Blocked::On(both.clone())),
            (poll.replace("POLLER", "epoll"), Blocked::On(both.clone())),
            ("os.dup2(0, 9); select.select([0, 9], [], [])".to_owned(), Blocked::On(both.clone())),
            ("os.read(0, 1)".to_owned(), Blocked::On(both[..1].to_vec())),
            ("select.poll().poll(100000)".to_owned(), Blocked::Time),
            ("time.sleep(100)".to_owned(), Blocked::Time),
        ];
        for (script, expected) in cases {
            assert_eq!(waits(&format!("{begin}; {script}")), expected, "{script}");
        }
    }

    fn reads(fd: i32) -> WatchedFd {
        WatchedFd { fd, reads: true, writes: false }
    }

    fn writes(fd: i32) -> WatchedFd {
        WatchedFd { fd, reads: false, writes: true }
    }

    #[test]
    fn a_reader_a_writer_and_a_sleeper_are_distinguished() {
        for (program, expected) in [
            ("exec cat", Blocked::On(vec![reads(0)])),
            ("exec yes", Blocked::On(vec![writes(1)])),
            ("while :; do :; done", Blocked::Nothing),
            ("exec sleep 100", Blocked::Time),
        ] {
            let mut child = Command::new("sh")
                .args(["-c", program])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("started");
            let (pid, folder) = (child.id() as i32, format!("/proc/{}", child.id()));
            let deadline = Instant::now() + Duration::from_secs(20);
            let mut seen = at(pid, &folder);
            while seen.as_ref() != Some(&expected) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
                seen = at(pid, &folder);
            }
            child.kill().and_then(|()| child.wait()).expect("ended");
            assert_eq!((seen, at(pid, &folder)), (Some(expected), None), "{program}");
        }
    }

    #[test]
    fn texts_of_the_kernel_are_read() {
        assert_eq!(by_number(0, "running\n"), Blocked::Nothing);
        let splice = format!("{} 0x3 0x0 0x1 0x0 0x10000 0x1 0x7ffe 0x7f12\n", libc::SYS_splice);
        assert_eq!(by_number(0, &splice), Blocked::On(vec![reads(3), writes(1)]));
        assert_eq!(by_number(0, "-1 0x7ffe 0x7f12"), Blocked::Other);
        assert_eq!(by_number(0, ""), Blocked::Other);
        let functions = ["0", "anon_pipe_write", "pipe_read", "do_sys_poll", "do_wait"].map(by_function);
        assert_eq!(
            functions,
            [Blocked::Nothing, Blocked::InWrite, Blocked::InRead, Blocked::InPoll, Blocked::Children]
        );
    }
}
