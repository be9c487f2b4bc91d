//! Inputs with a few changes, which proptest makes fewer where one of them fails.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

/// An input as it should be.
#[derive(Debug, Clone)]
pub(super) struct Seed {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Seed {
    pub(super) fn new(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.to_owned(), bytes: bytes.into() }
    }
}

/// The files of a folder of this repository, by name.
pub(super) fn files(folder: &str) -> Vec<Seed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = entries.map(|entry| entry.expect("readable").path()).filter(|path| path.is_file());
    let mut seeds: Vec<Seed> = files
        .map(|path| Seed::new(&path.display().to_string(), std::fs::read(&path).expect("readable")))
        .collect();
    seeds.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    assert!(!seeds.is_empty(), "{} is empty", folder.display());
    seeds
}

/// The files of a folder of the corpus.
pub(super) fn corpus(name: &str) -> Vec<Seed> {
    files(&format!("tests/it/fuzz/corpus/{name}"))
}

/// What texts often have where a number or a word should be.
const ODD: &[&str] = &[
    "0",
    "-1",
    "1",
    "0.5",
    "-0.0",
    "1e308",
    "5e-324",
    "1e999",
    "NaN",
    "255",
    "256",
    "65536",
    "4294967295",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
    "null",
    "true",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[[]]",
    "\\u0000",
    "\u{1b}[31m",
    "\n",
    "\0",
    "é",
    "\u{202e}",
    ",",
    ":",
    "=",
    "{",
    "]",
    "\"",
    "../..",
    "/dev/null",
    "%s%n",
    "x x",
    "2026-13-45T99:00:00Z",
    "1EiB",
    "999999999h",
];

/// One change. Places are parts of the input's length, so that a change means something in every input.
#[derive(Debug, Clone)]
enum Change {
    Set(u16, u8),
    Insert(u16, usize),
    Remove(u16, u8),
    Repeat(u16, u8, u16),
    CutOff(u16),
    /// In place of the word or number at or after that place.
    Word(u16, usize),
}

/// A seed, and what is changed in it.
#[derive(Debug, Clone)]
pub(super) struct Damage {
    seed: usize,
    changes: Vec<Change>,
}

/// Changes to one of the seeds.
pub(super) fn damaged(seeds: usize) -> impl Strategy<Value = Damage> {
    let odd = 0..ODD.len();
    let change = prop_oneof![
        4 => (any::<u16>(), odd.clone()).prop_map(|(at, odd)| Change::Word(at, odd)),
        2 => (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (any::<u16>(), odd).prop_map(|(at, odd)| Change::Insert(at, odd)),
        1 => (any::<u16>(), any::<u8>()).prop_map(|(at, len)| Change::Remove(at, len)),
        1 => (any::<u16>(), any::<u8>(), any::<u16>()).prop_map(|(at, len, to)| Change::Repeat(at, len, to)),
        1 => any::<u16>().prop_map(Change::CutOff),
    ];
    (0..seeds, vec(change, 1..6)).prop_map(|(seed, changes)| Damage { seed, changes })
}

impl Damage {
    pub(super) fn apply(&self, seeds: &[Seed]) -> Vec<u8> {
        let mut bytes = seeds[self.seed].bytes.clone();
        for change in &self.changes {
            apply(change, &mut bytes);
        }
        bytes
    }
}

fn apply(change: &Change, bytes: &mut Vec<u8>) {
    let place = |part: u16| usize::from(part) * bytes.len() / (usize::from(u16::MAX) + 1);
    let span = |at: usize, len: u8| at..bytes.len().min(at + usize::from(len));
    match *change {
        _ if bytes.is_empty() => {}
        Change::Set(at, byte) => {
            let at = place(at);
            bytes[at] = byte;
        }
        Change::Insert(at, odd) => {
            let at = place(at);
            bytes.splice(at..at, ODD[odd].bytes());
        }
        Change::Remove(at, len) => {
            bytes.drain(span(place(at), len));
        }
        Change::Repeat(at, len, to) => {
            let (part, to) = (bytes[span(place(at), len)].to_vec(), place(to));
            bytes.splice(to..to, part);
        }
        Change::CutOff(at) => bytes.truncate(place(at)),
        Change::Word(at, odd) => {
            let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
            let at = place(at);
            let from = at + bytes[at..].iter().position(is_of_word).unwrap_or(0);
            let len = bytes[from..].iter().take_while(|byte| is_of_word(byte)).count();
            bytes.splice(from..from + len, ODD[odd].bytes());
        }
    }
}
