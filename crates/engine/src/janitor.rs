//! The janitor: a process that outlives this one for as long as it takes to remove what was left behind.
//!
//! Everything a run makes is owned by a value whose drop removes it, and a caught signal takes the same road.
//! SIGKILL runs no destructor: then the janitor, in a session of its own, hears that its maker is gone and
//! removes the announced paths and the message queues.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use mechanism::Announcement;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, setsid, waitpid};

/// A running janitor. Dropping it sends it home.
pub struct Janitor {
    pid: Option<Pid>,
}

impl Janitor {
    /// Starts the janitor, and waits until it is out of reach. Call it before there is any other thread or any open
    /// resource, and before signals are caught: one that ends the janitor on its way out then ends this process, too.
    ///
    /// # Errors
    /// What pipe2(2) or fork(2) answered; [`io::ErrorKind::UnexpectedEof`] where the janitor was ended.
    pub fn start() -> io::Result<Self> {
        let (listens, hears) = pipe_with(PipeFlags::CLOEXEC)?;
        let (outside, tells) = pipe_with(PipeFlags::CLOEXEC)?;
        let maker = std::process::id();
        // SAFETY: this process has one thread, so the child may go on as any process.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((hears, outside));
                clean_up_after(maker, listens, tells);
                // SAFETY: leaves at once; destructors and exit handlers belong to the parent.
                unsafe { libc::_exit(0) }
            }
            pid => {
                drop((listens, tells));
                let janitor = Self { pid: Pid::from_raw(pid) };
                fs::File::from(outside).read_exact(&mut [0])?;
                mechanism::announce_leftovers_to(hears);
                Ok(janitor)
            }
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        mechanism::stop_announcing();
        if let Some(pid) = self.pid.take() {
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

fn clean_up_after(maker: u32, listens: OwnedFd, tells: OwnedFd) {
    // A signal to the maker's process group, Ctrl-C above all, is not for the janitor.
    let _ = setsid();
    let _ = rustix::io::write(&tells, &[1]);
    drop(tells);
    let _ = rustix::thread::set_name(c"hosepipe-clean");
    release_standard_streams();
    let mut announced = Vec::new();
    if fs::File::from(listens).read_to_end(&mut announced).is_err() {
        return;
    }
    for (what, path) in standing(&announced) {
        // What is gone already, as almost always, is no error.
        let _ = match what {
            Announcement::Folder => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
    }
    mechanism::remove_message_queues_of(maker);
}

/// The announcements that were not withdrawn. One that was cut off by its maker's death is left alone: half a path
/// may be another path.
fn standing(announced: &[u8]) -> Vec<(Announcement, PathBuf)> {
    let whole =
        announced.iter().rposition(|byte| *byte == 0).map_or(&announced[..0], |end| &announced[..end]);
    let mut standing: Vec<(Announcement, PathBuf)> = Vec::new();
    for message in whole.split(|byte| *byte == 0) {
        let Some((letter, path)) = message.split_first() else { continue };
        let path = PathBuf::from(OsStr::from_bytes(path));
        match [Announcement::File, Announcement::Folder].into_iter().find(|what| what.letter() == *letter) {
            Some(what) => standing.push((what, path)),
            None => standing.retain(|(_, other)| *other != path),
        }
    }
    standing
}

/// Whoever waits for the end of this program's output must not wait for the janitor.
fn release_standard_streams() {
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_and_standing_announcements_count() {
        let announced = b"f/a\nb\0d/c\0f/gone\0-/gone\0f/cut off";
        let expected =
            vec![(Announcement::File, PathBuf::from("/a\nb")), (Announcement::Folder, PathBuf::from("/c"))];
        assert_eq!(standing(announced), expected);
        assert_eq!(standing(b""), Vec::new());
    }
}
