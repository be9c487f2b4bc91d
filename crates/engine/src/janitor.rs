//! The janitor: a process that outlives this one for as long as it takes to remove what was left behind.
//!
//! Everything a run makes is owned by a value whose drop removes it, and a caught signal takes the same road.
//! SIGKILL runs no destructor: then the janitor, in a session of its own, hears that its maker is gone and
//! removes the announced paths and the message queues.
#![allow(unsafe_code)]

use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, setsid, waitpid};

/// A running janitor. Dropping it sends it home.
pub struct Janitor {
    pid: Option<Pid>,
}

impl Janitor {
    /// Starts the janitor. Call it before there is any other thread or any open resource.
    ///
    /// # Errors
    /// What pipe2(2) or fork(2) answered.
    pub fn start() -> io::Result<Self> {
        let (listens, hears) = pipe_with(PipeFlags::CLOEXEC)?;
        let maker = std::process::id();
        // SAFETY: this process has one thread, so the child may go on as any process.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(hears);
                clean_up_after(maker, listens);
                // SAFETY: leaves at once; destructors and exit handlers belong to the parent.
                unsafe { libc::_exit(0) }
            }
            pid => {
                drop(listens);
                mechanism::announce_leftovers_to(hears);
                Ok(Self { pid: Pid::from_raw(pid) })
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

fn clean_up_after(maker: u32, listens: OwnedFd) {
    let _ = rustix::thread::set_name(c"hosepipe-clean");
    // A signal to the maker's process group, Ctrl-C above all, is not for the janitor.
    let _ = setsid();
    release_standard_streams();
    let mut announced = Vec::new();
    if fs::File::from(listens).read_to_end(&mut announced).is_err() {
        return;
    }
    for line in announced.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(line));
        // What is gone already, as almost always, is no error; a folder goes with all that is in it.
        if fs::remove_file(&path).is_err() {
            let _ = fs::remove_dir_all(&path);
        }
    }
    mechanism::remove_message_queues_of(maker);
}

/// Whoever waits for the end of this program's output must not wait for the janitor.
fn release_standard_streams() {
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
