//! Builds several languages in parallel.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Builder};

use model::{CaseError, ErrorKind, Observer, Silent, WorkerEnd, describe_errno};
use process::POLL_INTERVAL;

use crate::build::{BuildCache, Built, Unbuilt};
use crate::environment::{environment, expand};
use crate::program::{Program, Worker};
use crate::registry::Language;
use crate::select::{LanguageVariant, without_repetitions};
use crate::toolchain::probe;

type BuildResult = Result<Built, Unbuilt>;
/// What is done with a language and the version of its toolchain, unless it is stopped.
type Work<'a> = dyn Fn(&Language, String, &dyn Fn() -> bool) -> BuildResult + Sync + 'a;

impl BuildCache {
    /// Each language's earlier build, or why there is none. Builds nothing.
    pub fn states(&self, languages: &[&Language], stop: &dyn Fn() -> bool) -> Vec<BuildResult> {
        let state = |language: &Language, version: String, _: &dyn Fn() -> bool| {
            self.find(language, &version).ok_or(Unbuilt::NotYet(version))
        };
        self.in_parallel(languages, &state, &mut Silent, stop)
    }

    /// Builds languages in parallel, except those with an earlier build. The results are in the order of `languages`.
    pub fn build(
        &self,
        languages: &[&Language],
        observer: &mut dyn Observer,
        stop: &dyn Fn() -> bool,
    ) -> Vec<BuildResult> {
        let build = |language: &Language, version: String, stop: &dyn Fn() -> bool| {
            self.make(language, &version, stop)
        };
        self.in_parallel(languages, &build, observer, stop)
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

    /// Calls `work` for each language and the version of its toolchain, with one thread for each CPU. Only the calling thread calls
    /// `observer` and `stop`.
    fn in_parallel(
        &self,
        languages: &[&Language],
        work: &Work<'_>,
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
                        let stop = || stopped.load(Ordering::Relaxed);
                        let version = probe(language, &self.root, &self.cleaner, &stop);
                        let result = version.map_err(Unbuilt::Missing);
                        let result = result.and_then(|version| work(language, version, &stop));
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
                    Ok((index, None)) => {
                        observer.progress(&format!("building {}", languages[index].name), None)
                    }
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
}

/// The program of a choice, or why there is none.
fn worker(choice: &LanguageVariant<'_>, built: &BuildResult) -> Worker {
    let end = WorkerEnd {
        language: choice.language.name.clone(),
        variant: choice.variant.name.clone(),
        toolchain: built.as_ref().ok().map(|built| built.version.clone()),
    };
    let program = match built {
        Ok(built) => Ok(Program {
            command: choice
                .variant
                .run
                .iter()
                .map(|word| expand(word, &built.folder, &built.cache))
                .collect(),
            folder: Some(built.folder.join("src")),
            environment: environment(choice.language, &built.folder, &built.cache)
                .map(|(name, value)| (name.into(), value))
                .collect(),
            receiver: choice.language.receiver,
            end: end.clone(),
        }),
        Err(Unbuilt::Missing(error)) => Err(error.clone()),
        Err(error) => {
            let message = format!("{} was not built: {error}", choice.language.name);
            Err(CaseError::new(ErrorKind::Failed, message))
        }
    };
    Worker { end, transport: choice.language.transport.clone(), program }
}
