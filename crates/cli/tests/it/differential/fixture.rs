//! The folder in which every run of a case starts afresh, and what a run left in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A file as a run left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// A folder.
    Folder,
    /// A symbolic link and where to.
    Link(PathBuf),
    /// A file: its permissions and what is in it.
    File(u32, Vec<u8>),
    /// Anything else, such as a FIFO.
    Other,
}

/// Everything in the folder, by path.
pub(crate) type Snapshot = BTreeMap<PathBuf, Left>;

const SMALL: &str =
    "apple pie\nbanana bread\ncherry: red\n\nelderberry wine\nTea and toast\napple pie\n  indented\nx\n";
const WORDS: &str = "pear\nfig\npear\nfig\nfig\nlime:green:sour\nfig\n10\n9\nZoo\n";

const FOLDERS: [&str; 2] = ["sub", "sub/deep"];
const LINK: (&str, &str) = ("link", "small.txt");

/// What the folder holds before each run.
pub(crate) struct Fixture {
    files: Vec<(&'static str, u32, Vec<u8>)>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let mut files: Vec<(&'static str, u32, Vec<u8>)> = vec![
            ("text", 0o644, long_text()),
            ("binary", 0o644, random_bytes(60_000)),
            ("tool", 0o755, b"#!/bin/sh\necho tool \"$#\" \"$1\"\nexit 9\n".to_vec()),
            // No `#!`: execve(2) says ENOEXEC, and a shell runs it itself.
            ("script", 0o755, b"echo \"script $1, $#\"\ncat\nexit 6\n".to_vec()),
            ("plain", 0o644, b"echo never\n".to_vec()),
            ("sourced", 0o644, b"x=sourced\necho in the source\n".to_vec()),
        ];
        let texts = [
            ("small.txt", SMALL),
            ("words.txt", WORDS),
            ("a b.txt", "name with a blank\n"),
            ("it's", "quote\n"),
            ("-dash", "dash\nno end of line"),
            ("star*", "star\n"),
            ("new\nline", "break in a name\n"),
            ("é.txt", "déjà vu\n"),
            (".hidden", "hidden\n"),
            ("empty", ""),
            ("left", "a 1\nb 2\nc 3\n"),
            ("right", "a x\nc y\nd z\n"),
            ("sub/inner.txt", "inner\n"),
            ("sub/deep/x", "deep\n"),
        ];
        files.extend(texts.map(|(name, text)| (name, 0o644, text.as_bytes().to_vec())));
        Self { files }
    }

    /// Empties the folder and fills it.
    pub(crate) fn lay_out(&self, folder: &Path) {
        if folder.exists() {
            fs::remove_dir_all(folder).expect("the folder of the run before goes away");
        }
        for name in FOLDERS {
            fs::create_dir_all(folder.join(name)).expect("mkdir");
        }
        for (name, mode, bytes) in &self.files {
            let path = folder.join(name);
            fs::write(&path, bytes).expect("a file of the fixture");
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).expect("chmod");
        }
        let (name, target) = LINK;
        symlink(target, folder.join(name)).expect("symlink");
    }

    /// What is in the folder and was not laid out so, or is gone.
    pub(crate) fn changes(&self, folder: &Path) -> Snapshot {
        let mut found = Snapshot::new();
        collect(folder, folder, &mut found);
        for (name, mode, bytes) in &self.files {
            drop_same(&mut found, name, |left| matches!(left, Left::File(m, b) if m == mode && b == bytes));
        }
        for name in FOLDERS {
            drop_same(&mut found, name, |left| *left == Left::Folder);
        }
        drop_same(&mut found, LINK.0, |left| *left == Left::Link(LINK.1.into()));
        found
    }
}

/// Forgets what is as it was laid out; what is not there, is a change.
fn drop_same(found: &mut Snapshot, name: &str, same: impl Fn(&Left) -> bool) {
    match found.get(Path::new(name)) {
        Some(left) if same(left) => {
            found.remove(Path::new(name));
        }
        Some(_) => {}
        None => {
            found.insert(PathBuf::from(format!("{name} (gone)")), Left::Other);
        }
    }
}

fn collect(root: &Path, folder: &Path, found: &mut Snapshot) {
    for entry in fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("a type");
        let left = if kind.is_dir() {
            collect(root, &path, found);
            Left::Folder
        } else if kind.is_symlink() {
            Left::Link(fs::read_link(&path).expect("a link"))
        } else if kind.is_file() {
            let mode = entry.metadata().expect("metadata").permissions().mode() & 0o7777;
            Left::File(mode, fs::read(&path).expect("a readable file"))
        } else {
            Left::Other
        };
        found.insert(path.strip_prefix(root).expect("below the root").to_owned(), left);
    }
}

/// 300 KB in lines of unequal length.
fn long_text() -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(300);
    let words = ["river", "stone", "a", "tap", "Hose", "pipe", "of", "x:y", "garden", "42", "valve", "the"];
    let mut text = String::new();
    while text.len() < 300_000 {
        for _ in 0..dice.usize(0..12) {
            text.push_str(words[dice.usize(..words.len())]);
            text.push(' ');
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    fastrand::Rng::with_seed(60).fill(&mut bytes);
    bytes
}
