//! The processes that hold a link's file open for writing, found in /proc (proc(5)), and how they are stopped.
//!
//! Whoever holds the file has it from us: it has no name, or one that only this user may open. So it does not
//! matter whose child a writer is by now; over a pipe SIGPIPE reaches it too.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, Stat, fstat};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, pidfd_open, pidfd_send_signal, prlimit};

use crate::supervise::read_io;

/// How long a writer may go on after SIGPIPE, which it can ignore.
const PATIENCE: Duration = Duration::from_millis(100);

/// After this many looks in vain for the one that writes, all who could are stopped.
const LOOKS_IN_VAIN: u32 = 3;

/// The holders of a file, and what each has written so far.
pub(super) struct Holders {
    file: Stat,
    /// The last part of the path that /proc shows for the file, whether it has a name or not.
    shown_as: String,
    known: HashMap<i32, Known>,
    looks_in_vain: u32,
}

#[derive(Default)]
struct Known {
    /// Bytes written to anything, when last seen; `None` where it may not be asked.
    written_bytes: Option<u64>,
    signalled: Option<Instant>,
}

impl Holders {
    /// Notes who holds the file now. From here on, those who have written more are taken for its writers.
    ///
    /// # Errors
    /// What fstat(2) answers.
    pub(super) fn of(file: &OwnedFd) -> io::Result<Self> {
        let shown_as = last_part(&format!("/proc/self/fd/{}", file.as_raw_fd()));
        let mut holders = Self {
            file: fstat(file)?,
            shown_as: shown_as.ok_or(io::ErrorKind::NotFound)?,
            known: HashMap::new(),
            looks_in_vain: 0,
        };
        for pid in holders.find() {
            let known = Known { written_bytes: written_bytes(pid), signalled: None };
            holders.known.insert(pid.as_raw_pid(), known);
        }
        Ok(holders)
    }

    /// The file has grown: stops those who wrote to it.
    ///
    /// The kernel does not say who it was. A holder that has written nothing since the last look (a shell that
    /// waits for its child) is left alone, as it would be over a pipe.
    pub(super) fn stop_writing(&mut self) {
        let holders = self.find();
        let mut wrote: Vec<Pid> = holders.iter().copied().filter(|pid| self.has_written(*pid)).collect();
        self.looks_in_vain = if wrote.is_empty() { self.looks_in_vain + 1 } else { 0 };
        // Bytes that were spliced are not counted.
        if self.looks_in_vain >= LOOKS_IN_VAIN {
            wrote = holders;
        }
        for pid in wrote {
            self.stop(pid);
        }
    }

    /// Whether a holder has written since the last look, or might have. One that is new has written all it ever did.
    fn has_written(&mut self, pid: Pid) -> bool {
        let now = written_bytes(pid);
        let fresh = Known { written_bytes: Some(0), signalled: None };
        let known = self.known.entry(pid.as_raw_pid()).or_insert(fresh);
        let before = std::mem::replace(&mut known.written_bytes, now);
        match (before, now) {
            (Some(before), Some(now)) => now > before,
            _ => true,
        }
    }

    /// First SIGPIPE. To a writer that ignores it a pipe would say EPIPE; a file says EFBIG at best, once its
    /// process may write no files any more (setrlimit(2), RLIMIT_FSIZE).
    fn stop(&mut self, pid: Pid) {
        // The number may be another process's by now; the descriptor, once the process still holds the file, is not.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if !self.is_held_by(pid) {
            return;
        }
        let known = self.known.entry(pid.as_raw_pid()).or_default();
        match known.signalled {
            Some(since) if since.elapsed() > PATIENCE => {
                let nothing = Rlimit { current: Some(0), maximum: Some(0) };
                // A writer beyond our reach goes on; what it writes is thrown away.
                let _ = prlimit(Some(pid), Resource::Fsize, nothing);
            }
            Some(_) => {}
            None => {
                known.signalled = Some(Instant::now());
                // As above.
                let _ = pidfd_send_signal(&process, Signal::PIPE);
            }
        }
    }

    /// Every process, this one apart, that holds the file open for writing.
    fn find(&self) -> Vec<Pid> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let own = std::process::id().cast_signed();
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| *pid != own)
            .filter_map(Pid::from_raw)
            .filter(|pid| self.is_held_by(*pid))
            .collect()
    }

    fn is_held_by(&self, pid: Pid) -> bool {
        let process = format!("/proc/{}", pid.as_raw_pid());
        // Somebody else's process, or one that has just gone.
        let Ok(entries) = fs::read_dir(format!("{process}/fd")) else { return false };
        let descriptors = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        descriptors.into_iter().any(|fd| self.is_this_file(&process, &fd) && is_for_writing(&process, &fd))
    }

    /// Compares what /proc shows before it asks the file itself: asking one on a dead network disk may take forever.
    fn is_this_file(&self, process: &str, fd: &str) -> bool {
        let path = format!("{process}/fd/{fd}");
        last_part(&path).is_some_and(|shown_as| shown_as == self.shown_as)
            && fs::metadata(&path)
                .is_ok_and(|file| file.ino() == self.file.st_ino && file.dev() == self.file.st_dev)
    }
}

/// The last part of the path that a descriptor shows.
fn last_part(link: &str) -> Option<String> {
    let shown = fs::read_link(Path::new(link)).ok()?;
    shown.file_name()?.to_str().map(str::to_owned)
}

fn is_for_writing(process: &str, fd: &str) -> bool {
    let text = fs::read_to_string(format!("{process}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| OFlags::from_bits_retain(flags).intersects(OFlags::WRONLY | OFlags::RDWR))
}

/// Bytes that a process has handed to write(2) and its kin.
fn written_bytes(pid: Pid) -> Option<u64> {
    Some(read_io(pid.as_raw_pid())?.written_bytes)
}
