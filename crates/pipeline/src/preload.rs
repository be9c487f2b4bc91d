//! The library that is preloaded into a shell: where the loader finds it, and the environment that makes it work.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use pipes::protocol::VARIABLE;
use pipes::sites::Sites;
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
    /// # Errors
    /// What memfd_create(2) answers.
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

    /// This process's environment, with this library before whatever else is preloaded. `mode` and `name` are the first word and
    /// the last of [`pipes::protocol::Config`].
    pub(crate) fn environment(&self, mode: &str, sites: Sites, name: Option<&str>) -> Vec<CString> {
        let others = |(name, _): &(std::ffi::OsString, _)| name != "LD_PRELOAD" && name != VARIABLE;
        let entry = |name: &OsStr, value: &[u8]| {
            // Neither can hold a NUL: the kernel gave them to us as strings that end with one.
            CString::new([name.as_bytes(), b"=", value].concat()).unwrap_or_default()
        };
        let kept = std::env::vars_os().filter(others);
        let mut environment: Vec<CString> =
            kept.map(|(name, value)| entry(&name, value.as_bytes())).collect();
        let fd = self.0.as_raw_fd();
        let mut preload = format!("/proc/self/fd/{fd}").into_bytes();
        if let Some(theirs) = std::env::var_os("LD_PRELOAD") {
            preload.push(b':');
            preload.extend_from_slice(theirs.as_bytes());
        }
        let offsets = sites.offsets.iter().take_while(|offset| **offset != 0);
        let offsets: Vec<String> = offsets.map(|offset| format!("{offset:x}")).collect();
        let config = format!("{mode} {fd} {} {} {}", sites.slot, offsets.join(","), name.unwrap_or("-"));
        environment.push(entry(OsStr::new("LD_PRELOAD"), &preload));
        environment.push(entry(OsStr::new(VARIABLE), config.as_bytes()));
        environment
    }
}
