//! The configuration that hosepipe gives the preloaded library, and the messages that the library sends: a head of fixed size and
//! a text, each in one datagram to the socket that the configuration names. Both programs are of one build on one machine, so
//! the structs are sent as their bytes in memory.

use crate::sites::{SITES_MAX, Sample, Sites};

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
unsafe impl Plain for Head {}
// SAFETY: as above.
unsafe impl Plain for Reply {}
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

/// The first byte of an entry in the answer to [`kind::CHANGES`]; each entry is followed by a zero. An entry with any other first byte is a
/// variable, `NAME=VALUE`: its value is put behind the one that the program has, with that byte between.
pub mod change {
    /// A variable, `NAME=VALUE`, that replaces one of that name.
    pub const SET: u8 = b'=';
    /// A variable, `NAME=VALUE`: its value is put in front of the one that the program has, with a colon between.
    pub const FRONT: u8 = b'<';
    /// An argument in front of the program's own.
    pub const ARGUMENT: u8 = b'-';
}

/// Most entries in the answer to [`kind::CHANGES`].
pub const CHANGES_MAX: usize = 16;

/// Longest answer to [`kind::CHANGES`].
pub const CHANGE_BYTES_MAX: usize = 8 << 10;

/// Longest name of the server's socket.
pub const NAME_BYTES_MAX: usize = 64;

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
    /// The abstract name (unix(7)) of the server's socket, followed by zeros; only zeros if there is no server.
    pub name: [u8; NAME_BYTES_MAX],
}

impl Config {
    /// The library does nothing.
    pub const OFF: Self = Self {
        mode: mode::OFF,
        close: -1,
        argument: 0,
        parent: 0,
        sites: Sites { slot: 0, offsets: [0; SITES_MAX] },
        name: [0; NAME_BYTES_MAX],
    };

    /// Reads hexadecimal digits; `None` if they are not a configuration.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        let mut bytes = [0; size_of::<Self>()];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Self::from_bytes(&bytes)
    }

    /// The socket's name without the zeros.
    pub fn name(&self) -> &[u8] {
        self.name.split(|byte| *byte == 0).next().unwrap_or_default()
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

/// The `kind` of a [`Head`].
pub mod kind {
    /// A request for a link: the answer is a [`Reply`](super::Reply), with the two ends, the reader's first, or with an error.
    pub const LINK: u32 = 1;
    /// A process has put an end of link `id` onto its descriptor `value` (0, 1 or 2). A reader that has to wait for its writers gets
    /// a [`Reply`](super::Reply) when they are done. Any other process sends a descriptor of its /proc/self/io, if usage is recorded. `usage` is
    /// that of the process, without children, until now.
    pub const TOOK: u32 = 2;
    /// A process calls execve(2): `value` is the PID of its parent. The text is the PIDs of its children, with spaces between and a zero at
    /// the end, and then the arguments, each followed by a zero. `usage` is that of the process and its children until now.
    pub const EXEC: u32 = 3;
    /// A process was reaped: `value` and `usage` are those of wait4(2).
    pub const REAPED: u32 = 4;
    /// A command of hosepipe that was typed in the shell: the text is its words, each followed by a zero. The answer is a text.
    pub const COMMAND: u32 = 5;
    /// A process has replaced its descriptor `value`, which was an end of link `id`; `usage` as for [`TOOK`].
    pub const LEFT: u32 = 6;
    /// A process that writes to link `id` has a file size limit of `value` bytes (getrlimit(2), RLIMIT_FSIZE).
    pub const LIMIT: u32 = 7;
    /// A process has ended and is about to be reaped: until then its /proc/PID/io has what it read and wrote. When the server has read
    /// that file, it closes the socket that was sent with the message.
    pub const ENDED: u32 = 8;
    /// A process is about to execute a program: `value` is the PID of its parent, the text the program's path and its arguments, each followed
    /// by a zero. The answer is one byte without a meaning, then entries of [`change`](super::change); with it comes a descriptor if the program
    /// gets another standard output.
    pub const CHANGES: u32 = 9;
}

/// The head of every message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// One of [`kind`].
    pub kind: u32,
    /// The process it is about.
    pub pid: i32,
    /// The link it is about.
    pub id: u64,
    /// CLOCK_MONOTONIC, in nanoseconds, when it happened.
    pub at_ns: u64,
    /// See [`kind`].
    pub value: i64,
    /// See [`kind`].
    pub usage: Usage,
}

/// A process's resource usage, from getrusage(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// CPU time in user mode, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// Largest resident set size, in KiB.
    pub max_rss_kib: u64,
}

/// Bytes of a head.
pub const HEAD_BYTES: usize = size_of::<Head>();

/// Longest text of a message; longer texts are truncated.
pub const TEXT_BYTES_MAX: usize = 2048;

/// The answer to [`kind::LINK`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Reply {
    /// The link's number in later messages.
    pub id: u64,
    /// 1 if a process that takes the reader's end has to wait for a reply that the writers are done.
    pub hold_reader: u64,
    /// Why there is no link (errno(3)); 0 if there is one.
    pub error: u64,
}

/// Bytes of a reply.
pub const REPLY_BYTES: usize = size_of::<Reply>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_reads_as_it_was_written() {
        let sites = Sites { slot: 7, offsets: [0x5fb6c, 0x1a2b3, 0, 0, 0, 0, 0, 0] };
        let mut config = Config { mode: mode::OWN, argument: 1 << 20, sites, ..Config::OFF };
        config.name[..9].copy_from_slice(b"a b/socks");
        let digits: String = config.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let read = Config::from_digits(digits.as_bytes()).expect("sound");
        assert_eq!((read, read.name()), (config, &b"a b/socks"[..]));
        assert_eq!(Config::OFF.name(), b"");
        for wrong in [&digits[1..], &digits[2..], &digits.replace('b', "x"), ""] {
            assert_eq!(Config::from_digits(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn messages_read_back() {
        let head = Head {
            kind: kind::REAPED,
            pid: -5,
            id: u64::MAX - 3,
            at_ns: 1 << 60,
            value: -77,
            usage: Usage { user_us: 1, system_us: 2, max_rss_kib: 3 },
        };
        assert_eq!(Head::from_bytes(head.as_bytes()), Some(head));
        assert_eq!(Head::from_bytes(&head.as_bytes()[1..]), None);
        let reply = Reply { id: 9, hold_reader: 1, error: 28 };
        assert_eq!(Reply::from_bytes(reply.as_bytes()), Some(reply));
    }
}
