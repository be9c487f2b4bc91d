//! Keeps the bytes of each link in a file, which is named by position and command.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::describe_errno;
use process::create_at;
use rustix::fs::{FlockOperation, Mode, OFlags, RenameFlags, flock, open, renameat_with};
use rustix::io::Errno;
use thiserror::Error;

use crate::ledger::IN_THE_SHELL;

/// Longest part of a command in a file's name, in characters.
const NAME_CHARACTERS_MAX: usize = 24;

/// Suffix of a file that is not complete.
const INCOMPLETE: &str = ".incomplete";
/// Prefix of a file whose writer is not known yet.
const UNFINISHED: &str = "unfinished-";

/// The folder for the bytes of a text's links.
#[derive(Debug)]
pub struct Keep {
    /// The path for messages.
    path: PathBuf,
    /// The open folder. Its path cannot be used: if it is relative, it is wrong after a `cd` of the text.
    folder: OwnedFd,
    overwrite: bool,
    /// Number of pipelines that have a number in this folder.
    numbered: Cell<usize>,
}

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub enum KeepProblem {
    /// The folder cannot be made or used.
    #[error("cannot keep data in {folder}: {}", describe_errno(.source))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder has files of an earlier run.
    #[error(
        "{0} exists, and the files of two pipelines in one folder cannot be distinguished: name another folder, \
         or add --force"
    )]
    Exists(PathBuf),
    /// Another process uses the folder now.
    #[error("another hosepipe keeps its links in {0} now: name another folder")]
    Busy(PathBuf),
}

impl Keep {
    /// Makes the folder, and locks it while this value exists. Without `overwrite` it may not have files of an earlier run.
    ///
    /// # Errors
    /// The folder cannot be used, or another process uses it.
    pub fn new(folder: &Path, overwrite: bool) -> Result<Self, KeepProblem> {
        let refused = |source| KeepProblem::Folder { folder: folder.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(refused)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(folder, flags, Mode::empty()).map_err(|error| refused(error.into()))?;
        // On a file system without locks, another process that uses the folder is not noticed.
        if flock(&opened, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(KeepProblem::Busy(folder.to_owned()));
        }
        match kept_before(folder).filter(|_| !overwrite) {
            Some(name) => Err(KeepProblem::Exists(folder.join(name))),
            None => Ok(Self { path: folder.to_owned(), folder: opened, overwrite, numbered: Cell::new(0) }),
        }
    }

    /// Makes the folder with the lowest unused number in this folder.
    pub(crate) fn numbered(folder: &Path) -> Result<Self, KeepProblem> {
        let mut number = 1;
        loop {
            let path = folder.join(number.to_string());
            match std::fs::create_dir(&path) {
                Ok(()) => return Self::new(&path, false),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(source) => return Err(KeepProblem::Folder { folder: path, source }),
            }
        }
    }

    /// The number of the next pipeline whose files are named here, from 0; `None` for the first one if it is `alone`.
    pub(crate) fn next_number(&self, alone: bool) -> Option<usize> {
        let number = self.numbered.replace(self.numbered.get() + 1);
        (number > 0 || !alone).then_some(number)
    }

    /// Makes an empty file for a link. It has a preliminary name until its writer is known.
    pub(crate) fn file(&self, link: u64) -> Result<File, KeepProblem> {
        let name = unfinished(link);
        // Symbolic links are not followed: the folder may belong to another user.
        let made = create_at(&self.folder, name.as_str(), 0o666, self.overwrite);
        made.map_err(|source| KeepProblem::Folder { folder: self.path.join(name), source })
    }

    /// Names the file of a link by the position and the program of its writer: `1-cat`, or `1.1-cat` if a text has more than one pipeline.
    /// A file that is not complete has a suffix.
    ///
    /// # Errors
    /// Another process made a file of that name meanwhile.
    pub(crate) fn name(
        &self,
        link: u64,
        pipeline: Option<usize>,
        stage: usize,
        command: &str,
        is_whole: bool,
    ) -> Result<PathBuf, KeepProblem> {
        let before = pipeline.map(|number| format!("{}.", number + 1)).unwrap_or_default();
        let end = if is_whole { "" } else { INCOMPLETE };
        let name = format!("{before}{}-{}{end}", stage + 1, file_name(command));
        let flags = if self.overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(&self.folder, unfinished(link), &self.folder, &name, flags) {
            Ok(()) => Ok(self.path.join(name)),
            Err(Errno::EXIST) => Err(KeepProblem::Exists(self.path.join(name))),
            Err(error) => Err(KeepProblem::Folder { folder: self.path.join(name), source: error.into() }),
        }
    }
}

fn unfinished(link: u64) -> String {
    format!("{UNFINISHED}{link}")
}

/// The first file of a folder that has the name of a kept file, or of one that was left when hosepipe was killed.
fn kept_before(folder: &Path) -> Option<String> {
    let is_position = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let names =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_kept = |name: &String| {
        name.split_once('-').is_some_and(|(position, _)| is_position(position))
            || name.strip_prefix(UNFINISHED).is_some_and(is_position)
    };
    names.filter(is_kept).min()
}

/// The name of a command's program, with characters that a file's name may have.
fn file_name(command: &str) -> String {
    if command == IN_THE_SHELL {
        return "shell".to_owned();
    }
    let fits = |c: char| if c.is_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    // Commands that the shell executed itself are in parentheses, and have no program.
    let program = match command.split_whitespace().next() {
        Some(word) if !command.starts_with('(') => word.rsplit('/').next().unwrap_or(word),
        _ => command,
    };
    let name: String = program.chars().take(NAME_CHARACTERS_MAX).map(fits).collect();
    let name = name.trim_matches('_');
    if name.is_empty() { "stage".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As soon as the folder can be locked: a child of another test that has not executed its program yet has it open, and locked, too.
    fn kept_in(folder: &tempfile::TempDir, overwrite: bool) -> Result<Keep, KeepProblem> {
        let mut kept = std::iter::repeat_with(|| Keep::new(folder.path(), overwrite));
        kept.find(|kept| !matches!(kept, Err(KeepProblem::Busy(_)))).expect("it is repeated for ever")
    }

    #[test]
    fn files_are_named_by_position_and_command() {
        let folder = tempfile::tempdir().expect("temp dir");
        let keep = Keep::new(folder.path(), false).expect("an empty folder");
        let named = |pipeline, stage, command| {
            drop(keep.file(7).expect("a file"));
            let path = keep.name(7, pipeline, stage, command, true).expect("a name");
            path.file_name().expect("a name").to_string_lossy().into_owned()
        };
        assert_eq!(named(None, 0, "/bin/cat f"), "1-cat");
        assert_eq!(named(Some(2), 1, "sort -n"), "3.2-sort");
        assert_eq!(named(None, 2, "(echo a; sleep 1)"), "3-echo_a__sleep_1");
        assert_eq!(named(None, 3, IN_THE_SHELL), "4-shell");
        drop(keep.file(8).expect("a file"));
        assert!(matches!(keep.name(8, None, 0, "cat", true), Err(KeepProblem::Exists(_))), "not overwritten");
    }

    #[test]
    fn what_is_there_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("temp dir");
        std::fs::write(folder.path().join("1-a"), "precious").expect("a file");
        std::fs::write(folder.path().join("notes-1"), "of the user's own").expect("a file");
        match Keep::new(folder.path(), false) {
            Err(KeepProblem::Exists(path)) => assert_eq!(path, folder.path().join("1-a")),
            other => panic!("{other:?}"),
        }
        assert!(kept_in(&folder, true).is_ok());
        assert_eq!(std::fs::read(folder.path().join("1-a")).expect("still there"), b"precious");
        // A hosepipe that was killed has left this.
        std::fs::rename(folder.path().join("1-a"), folder.path().join("unfinished-0")).expect("renamed");
        assert!(matches!(kept_in(&folder, false), Err(KeepProblem::Exists(_))));
    }

    /// Happened: in a folder of another user a link that he had made was followed, and what it pointed to was overwritten.
    #[test]
    fn a_link_that_is_there_is_not_followed() {
        let folder = tempfile::tempdir().expect("temp dir");
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "precious").expect("a file");
        let keep = kept_in(&folder, false).expect("an empty folder");
        std::os::unix::fs::symlink(&precious, folder.path().join("unfinished-7")).expect("linked");
        assert!(matches!(keep.file(7), Err(KeepProblem::Folder { .. })));
        drop(keep);
        let keep = kept_in(&folder, true).expect("a folder");
        io::Write::write_all(&mut keep.file(7).expect("a new file"), b"flowed").expect("written");
        assert_eq!(std::fs::read(&precious).expect("still there"), b"precious");
    }

    #[test]
    fn a_folder_is_one_pipelines_at_a_time() {
        let folder = tempfile::tempdir().expect("temp dir");
        let first = Keep::new(folder.path(), true).expect("an empty folder");
        assert!(matches!(Keep::new(folder.path(), true), Err(KeepProblem::Busy(_))));
        drop(first);
        assert!(kept_in(&folder, true).is_ok());
    }
}
