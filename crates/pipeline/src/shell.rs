//! The user's shell: where it lies, and whether a library can be preloaded into it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use model::{Check, describe_errno};
use payload::Checker;
use thiserror::Error;

use crate::lookup;

/// So much of a file is read first: the headers of a program, and its notes.
const HEAD_BYTES: u64 = 4096;

/// Of a shorter name for all that was linked one might find two.
const ID_BYTES_MIN: usize = 16;

/// A shell that runs texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// Its file.
    pub path: PathBuf,
    /// How it was named: a shell acts on that (`sh`).
    pub name: OsString,
    /// What it speaks, and where it reads what a prompt begins with.
    pub kind: Kind,
    /// What tells its file from every other one: its build-id, where it has one.
    pub(crate) fingerprint: String,
}

/// Shells that are known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The GNU shell.
    Bash,
    /// Debian's /bin/sh.
    Dash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
    /// Yet another shell.
    Yash,
    /// Any other.
    Other,
}

/// Why a shell cannot be used.
#[derive(Debug, Error)]
pub enum NoShell {
    /// There is none of this name.
    #[error("there is no shell `{}`: try --shell bash", .0.to_string_lossy())]
    Missing(OsString),
    /// Its file cannot be read.
    #[error("cannot read the shell {}: {}", .0.display(), describe_errno(.1))]
    Unreadable(PathBuf, io::Error),
    /// Its file is none that a library can be preloaded into.
    #[error(
        "the shell {} is {}, into which nothing can be preloaded: give --shell one that is dynamically linked",
        .0.display(), .1
    )]
    Closed(PathBuf, &'static str),
}

impl Shell {
    /// Finds a shell by its path, or by its name along PATH.
    ///
    /// # Errors
    /// There is none, or none that a library can be preloaded into.
    pub fn find(name: &OsStr) -> Result<Self, NoShell> {
        let search = std::env::var_os("PATH");
        let path = lookup::program(name, search.as_deref().or(Some(OsStr::new("/usr/bin:/bin"))));
        let path = path.ok_or_else(|| NoShell::Missing(name.to_owned()))?;
        let unreadable = |error| NoShell::Unreadable(path.clone(), error);
        let mut file = File::open(&path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
        if !bytes.starts_with(b"\x7fELF") {
            return Err(NoShell::Closed(path, "no program of its own but a script"));
        }
        if !has_loader(&bytes) {
            return Err(NoShell::Closed(path, "statically linked"));
        }
        let fingerprint = match build_id(&bytes) {
            Some(id) => id,
            None => {
                file.read_to_end(&mut bytes).map_err(unreadable)?;
                fingerprint(&bytes)
            }
        };
        Ok(Self { kind: Kind::of(&path), name: name.to_owned(), fingerprint, path })
    }
}

impl Kind {
    /// By the name of the file that a name leads to in the end.
    fn of(path: &Path) -> Self {
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let kinds = [
            ("bash", Self::Bash),
            ("dash", Self::Dash),
            ("zsh", Self::Zsh),
            ("fish", Self::Fish),
            ("yash", Self::Yash),
        ];
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        kinds.iter().find(|(known, _)| name.starts_with(known)).map_or(Self::Other, |(_, kind)| *kind)
    }
}

/// What tells a file's content from every other one.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    let mut checker = Checker::new(Check::Xxh3);
    checker.update(bytes);
    checker.hex()
}

/// The segments of this kind of a program of this machine's kind, as places in its file (elf(5), program header table).
fn segments(file: &[u8], kind: usize) -> Vec<Range<usize>> {
    let header = || Some((word(file, 32, 8)?, word(file, 54, 2)?, word(file, 56, 2)?));
    let Some((table, entry_bytes, count)) = header() else { return Vec::new() };
    let entries = (0..count).map(|index| table.saturating_add(index * entry_bytes));
    let of_kind = entries.filter(|at| word(file, *at, 4) == Some(kind));
    let place = |at: usize| {
        let offset = word(file, at.checked_add(8)?, 8)?;
        Some(offset..offset.checked_add(word(file, at.checked_add(32)?, 8)?)?)
    };
    of_kind.filter_map(place).collect()
}

fn word(file: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let mut own = [0; 8];
    own[..bytes].copy_from_slice(file.get(at..at.checked_add(bytes)?)?);
    usize::try_from(u64::from_le_bytes(own)).ok()
}

/// Whether a program asks for a loader: only a loader preloads anything.
fn has_loader(file: &[u8]) -> bool {
    const PT_INTERP: usize = 3;
    !segments(file, PT_INTERP).is_empty()
}

/// What the linker has made of all that it linked, in hexadecimal digits; `None` where it was told not to.
fn build_id(file: &[u8]) -> Option<String> {
    const PT_NOTE: usize = 4;
    // The lengths of name and content, the kind, and the name (elf(5), notes).
    const HEAD: [u8; 8] = *b"\x03\0\0\0GNU\0";
    segments(file, PT_NOTE).into_iter().find_map(|place| {
        let note = file.get(place)?;
        let bytes = word(note, 4, 4).filter(|_| note.get(8..16) == Some(&HEAD))?;
        let id = note.get(16..16usize.checked_add(bytes)?).filter(|id| id.len() >= ID_BYTES_MIN)?;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_found_or_it_is_said_why_not() {
        let bash = Shell::find(OsStr::new("bash")).expect("bash");
        assert_eq!((bash.kind, bash.path.is_absolute()), (Kind::Bash, true));
        let problem = |name: &str| Shell::find(OsStr::new(name)).expect_err("none").to_string();
        assert!(problem("no-such-shell").contains("there is no shell"));
        let folder = tempfile::tempdir().expect("temp dir");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").expect("a file");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a mode");
        assert!(problem(script.to_str().expect("a plain path")).contains("script"));
    }

    #[test]
    fn a_program_without_a_loader_is_told_from_one_with() {
        let own = std::fs::read("/proc/self/exe").expect("this test");
        assert!(has_loader(&own));
        assert!(!has_loader(&own[..40]));
        assert!(!has_loader(b"\x7fELF"));
    }

    #[test]
    fn a_shell_is_known_by_its_build_id_or_else_by_all_of_it() {
        let bash = Shell::find(OsStr::new("bash")).expect("bash");
        let mut bytes = std::fs::read(&bash.path).expect("bash");
        assert_eq!(build_id(&bytes).as_ref(), Some(&bash.fingerprint));
        assert_eq!(build_id(&bytes[..HEAD_BYTES as usize]), build_id(&bytes), "it stands at the beginning");
        let name = bytes.windows(8).position(|word| word == b"\x03\0\0\0GNU\0").expect("a note");
        bytes[name + 4] = b'X';
        assert_eq!(build_id(&bytes), None);
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("bash");
        std::fs::write(&path, &bytes).expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmod");
        assert_eq!(Shell::find(path.as_os_str()).expect("a shell").fingerprint, fingerprint(&bytes));
    }
}
