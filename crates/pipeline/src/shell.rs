//! The user's shell: finds its file, and checks whether a library can be preloaded into it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use model::{SHELLS, describe_errno};
use observe::elf::Elf;
use process::open_regular;
use rustix::fs::{Access, access};
use thiserror::Error;

use crate::link::{LinkSpec, Order};

/// A shell that runs texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// Its file.
    pub path: PathBuf,
    /// The name by which it is started: a shell behaves differently if that is `sh`.
    pub name: OsString,
    /// Its kind, which determines its grammar and its start-up files.
    pub kind: Kind,
    /// Identifies its file on this machine, and the version of the file.
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
    /// Yet Another SHell, yash(1).
    Yash,
    /// Any other shell.
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
    /// No library can be preloaded into its file.
    #[error(
        "the shell {} is {}, into which nothing can be preloaded: give --shell one that is dynamically linked",
        .0.display(), .1
    )]
    NoPreload(PathBuf, &'static str),
}

impl Shell {
    /// Checks that pipelines of this shell can run over a link.
    ///
    /// # Errors
    /// The reason why they cannot.
    pub(crate) fn allows(&self, via: &LinkSpec) -> Result<(), String> {
        // The library makes a reader wait at dup2(2); fish reads and writes for its builtins without that.
        if self.kind == Kind::Fish && via.order() == Order::Sequential {
            let remedy = "use it without order=sequential, or use another shell (--shell bash)";
            return Err(format!("{via}: builtins of fish do not wait for their input: {remedy}"));
        }
        Ok(())
    }

    /// Finds a shell by its path, or by its name along PATH.
    ///
    /// # Errors
    /// There is no such shell, or no library can be preloaded into it.
    pub fn find(name: &OsStr) -> Result<Self, NoShell> {
        let path = program(name).ok_or_else(|| NoShell::Missing(name.to_owned()))?;
        let read = fingerprint_and_head(&path).map_err(|error| NoShell::Unreadable(path.clone(), error));
        let (fingerprint, head) = read?;
        if head != *b"\x7fELF" {
            return Err(NoShell::NoPreload(path, "a script"));
        }
        // The loader preloads libraries.
        let why_not = match Elf::open(&path) {
            None => Some("unreadable, or no 64-bit program"),
            Some(elf) if elf.loader().is_none() => Some("statically linked"),
            Some(_) => None,
        };
        if let Some(why_not) = why_not {
            return Err(NoShell::NoPreload(path, why_not));
        }
        Ok(Self { kind: Kind::of(&path), name: name.to_owned(), fingerprint, path })
    }
}

impl Kind {
    /// In the order of [`SHELLS`], which has their names.
    const ALL: [Self; 6] = [Self::Bash, Self::Dash, Self::Zsh, Self::Fish, Self::Yash, Self::Other];

    /// The kind, by the name of the file after symbolic links are resolved.
    fn of(path: &Path) -> Self {
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let known = Self::ALL.iter().zip(SHELLS).find(|(_, known)| name.starts_with(known));
        known.map_or(Self::Other, |(kind, _)| *kind)
    }

    /// Its name among the links of a comparison.
    pub fn word(self) -> &'static str {
        Self::ALL
            .iter()
            .zip(SHELLS)
            .find_map(|(kind, word)| (*kind == self).then_some(word))
            .unwrap_or("shell")
    }
}

/// The file that execvp(3) would execute: a name with a slash is a path, any other name is searched in the folders of PATH. `None` if there is no
/// executable file.
pub(crate) fn program(name: &OsStr) -> Option<PathBuf> {
    let runnable = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(runnable);
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    // An empty entry is the current folder (environ(7)).
    std::env::split_paths(&folders).map(|folder| Path::new(".").join(folder).join(name)).find(runnable)
}

/// A text that identifies a file and its version, and its first bytes. (Reading the whole file would take as long as starting the shell.)
fn fingerprint_and_head(path: &Path) -> io::Result<(String, [u8; 4])> {
    let file = open_regular(path)?;
    let found = file.metadata()?;
    let changed = format!("{}.{:09}", found.ctime(), found.ctime_nsec());
    let fingerprint = format!("{:x}-{:x}-{:x}-{changed}", found.dev(), found.ino(), found.len());
    let mut head = [0; 4];
    // Of a shorter file the rest are zeros.
    file.read_at(&mut head, 0)?;
    Ok((fingerprint, head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_found_or_it_is_said_why_not() {
        let bash = Shell::find(OsStr::new("bash")).expect("bash");
        assert_eq!((bash.kind, bash.path.is_absolute()), (Kind::Bash, true));
        let problem = |name: &str| Shell::find(OsStr::new(name)).expect_err("none").to_string();
        for missing in ["no-such-shell", "/etc/passwd", "/usr"] {
            assert!(problem(missing).contains("there is no shell"), "{missing}");
        }
        let folder = tempfile::tempdir().expect("temp dir");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").expect("a file");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a mode");
        assert!(problem(script.to_str().expect("a plain path")).contains("script"));
    }

    /// Expected: a file whose program headers lie nowhere has no loader. Happened: their address overflowed.
    #[test]
    fn a_program_without_a_loader_is_told_from_one_with() {
        let folder = tempfile::tempdir().expect("temp dir");
        let path = folder.path().join("program");
        let own = std::fs::read("/proc/self/exe").expect("this test");
        let mut wild = own.clone();
        wild[32..40].fill(0xff);
        let programs: [(&[u8], Option<&str>); 4] = [
            (&own, None),
            (&own[..40], Some("no 64-bit program")),
            (b"\x7fELF", Some("no 64-bit program")),
            (&wild, Some("statically linked")),
        ];
        for (bytes, expected) in programs {
            std::fs::write(&path, bytes).expect("a file");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .expect("a mode");
            let problem = Shell::find(path.as_os_str()).err().map(|problem| problem.to_string());
            match expected {
                None => assert_eq!(problem, None),
                Some(expected) => assert!(problem.is_some_and(|problem| problem.contains(expected))),
            }
        }
    }
}
