//! What hosepipe tells the preloaded library at its start, and what the library tells hosepipe: messages of one fixed head and a
//! text, each a datagram of its own to the socket that the configuration names. Both sides are of one build and one machine.

/// The variable that holds the configuration. It is gone before the shell looks at its environment.
pub const VARIABLE: &str = "HOSEPIPE_PIPES";

/// What the library does about a pipeline's pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Writes down where every pipe is made from (the argument is the descriptor to write to), and changes nothing.
    Learn(i32),
    /// Makes a pipe of this size in bytes without asking anybody; smaller ones where very many are made at once.
    Own(usize),
    /// Makes each pipe of this size.
    Exactly(usize),
    /// Asks hosepipe for the ends of a link.
    Ask,
}

/// The most places that a shell may make a pipeline's pipe from.
pub const SITES_MAX: usize = 8;

/// The longest name of a Unix socket, without the zero that an abstract one begins with (unix(7)).
pub const NAME_BYTES_MAX: usize = 107;

/// The configuration as it stands in [`VARIABLE`]: words with blanks between them.
///
/// `MODE FD SLOT SITES NAME`: `learn:N`, `own:BYTES`, `exactly:BYTES` or `ask`; a descriptor to close at the start, or -1; where on the stack to look
/// (in words from the return address on); the places, as hexadecimal offsets with commas; the abstract name of the socket, or `-`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config<'a> {
    /// What to do.
    pub mode: Mode,
    /// The descriptor this library came from.
    pub close: i32,
    /// Which word of the stack names the place.
    pub slot: usize,
    /// The places a pipeline's pipe is made from, as offsets in the shell's own file; 0 ends the list.
    pub sites: [usize; SITES_MAX],
    /// The socket at which hosepipe listens; `None` where nobody wants to know anything.
    pub name: Option<&'a [u8]>,
}

impl<'a> Config<'a> {
    /// Reads a configuration; `None` where it is none of ours.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let mut words = text.split(|byte| *byte == b' ');
        let mut mode = words.next()?.split(|byte| *byte == b':');
        let mode = match (mode.next()?, mode.next()) {
            (b"learn", Some(fd)) => Mode::Learn(number(fd)? as i32),
            (b"own", Some(bytes)) => Mode::Own(number(bytes)?),
            (b"exactly", Some(bytes)) => Mode::Exactly(number(bytes)?),
            (b"ask", None) => Mode::Ask,
            _ => return None,
        };
        let close = match words.next()? {
            b"-1" => -1,
            fd => number(fd)? as i32,
        };
        let slot = number(words.next()?)?;
        let mut sites = [0; SITES_MAX];
        let list = words.next()?.split(|byte| *byte == b',').filter(|site| !site.is_empty());
        for (at, site) in list.enumerate() {
            *sites.get_mut(at)? = hexadecimal(site)?;
        }
        let name = text.splitn(5, |byte| *byte == b' ').nth(4)?;
        let name = if name == b"-" { None } else { Some(name) };
        if name.is_some_and(|name| name.len() > NAME_BYTES_MAX) {
            return None;
        }
        Some(Self { mode, close, slot, sites, name })
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    read(digits, 10)
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    read(digits, 16)
}

fn read(digits: &[u8], base: usize) -> Option<usize> {
    let mut value = 0usize;
    for digit in digits {
        let digit = (*digit as char).to_digit(base as u32)? as usize;
        value = value.checked_mul(base)?.checked_add(digit)?;
    }
    (!digits.is_empty()).then_some(value)
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A pipeline needs a link: the answer is a [`Reply`] with its two ends, the reader's first, or without.
    Link = 1,
    /// A process has put an end of link `id` onto its descriptor `value` (0, 1 or 2). Of a reader's end that is to wait for its
    /// writers, the answer is that they are done.
    Took = 2,
    /// A process becomes another program: `value` is its parent, the text the numbers of its children and then its
    /// arguments, with a zero behind each.
    Exec = 3,
    /// A process was reaped; `value` is its status as wait4(2) has it, `usage` what it used.
    Reaped = 4,
    /// A command of hosepipe's own, typed in the shell: the text; the answer is a text.
    Command = 5,
}

/// The head of every message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// A [`Kind`].
    pub kind: u32,
    /// The process it is about.
    pub pid: i32,
    /// The link it is about.
    pub id: u64,
    /// CLOCK_MONOTONIC, in nanoseconds, when it happened.
    pub at_ns: u64,
    /// See [`Kind`].
    pub value: i64,
    /// What a reaped process used.
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

impl Head {
    /// The head as bytes; it has no padding.
    pub fn to_bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let fields = [
            u64::from(self.kind) | (self.pid as u32 as u64) << 32,
            self.id,
            self.at_ns,
            self.value as u64,
            self.usage.user_us,
            self.usage.system_us,
            self.usage.max_rss_kib,
        ];
        for (field, bytes) in fields.iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }

    /// Reads a head; `None` where there are too few bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.get(..HEAD_BYTES)?.chunks_exact(8).map(|word| {
            let mut own = [0; 8];
            own.copy_from_slice(word);
            u64::from_ne_bytes(own)
        });
        let first = words.next()?;
        Some(Self {
            kind: first as u32,
            pid: (first >> 32) as u32 as i32,
            id: words.next()?,
            at_ns: words.next()?,
            value: words.next()? as i64,
            usage: Usage { user_us: words.next()?, system_us: words.next()?, max_rss_kib: words.next()? },
        })
    }
}

/// The answer to [`Kind::Link`].
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

impl Reply {
    /// The reply as bytes.
    pub fn to_bytes(&self) -> [u8; REPLY_BYTES] {
        let mut bytes = [0; REPLY_BYTES];
        for (word, bytes) in [self.id, self.hold_reader, self.error].iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Reads a reply.
    pub fn from_bytes(bytes: &[u8; REPLY_BYTES]) -> Self {
        let word = |at: usize| {
            let mut own = [0; 8];
            own.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(own)
        };
        Self { id: word(0), hold_reader: word(8), error: word(16) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_reads_as_it_was_written() {
        let config = Config::parse(b"own:1048576 7 0 5fb6c,1a2b3 /tmp/a b/socket").expect("sound");
        assert_eq!(config.mode, Mode::Own(1 << 20));
        assert_eq!(
            (config.close, config.slot, config.sites[..3].to_vec()),
            (7, 0, vec![0x5fb6c, 0x1a2b3, 0])
        );
        assert_eq!(config.name, Some(&b"/tmp/a b/socket"[..]), "a name may have blanks");
        assert_eq!(
            Config::parse(b"ask -1 9 ff -").map(|config| (config.mode, config.name)),
            Some((Mode::Ask, None))
        );
        assert_eq!(Config::parse(b"learn:200 -1 0  -").map(|config| config.mode), Some(Mode::Learn(200)));
        for text in ["", "ask", "own: -1 0 1 -", "ask -1 0 xyz -", "other -1 0 1 -", "ask -1 0 1"] {
            assert_eq!(Config::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn messages_read_back() {
        let head = Head {
            kind: Kind::Reaped as u32,
            pid: -5,
            id: u64::MAX - 3,
            at_ns: 1 << 60,
            value: -77,
            usage: Usage { user_us: 1, system_us: 2, max_rss_kib: 3 },
        };
        assert_eq!(Head::from_bytes(&head.to_bytes()), Some(head));
        assert_eq!(Head::from_bytes(&head.to_bytes()[1..]), None);
        let reply = Reply { id: 9, hold_reader: 1, error: 28 };
        assert_eq!(Reply::from_bytes(&reply.to_bytes()), reply);
    }
}
