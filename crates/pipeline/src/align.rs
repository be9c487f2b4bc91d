//! How programs are started so that their large buffers have another page offset (`--align-buffers`). glibc's malloc gets a large block from
//! mmap(2); such a block begins 16 bytes after the start of a page. A block from the heap begins at any multiple of 16.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use pipes::protocol::change;

use crate::program_file::Program;

/// The variable that glibc reads.
const VARIABLE: &str = "GLIBC_TUNABLES";
/// The setting: blocks up to this size come from the heap.
const THRESHOLD: &str = "glibc.malloc.mmap_threshold=";
/// Largest threshold that every glibc accepts (half of HEAP_MAX_SIZE, malloc/arena.c), and the threshold for glibc 2.36 and later, which accept any.
const THRESHOLD_BYTES_ANY: u64 = 32 << 20;
const THRESHOLD_BYTES_NEWER: u64 = 8 << 30;
const NEWER_MINOR: u32 = 36;

/// How a program is started: a phrase for messages, and the entry of [`change`] that moves its buffers, if there is one.
pub(crate) fn alignment(program: &Program) -> (&'static str, Option<Vec<u8>>) {
    match &program.loader {
        None => ("as it is: it is linked statically", None),
        Some(loader) if !is_glibc(loader) => ("as it is: its C library is not glibc", None),
        Some(_) if program.is_privileged => {
            ("as it is: glibc ignores its variable in a set-user-ID program", None)
        }
        Some(_) if program.has_own_allocator => ("as it is: it has an allocator of its own", None),
        Some(_) if own_variable().is_none() => ("as it is: GLIBC_TUNABLES already sets the threshold", None),
        // Before the user's value, because glibc uses the last one.
        Some(_) => {
            let entry = format!("{VARIABLE}={}", tunable());
            ("by GLIBC_TUNABLES", Some([&[change::FRONT], entry.as_bytes()].concat()))
        }
    }
}

/// The setting, for the glibc version of this program; if this program has another C library, a setting that every glibc accepts.
fn tunable() -> String {
    #[cfg(target_env = "gnu")]
    // SAFETY: a constant of the C library.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    #[cfg(not(target_env = "gnu"))]
    let version = c"";
    let minor =
        version.to_str().ok().and_then(|version| version.strip_prefix("2.")?.split('.').next()?.parse().ok());
    let is_newer = minor.is_some_and(|minor: u32| minor >= NEWER_MINOR);
    format!("{THRESHOLD}{}", if is_newer { THRESHOLD_BYTES_NEWER } else { THRESHOLD_BYTES_ANY })
}

/// Whether a loader is glibc's (ld.so(8)).
fn is_glibc(loader: &[u8]) -> bool {
    let name = loader.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [&b"ld-linux"[..], b"ld64.so", b"ld.so"].iter().any(|glibc| name.starts_with(glibc))
}

/// The variable and its value for a program and the programs that it starts. Our setting precedes the user's value `own`; `None` if that already
/// has a threshold.
pub(crate) fn variable(own: Option<OsString>) -> Option<(OsString, OsString)> {
    let own = own.unwrap_or_default().into_vec();
    let has_threshold = own.windows(THRESHOLD.len()).any(|window| window == THRESHOLD.as_bytes());
    let separator: &[u8] = if own.is_empty() { b"" } else { b":" };
    let value = [tunable().as_bytes(), separator, &own].concat();
    (!has_threshold).then(|| (VARIABLE.into(), OsString::from_vec(value)))
}

/// The variable for the programs that this process starts.
pub(crate) fn own_variable() -> Option<(OsString, OsString)> {
    variable(std::env::var_os(VARIABLE))
}
