//! System calls that are refused to a program and to the programs that it starts: a filter of seccomp(2) returns ENOSYS, as a kernel
//! without these calls does.
#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use syscalls::Sysno;

use crate::signals::restore;
use crate::spawn::{Environment, spawn};

/// Calls that are to be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(Vec<Sysno>);

impl FromStr for Refused {
    type Err = String;

    /// Parses names that are separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let call = |name: &str| match Sysno::iter().find(|known| known.name() == name) {
            Some(Sysno::execve) => {
                Err("execve cannot be refused: it is needed to start the program".to_owned())
            }
            Some(call) => Ok(call),
            None => {
                let near = model::nearest(name, Sysno::iter().map(|known| known.name()));
                let near = near.map_or_else(String::new, |name| format!(": did you mean `{name}`?"));
                Err(format!("there is no system call `{name}`{near}"))
            }
        };
        text.split(',').map(|name| call(name.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(Sysno::name).collect();
        f.write_str(&names.join(","))
    }
}

impl Refused {
    /// A BPF program that filters `struct seccomp_data` (seccomp(2)). Calls of a 32-bit program have other numbers and are allowed; the crate
    /// seccompiler would have the kernel kill such a program.
    fn filter(&self) -> Vec<libc::sock_filter> {
        let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
        let answer = |what| step(libc::BPF_RET | libc::BPF_K, what, 0, 0);
        let is = |value, then, otherwise| {
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, then, otherwise)
        };
        let mut steps =
            vec![load(ARCHITECTURE_AT), is(ARCHITECTURE, 1, 0), answer(libc::SECCOMP_RET_ALLOW), load(0)];
        for call in &self.0 {
            steps.extend([is(call.id() as u32, 0, 1), answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32)]);
        }
        steps.push(answer(libc::SECCOMP_RET_ALLOW));
        steps
    }
}

fn step(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Starts a program as [`crate::spawn`] does, with these calls refused to it and to the programs that it starts.
///
/// # Errors
/// The error of execve(2), or of an earlier step in the child; EINVAL if the kernel has no seccomp(2).
pub fn spawn_refusing(
    path: &Path,
    words: &[OsString],
    environment: &Environment,
    copies: &[(OwnedFd, RawFd)],
    refused: Option<&Refused>,
) -> io::Result<i32> {
    let Some(refused) = refused else { return spawn(path, words, environment, copies) };
    let filter = refused.filter();
    let numbers: Vec<(RawFd, RawFd)> = copies.iter().map(|(fd, number)| (fd.as_raw_fd(), *number)).collect();
    let mut command = Command::new(path);
    let (name, arguments) = words.split_first().map_or((OsStr::new(""), words), |(name, rest)| (name, rest));
    command.arg0(name).args(arguments).env_clear().envs(environment.iter().cloned());
    let install = move || {
        for (from, to) in &numbers {
            // SAFETY: both are descriptors of this new process; all its descriptors are copies of the parent's.
            if unsafe { libc::dup2(*from, *to) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        restore();
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        let set = || {
            // SAFETY: the program and its steps exist until the call returns, and the kernel makes a copy.
            let done =
                unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        set().or_else(|error| match error.raw_os_error() {
            // Without CAP_SYS_ADMIN a filter requires no_new_privs, which makes set-user-ID programs run without their privileges.
            Some(libc::EACCES) => {
                // SAFETY: takes numbers only.
                unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
                set()
            }
            _ => Err(error),
        })
    };
    // SAFETY: between fork(2) and execve(2) the closure makes system calls only, and reads memory that was allocated before.
    unsafe { command.pre_exec(install) };
    Ok(command.spawn()?.id() as i32)
}

/// Offset of the architecture in `struct seccomp_data`. Its value (audit.h, `AUDIT_ARCH_…`) is the ELF machine number with two flag bits.
const ARCHITECTURE_AT: u32 = 4;
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_near_ones_suggested() {
        let read = |text: &str| text.parse::<Refused>();
        assert_eq!(read("splice, vmsplice").map(|calls| calls.to_string()), Ok("splice,vmsplice".to_owned()));
        assert_eq!("bogus".parse::<Refused>(), Err("there is no system call `bogus`".to_owned()));
        let near = "there is no system call `splise`: did you mean `splice`?";
        assert_eq!(read("splice,splise"), Err(near.to_owned()));
        assert_eq!(read(""), Err("there is no system call ``".to_owned()));
        assert!(read("execve").is_err_and(|problem| problem.contains("start the program")));
    }

    #[test]
    fn a_program_finds_a_refused_call_missing() {
        // mkdir(1) says what mkdir(2), or mkdirat(2), answers; a folder that exists would be EEXIST.
        let refused: Refused = "mkdir,mkdirat".parse().expect("calls");
        let shell = |text: &str, refused: &Refused| {
            let words = ["sh", "-c", text].map(OsString::from);
            let pid = spawn_refusing(
                Path::new("/bin/sh"),
                &words,
                &std::env::vars_os().collect(),
                &[],
                Some(refused),
            );
            let pid = rustix::process::Pid::from_raw(pid.expect("a shell"));
            let status =
                rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).expect("its end");
            status.and_then(|(_, status)| status.exit_status())
        };
        let text = "LC_ALL=C mkdir / 2>&1 | grep -q 'Function not implemented'";
        assert_eq!(shell(text, &refused), Some(0));
        assert_eq!(shell(text, &"splice".parse().expect("a call")), Some(1));
    }
}
