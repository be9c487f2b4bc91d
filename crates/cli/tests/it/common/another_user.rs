//! Runs as another user, and pipes that are charged to one: fs.pipe-user-pages-soft counts the pages of all pipes that
//! a user has made, also those that another user holds.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use super::Lab;

/// What a pipe holds that was made without a limit in the way, in bytes.
const ORDINARY_BYTES: usize = 64 << 10;
/// The largest pipe of an ordinary user, unless fs.pipe-max-size was changed.
const LARGE_BYTES: usize = 1 << 20;
/// More of them than the largest budget that is worth spending here (the kernel's default is 64).
const PIPES_MAX: usize = 256;

/// Whether this user may see what processes of other users have open. Root may, except in most containers.
pub(crate) fn are_seen() -> bool {
    let seen = process::proc::has_ptrace_capability();
    assert!(seen || !super::is_root() || std::env::var_os("CI").is_none(), "root in CI has CAP_SYS_PTRACE");
    seen
}

/// A script of the shell, run by the user `id`: `./program` is a copy of hosepipe that anybody may run (the folder that
/// cargo builds in may be closed to others), and `"$@"` the arguments.
pub(crate) fn script(id: u32, lab: &Lab, script: &str, args: &[&str]) -> Command {
    // By another process: were the copy open for writing here, a test that starts something at that moment would
    // hold it open, and it could not be executed (ETXTBSY).
    let mut install = Command::new("install");
    install.args(["--mode=755", env!("CARGO_BIN_EXE_hosepipe")]).arg(lab.here("program"));
    assert!(install.status().expect("install").success());
    // What the wrapper is given as `$0` is the binary where cargo built it.
    let mut command = lab.wrapped(&["sh", "-c", script], args);
    command.uid(id).gid(id);
    command
}

/// Makes pipes as the user `id` until the user's budget is spent: until a new pipe is smaller than an ordinary
/// one. The budget is spent for as long as the result is kept.
pub(crate) fn spend_pipe_pages(id: u32) -> io::Result<Vec<OwnedFd>> {
    // A thread may have a user of its own, which ends with it; what it has opened stays.
    let spender = std::thread::spawn(move || {
        become_user(id)?;
        spend()
    });
    spender.join().map_err(|_| io::Error::other("the thread panicked"))?
}

fn spend() -> io::Result<Vec<OwnedFd>> {
    let mut held = Vec::new();
    for _ in 0..PIPES_MAX {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let spent = fcntl_getpipe_size(&writer)? < ORDINARY_BYTES;
        let mut bytes = LARGE_BYTES;
        // Refused near the end: what is left of the budget is spent in smaller pieces.
        while bytes > ORDINARY_BYTES && fcntl_setpipe_size(&writer, bytes).is_err() {
            bytes /= 2;
        }
        held.extend([reader, writer]);
        if spent {
            return Ok(held);
        }
    }
    Err(io::Error::other("the budget could not be spent: is fs.pipe-user-pages-soft 0 or very large?"))
}

/// Makes this thread alone another user's; setresuid(3) of the C library would change all threads.
fn become_user(id: u32) -> io::Result<()> {
    // SAFETY: system calls with numbers for arguments.
    let became = unsafe {
        libc::syscall(libc::SYS_setresgid, id, id, id) == 0
            && libc::syscall(libc::SYS_setresuid, id, id, id) == 0
    };
    if became { Ok(()) } else { Err(io::Error::last_os_error()) }
}
