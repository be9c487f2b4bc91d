//! What flowed through each link, kept as files named by position and command.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::describe_errno;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open, openat};
use rustix::io::Errno;
use thiserror::Error;

use crate::syntax::{Pipeline, Script, Start};

/// The longest part of a command in a file's name, in characters.
const NAME_CHARACTERS_MAX: usize = 24;

/// Where each link of a text is kept.
#[derive(Debug)]
pub struct Keep {
    /// One path for each link of each item, as it is shown.
    paths: Vec<Vec<PathBuf>>,
    /// The folder, which a relative name no longer leads to after a `cd` of the text.
    folder: OwnedFd,
    overwrite: bool,
}

/// Why nothing can be kept where it was asked for.
#[derive(Debug, Error)]
pub enum KeepProblem {
    /// The folder can be neither used nor made.
    #[error("cannot keep anything in {folder}: {}", describe_errno(.source))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Something was kept there before.
    #[error(
        "{0} is there already, and what two pipelines left in one folder cannot be told apart: name another folder, \
         or say --force"
    )]
    Exists(PathBuf),
    /// Somebody keeps something there at this moment.
    #[error("another hosepipe keeps what flows in {0} right now: name another folder")]
    Busy(PathBuf),
}

impl Keep {
    /// Makes the folder and takes it for as long as this value lives. Without `overwrite`, nothing that was kept before
    /// may be in it.
    ///
    /// # Errors
    /// The folder, what is in it, or who else uses it.
    pub fn new(folder: &Path, overwrite: bool, script: &Script) -> Result<Self, KeepProblem> {
        std::fs::create_dir_all(folder)
            .map_err(|source| KeepProblem::Folder { folder: folder.to_owned(), source })?;
        let refused = |error: Errno| KeepProblem::Folder { folder: folder.to_owned(), source: error.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(folder, flags, Mode::empty()).map_err(refused)?;
        // Where a file system has no such locks, two at the same moment are not seen.
        if flock(&opened, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(KeepProblem::Busy(folder.to_owned()));
        }
        let alone = script.items.len() == 1;
        let items = script.items.iter().enumerate();
        let paths: Vec<Vec<PathBuf>> =
            items.map(|(index, item)| paths(folder, (!alone).then_some(index), &item.pipeline)).collect();
        let keeps_nothing = paths.iter().all(Vec::is_empty);
        match kept_before(folder).filter(|_| !overwrite && !keeps_nothing) {
            Some(name) => Err(KeepProblem::Exists(folder.join(name))),
            None => Ok(Self { paths, folder: opened, overwrite }),
        }
    }

    /// Makes the file for a link, empty.
    ///
    /// # Errors
    /// It came to be meanwhile, or cannot be made.
    pub(crate) fn file(&self, item: usize, link: usize) -> Result<(File, PathBuf), KeepProblem> {
        let path = self.paths.get(item).and_then(|paths| paths.get(link)).cloned().unwrap_or_default();
        let name = path.file_name().unwrap_or_default();
        let how = if self.overwrite { OFlags::TRUNC } else { OFlags::EXCL };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | how;
        let opened = openat(&self.folder, name, flags, Mode::from_raw_mode(0o666));
        match opened {
            Ok(file) => Ok((file.into(), path)),
            Err(Errno::EXIST) => Err(KeepProblem::Exists(path)),
            Err(error) => Err(KeepProblem::Folder { folder: path, source: error.into() }),
        }
    }
}

/// `1-cat`, `2-sort`…, and in a list `1.1-cat`: what each stage but the last wrote.
fn paths(folder: &Path, item: Option<usize>, pipeline: &Pipeline) -> Vec<PathBuf> {
    let before = item.map(|item| format!("{}.", item + 1)).unwrap_or_default();
    let links = pipeline.stages.len().saturating_sub(1);
    let stages = pipeline.stages.iter().take(links).enumerate();
    stages
        .map(|(index, stage)| {
            let name = match &stage.start {
                Start::Direct(command) => command.words[0].rsplit('/').next().unwrap_or_default(),
                Start::Shell => &stage.text,
            };
            folder.join(format!("{before}{}-{}", index + 1, file_name(name)))
        })
        .collect()
}

/// A file of a folder whose name says that it was kept there, the first by name.
fn kept_before(folder: &Path) -> Option<String> {
    let is_position = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let names =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.split_once('-').is_some_and(|(position, _)| is_position(position))).min()
}

/// What of a command can stand in a file's name.
fn file_name(command: &str) -> String {
    let fits = |c: char| if c.is_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    let name: String = command.chars().take(NAME_CHARACTERS_MAX).map(fits).collect();
    let name = name.trim_matches('_');
    if name.is_empty() { "stage".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    fn names(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("temp dir");
        let keep = Keep::new(folder.path(), false, &parse(text).expect("a text")).expect("an empty folder");
        let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        keep.paths.iter().flatten().filter_map(name).collect()
    }

    #[test]
    fn files_are_named_by_position_and_command() {
        assert_eq!(names("/bin/cat f | sort -n | head"), ["1-cat", "2-sort"]);
        assert_eq!(names("a | b; c; d | e"), ["1.1-a", "3.1-d"]);
        assert_eq!(names("while read x; do echo; done | b"), ["1-while_read_x__do_echo__d"]);
        assert!(names("ls").is_empty());
    }

    #[test]
    fn what_is_there_is_not_overwritten() {
        let folder = tempfile::tempdir().expect("temp dir");
        std::fs::write(folder.path().join("1-a"), "precious").expect("a file");
        std::fs::write(folder.path().join("notes-1"), "of the user's own").expect("a file");
        for text in ["a | b", "c | d", "c; d | e"] {
            let script = parse(text).expect("a text");
            match Keep::new(folder.path(), false, &script) {
                Err(KeepProblem::Exists(path)) => assert_eq!(path, folder.path().join("1-a"), "{text}"),
                other => panic!("{text}: {other:?}"),
            }
            assert!(Keep::new(folder.path(), true, &script).is_ok());
        }
        assert!(Keep::new(folder.path(), false, &parse("a").expect("a text")).is_ok(), "it keeps nothing");
        assert_eq!(std::fs::read(folder.path().join("1-a")).expect("still there"), b"precious");
    }

    #[test]
    fn a_folder_is_one_pipelines_at_a_time() {
        let folder = tempfile::tempdir().expect("temp dir");
        let script = parse("a | b").expect("a text");
        let first = Keep::new(folder.path(), true, &script).expect("an empty folder");
        assert!(matches!(Keep::new(folder.path(), true, &script), Err(KeepProblem::Busy(_))));
        drop(first);
        assert!(Keep::new(folder.path(), true, &script).is_ok());
    }
}
