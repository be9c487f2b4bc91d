//! The axes of a measurement: workload, tasks, placement, wait, data level, check, direction, payload.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// A word that is not a value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {axis} `{word}`: choose {choices}")]
pub struct UnknownWord {
    axis: &'static str,
    word: String,
    choices: String,
}

/// Defines an enum with a word for each value, and the list of all values. A `recorded enum` is a text in JSON: the name of the value in
/// lower case, with dashes between its words.
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* pub recorded enum $name:ident $values:tt) => {
        $crate::words! {
            $(#[$attribute])*
            #[derive(serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[serde(rename_all = "kebab-case")]
            pub enum $name $values
        }
    };
    ($(#[$attribute:meta])* pub enum $name:ident {
        $($(#[$variant_attribute:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_attribute])* $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word that stands for this value on the command line, in tables and in records.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.word()) }
        }
    };
}

words! {
    /// What the two ends do.
    pub enum Workload {
        /// One way, throughput.
        Stream = "stream",
        /// Round trips, latency.
        PingPong = "pingpong",
    }
}
words! {
    /// The tasks that run the two ends.
    pub enum Tasks {
        /// One thread does both.
        Single = "single",
        /// Two threads of one process.
        Threads = "threads",
        /// Two processes.
        Processes = "processes",
    }
}
words! {
    /// How an end waits.
    pub enum Wait {
        /// Asleep in the call itself.
        Block = "block",
        /// Non-blocking calls, asleep in poll(2).
        Poll = "poll",
        /// Non-blocking calls, tried again at once.
        Spin = "spin",
    }
}
words! {
    /// What the ends do with the payload.
    pub enum DataLevel {
        /// The payload is never touched.
        None = "none",
        /// The sender produces every byte.
        Write = "write",
        /// The sender produces and the receiver checks every byte.
        Verify = "verify",
    }
}
words! {
    /// How the receiver checks under [`DataLevel::Verify`].
    pub enum Check {
        /// XXH3-64 over the whole stream: detects loss, repetition and reordering.
        Xxh3 = "xxh3",
        /// XOR of all bytes, as in the study `kernel-pipe`: does not detect a changed order.
        Xor = "xor",
        /// Comparison of every byte with the sent one: detects every error, and costs less than a hash.
        Compare = "compare",
    }
}

words! {
    /// The direction of a stream between two hosts; for round trips, the direction of the requests.
    pub enum Direction {
        /// From this host to the other.
        Peer = "to-peer",
        /// From the other host to this one.
        Here = "from-peer",
    }
}

/// Parses the words of an axis; the second argument names the axis in errors.
macro_rules! axes {
    ($($name:ident $axis:literal),+) => {$(
        impl FromStr for $name {
            type Err = UnknownWord;
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.word() == word).ok_or_else(|| UnknownWord {
                    axis: $axis,
                    word: word.to_owned(),
                    choices: Self::ALL.iter().map(|value| value.word()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    )+};
}
axes!(Workload "workload", Tasks "tasks", Wait "wait", DataLevel "data level", Check "check", Direction "direction");

/// The CPUs of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Both on one CPU.
    Same,
    /// Two hardware threads of one core.
    Smt,
    /// Two cores of one NUMA node.
    Cross,
    /// Two NUMA nodes.
    Numa,
    /// The scheduler's choice.
    Any,
    /// Two CPUs by number: the sender's, then the receiver's.
    Cpus(u32, u32),
}

impl Placement {
    /// The placements that have a name.
    pub const NAMED: &'static [Self] = &[Self::Same, Self::Smt, Self::Cross, Self::Numa, Self::Any];
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.pad("same"),
            Self::Smt => f.pad("smt"),
            Self::Cross => f.pad("cross"),
            Self::Numa => f.pad("numa"),
            Self::Any => f.pad("any"),
            Self::Cpus(a, b) => f.pad(&format!("{a},{b}")),
        }
    }
}

impl FromStr for Placement {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if let Some(named) = Self::NAMED.iter().find(|named| named.to_string() == word) {
            return Ok(*named);
        }
        let pair =
            word.split_once(',').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        pair.map(|(a, b)| Self::Cpus(a, b)).ok_or_else(|| UnknownWord {
            axis: "placement",
            word: word.to_owned(),
            choices: "same, smt, cross, numa, any, all, or two CPU numbers as in 0,1".to_owned(),
        })
    }
}

/// The contents of the payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayloadKind {
    /// The bytes 0 to 255, over and over (study `kernel-pipe`).
    Sequence,
    /// Random printable ASCII (study `stover`).
    Printable,
    /// Random bytes.
    Random,
    /// Zero bytes.
    Zero,
    /// The user's own data.
    File(PathBuf),
}

impl PayloadKind {
    /// The kinds that need no file.
    pub const NAMED: &'static [Self] = &[Self::Sequence, Self::Printable, Self::Random, Self::Zero];

    /// Parses a kind; the path of its file may be other than UTF-8.
    ///
    /// # Errors
    /// No kind has this name.
    pub fn parse(typed: &OsStr) -> Result<Self, UnknownWord> {
        match typed.as_bytes().strip_prefix(b"file:") {
            Some(path @ [_, ..]) => Ok(Self::File(PathBuf::from(OsStr::from_bytes(path)))),
            _ => Self::NAMED.iter().find(|named| *named.to_string() == *typed).cloned().ok_or_else(|| {
                UnknownWord {
                    axis: "payload",
                    word: typed.to_string_lossy().into_owned(),
                    choices: "sequence, printable, random, zero, or file:PATH".to_owned(),
                }
            }),
        }
    }
}

impl fmt::Display for PayloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence => f.pad("sequence"),
            Self::Printable => f.pad("printable"),
            Self::Random => f.pad("random"),
            Self::Zero => f.pad("zero"),
            Self::File(path) => f.pad(&format!("file:{}", path.display())),
        }
    }
}

impl FromStr for PayloadKind {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::parse(word.as_ref())
    }
}

/// Serialises types as the text that they print and parse.
macro_rules! serde_as_text {
    ($($name:ident),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: String = serde::Deserialize::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    )+};
}
pub(crate) use serde_as_text;
serde_as_text!(Workload, Tasks, Wait, DataLevel, Check, Placement, PayloadKind, Direction);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for value in Workload::ALL {
            assert_eq!(value.word().parse(), Ok(*value));
        }
        for value in Placement::NAMED {
            assert_eq!(value.to_string().parse(), Ok(*value));
        }
        assert_eq!("3,1".parse(), Ok(Placement::Cpus(3, 1)));
        assert_eq!("file:/tmp/x".parse(), Ok(PayloadKind::File("/tmp/x".into())));
    }

    #[test]
    fn an_unknown_word_lists_the_choices() {
        let error = "maybe".parse::<DataLevel>().expect_err("no such level");
        assert_eq!(error.to_string(), "unknown data level `maybe`: choose none, write, verify");
        assert!("1,x".parse::<Placement>().is_err());
        assert!("file:".parse::<PayloadKind>().is_err());
    }

    #[test]
    fn payloads_are_shown_as_they_are_typed() {
        for typed in ["sequence", "printable", "random", "zero", "file:/tmp/x"] {
            assert_eq!(typed.parse::<PayloadKind>().expect(typed).to_string(), typed);
        }
    }
}
