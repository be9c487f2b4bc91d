//! The library that is preloaded into a shell: where the loader finds it, and the environment that makes it work.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use pipes::protocol::{Config, Plain, VARIABLE, mode};
use pipes::sites::Sites;
use process::Environment;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

/// The library (see the crate `pipes`).
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libpipes.so"));

/// What tells this library from every other one (see the build script).
pub(crate) const FINGERPRINT: &str = env!("PIPES_FINGERPRINT");

/// Descriptors below this one are the user's to name in a shell's text.
const FD_MIN: i32 = 60;

/// The library, in memory that nobody can change any more, behind a descriptor that a new program keeps. The library closes it
/// before the shell begins.
pub(crate) struct Library(OwnedFd);

impl Library {
    pub(crate) fn load() -> io::Result<Self> {
        let made = memfd_create("hosepipe-pipes", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut file = File::from(made);
        file.write_all(LIBRARY)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        // A low limit of descriptors leaves it where it is.
        let high = fcntl_dupfd_cloexec(&file, FD_MIN).unwrap_or_else(|_| file.into());
        fcntl_setfd(&high, FdFlags::empty())?;
        Ok(Self(high))
    }

    /// This process's environment, with this library before whatever else is preloaded.
    pub(crate) fn environment(&self, config: Config) -> Environment {
        let fd = self.0.as_raw_fd();
        let config = Config { close: fd, ..config };
        let digits: String = config.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut preload = OsString::from(format!("/proc/self/fd/{fd}"));
        if let Some(theirs) = std::env::var_os("LD_PRELOAD") {
            preload.push(":");
            preload.push(theirs);
        }
        let others = |(name, _): &(OsString, _)| name != "LD_PRELOAD" && name != VARIABLE;
        let ours = [("LD_PRELOAD".into(), preload), (VARIABLE.into(), digits.into())];
        std::env::vars_os().filter(others).chain(ours).collect()
    }

    /// The same, with a library that asks the server at the socket of this name for each link.
    pub(crate) fn asking(&self, sites: Sites, socket: &str) -> Environment {
        let mut config = Config { mode: mode::ASK, sites, ..Config::OFF };
        config.name[..socket.len()].copy_from_slice(socket.as_bytes());
        self.environment(config)
    }
}
