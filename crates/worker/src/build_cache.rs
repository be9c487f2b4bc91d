//! The folder in which programs are built, and parallel builds of several languages.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Builder};

use model::{Observer, Silent, WorkerEnd, describe_errno};
use process::{Cleaner, POLL_INTERVAL};
use rustix::process::geteuid;

use crate::build::{Built, Unbuilt};
use crate::environment::environment;
use crate::launcher::start_cleaner;
use crate::program::{Program, Worker};
use crate::registry::{Language, Registry};
use crate::select::{LanguageVariant, without_repetitions};
use crate::toolchain::probe;

/// The file by which cargo marks its build folder (bford.info/cachedir).
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// The folder of builds, and the registry of their sources.
#[derive(Debug)]
pub struct BuildCache {
    registry: Registry,
    root: PathBuf,
    cleaner: Cleaner,
}

impl BuildCache {
    /// Opens the cache in the first of these folders in which no other user can change the builds: `workers` in the cargo
    /// target folder that contains this program, `$XDG_CACHE_HOME/hosepipe/workers`, `~/.cache/hosepipe/workers`,
    /// `$TMPDIR/hosepipe-UID/workers`.
    ///
    /// # Errors
    /// There is no such folder, or no process can be started.
    pub fn open(registry: Registry) -> io::Result<Self> {
        Self::open_in(registry, root()?)
    }

    /// Opens the cache in this folder, which the first build creates.
    ///
    /// # Errors
    /// No process can be started.
    pub fn open_in(registry: Registry, root: PathBuf) -> io::Result<Self> {
        let cleaner = start_cleaner()?;
        Ok(Self { registry, root, cleaner })
    }

    /// The registry of the sources.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The folder of all builds.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The process that ends compilers if this process is killed.
    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    /// Each language's earlier build, or why there is none. Builds nothing.
    pub fn states(&self, languages: &[&Language], stop: &dyn Fn() -> bool) -> Vec<Result<Built, Unbuilt>> {
        let state = |language: &Language, stop: &dyn Fn() -> bool| {
            let version = probe(language, &self.root, &self.cleaner, stop).map_err(Unbuilt::Missing)?;
            self.find(language, &version).ok_or(Unbuilt::NotYet(version))
        };
        in_parallel(languages, &state, &mut Silent, stop)
    }

    /// Builds languages in parallel, except those with an earlier build. The results are in the order of `languages`.
    pub fn build(
        &self,
        languages: &[&Language],
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Result<Built, Unbuilt>> {
        let build = |language: &Language, stop: &dyn Fn() -> bool| {
            let version = probe(language, &self.root, &self.cleaner, stop).map_err(Unbuilt::Missing)?;
            self.make(language, &version, stop)
        };
        in_parallel(languages, &build, observer, stop)
    }

    /// The programs of these choices, built if necessary. Where that fails, the worker has the error.
    pub fn workers(
        &self,
        choices: &[LanguageVariant<'_>],
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Worker> {
        let languages = without_repetitions(choices.iter().map(|choice| choice.language));
        let built = self.build(&languages, observer, stop);
        let index = |language: &Language| languages.iter().position(|known| *known == language);
        let worker = |choice| Some(worker(choice, &built[index(choice.language)?]));
        choices.iter().filter_map(worker).collect()
    }
}

/// The program of a choice, or why there is none.
fn worker(choice: &LanguageVariant<'_>, built: &Result<Built, Unbuilt>) -> Worker {
    let end = WorkerEnd {
        language: choice.language.name.clone(),
        variant: choice.variant.name.clone(),
        toolchain: built.as_ref().ok().map(|built| built.version.clone()),
    };
    let program = match built {
        Ok(built) => Ok(Program {
            command: choice.variant.run.iter().map(|word| built.expand(word)).collect(),
            folder: Some(built.folder.join("src")),
            environment: environment(choice.language, &built.folder, &built.cache)
                .map(|(name, value)| (name.into(), value))
                .collect(),
            receiver: choice.language.receiver,
            end: end.clone(),
        }),
        Err(unbuilt) => Err(unbuilt.case_error(choice.language)),
    };
    Worker { end, transport: choice.language.transport.clone(), program }
}

type BuildResult = Result<Built, Unbuilt>;

/// Calls `work` for each language, with one thread for each CPU. Only the calling thread calls `observer` and `stop`.
fn in_parallel(
    languages: &[&Language],
    work: &(dyn Fn(&Language, &dyn Fn() -> bool) -> BuildResult + Sync),
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
) -> Vec<BuildResult> {
    let stopped = AtomicBool::new(stop());
    let next = AtomicUsize::new(0);
    // A language's index, and its result; `None` while it is being built.
    let (reporter, reports) = mpsc::channel::<(usize, Option<BuildResult>)>();
    let threads = thread::available_parallelism().map_or(1, usize::from).min(languages.len());
    let mut results: Vec<_> = languages.iter().map(|_| Err(Unbuilt::Stopped)).collect();
    thread::scope(|scope| {
        for started in 0..threads {
            let (reporter, next, stopped) = (reporter.clone(), &next, &stopped);
            let thread = Builder::new().spawn_scoped(scope, move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(language) = languages.get(index) else { return };
                    // Never fails: the receiver outlives the senders.
                    let _ = reporter.send((index, None));
                    let result = work(language, &|| stopped.load(Ordering::Relaxed));
                    let _ = reporter.send((index, Some(result)));
                }
            });
            if let Err(error) = thread {
                // The threads that were started build all languages.
                if started == 0 {
                    let problem = format!("cannot start a thread: clone: {}", describe_errno(&error));
                    results.fill_with(|| Err(Unbuilt::Failed(problem.clone())));
                }
                break;
            }
        }
        drop(reporter);
        loop {
            match reports.recv_timeout(POLL_INTERVAL) {
                Ok((index, None)) => observer.progress(&format!("building {}", languages[index].name), None),
                Ok((index, Some(result))) => {
                    let problem = result.as_ref().err().map(Unbuilt::to_string);
                    observer.built(&languages[index].name, problem.as_deref());
                    results[index] = result;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if stop() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    });
    results
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
