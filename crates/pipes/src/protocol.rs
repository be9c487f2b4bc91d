//! What hosepipe tells the preloaded library at its start, and what the library tells hosepipe: messages of one fixed head and a
//! text, each a datagram of its own to the socket that the configuration names. Both sides are of one build and one machine, so
//! that the structs travel as the bytes they consist of.

use crate::sites::{Sample, Sites};

/// The variable that holds the [`Config`]. It is gone before the shell looks at its environment.
pub const VARIABLE: &str = "HOSEPIPE_PIPES";

/// The variable, and its value, with which fish starts programs by fork(2) and execve(2). No program has it: the library takes it out of
/// every environment. (A value that begins with none of t, y and 1 is false to fish.)
pub const NO_POSIX_SPAWN: (&[u8], &[u8]) = (b"fish_use_posix_spawn", b"hosepipe");

/// What may be sent as its bytes.
///
/// # Safety
/// The type has no padding (`repr(C)`), and whatever its bytes are they are a value of it.
pub unsafe trait Plain: Copy {
    /// Its bytes.
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: all bytes of the value are initialised, as there is no padding, and are borrowed for as long as it is.
        unsafe { core::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }

    /// The value that these bytes begin with; `None` where they are too few.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // SAFETY: there are as many bytes as it has, and they are a value of it.
        (bytes.len() >= size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: integers, or arrays and `repr(C)` structs of them in which no field needs padding before or behind it.
unsafe impl Plain for Config {}
// SAFETY: as above.
unsafe impl Plain for Head {}
// SAFETY: as above.
unsafe impl Plain for Reply {}
// SAFETY: as above.
unsafe impl Plain for Sample {}

/// What the library does about a pipeline's pipe: the `mode` of a [`Config`].
pub mod mode {
    /// Nothing.
    pub const OFF: u32 = 0;
    /// Writes down where every pipe is made from, to the descriptor `argument`, and changes nothing.
    pub const LEARN: u32 = 1;
    /// Makes a pipe of `argument` bytes without asking anybody; smaller ones where very many are made at once.
    pub const OWN: u32 = 2;
    /// Makes each pipe of `argument` bytes.
    pub const EXACTLY: u32 = 3;
    /// Asks hosepipe for the ends of a link. Where `argument` is 0, messages have no `usage`, which costs a call each.
    pub const ASK: u32 = 4;
}

/// The most places that a shell may make a pipeline's pipe from.
pub const SITES_MAX: usize = 8;

/// The longest name of the socket.
pub const NAME_BYTES_MAX: usize = 64;

/// What the library is to do. It stands in [`VARIABLE`] as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// One of [`mode`].
    pub mode: u32,
    /// The descriptor this library came from, to be closed.
    pub close: i32,
    /// See [`mode`].
    pub argument: u64,
    /// Which pipes are pipelines'.
    pub sites: Sites,
    /// The abstract name (unix(7)) of the socket at which hosepipe listens, with zeros behind it; nothing but zeros where there
    /// is no server.
    pub name: [u8; NAME_BYTES_MAX],
}

impl Config {
    /// To do nothing.
    pub const OFF: Self = Self {
        mode: mode::OFF,
        close: -1,
        argument: 0,
        sites: Sites { slot: 0, offsets: [0; SITES_MAX] },
        name: [0; NAME_BYTES_MAX],
    };

    /// Reads hexadecimal digits; `None` where they are no configuration.
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

/// The divisor of the size of a pipe whose size was not asked for, by how many there are before it; `None` is the
/// kernel's own size. All pipes of a user may hold 64 MiB, used or not (pipe(7), pipe-user-pages-soft), and a pipeline of hundreds
/// of programs must not take all of that.
pub const fn share_in_burst(before: usize) -> Option<u64> {
    match before {
        ..16 => Some(1),
        16..64 => Some(4),
        _ => None,
    }
}

/// What a message says: the `kind` of a [`Head`].
pub mod kind {
    /// A pipeline needs a link: the answer is a [`Reply`](super::Reply) with its two ends, the reader's first, or without.
    pub const LINK: u32 = 1;
    /// A process has put an end of link `id` onto its descriptor `value` (0, 1 or 2). Of a reader's end that is to wait for its
    /// writers, the answer, a [`Reply`](super::Reply), is that they are done. `usage` is what it has used so far by itself.
    pub const TOOK: u32 = 2;
    /// A process becomes another program: `value` is its parent, the text the numbers of its children and then its
    /// arguments, with a zero behind each; `usage` what it and its children have used so far.
    pub const EXEC: u32 = 3;
    /// A process was reaped; `value` is its status as wait4(2) has it, `usage` what it used.
    pub const REAPED: u32 = 4;
    /// A command of hosepipe's own, typed in the shell: the text; the answer is a text.
    pub const COMMAND: u32 = 5;
    /// A process has put something else onto its descriptor `value`, which was an end of link `id`; `usage` as of [`TOOK`].
    pub const LEFT: u32 = 6;
    /// A process that writes to link `id` may make no file larger than `value` bytes (getrlimit(2), RLIMIT_FSIZE).
    pub const LIMIT: u32 = 7;
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

/// What a process used, as getrusage(2) has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// CPU time in user mode, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// The most memory it had resident, in KiB.
    pub max_rss_kib: u64,
}

/// Bytes of a head.
pub const HEAD_BYTES: usize = size_of::<Head>();

/// The longest text of a message; longer ones are cut.
pub const TEXT_BYTES_MAX: usize = 2048;

/// The answer to [`kind::LINK`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Reply {
    /// What names the link from now on.
    pub id: u64,
    /// 1 where a process that takes the reader's end is to wait until it is told that the writers are done.
    pub hold_reader: u64,
    /// Why there is no link (errno(3)); 0 where there is one.
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
