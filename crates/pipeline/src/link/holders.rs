//! Finds the processes that have a link's file open for writing, and stops them.
//!
//! All of them got the file from this process: it has no name, or a name that only this user may open. So SIGPIPE may be sent to each of them, as
//! for a pipe, even if its parent has changed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use process::proc::{self, Stat};
use rustix::fs::OFlags;
use rustix::process::Signal;

use observe::open_file::OpenFile;

/// Longest time for which a writer may continue after SIGPIPE, which it can ignore.
const SIGPIPE_WAIT: Duration = Duration::from_millis(100);

/// Longest time for which writes may continue if their writer is not found. It may be another user's process, whose descriptors are not shown. (A
/// series of short-lived writers is not found either, but has pauses of at least [`WRITER_PAUSE`].)
const HIDDEN_WRITER_WAIT: Duration = Duration::from_secs(1);
const WRITER_PAUSE: Duration = Duration::from_millis(50);

/// Longest time until the kernel has counted bytes that are in the file. It counts them at the end of write(2), and before that a writer may
/// lose its CPU, for example to the process that watches the file.
const COUNTED_WITHIN: Duration = Duration::from_millis(20);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The result of an attempt to stop writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// The writers were sent SIGPIPE, or were not found yet.
    MayEnd,
    /// A writer continues although SIGPIPE was sent long ago, or cannot be sent.
    Continues,
}

/// The processes that have a file open for writing, and the bytes that each has written so far.
pub(super) struct Holders {
    file: OpenFile,
    known: HashMap<i32, Known>,
    /// Those of them that had another file open for writing at some search.
    elsewhere: HashSet<i32>,
    /// The first and the last of the latest searches that found no writer.
    no_writer_found: Option<(Instant, Instant)>,
}

#[derive(Default)]
struct Known {
    /// Bytes that each thread had written to any file at the last search; `None` if that may not be read.
    written_bytes: Option<Threads>,
    /// Bytes that reaped children had written.
    reaped_bytes: Option<u64>,
    /// Whether `reaped_bytes` had increased at the last search, or may have increased.
    children_wrote: bool,
    parent: Option<i32>,
    signalled: Option<Instant>,
}

impl Known {
    fn of(pid: i32) -> Self {
        let written_bytes = written_bytes(pid);
        let reaped_bytes = reaped_bytes(pid, written_bytes.as_ref());
        let parent = Stat::of(pid).map(|stat| stat.parent);
        Self { written_bytes, reaped_bytes, children_wrote: true, parent, signalled: None }
    }
}

/// Bytes by the numbers of threads.
type Threads = HashMap<i32, u64>;

impl Holders {
    /// Finds the processes that have the file open now. Those that later write more bytes count as its writers.
    pub(super) fn find_for(file: &OwnedFd) -> io::Result<Self> {
        let file = OpenFile::of(std::process::id().cast_signed(), file.as_raw_fd());
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        let mut holders =
            Self { file, known: HashMap::new(), elsewhere: HashSet::new(), no_writer_found: None };
        holders.known = holders.find().into_iter().map(|pid| (pid, Known::of(pid))).collect();
        Ok(holders)
    }

    /// Sends SIGPIPE to the writers of the file, once to each, because it has grown by `grown_bytes`.
    ///
    /// The kernel does not show which process wrote. A process that has written nothing since the last search (a shell that waits for its child)
    /// gets no signal, as over a pipe. No process gets a signal if all of them together have written less than the file has grown: then the writer
    /// has ended meanwhile, and their bytes may belong to other files.
    pub(super) fn stop_writing(&mut self, grown_bytes: u64) -> Writing {
        self.stop_writing_once_counted(grown_bytes, COUNTED_WITHIN)
    }

    /// The same, with the longest time until the bytes are counted.
    fn stop_writing_once_counted(&mut self, grown_bytes: u64, counted_within: Duration) -> Writing {
        let began = Instant::now();
        let mut wrote = HashMap::new();
        loop {
            let Some(written_bytes) = self.add_written(&mut wrote) else {
                // The bytes may be those of a process that has ended.
                return Writing::MayEnd;
            };
            // All bytes of a process that also writes to other files (split, tee) may be theirs: it is spared where those of the others suffice.
            // What all of them have open was inherited.
            let outputs: HashMap<i32, _> = wrote.keys().map(|pid| (*pid, self.other_outputs(*pid))).collect();
            let is_shared = |output: &PathBuf| outputs.values().all(|others| others.contains(output));
            let mut only_here = wrote.clone();
            only_here.retain(|pid, _| outputs[pid].iter().all(is_shared) && !self.elsewhere.contains(pid));
            // Between two files it has none.
            self.elsewhere.extend(wrote.keys().filter(|pid| !only_here.contains_key(pid)));
            let is_late = began.elapsed() >= counted_within;
            if sum(&only_here) >= grown_bytes {
                wrote = only_here;
                break;
            }
            if written_bytes >= grown_bytes && (is_late || only_here.is_empty()) {
                break;
            }
            if is_late {
                return self.found_no_writer(began);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        self.no_writer_found = None;
        let wrote = wrote.into_iter().filter(|(_, bytes)| *bytes > 0);
        // `count` is used because `any` would stop early: all writers must get the signal.
        let continues =
            wrote.map(|(pid, _)| self.send_sigpipe(pid)).filter(|continues| *continues).count() > 0;
        if continues { Writing::Continues } else { Writing::MayEnd }
    }

    /// Adds to each process what it has written since the last search, and returns the sum of all; `None` if one that may have written has ended.
    fn add_written(&mut self, wrote: &mut HashMap<i32, u64>) -> Option<u64> {
        let holders = self.find();
        for pid in &holders {
            let bytes = wrote.entry(*pid).or_default();
            *bytes = bytes.saturating_add(self.written_since(*pid));
        }
        let left: Vec<i32> = self.known.keys().copied().filter(|pid| !holders.contains(pid)).collect();
        let may_have_written = !left.iter().all(|pid| self.ended_without_writing(*pid));
        self.known.retain(|pid, _| holders.contains(pid));
        wrote.retain(|pid, _| holders.contains(pid));
        (!may_have_written).then(|| sum(wrote))
    }

    /// What a search without a result, begun at this time, says of the writer.
    fn found_no_writer(&mut self, began: Instant) -> Writing {
        let unbroken = self.no_writer_found.filter(|(_, last)| began - *last < WRITER_PAUSE);
        let first = unbroken.map_or(began, |(first, _)| first);
        self.no_writer_found = Some((first, Instant::now()));
        if began - first > HIDDEN_WRITER_WAIT { Writing::Continues } else { Writing::MayEnd }
    }

    /// Bytes that a process has written since the last search, to any file; `u64::MAX` if that is not known. All bytes of a new process count.
    fn written_since(&mut self, pid: i32) -> u64 {
        let now = Known::of(pid);
        let (written, reaped_bytes) = (now.written_bytes.clone(), now.reaped_bytes);
        let before = self.known.remove(&pid);
        let before =
            before.unwrap_or_else(|| Known { written_bytes: Some(Threads::new()), ..Known::default() });
        let children_wrote = reaped_bytes.is_none() || reaped_bytes != before.reaped_bytes;
        self.known.insert(pid, Known { children_wrote, signalled: before.signalled, ..now });
        let (Some(before), Some(now)) = (before.written_bytes, written) else { return u64::MAX };
        let since = |(thread, bytes): (&i32, &u64)| bytes.saturating_sub(*before.get(thread).unwrap_or(&0));
        // The kernel does not count spliced bytes.
        if self.is_splicing(pid) { u64::MAX } else { now.iter().map(since).sum() }
    }

    /// Whether a process has ended without writing since the last search: its parent has reaped it, and the parent's bytes of children have not
    /// increased.
    fn ended_without_writing(&self, pid: i32) -> bool {
        let parent = self.known.get(&pid).and_then(|gone| self.known.get(&gone.parent?));
        parent.is_some_and(|parent| !parent.children_wrote) && Stat::of(pid).is_none()
    }

    /// Sends SIGPIPE, once. Returns whether the process still continues after [`SIGPIPE_WAIT`].
    fn send_sigpipe(&mut self, pid: i32) -> bool {
        let known = self.known.entry(pid).or_default();
        if let Some(since) = known.signalled {
            return is_held_by(&self.file, pid) && since.elapsed() > SIGPIPE_WAIT;
        }
        let mut sent = None;
        proc::signal_if(pid, Signal::PIPE, || {
            let holds = is_held_by(&self.file, pid);
            sent = holds.then(Instant::now);
            holds
        });
        known.signalled = sent;
        false
    }

    /// The other files, pipes and sockets that a process has open for writing, beside its standard input and error: a terminal's or a socket's are
    /// open for both.
    fn other_outputs(&self, pid: i32) -> HashSet<PathBuf> {
        let others = proc::descriptors(pid)
            .filter(|fd| ![0, 2].contains(fd) && !self.file.is(pid, *fd) && is_for_writing(pid, *fd));
        let targets = others.filter_map(|fd| fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok());
        let begins =
            |target: &PathBuf, with: &str| target.as_os_str().as_encoded_bytes().starts_with(with.as_bytes());
        targets
            .filter(|target| {
                ["/", "pipe:", "socket:"].iter().any(|with| begins(target, with)) && !begins(target, "/dev/")
            })
            .collect()
    }

    /// Whether a thread of the process is in a call that moves bytes into the file without write(2) (proc_pid_syscall(5)), or in one that may do
    /// any operation.
    fn is_splicing(&self, pid: i32) -> bool {
        let calls = proc::threads(pid).filter_map(|(_, thread)| fs::read_to_string(thread + "/syscall").ok());
        calls.into_iter().any(|call| {
            let words: Vec<&str> = call.split_whitespace().collect();
            let number = words.first().and_then(|word| word.parse::<libc::c_long>().ok());
            let at = match number {
                Some(libc::SYS_splice) => 3,
                Some(libc::SYS_sendfile) => 1,
                other => return other == Some(libc::SYS_io_uring_enter),
            };
            let fd =
                words.get(at).and_then(|word| i32::from_str_radix(word.trim_start_matches("0x"), 16).ok());
            fd.is_some_and(|fd| self.file.is(pid, fd))
        })
    }

    /// Every other process that has the file open for writing.
    fn find(&self) -> Vec<i32> {
        proc::other_processes().filter(|pid| is_held_by(&self.file, *pid)).collect()
    }
}

fn sum(wrote: &HashMap<i32, u64>) -> u64 {
    wrote.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Whether another process whose descriptors this user may read has the file open for writing.
pub(super) fn is_written(file: &OwnedFd) -> bool {
    let file = OpenFile::of(std::process::id().cast_signed(), file.as_raw_fd());
    file.is_some_and(|file| proc::other_processes().any(|pid| is_held_by(&file, pid)))
}

fn is_held_by(file: &OpenFile, pid: i32) -> bool {
    proc::descriptors(pid).any(|fd| file.is(pid, fd) && is_for_writing(pid, fd))
}

fn is_for_writing(pid: i32, fd: i32) -> bool {
    let flags = proc::field_value(&format!("/proc/{pid}/fdinfo/{fd}"), "flags");
    let flags = flags.and_then(|flags| u32::from_str_radix(&flags, 8).ok());
    flags.is_some_and(|flags| OFlags::from_bits_retain(flags).intersects(OFlags::WRONLY | OFlags::RDWR))
}

/// Bytes that the reaped children of a process, and its ended threads, have written: the bytes of the process minus those of its threads.
fn reaped_bytes(pid: i32, own: Option<&Threads>) -> Option<u64> {
    let all: u64 = proc::field_value(&format!("/proc/{pid}/io"), "wchar")?.parse().ok()?;
    all.checked_sub(own?.values().sum())
}

/// Bytes that each thread of a process has written with write(2) and similar calls (proc_pid_io(5)). The process's own number includes those of
/// reaped children.
fn written_bytes(pid: i32) -> Option<Threads> {
    let count = |(thread, folder): (i32, String)| {
        Some((thread, proc::field_value(&(folder + "/io"), "wchar")?.parse().ok()?))
    };
    Some(proc::threads(pid).filter_map(count).collect::<Threads>()).filter(|threads| !threads.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use crate::testing::{PATIENCE, until};

    /// A shell that has opened a file for writing, and the holders of that file then. It opens the file itself, so that no process that another
    /// test starts meanwhile has it for a moment.
    fn writing_shell(folder: &Path, text: &str) -> (Child, Holders) {
        let [path, begun] = ["file", "begun"].map(|name| folder.join(name));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec >> file; {text}")]).current_dir(folder);
        let started = shell.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("sh");
        until(|| begun.exists());
        let file = OwnedFd::from(File::open(&path).expect("the file"));
        (started, Holders::find_for(&file).expect("looked for"))
    }

    fn go(shell: &mut Child) {
        shell.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("written");
    }

    /// Expected: a writer is found whose child has ended meanwhile without having written anything, as in a loop of `echo` and `sleep`.
    /// Happened: the child was taken for the writer, and the loop went on until no child had gone between two looks.
    #[test]
    fn a_child_that_ended_without_writing_hides_no_writer() {
        let folder = tempfile::tempdir().expect("temp dir");
        let text = "sleep 1000 & child=$!; : >> begun; read go; kill $child; wait $child; echo x; read end";
        let (mut shell, mut holders) = writing_shell(folder.path(), text);
        go(&mut shell);
        until(|| fs::metadata(folder.path().join("file")).is_ok_and(|file| file.len() == 2));
        assert_eq!(holders.stop_writing_once_counted(2, PATIENCE), Writing::MayEnd);
        assert_eq!(shell.wait().expect("waited for").signal(), Some(libc::SIGPIPE));
    }

    /// Expected: of two holders only the one gets the signal that has nowhere else to write. Happened: `split` was killed, which wrote to its own
    /// files, while `yes` beside it wrote to the link.
    #[test]
    fn a_holder_that_writes_to_other_files_is_spared() {
        let folder = tempfile::tempdir().expect("temp dir");
        let text = "exec 3<&0; sh -c 'exec 5>apart; read go; echo apart >&5; : >> wrote; exec sleep 100' <&3 & \
                    : >> begun; until [ -e wrote ]; do :; done; echo x; wait $!";
        let (mut shell, mut holders) = writing_shell(folder.path(), text);
        go(&mut shell);
        until(|| fs::metadata(folder.path().join("file")).is_ok_and(|file| file.len() == 2));
        assert_eq!(holders.stop_writing_once_counted(2, PATIENCE), Writing::MayEnd);
        assert_eq!(shell.wait().expect("waited for").signal(), Some(libc::SIGPIPE));
        let spared: Vec<i32> = holders.find().into_iter().filter(|pid| !proc::has_ended(*pid)).collect();
        assert_eq!(spared.len(), 1, "the one that writes elsewhere goes on");
        proc::signal_if(spared[0], Signal::KILL, || is_held_by(&holders.file, spared[0]));
    }

    /// Expected: bytes that are in the file and not counted yet have a writer. Here they are not even written yet.
    /// Happened: on a busy machine the writer of a single line was not found, and went on.
    #[test]
    fn a_writer_is_found_whose_bytes_are_counted_late() {
        let folder = tempfile::tempdir().expect("temp dir");
        let (mut shell, mut holders) = writing_shell(folder.path(), ": >> begun; read go; echo x; read end");
        std::thread::scope(|both| {
            both.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                go(&mut shell);
            });
            assert_eq!(holders.stop_writing_once_counted(2, PATIENCE), Writing::MayEnd);
        });
        assert_eq!(shell.wait().expect("waited for").signal(), Some(libc::SIGPIPE));
    }
}
