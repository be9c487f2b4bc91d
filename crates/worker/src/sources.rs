//! The registry's and the workers' files: embedded in the binary, or in a folder for developers of workers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

/// Environment variable: the path of a folder that replaces the embedded workers. It contains `workers.toml` and the folders named there.
pub const WORKERS_VARIABLE: &str = "HOSEPIPE_WORKERS";

/// The folder workers/ of the repository when this program was compiled (in this crate's folder a link, in its package a copy).
static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/workers");

/// The file name of a worker's `Cargo.toml`: cargo excludes every folder with a `Cargo.toml` from the package that contains it.
const CARGO_TEMPLATE: &str = "Cargo.toml.in";

/// Files by their path within a folder.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A tree of the workers' files.
#[derive(Debug, Clone)]
pub(crate) enum Sources {
    /// In this program.
    Embedded,
    /// On disk.
    Folder(PathBuf),
}

impl Sources {
    /// The folder that [`WORKERS_VARIABLE`] names, or else the embedded one.
    pub(crate) fn from_environment() -> Self {
        match std::env::var_os(WORKERS_VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::Folder(PathBuf::from(folder)),
            None => Self::Embedded,
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Embedded => "the workers within this program".to_owned(),
            Self::Folder(folder) => folder.display().to_string(),
        }
    }

    /// The text of workers.toml.
    pub(crate) fn registry_text(&self) -> io::Result<String> {
        let bytes = match self {
            Self::Embedded => {
                EMBEDDED.get_file("workers.toml").ok_or(io::ErrorKind::NotFound)?.contents().to_vec()
            }
            Self::Folder(folder) => read_file(&folder.join("workers.toml"))?,
        };
        String::from_utf8(bytes).map_err(io::Error::other)
    }

    /// All files of a worker's folder, by their path in it.
    pub(crate) fn files(&self, folder: &str) -> io::Result<Files> {
        let mut files = BTreeMap::new();
        match self {
            Self::Embedded => {
                let embedded =
                    EMBEDDED.get_dir(folder).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
                copy_tree(embedded, embedded.path(), &mut files);
            }
            Self::Folder(root) => read_tree(&root.join(folder), Path::new(""), &mut files)?,
        }
        if let Some(manifest) = files.remove(Path::new(CARGO_TEMPLATE)) {
            files.insert("Cargo.toml".into(), manifest);
        }
        Ok(files)
    }
}

/// Copies every file below an embedded folder, by its path below `root`.
fn copy_tree(folder: &Dir<'_>, root: &Path, files: &mut Files) {
    for file in folder.files() {
        let inner = file.path().strip_prefix(root).unwrap_or(file.path());
        files.insert(inner.to_owned(), file.contents().to_vec());
    }
    folder.dirs().for_each(|below| copy_tree(below, root, files));
}

/// Reads every file below a folder. Symbolic links to folders are not followed: they may form a cycle.
fn read_tree(folder: &Path, inner: &Path, files: &mut Files) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = inner.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            read_tree(&entry.path(), &path, files)?;
        } else {
            files.insert(path, read_file(&entry.path())?);
        }
    }
    Ok(())
}

/// Reads a regular file: opening a FIFO would block.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other(format!("{} is not a regular file", path.display())));
    }
    std::fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::registry::Registry;

    /// Not a worker: a cross-compiled program that hosepipe does not run.
    const NOT_A_WORKER: &str = "windows";
    /// The folder of workers with other transports than a pipe.
    const PEERS: &str = "peers";

    #[test]
    fn a_fifo_or_a_cycle_of_links_among_the_sources_is_an_error() {
        let lab = tempfile::tempdir().expect("a folder");
        let folder = lab.path().join("x");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("source"), "text").expect("written");
        std::os::unix::fs::symlink("source", folder.join("link")).expect("linked");
        std::fs::write(lab.path().join("workers.toml"), "").expect("written");
        let sources = Sources::Folder(lab.path().to_owned());
        assert_eq!(sources.files("x").expect("read").len(), 2);
        for (make, path) in [("ln -s .", "x/circle"), ("mkfifo", "x/fifo"), ("mkfifo", "workers.toml")] {
            let command = format!("rm -f {path} && {make} {path}");
            let mut shell = std::process::Command::new("sh");
            assert!(
                shell.args(["-c", &command]).current_dir(lab.path()).status().expect("sh runs").success()
            );
            let error = sources.registry_text().and_then(|_| sources.files("x")).expect_err("refused");
            assert!(error.to_string().ends_with("is not a regular file"), "{command}: {error}");
            std::fs::remove_file(lab.path().join(path)).expect("removed");
        }
    }

    #[test]
    fn every_folder_has_an_entry_and_every_entry_a_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("workers");
        let folders_in = |folder: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(folder).expect("the folder of workers");
            let entries = entries.map(|entry| entry.expect("a readable entry"));
            let folders = entries.filter(|entry| entry.path().is_dir());
            folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let mut folders: BTreeSet<String> = folders_in(&root).into_iter().collect();
        assert!(folders.remove(NOT_A_WORKER) && folders.remove(PEERS));
        folders.extend(folders_in(&root.join(PEERS)).iter().map(|name| format!("{PEERS}/{name}")));
        let registry = Registry::read(Sources::Embedded).expect("the registry reads");
        let registered = registry.languages().iter().map(|language| language.folder.clone()).collect();
        assert_eq!(folders, registered);
        for language in registry.languages() {
            let files = registry.sources.files(&language.folder).expect("embedded");
            assert!(files.contains_key(Path::new("README.md")), "{} has no README", language.folder);
            assert!(files.len() >= 2, "{} has no program", language.folder);
        }
    }
}
