//! For which descriptors a thread waits: what its system call says, and for poll, select and epoll what they were given.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::call::Call;

/// No more entries of poll(2) are read, and no more bytes of a set of select(2) (FD_SETSIZE is 1024).
const POLL_ENTRIES_MAX: u64 = 4096;
const SET_BYTES_MAX: u64 = 8192;
/// What is waited for (poll(2), epoll_ctl(2): the same bits).
const IN: u32 = libc::POLLIN as u32;
const OUT: u32 = libc::POLLOUT as u32;

/// A descriptor that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// Its number.
    pub fd: i32,
    /// Until there is something to be read.
    pub reads: bool,
    /// Until there is room.
    pub writes: bool,
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// Nothing: it runs.
    Not,
    /// The first of these descriptors.
    For(Vec<Awaited>),
    /// Something to be read from a pipe; from which one is not known.
    ToRead,
    /// Room in a pipe; in which one is not known.
    ToWrite,
    /// One of several descriptors; which ones is not known.
    Somewhere,
    /// A child of its own.
    Children,
    /// Time to pass.
    Time,
    /// Something else.
    Other,
}

/// What the thread, or the first thread of the process, waits for whose folder this is; `None` where it has gone or may not be looked at.
pub fn at(pid: i32, folder: &str) -> Option<Waits> {
    Call::at(folder).map(|call| of_call(pid, call))
}

/// What a thread of a process waits for that is in this call.
pub fn of_call(pid: i32, call: Call) -> Waits {
    let fd = |fd, reads| Awaited { fd, reads, writes: !reads };
    match call {
        Call::Runs => Waits::Not,
        Call::Reads(Some(number)) => Waits::For(vec![fd(number, true)]),
        Call::Writes(Some(number)) => Waits::For(vec![fd(number, false)]),
        Call::Moves { from, to } => Waits::For(vec![fd(from, true), fd(to, false)]),
        Call::Reads(None) => Waits::ToRead,
        Call::Writes(None) => Waits::ToWrite,
        Call::Polls(None) => Waits::Somewhere,
        Call::Polls(Some(epoll)) => watched(pid, epoll).map_or(Waits::Somewhere, Waits::For),
        Call::Poll { count: 0, .. } | Call::Sleeps => Waits::Time,
        Call::Poll { array, count } => polled(pid, array, count).map_or(Waits::Somewhere, Waits::For),
        Call::Select { count, reads, writes } => {
            selected(pid, count, [reads, writes]).map_or(Waits::Somewhere, Waits::For)
        }
        Call::Children => Waits::Children,
        Call::Other => Waits::Other,
    }
}

/// An epoll descriptor says what it watches (proc_pid_fdinfo(5)).
fn watched(pid: i32, epoll: i32) -> Option<Vec<Awaited>> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).ok()?;
    let one = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = words.nth(1).and_then(|hex| u32::from_str_radix(hex, 16).ok())?;
        Some(Awaited { fd, reads: events & IN != 0, writes: events & OUT != 0 })
    };
    Some(text.lines().filter_map(one).collect())
}

/// The entries that poll(2) was given lie in the process's memory, where only who might trace it may read (proc_pid_mem(5)).
fn polled(pid: i32, array: u64, count: u64) -> Option<Vec<Awaited>> {
    let bytes = memory(pid, array, count.min(POLL_ENTRIES_MAX) * 8)?;
    let one = |entry: &[u8]| {
        let fd = i32::from_ne_bytes(entry.get(..4)?.try_into().ok()?);
        let events = u32::from(u16::from_ne_bytes(entry.get(4..6)?.try_into().ok()?));
        Some(Awaited { fd, reads: events & IN != 0, writes: events & OUT != 0 })
    };
    // A negative descriptor is passed over.
    Some(bytes.chunks_exact(8).filter_map(one).filter(|entry| entry.fd >= 0).collect())
}

/// The same for the sets of select(2), bit by bit.
fn selected(pid: i32, count: u64, sets: [u64; 2]) -> Option<Vec<Awaited>> {
    let set = |address: u64| match address {
        0 => Some(Vec::new()),
        address => memory(pid, address, count.div_ceil(8).min(SET_BYTES_MAX)),
    };
    let [reads, writes] = [set(sets[0])?, set(sets[1])?];
    let is_in = |set: &[u8], fd: u64| set.get(fd as usize / 8).is_some_and(|byte| byte >> (fd % 8) & 1 != 0);
    let one = |fd: u64| Awaited { fd: fd as i32, reads: is_in(&reads, fd), writes: is_in(&writes, fd) };
    Some((0..count.min(SET_BYTES_MAX * 8)).map(one).filter(|one| one.reads || one.writes).collect())
}

fn memory(pid: i32, address: u64, bytes: u64) -> Option<Vec<u8>> {
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
    fn waits(script: &str) -> Waits {
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let (pid, folder) = (child.id() as i32, format!("/proc/{}", child.id()));
        let mut ready = [0];
        std::io::Read::read(child.stdout.as_mut().expect("piped"), &mut ready).expect("it says when");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut seen = at(pid, &folder);
        while !matches!(seen, Some(Waits::For(_) | Waits::Time)) && Instant::now() < deadline {
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
            Awaited { fd: 0, reads: true, writes: false },
            Awaited { fd: 9, reads: true, writes: false },
        ];
        let poll =
            "os.dup2(0, 9); p = select.POLLER(); [p.register(fd, select.EPOLLIN) for fd in (0, 9)]; p.poll()";
        let cases = [
            (poll.replace("POLLER", "poll"), Waits::For(both.clone())),
            (poll.replace("POLLER", "epoll"), Waits::For(both.clone())),
            ("os.dup2(0, 9); select.select([0, 9], [], [])".to_owned(), Waits::For(both.clone())),
            ("os.read(0, 1)".to_owned(), Waits::For(both[..1].to_vec())),
            ("select.poll().poll(100000)".to_owned(), Waits::Time),
            ("time.sleep(100)".to_owned(), Waits::Time),
        ];
        for (script, expected) in cases {
            assert_eq!(waits(&format!("{begin}; {script}")), expected, "{script}");
        }
    }
}
