//! The cleaner: a process that kills the processes and removes the files and queues that this process leaves when it is killed.
//!
//! Every resource is owned by a value whose drop ends or removes it, also after a caught signal. After SIGKILL no destructor runs. Then the
//! cleaner, which has a session of its own, notices that its maker (the process that started it) has ended, kills the
//! announced process groups and all other processes with its mark, and removes the announced paths.
//!
//! It is forked from a process that may have threads. Of such a process a child may allocate memory: glibc has always ensured that, musl since 1.2.2, and
//! POSIX asks for no less where no `_Fork` is called. It may not use what a lock of Rust's library protects: the standard streams and the environment.
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::{ForkResult, fork};
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, setsid, waitpid,
};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use rustix::thread::set_name;

use crate::announce::{Announcement, Announcer, write_whole};
use crate::marked::{CLEANER, VARIABLE, end_marked};
use crate::poll::ready_within;
use crate::proc::{Stat, descriptors};
use crate::queue::{remove_announced_key, unlink};
use crate::remove::{remove, remove_file};
use crate::signals::leave;
use crate::temporary::TemporaryPath;

/// A running cleaner. Dropping it ends it. The order of the fields matters, because they are dropped in this order: the pipe is closed before the
/// cleaner is waited for.
#[derive(Debug)]
pub struct Cleaner {
    announcer: Announcer,
    process: CleanerProcess,
    /// The prefix of all marks that it gives.
    name: String,
    marks: AtomicU64,
}

/// The mark of the processes of one run, in their environment.
#[derive(Debug, Clone)]
pub struct Mark(String);

impl Mark {
    /// The value of [`VARIABLE`].
    pub fn value(&self) -> &str {
        &self.0
    }

    /// Kills all processes that have it.
    pub fn end_all(&self) {
        end_marked(format!("{VARIABLE}={}\0", self.0).as_bytes());
    }
}

impl Cleaner {
    /// Starts a cleaner, and waits until it has left the process group. Must be called before resources are made and before signals are caught: a
    /// signal to the group that kills the cleaner early then also kills this process.
    ///
    /// # Errors
    /// An error of pipe2(2) or fork(2); [`io::ErrorKind::UnexpectedEof`] if the cleaner was killed.
    pub fn start() -> io::Result<Self> {
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC)?;
        let (ready, says_ready) = pipe_with(PipeFlags::CLOEXEC)?;
        let name = format!("{}-{:016x}.", std::process::id(), fastrand::u64(..));
        // SAFETY: the child uses nothing that a lock of another thread may protect (see above).
        match unsafe { fork() }? {
            ForkResult::Child => {
                leave_process_group(&reads, &says_ready);
                clean_up(format!("{VARIABLE}={name}").as_bytes());
                leave(0)
            }
            ForkResult::Parent { child } => {
                drop((reads, says_ready));
                let pid = Pid::from_raw(child.as_raw());
                let process = CleanerProcess(pid.map(|pid| (pid, File::from(ready))));
                let cleaner =
                    Self { announcer: Announcer::over(writes), process, name, marks: AtomicU64::new(0) };
                cleaner.process.wait_until_ready()?;
                Ok(cleaner)
            }
        }
    }

    pub fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    /// Gives up the cleaner, which goes on for the other processes that announce to it: it ends after their [`Announcement::Over`], or after their
    /// end.
    pub fn detach(mut self) -> Option<DetachedCleaner> {
        self.process.0.take().map(|(pid, _)| DetachedCleaner(pid))
    }

    /// Makes a folder in the folder for temporary files.
    ///
    /// # Errors
    /// An error of mkdir(2).
    pub fn make_folder(&self) -> io::Result<TemporaryPath> {
        TemporaryPath::folder_in(&self.announcer, &std::path::absolute(model::temporary_folder())?)
    }

    /// A new mark, for the processes of one run.
    pub fn mark(&self) -> Mark {
        Mark(format!("{}{}", self.name, self.marks.fetch_add(1, Ordering::Relaxed)))
    }

    /// Announces a process group: the cleaner kills it if this process is killed. Its leader must not have been reaped.
    pub fn watch(&self, group: Pid) {
        let started = Stat::of(group.as_raw_nonzero().get()).map_or(0, |stat| stat.started_ticks);
        self.announcer.write(Announcement::Group, format!("{group} {started}").as_bytes());
    }

    /// Withdraws the announcement of a group that has ended, because its number can be reused.
    pub fn forget(&self, group: Pid) {
        self.announcer.write(Announcement::Withdrawn, group.to_string().as_bytes());
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        if self.process.0.is_some() {
            // Closing is not enough: a process that was forked meanwhile may have a copy of this end.
            self.announcer.write(Announcement::Over, b"");
        }
        self.announcer.close();
    }
}

/// The cleaner's process, and the pipe to which it writes one byte when it is ready, and at its end the name of each file, folder
/// and queue that it could not remove. Dropping this waits for its end and names those on standard error.
#[derive(Debug)]
struct CleanerProcess(Option<(Pid, File)>);

impl CleanerProcess {
    fn wait_until_ready(&self) -> io::Result<()> {
        let Some((_, pipe)) = &self.0 else { return Ok(()) };
        let mut pipe: &File = pipe;
        pipe.read_exact(&mut [0])
    }

    /// Waits for its end; gives the paths that it could not remove.
    fn end(&mut self) -> Vec<PathBuf> {
        let Some((pid, mut left)) = self.0.take() else { return Vec::new() };
        let _ = retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
        let (mut paths, mut part) = (Vec::new(), [0; 4096]);
        // If the cleaner is another process's child, waitpid(2) fails, and the end of the stream shows that it has ended. A process that was forked
        // meanwhile may have a copy of the other end of the pipe: then the stream does not end.
        while ready_within(&left, PollFlags::IN, Some(END_WAIT)).is_ok_and(|is_ready| is_ready) {
            match left.read(&mut part) {
                Ok(len @ 1..) => paths.extend_from_slice(&part[..len]),
                _ => break,
            }
        }
        let paths = paths.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        paths.map(|path| OsStr::from_bytes(path).into()).collect()
    }
}

impl Drop for CleanerProcess {
    fn drop(&mut self) {
        for path in self.end() {
            // If standard error is closed, the message is lost.
            let path = path.display();
            let _ = writeln!(io::stderr(), "hosepipe: {path} could not be removed: remove it by hand");
        }
    }
}

/// Longest time to wait for the end of a cleaner that is another process's child.
const END_WAIT: Duration = Duration::from_millis(20);

/// A cleaner that this process gave up. Dropping this waits for its end, for at most [`END_WAIT`], and reaps it: process 1 of a container may not
/// reap zombies.
#[derive(Debug)]
pub struct DetachedCleaner(Pid);

impl Drop for DetachedCleaner {
    fn drop(&mut self) {
        if let Ok(ended) = pidfd_open(self.0, PidfdFlags::empty()) {
            let _ = ready_within(&ended, PollFlags::IN, Some(END_WAIT));
        }
        let _ = waitpid(Some(self.0), WaitOptions::NOHANG);
    }
}

/// Leaves the maker's process group, because the cleaner must not get its signals (such as Ctrl-C), and closes its standard streams, because
/// their readers must not wait for the cleaner.
fn leave_process_group(reads: &OwnedFd, says_ready: &OwnedFd) {
    // The cleaner also works if these fail.
    let _ = setsid();
    let _ = set_name(CLEANER);
    // Without its pipes the cleaner cannot work. Its maker notices that it has ended.
    if dup2_stdin(reads).is_err() || dup2_stdout(says_ready).is_err() || write_whole(stdout(), &[0]).is_err()
    {
        leave(1);
    }
    // SAFETY: the descriptors are copies of the maker's, and are not used any more.
    if unsafe { libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0) } != 0 {
        close_all_from(2);
    }
    if let Ok(null) = open(c"/dev/null", OFlags::RDWR, Mode::empty()) {
        // It has the number 2, standard error.
        std::mem::forget(null);
    }
    // The maker reads only when this process has ended.
    let _ = fcntl_setfl(stdout(), OFlags::NONBLOCK);
}

/// As close_range(2), which came with Linux 5.9. An open pipe of the maker would hide its end from the other processes.
fn close_all_from(first: i32) {
    let open: Vec<i32> = descriptors(std::process::id().cast_signed()).filter(|fd| *fd >= first).collect();
    for fd in open {
        // SAFETY: as above. The descriptor by which the folder was read is closed already.
        unsafe { libc::close(fd) };
    }
}

/// Receives announcements until the maker ends, and then kills the processes and removes the files and queues that it has left.
fn clean_up(marks: &[u8]) {
    let mut announced = Announced::default();
    if !announced.listen(&mut BufReader::new(StandardInput)) {
        let groups = announced.0.iter().filter(|(letter, _)| *letter == Announcement::Group as u8);
        groups.for_each(|(_, group)| end_group(group));
        end_marked(marks);
    }
    for (letter, name) in announced.0 {
        let Ok(name) = CString::new(name) else { continue };
        // It is no error if a path does not exist any more.
        let is_gone = match letter {
            b'f' => remove_file(&name),
            b'd' => remove(&name),
            b'k' => remove_announced_key(&name),
            b'm' => unlink(&name),
            _ => true,
        };
        if !is_gone {
            let kind: &[u8] = match letter {
                b'k' => b"the System V message queue with the key ",
                b'm' => b"the POSIX message queue ",
                _ => b"",
            };
            let _ = write_whole(stdout(), &[kind, name.to_bytes_with_nul()].concat());
        }
    }
}

/// Kills a process group, which is given by the number and the start time of its leader. The maker was killed, so init has reaped the leader if it
/// has ended. If the process with the number was started at another time, the number was reused. If no process has the number, only this group
/// can have it, because a group number is not reused while the group has members (setpgid(2)).
fn end_group(group: &[u8]) {
    let Some((leader, started)) = std::str::from_utf8(group).ok().and_then(|group| group.split_once(' '))
    else {
        return;
    };
    let Some(leader) = leader.parse().ok().and_then(Pid::from_raw) else { return };
    let stat = Stat::of(leader.as_raw_nonzero().get());
    if stat.is_none_or(|stat| started.parse() == Ok(stat.started_ticks)) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// The standard input, without the lock of Rust's library.
struct StandardInput;

impl Read for StandardInput {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(stdin().as_fd(), room)?)
    }
}

/// The announcements that have not been withdrawn: the letter and the name of each.
#[derive(Default)]
struct Announced(Vec<(u8, Vec<u8>)>);

impl Announced {
    /// Receives announcements until the maker ends; returns whether it ended normally. An incomplete message, of a maker that was killed, is
    /// ignored: half a path may be another path.
    fn listen(&mut self, from: &mut impl BufRead) -> bool {
        let mut message = Vec::new();
        while from.read_until(0, &mut message).is_ok() && message.pop() == Some(0) {
            match message.split_first() {
                Some((letter, _)) if *letter == Announcement::Over as u8 => return true,
                Some((letter, name)) if *letter == Announcement::Withdrawn as u8 => self.withdraw(name),
                Some((letter, name)) => self.0.push((*letter, name.to_vec())),
                None => {}
            }
            message.clear();
        }
        false
    }

    fn withdraw(&mut self, name: &[u8]) {
        // A group is withdrawn by its number alone.
        let number = |had: &[u8]| had.split(|byte| *byte == b' ').next() == Some(name);
        let is_it = |(letter, had): &(u8, Vec<u8>)| {
            had == name || *letter == Announcement::Group as u8 && number(had)
        };
        if let Some(at) = self.0.iter().position(is_it) {
            self.0.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal::SIGUSR2, sigaction};

    use super::*;

    fn remaining_after(mut bytes: &[u8]) -> (Vec<(u8, String)>, bool) {
        let mut announced = Announced::default();
        let over = announced.listen(&mut bytes);
        let name = |(letter, name): (u8, Vec<u8>)| (letter, String::from_utf8_lossy(&name).into_owned());
        (announced.0.into_iter().map(name).collect(), over)
    }

    /// Expected: on a kernel without close_range(2), too, the cleaner keeps none of its maker's pipes open.
    #[test]
    fn all_descriptors_are_closed_without_close_range() {
        let files: Vec<File> = (0..300).map(|_| File::open("/dev/null").expect("a file")).collect();
        for file in &files {
            rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty()).expect("kept by execve");
        }
        let open = "for fd in \"$@\"; do [ ! -e /proc/$$/fd/$fd ] || exit 1; done";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", open, "sh"]).args(files.iter().map(|file| file.as_raw_fd().to_string()));
        // SAFETY: the closure makes only system calls; of the closed descriptors std only uses one, whose end says that the program runs.
        let shell = unsafe {
            shell.pre_exec(|| {
                close_all_from(3);
                Ok(())
            })
        };
        assert!(shell.status().expect("sh runs").success());
    }

    #[test]
    fn only_whole_announcements_that_were_not_withdrawn_count() {
        let expected = vec![(b'f', "/a\nb".to_owned()), (b'd', "/c".to_owned()), (b'g', "12 345".to_owned())];
        let announced = b"f/a\nb\0g1 23\0g7 999\0d/c\0f/gone\0-/gone\0g12 345\0-7\0-1\0-/never\0f/cut off";
        assert_eq!(remaining_after(announced), (expected, false));
        assert_eq!(remaining_after(b""), (Vec::new(), false));
        assert_eq!(remaining_after(b"f/q\0-/q\0f/kept\0q\0"), (vec![(b'f', "/kept".to_owned())], true));
    }

    /// Expected: a group is ended that was announced. Happened: so was one that has its number by now.
    #[test]
    fn a_number_that_is_anothers_by_now_is_left_alone() {
        let mut sleeper =
            std::process::Command::new("sleep").arg("1000").process_group(0).spawn().expect("sleep");
        let pid = sleeper.id().cast_signed();
        let started = Stat::of(pid).expect("it runs").started_ticks;
        let group = |started| format!("{pid} {started}").into_bytes();
        end_group(&group(started - 1));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(sleeper.try_wait().expect("looked at"), None);
        end_group(&group(started));
        assert_eq!(sleeper.wait().expect("waited for").signal(), Some(libc::SIGKILL));
    }

    /// Happened: after one interrupted waitpid(2) the cleaner was not waited for, and outlived its maker.
    #[test]
    fn its_end_is_waited_for_though_signals_interrupt() {
        extern "C" fn nothing(_: i32) {}
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(SIGUSR2, &action) }.expect("a handler");
        let (reads, _writes) = std::io::pipe().expect("a pipe");
        #[expect(clippy::zombie_processes, reason = "it is waited for as a cleaner is")]
        let child = std::process::Command::new("sleep").arg("0.3").spawn().expect("sleep");
        let pid = Pid::from_child(&child);
        // SAFETY: only the number of this thread.
        let (waits, is_over) = (unsafe { libc::pthread_self() }, AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // SAFETY: that thread does not end before this one.
                    unsafe { libc::pthread_kill(waits, libc::SIGUSR2) };
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            CleanerProcess(Some((pid, OwnedFd::from(reads).into()))).end();
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(Stat::of(child.id().cast_signed()).is_none(), "it was not waited for");
    }

    /// Happened: a folder was announced when it was there, and one whose maker was killed in between stayed.
    #[test]
    fn a_folder_is_announced_before_it_is_made() {
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let announcer = Announcer::over(writes);
        assert!(TemporaryPath::folder_in(&announcer, Path::new("/nonexistent")).is_err());
        drop(announcer);
        let mut announced = String::new();
        File::from(reads).read_to_string(&mut announced).expect("text");
        let letters: Vec<&str> = announced.split('\0').filter_map(|message| message.get(..1)).collect();
        assert_eq!(letters, ["d", "-"], "{announced}");
    }

    /// Expected: what the cleaner cannot remove is named. Happened: it stayed without a word.
    #[test]
    fn what_cannot_be_removed_is_named() {
        // The kernel lets no user remove a file of /proc.
        let (fixed, gone) = (Path::new("/proc/version"), Path::new("/nonexistent/file"));
        let mut cleaner = Cleaner::start().expect("a cleaner");
        cleaner.announcer.announce(Announcement::File, fixed);
        cleaner.announcer.announce(Announcement::File, gone);
        cleaner.announcer.announce(Announcement::Folder, gone);
        cleaner.announcer.write(Announcement::Over, b"");
        assert_eq!(cleaner.process.end(), [fixed]);
    }

    #[test]
    fn what_was_not_withdrawn_is_removed_in_the_end() {
        let lab = tempfile::tempdir().expect("a folder");
        let (file, folder) = (lab.path().join("file"), lab.path().join("folder"));
        std::fs::create_dir_all(folder.join("inner")).expect("made");
        std::fs::write(&file, "text").expect("written");
        let cleaner = Cleaner::start().expect("a cleaner");
        cleaner.announcer.announce(Announcement::File, &file);
        cleaner.announcer.announce(Announcement::Folder, &folder);
        drop(cleaner);
        assert!(!file.exists() && !folder.exists());
    }
}
