//! The folder of builds. A language's program is built once for each version of its sources, its build command, its toolchain and this CPU.

use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use model::{CaseError, describe_errno};
use process::{
    Announcer, Captured, Cleaner, TemporaryPath, close_to_others, describe_ending, is_open_to_others,
    make_private_folder, why_open_to_others,
};
use rustix::process::geteuid;
use thiserror::Error;
use twox_hash::XxHash3_64;

use crate::command::{NotFinished, run};
use crate::environment::{CACHES, cache_of, environment, expand};
use crate::launcher::start_cleaner;
use crate::registry::{Language, Registry};
use crate::sources::{Files, Sources};

/// Time limit of a compiler. The slowest one, with cold caches on a small machine, takes one minute.
const BUILD_MAX: Duration = Duration::from_secs(1800);

/// Bytes of a compiler's output that are kept at its beginning and at its end: the first error is the most important one, and the
/// last line is often a summary.
const HEAD_MAX: usize = 6 << 10;
const TAIL_MAX: usize = 2 << 10;

/// Prefix of the folders of unfinished builds, and the age at which such a folder counts as abandoned.
const UNFINISHED: &str = ".making-";
const UNFINISHED_MAX: Duration = BUILD_MAX.saturating_mul(2);

/// A build that was not used for this time is removed when another is made.
const UNUSED_MAX: Duration = Duration::from_secs(60 * 24 * 3600);

/// The folder for a compiler's temporary files (TMPDIR), beside `src` and `out`.
const TEMPORARY: &str = "tmp";

/// The file by which cargo marks its build folder (bford.info/cachedir).
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// The folder of builds, and their sources.
#[derive(Debug)]
pub struct BuildCache {
    sources: Sources,
    /// The folder of all builds.
    pub(crate) root: PathBuf,
    /// Ends compilers if this process is killed.
    pub(crate) cleaner: Cleaner,
}

/// A language's program, built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The toolchain's version.
    pub version: String,
    /// Holds the copied sources in `src` and the compiler's output in `out`.
    pub folder: PathBuf,
    /// A folder that the language keeps between builds.
    pub cache: PathBuf,
}

/// Why a language has no program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unbuilt {
    /// There is no toolchain; the remedy installs it.
    #[error("{} ({})", .0.message, .0.remedy.as_deref().unwrap_or_default())]
    Missing(CaseError),
    /// There is a toolchain of this version; no build was requested.
    #[error("not built")]
    NotYet(String),
    /// The build failed: the command, how it ended, and its output.
    #[error("{0}")]
    Failed(String),
    /// The user ended the run.
    #[error("stopped")]
    Stopped,
}

impl Built {
    /// Whether it exists, and no other user can have changed it.
    fn is_sound(&self) -> bool {
        is_open_to_others(&self.folder).is_ok_and(|open| !open)
    }
}

impl BuildCache {
    /// Opens the cache in the first of these folders in which no other user can change the builds: `workers` in the cargo
    /// target folder that contains this program, `$XDG_CACHE_HOME/hosepipe/workers`, `~/.cache/hosepipe/workers`,
    /// `$TMPDIR/hosepipe-UID/workers`.
    ///
    /// # Errors
    /// There is no such folder, or no process can be started.
    pub fn open(registry: &Registry) -> io::Result<Self> {
        Self::open_in(registry, root()?)
    }

    /// Opens the cache in this folder, which the first build creates.
    ///
    /// # Errors
    /// No process can be started.
    pub fn open_in(registry: &Registry, root: PathBuf) -> io::Result<Self> {
        Ok(Self { sources: registry.sources.clone(), root, cleaner: start_cleaner()? })
    }

    /// The paths of the finished build, which may not exist yet, and its sources.
    fn locate(&self, language: &Language, version: &str) -> Result<(Built, Files), Unbuilt> {
        let files = self.sources.files(&language.folder).map_err(|error| {
            let (folder, root, why) = (&language.folder, self.sources.name(), describe_errno(&error));
            Unbuilt::Failed(format!("cannot read {folder} of {root}: {why}"))
        })?;
        let key = hash(language, &files, version);
        let built = Built {
            version: version.to_owned(),
            folder: self.root.join(format!("{}-{key:016x}", language.key)),
            cache: cache_of(language, &self.root),
        };
        Ok((built, files))
    }

    /// An earlier build of the same sources.
    pub(crate) fn find(&self, language: &Language, version: &str) -> Option<Built> {
        self.locate(language, version).ok().map(|(built, _)| built).filter(Built::is_sound)
    }

    /// Builds a program, unless an earlier build exists. Two processes may build the same program at the same time, because a build
    /// gets its final name when it is complete.
    pub(crate) fn make(
        &self,
        language: &Language,
        version: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Built, Unbuilt> {
        let (built, files) = self.locate(language, version)?;
        if built.is_sound() {
            mark_as_used(&built.folder);
            return Ok(built);
        }
        let root = self.root.as_path();
        let failed = |what: &str, path: &Path, error: &io::Error| {
            Unbuilt::Failed(format!("cannot {what} {}: {}", path.display(), describe_errno(error)))
        };
        let caches = root.join(CACHES);
        for (folder, mode) in [(root, 0o755), (&caches, 0o700), (&built.cache, 0o700)] {
            make_private_folder(folder, mode).map_err(|error| failed("make the folder", folder, &error))?;
        }
        if let Some(why) = why_open_to_others(root) {
            return Err(Unbuilt::Failed(format!("nothing is built where others could change it: {why}")));
        }
        mark_as_used(&caches);
        remove_old(root);
        if built.folder.is_dir() && !built.is_sound() {
            // Other users can have changed it.
            fs::remove_dir_all(&built.folder).map_err(|error| failed("remove", &built.folder, &error))?;
        }
        let unfinished = format!("{UNFINISHED}{}-{:016x}", language.key, fastrand::u64(..));
        let unfinished = TemporaryPath::folder(&Announcer::default(), root.join(unfinished));
        let unfinished = unfinished.map_err(|error| failed("make a folder in", root, &error))?;
        write_sources(unfinished.path(), &files)
            .map_err(|error| failed("write sources to", unfinished.path(), &error))?;
        self.compile(language, unfinished.path(), stop)?;
        publish(unfinished.path()).map_err(|error| failed("finish", unfinished.path(), &error))?;
        match fs::rename(unfinished.path(), &built.folder) {
            Ok(()) => {
                // It was renamed: the old path no longer has to be removed.
                let _ = unfinished.keep();
                Ok(built)
            }
            // Another hosepipe has built the same.
            Err(_) if built.is_sound() => Ok(built),
            Err(error) => Err(failed("finish", &built.folder, &error)),
        }
    }

    fn compile(&self, language: &Language, folder: &Path, stop: &dyn Fn() -> bool) -> Result<(), Unbuilt> {
        let cache = &cache_of(language, &self.root);
        let words: Vec<OsString> = language.build.iter().map(|word| expand(word, folder, cache)).collect();
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.join("src"));
        command.envs(environment(language, folder, cache));
        // A killed compiler's temporary files are removed with the folder.
        command.env("TMPDIR", folder.join(TEMPORARY));
        let failed = |what: String| {
            let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            Err(Unbuilt::Failed(format!("`{}`{what}", shown.join(" "))))
        };
        match run(command, BUILD_MAX, Captured::keeping(HEAD_MAX, TAIL_MAX), &self.cleaner, stop) {
            Ok((status, _)) if status.success() => Ok(()),
            Ok((status, text)) => failed(format!(" {}:\n{text}", describe_ending(status))),
            Err(NotFinished::Late(text)) => {
                failed(format!(" took longer than {} s:\n{text}", BUILD_MAX.as_secs()))
            }
            Err(NotFinished::Stopped) => Err(Unbuilt::Stopped),
            Err(NotFinished::System(error)) => failed(format!(": {}", describe_errno(&error))),
        }
    }
}

/// A hash of everything on which the result of a build depends, also the CPU: programs are built for the CPU on which they run.
fn hash(language: &Language, files: &Files, version: &str) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    // With its length, so that "ab", "c" and "a", "bc" have different hashes.
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
    part(cpu_features().as_bytes());
    hasher.finish()
}

/// The instruction sets of this CPU, as the kernel lists them.
fn cpu_features() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    line.unwrap_or_default().to_owned()
}

fn write_sources(folder: &Path, files: &Files) -> io::Result<()> {
    fs::create_dir(folder.join("out"))?;
    fs::create_dir(folder.join(TEMPORARY))?;
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

/// Lets other users run a finished build, but not change it.
fn publish(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder.join(TEMPORARY))?;
    close_to_others(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// The folder that [`BuildCache::open`] describes.
fn root() -> io::Result<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().skip(1).find(|folder| folder.join(CACHE_TAG).is_file());
    // Relative paths are ignored (XDG Base Directory Specification).
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cached = |folder: PathBuf| folder.join("hosepipe/workers");
    let temporary = variable("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    let candidates = [
        target.map(|target| target.join("workers")),
        variable("XDG_CACHE_HOME").map(cached),
        variable("HOME").map(|home| cached(home.join(".cache"))),
        Some(temporary.join(format!("hosepipe-{}/workers", geteuid().as_raw()))),
    ];
    let mut why = String::new();
    for root in candidates.into_iter().flatten() {
        if root.is_dir() {
            // Removes write access of other users.
            let _ = process::make_private_folder(&root, 0o755);
        }
        match process::why_open_to_others(&root) {
            None => return Ok(root),
            Some(reason) => why = reason,
        }
    }
    Err(io::Error::other(format!(
        "no folder for building workers is safe from other users: {why}; set XDG_CACHE_HOME to a folder of your own"
    )))
}

/// Removes abandoned unfinished builds, and builds that were not used for a long time.
fn remove_old(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        // An entry without a date, or with one in the future, counts as new.
        let age = used.ok().and_then(|used| used.elapsed().ok()).unwrap_or_default();
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if age > if unfinished { UNFINISHED_MAX } else { UNUSED_MAX } {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Sets a folder's modification time to now.
fn mark_as_used(folder: &Path) {
    // This fails in a cache that belongs to another user: that user's hosepipe removes old builds.
    let _ = fs::File::open(folder).and_then(|folder| folder.set_modified(SystemTime::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    use tempfile::TempDir;

    use crate::registry::Registry;

    /// A language whose build copies its only source, and records that it was run.
    struct Lab {
        sources: TempDir,
        root: TempDir,
    }

    impl Lab {
        fn new() -> Self {
            let folder = || TempDir::new().expect("a folder");
            let lab = Self { sources: folder(), root: folder() };
            fs::create_dir(lab.sources.path().join("x")).expect("made");
            lab.write("one");
            lab
        }

        fn write(&self, text: &str) {
            fs::write(self.sources.path().join("x/source"), text).expect("written");
        }

        fn build(&self, command: &str) -> Result<Built, Unbuilt> {
            self.build_in(self.root.path(), command)
        }

        fn build_in(&self, root: &Path, command: &str) -> Result<Built, Unbuilt> {
            let language = Language {
                name: "X".to_owned(),
                key: "x".to_owned(),
                folder: "x".to_owned(),
                transport: None,
                receiver: crate::registry::Receiver::Child,
                package: "x".to_owned(),
                probe: Vec::new(),
                build: ["sh", "-c", command].map(str::to_owned).to_vec(),
                environment: [("NOTES".to_owned(), "{cache}/notes".to_owned())].into(),
                variants: Vec::new(),
            };
            let registry = Registry::of_folder(self.sources.path());
            BuildCache::open_in(&registry, root.to_owned()).expect("a cache").make(&language, "1", &|| false)
        }

        /// Number of builds that were run.
        fn builds(&self) -> usize {
            fs::read_to_string(self.root.path().join("cache/x/notes")).unwrap_or_default().lines().count()
        }
    }

    const COPY: &str = "cp {src}/source {out}/program && echo built >>$NOTES";

    #[test]
    fn a_program_is_built_again_only_after_a_change() {
        let lab = Lab::new();
        let first = lab.build(COPY).expect("built");
        assert_eq!(fs::read_to_string(first.folder.join("out/program")).expect("there"), "one");
        assert_eq!(lab.build(COPY), Ok(first.clone()));
        assert_eq!(lab.builds(), 1);
        lab.write("two");
        let second = lab.build(COPY).expect("built");
        assert_ne!(first.folder, second.folder);
        assert_eq!(fs::read_to_string(second.folder.join("out/program")).expect("there"), "two");
        assert_eq!(lab.builds(), 2);
        assert!(lab.build(&format!("{COPY}; true")).expect("built").folder != second.folder);
    }

    #[test]
    fn a_build_that_other_users_could_have_changed_is_built_again() {
        let lab = Lab::new();
        // As under a umask of 0.
        let built = lab.build(&format!("umask 0; {COPY}; chmod 777 {{out}}/program")).expect("built");
        let program = built.folder.join("out/program");
        assert!(!is_open_to_others(&built.folder).expect("there"));
        fs::write(&program, "planted").expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).expect("chmod");
        let again = lab.build(&format!("umask 0; {COPY}; chmod 777 {{out}}/program")).expect("built");
        assert_eq!((again, lab.builds()), (built, 2));
        assert_eq!(fs::read_to_string(&program).expect("there"), "one");
        // Nothing is built in a folder to which all users may write.
        fs::set_permissions(lab.root.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        let public = lab.root.path().join("public");
        fs::create_dir(&public).expect("made");
        fs::set_permissions(&public, fs::Permissions::from_mode(0o777)).expect("chmod");
        let error = lab.build_in(&public.join("workers"), COPY).expect_err("refused").to_string();
        assert!(error.ends_with(&format!("others may write to {}", public.display())), "{error}");
    }

    #[test]
    fn a_compilers_temporary_files_are_removed() {
        let lab = Lab::new();
        let built = lab.build(&format!("{COPY} && touch $TMPDIR/cc1.s && echo $TMPDIR >{{out}}/where"));
        let written = fs::read_to_string(built.expect("built").folder.join("out/where")).expect("there");
        let folder = Path::new(written.trim());
        assert!(folder.starts_with(lab.root.path()) && !folder.exists(), "{written}");
    }

    #[test]
    fn a_build_that_fails_leaves_no_files_and_shows_its_output() {
        let lab = Lab::new();
        let Err(Unbuilt::Failed(text)) = lab.build("echo line 3: no >&2; exit 7") else {
            panic!("it failed");
        };
        assert_eq!(text, "`sh -c echo line 3: no >&2; exit 7` exited with 7:\nline 3: no");
        let left: Vec<_> = fs::read_dir(lab.root.path()).expect("a folder").flatten().collect();
        assert_eq!(left.len(), 1, "the language's own cache and nothing else: {left:?}");
    }

    #[test]
    fn two_simultaneous_builds_of_the_same_program_succeed() {
        let lab = Lab::new();
        let slow = format!("sleep 0.1; {COPY}");
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| lab.build(&slow));
            (lab.build(&slow), other.join().expect("no panic"))
        });
        assert!(one.is_ok());
        assert_eq!(one, other);
    }

    #[test]
    fn old_builds_are_removed() {
        let lab = Lab::new();
        let old = |name: &str, age: Duration| {
            let path = lab.root.path().join(name);
            fs::create_dir(&path).expect("made");
            let folder = fs::File::open(&path).expect("opened");
            folder.set_modified(SystemTime::now() - age).expect("dated");
            path
        };
        let hour = Duration::from_secs(3600);
        let [gone, kept, unused] = [(".making-x-1", hour), ("x-1", hour), ("x-2", UNUSED_MAX + hour)]
            .map(|(name, age)| old(name, age));
        lab.build(COPY).expect("built");
        assert_eq!([gone, kept, unused].map(|path| path.exists()), [false, true, false]);
    }
}
