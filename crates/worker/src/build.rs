//! Building a language's program, once for each state of its sources, its build command, its toolchain and this CPU.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use model::describe_errno;
use thiserror::Error;
use twox_hash::XxHash3_64;

use crate::captured::Captured;
use crate::command::{NotRun, run, shown};
use crate::guard::Guard;
use crate::registry::Language;
use crate::sources::Sources;
use crate::toolchain::ending;

/// A compiler that takes longer hangs: the slowest of them, with cold caches on a small machine, takes one minute.
const BUILD_MAX: Duration = Duration::from_secs(600);

/// As much of a compiler's words is kept: the first error matters most, the last line often sums up.
const HEAD_MAX: usize = 6 << 10;
const TAIL_MAX: usize = 2 << 10;

/// Folders of unfinished builds begin with this.
const UNFINISHED: &str = ".making-";

/// A language's program, built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The toolchain's version.
    pub version: String,
    /// The folder that holds the copied sources in `src` and what was made of them in `out`.
    pub folder: PathBuf,
    /// A folder that the language keeps from build to build.
    pub cache: PathBuf,
}

/// Why a program was not built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The compiler refused, or died.
    #[error("`{command}` {how}:\n{said}")]
    Compiler {
        /// The build command.
        command: String,
        /// How it ended.
        how: String,
        /// Its own words.
        said: String,
    },
    /// It could not be tried.
    #[error("{0}")]
    System(String),
    /// The user wants no more.
    #[error("stopped")]
    Stopped,
}

/// What a build needs to know.
pub(crate) struct Site<'a> {
    pub(crate) language: &'a Language,
    pub(crate) sources: &'a Sources,
    /// The toolchain's version.
    pub(crate) version: &'a str,
    /// The folder of all languages' builds.
    pub(crate) root: &'a Path,
}

impl Built {
    /// Replaces what stands for folders in a registered word.
    pub(crate) fn expand(&self, word: &str) -> OsString {
        expand(word, &self.folder, &self.cache)
    }
}

fn expand(word: &str, folder: &Path, cache: &Path) -> OsString {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    word.replace("{src}", &text(folder.join("src")))
        .replace("{out}", &text(folder.join("out")))
        .replace("{cache}", &text(cache.to_owned()))
        .into()
}

impl Site<'_> {
    /// Where the finished build is, or will be.
    ///
    /// # Errors
    /// The sources cannot be read.
    fn place(&self) -> Result<(Built, BTreeMap<PathBuf, Vec<u8>>), BuildError> {
        let language = self.language;
        let files = self.sources.files(&language.folder).map_err(|error| {
            let whence = self.sources.name();
            BuildError::System(format!(
                "cannot read {} of {whence}: {}",
                language.folder,
                describe_errno(&error)
            ))
        })?;
        let key = hash(language, &files, self.version);
        let built = Built {
            version: self.version.to_owned(),
            folder: self.root.join(format!("{}-{key:016x}", language.key)),
            cache: self.root.join("cache").join(&language.key),
        };
        Ok((built, files))
    }

    /// What was built before.
    pub(crate) fn find(&self) -> Option<Built> {
        self.place().ok().map(|(built, _)| built).filter(|built| built.folder.is_dir())
    }

    /// Builds it, unless that was done before. Two that build the same do not disturb each other: a build is made
    /// aside and gets its name when it is complete.
    pub(crate) fn build(&self, guard: &Guard, stop: &dyn Fn() -> bool) -> Result<Built, BuildError> {
        let (built, files) = self.place()?;
        if built.folder.is_dir() {
            return Ok(built);
        }
        let failed = |what: &str, path: &Path, error: &io::Error| {
            BuildError::System(format!("cannot {what} {}: {}", path.display(), describe_errno(error)))
        };
        fs::create_dir_all(&built.cache).map_err(|error| failed("make the folder", &built.cache, &error))?;
        clear_unfinished(self.root);
        let aside = tempfile::Builder::new()
            .prefix(&format!("{UNFINISHED}{}-", self.language.key))
            .tempdir_in(self.root)
            .map_err(|error| failed("make a folder in", self.root, &error))?;
        write_sources(aside.path(), &files)
            .map_err(|error| failed("write sources to", aside.path(), &error))?;
        self.compile(aside.path(), &built.cache, guard, stop)?;
        match fs::rename(aside.path(), &built.folder) {
            Ok(()) => {
                // It has its name now, and is not to be removed.
                let _ = aside.keep();
                Ok(built)
            }
            // Another hosepipe was faster.
            Err(_) if built.folder.is_dir() => Ok(built),
            Err(error) => Err(failed("finish", &built.folder, &error)),
        }
    }

    fn compile(
        &self,
        folder: &Path,
        cache: &Path,
        guard: &Guard,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), BuildError> {
        let language = self.language;
        let words: Vec<OsString> = language.build.iter().map(|word| expand(word, folder, cache)).collect();
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.join("src"));
        command.envs(language.environment.iter().map(|(name, value)| (name, expand(value, folder, cache))));
        let failed =
            |how: String, said: String| Err(BuildError::Compiler { command: shown(&words), how, said });
        match run(command, BUILD_MAX, Captured::keeping(HEAD_MAX, TAIL_MAX), guard, stop) {
            Ok(said) if said.status.success() => Ok(()),
            Ok(said) => failed(ending(said.status), said.text),
            Err(NotRun::Late(said)) => failed(format!("took longer than {} s", BUILD_MAX.as_secs()), said),
            Err(NotRun::Stopped) => Err(BuildError::Stopped),
            Err(NotRun::Start(error)) => {
                Err(BuildError::System(format!("`{}`: {}", shown(&words), describe_errno(&error))))
            }
        }
    }
}

/// Everything that the result of a build depends on. The CPU is part of it: programs are built for the one they run on.
fn hash(language: &Language, files: &BTreeMap<PathBuf, Vec<u8>>, version: &str) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    // Parts do not run into each other.
    let mut part = |bytes: &[u8]| {
        hasher.write(&(bytes.len() as u64).to_le_bytes());
        hasher.write(bytes);
    };
    for (path, bytes) in files {
        part(path.as_os_str().as_encoded_bytes());
        part(bytes);
    }
    language.build.iter().for_each(|word| part(word.as_bytes()));
    for (name, value) in &language.environment {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(version.as_bytes());
    part(cpu_abilities().as_bytes());
    hasher.finish()
}

/// The instruction sets of this CPU, as the kernel lists them.
fn cpu_abilities() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    line.unwrap_or_default().to_owned()
}

fn write_sources(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    fs::create_dir(folder.join("out"))?;
    // So that others may run what one has built.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for (path, bytes) in files {
        let path = folder.join("src").join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, bytes)?;
        if bytes.starts_with(b"#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Removes what builds have left that were killed long ago.
fn clear_unfinished(root: &Path) {
    let old = |entry: &fs::DirEntry| {
        let made =
            entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or_else(|_| SystemTime::now());
        made.elapsed().is_ok_and(|age| age > 2 * BUILD_MAX)
    };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) && old(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
