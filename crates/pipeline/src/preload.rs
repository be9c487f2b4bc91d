//! The library that is preloaded into a shell: where the loader finds it, and the environment that makes it work.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use pipes::protocol::{Config, Plain, VARIABLE};
use process::Environment;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

/// Smallest descriptor for the library: those below are left to the user, who may name them in a shell's text.
const FD_MIN: i32 = 60;

/// A descriptor of the library, in sealed memory. execve(2) leaves it open, and the library closes it before the shell's main.
pub(crate) struct Library(OwnedFd);

impl Library {
    pub(crate) fn load() -> io::Result<Self> {
        let made = memfd_create("hosepipe-pipes", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(made);
        file.write_all(pipes::LIBRARY)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        // It keeps its number if the limit of descriptors (RLIMIT_NOFILE) is below FD_MIN.
        let high = fcntl_dupfd_cloexec(&file, FD_MIN).unwrap_or_else(|_| file.into());
        fcntl_setfd(&high, FdFlags::empty())?;
        Ok(Self(high))
    }

    /// Whether the loader of another program can open it, which needs /proc.
    pub(crate) fn is_reachable(&self) -> bool {
        std::fs::exists(self.path()).unwrap_or(false)
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// This process's environment, with this library after all others that are preloaded: others that replace the same functions call the
    /// next one.
    pub(crate) fn environment(&self, config: Config) -> Environment {
        let fd = self.0.as_raw_fd();
        let config = Config { close: fd, ..config };
        let digits: String = config.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut preload = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        if !preload.is_empty() {
            preload.push(":");
        }
        preload.push(self.path());
        let others = |(name, _): &(OsString, _)| name != "LD_PRELOAD" && name != VARIABLE;
        let ours = [("LD_PRELOAD".into(), preload), (VARIABLE.into(), digits.into())];
        std::env::vars_os().filter(others).chain(ours).collect()
    }
}
