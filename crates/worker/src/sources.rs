//! Where the registry and the workers' sources come from: the binary itself, or a folder for those who work on them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

/// Names a folder to be read in place of the workers within the binary: it holds `workers.toml` and the folders
/// that stand in it.
pub const WORKERS_VARIABLE: &str = "HOSEPIPE_WORKERS";

/// The folder workers/ of the repository, as it was when this program was compiled.
static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../workers");

/// A tree of the workers' files.
#[derive(Debug, Clone)]
pub(crate) enum Sources {
    /// Within this program.
    Embedded,
    /// On disk.
    Folder(PathBuf),
}

impl Sources {
    /// What [`WORKERS_VARIABLE`] says, or what is within this program.
    pub(crate) fn from_environment() -> Self {
        match std::env::var_os(WORKERS_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::Folder(PathBuf::from(folder)),
            None => Self::Embedded,
        }
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Embedded => "the workers within this program".to_owned(),
            Self::Folder(folder) => folder.display().to_string(),
        }
    }

    /// The text of workers.toml.
    ///
    /// # Errors
    /// What the file system answered.
    pub(crate) fn registry_text(&self) -> io::Result<String> {
        match self {
            Self::Embedded => {
                let file = EMBEDDED.get_file("workers.toml").ok_or(io::ErrorKind::NotFound)?;
                String::from_utf8(file.contents().to_vec()).map_err(io::Error::other)
            }
            Self::Folder(folder) => std::fs::read_to_string(folder.join("workers.toml")),
        }
    }

    /// Every file of a worker's folder, by its path within it.
    ///
    /// # Errors
    /// What the file system answered; ENOENT where there is no such folder.
    pub(crate) fn files(&self, folder: &str) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        match self {
            Self::Embedded => {
                let embedded =
                    EMBEDDED.get_dir(folder).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
                copy_tree(embedded, embedded.path(), &mut files);
            }
            Self::Folder(root) => read_tree(&root.join(folder), Path::new(""), &mut files)?,
        }
        Ok(files)
    }
}

/// Copies every file below an embedded folder, by its path below `root`.
fn copy_tree(folder: &Dir<'_>, root: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for file in folder.files() {
        let inner = file.path().strip_prefix(root).unwrap_or(file.path());
        files.insert(inner.to_owned(), file.contents().to_vec());
    }
    folder.dirs().for_each(|below| copy_tree(below, root, files));
}

/// Reads every regular file below a folder.
fn read_tree(folder: &Path, inner: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = inner.join(entry.file_name());
        if entry.path().is_dir() {
            read_tree(&entry.path(), &path, files)?;
        } else {
            files.insert(path, std::fs::read(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::registry::Registry;

    /// Not measured by this program: it is cross-compiled, and has a README of its own.
    const OF_ITS_OWN: &str = "windows";

    #[test]
    fn every_folder_has_its_entry_and_every_entry_its_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workers");
        let entries = std::fs::read_dir(root).expect("the folder of workers");
        let folders: BTreeSet<String> = entries
            .map(|entry| entry.expect("a readable entry"))
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name != OF_ITS_OWN)
            .collect();
        let registry = Registry::of(Sources::Embedded).expect("the registry reads");
        let registered = registry.languages().iter().map(|language| language.folder.clone()).collect();
        assert_eq!(folders, registered);
        for language in registry.languages() {
            let files = registry.sources().files(&language.folder).expect("embedded");
            assert!(files.contains_key(Path::new("README.md")), "{} has no README", language.folder);
            assert!(files.len() >= 2, "{} has no program", language.folder);
        }
    }
}
