//! The configuration that hosepipe gives the preloaded library, and the changes to programs that its server can ask for. Both programs are of one
//! build on one machine, so structs are handed over as their bytes in memory.

use crate::sites::{SITES_MAX, SLOTS, Sample, Sites};

/// The variable with the [`Config`]. The library removes it before the shell reads its environment.
pub const VARIABLE: &str = "HOSEPIPE_PIPES";

/// A variable and its value. With it fish starts programs by fork(2) and execve(2), not by posix_spawn(3). The library removes it from
/// every program's environment. (A value that begins with t, y or 1 is true to fish, any other is false.)
pub const NO_POSIX_SPAWN: (&[u8], &[u8]) = (b"fish_use_posix_spawn", b"hosepipe");

/// A type that may be sent as its bytes in memory.
///
/// # Safety
/// The type has no padding (`repr(C)`), and every sequence of bytes is a valid value.
pub unsafe trait Plain: Copy {
    /// Its bytes.
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: all bytes of the value are initialised, as there is no padding, and are borrowed for as long as it is.
        unsafe { core::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }

    /// The value at the start of these bytes; `None` if they are too few.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // SAFETY: there are enough bytes, and every sequence of bytes is a valid value.
        (bytes.len() >= size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: integers, or arrays and `repr(C)` structs of integers without padding.
unsafe impl Plain for Config {}
// SAFETY: as above.
unsafe impl Plain for Sample {}

/// What the library does when the shell calls pipe(2): the `mode` of a [`Config`].
pub mod mode {
    /// Nothing.
    pub const OFF: u32 = 0;
    /// It writes the stack of every call to the descriptor `argument`, and changes nothing.
    pub const LEARN: u32 = 1;
    /// It sets the size of a pipeline's pipe to `argument` bytes, or less if very many are made at once
    /// ([`share_in_burst`](super::share_in_burst)). It does not ask the server.
    pub const OWN: u32 = 2;
    /// It sets the size of every pipeline's pipe to `argument` bytes, however many there are.
    pub const EXACTLY: u32 = 3;
    /// It asks the server for a link in place of a pipeline's pipe. `argument` is a sum of [`asks`](super::asks).
    pub const ASK: u32 = 4;
}

/// What the library does in [`mode::ASK`] in addition to links.
pub mod asks {
    /// Messages have a `usage`, which costs one system call each, and the server is asked to read the counters of processes that have
    /// ended.
    pub const USAGE: u64 = 1;
    /// Before a program is executed, the server is asked for changes to its arguments, its environment and its standard output.
    pub const CHANGES: u64 = 2;
}

/// The first byte of an entry in an [`Answer::Changes`](crate::message::Answer::Changes); each entry is followed by a zero. An entry with any other first byte is a
/// variable, `NAME=VALUE`: its value is put behind the one that the program has, with that byte between.
pub mod change {
    /// A variable, `NAME=VALUE`, that replaces one of that name.
    pub const SET: u8 = b'=';
    /// A variable, `NAME=VALUE`: its value is put in front of the one that the program has, with a colon between.
    pub const FRONT: u8 = b'<';
    /// An argument in front of the program's own.
    pub const ARGUMENT: u8 = b'-';
}

/// Most entries in an [`Answer::Changes`](crate::message::Answer::Changes).
pub const CHANGES_MAX: usize = 16;

/// Longest text of an [`Answer::Changes`](crate::message::Answer::Changes).
pub const CHANGE_BYTES_MAX: usize = 8 << 10;

/// Longest path of the server's socket, `/proc/PID/fd/N`.
pub const PATH_BYTES_MAX: usize = 32;

/// What the library has to do: the value of [`VARIABLE`], in hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// One of [`mode`].
    pub mode: u32,
    /// The descriptor of this library's file, to be closed.
    pub close: i32,
    /// See [`mode`].
    pub argument: u64,
    /// PID of the parent: when it ends, the shell ends with all that it has started (`end.rs`). 0 where the server sees to that.
    pub parent: u64,
    /// Where the shell makes the pipes of pipelines.
    pub sites: Sites,
    /// The path of the server's socket, followed by zeros; only zeros if there is no server.
    pub path: [u8; PATH_BYTES_MAX],
}

impl Config {
    /// The library does nothing.
    pub const OFF: Self = Self {
        mode: mode::OFF,
        close: -1,
        argument: 0,
        parent: 0,
        sites: Sites { slot: 0, offsets: [0; SITES_MAX] },
        path: [0; PATH_BYTES_MAX],
    };

    /// Reads hexadecimal digits; `None` if they are not a configuration.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        let mut bytes = [0; size_of::<Self>()];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Self::from_bytes(&bytes).filter(|config| config.sites.slot < SLOTS)
    }

    /// The socket's path without the zeros.
    pub fn path(&self) -> &[u8] {
        self.path.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Divisor of the size of a pipe that is made after `before` others at once; `None`: the kernel's default size. All pipes of a
/// user together may have 64 MiB (pipe(7), pipe-user-pages-soft); a pipeline of hundreds of programs must not take all of it.
pub const fn share_in_burst(before: usize) -> Option<u64> {
    match before {
        ..16 => Some(1),
        16..64 => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_reads_as_it_was_written() {
        let sites = Sites { slot: 7, offsets: [0x5fb6c, 0x1a2b3, 0, 0, 0, 0, 0, 0] };
        let mut config = Config { mode: mode::OWN, argument: 1 << 20, sites, ..Config::OFF };
        config.path[..9].copy_from_slice(b"a b/socks");
        let digits: String = config.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let read = Config::from_digits(digits.as_bytes()).expect("sound");
        assert_eq!((read, read.path()), (config, &b"a b/socks"[..]));
        assert_eq!(Config::OFF.path(), b"");
        // A sign is no digit, and the word of the stack must be one of those that were read while learning.
        let signed = digits.replacen("00", "+0", 1);
        let beyond = Config { sites: Sites { slot: SLOTS, ..sites }, ..config };
        let beyond: String = beyond.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        for wrong in [&digits[1..], &digits[2..], &digits.replace('b', "x"), &signed, &beyond, ""] {
            assert_eq!(Config::from_digits(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
