//! Every registered worker of a pipe whose toolchain is here, built once for all tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use model::Silent;
use tempfile::TempDir;
use worker::{BuildCache, Language, LanguageVariant, Program, Registry, ResultLines, Unbuilt};

/// The workers of a pipe that can be run here.
pub(crate) fn fleet() -> &'static [Program] {
    static FLEET: OnceLock<Vec<Program>> = OnceLock::new();
    FLEET.get_or_init(|| built(false))
}

/// The workers with a transport of their own that can be run here. iceoryx2 takes a minute to build: it is measured in `bench_workers`.
pub(crate) fn peers() -> &'static [Program] {
    static PEERS: OnceLock<Vec<Program>> = OnceLock::new();
    PEERS.get_or_init(|| built(true))
}

/// All programs that can be run here. One that is not here is skipped with a line on standard error; where CI is set
/// everything has to be here. A program that does not build is a failure everywhere, unless a peer's sources are out of reach.
fn built(peers: bool) -> Vec<Program> {
    let registry = Registry::open().expect("the registry reads");
    let cache = BuildCache::open(&registry).expect("a build cache");
    let is_wanted =
        |language: &&Language| language.transport.is_some() == peers && language.key != "iceoryx2";
    let languages: Vec<&Language> = registry.languages().iter().filter(is_wanted).collect();
    for (language, result) in languages.iter().zip(cache.build(&languages, &mut Silent, &|| false)) {
        // Past the capture of the test harness: a skip is seen.
        let skip = |why: &str| {
            let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", language.name);
        };
        match result {
            Ok(_) => {}
            Err(Unbuilt::Missing(missing)) => {
                assert!(std::env::var_os("CI").is_none(), "{}: {}", language.name, missing.message);
                skip(&Unbuilt::Missing(missing).to_string());
            }
            Err(error) => match sources_out_of_reach(&error.to_string()) {
                true if peers => skip("its sources are out of reach"),
                _ => panic!("{}: {error}", language.name),
            },
        }
    }
    let choices: Vec<LanguageVariant<'_>> =
        languages.iter().flat_map(|language| language.choices()).collect();
    let workers = cache.workers(&choices, &mut Silent, &|| false);
    workers.into_iter().filter_map(|worker| worker.program.ok()).collect()
}

/// Whether a package registry could not be reached.
pub(crate) fn sources_out_of_reach(message: &str) -> bool {
    let said = [
        "Could not resolve",
        "Couldn't connect",
        "failed to download",
        "download of",
        "spurious network error",
        "Could not transfer artifact",
    ];
    said.iter().any(|words| message.contains(words))
}

/// A place for result files, with a name that a shell would take apart.
pub(crate) struct Results {
    folder: TempDir,
}

impl Results {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("a 'result' of $HOME ").tempdir();
        Self { folder: folder.expect("a folder") }
    }

    /// An empty file.
    pub(crate) fn fresh(&self) -> PathBuf {
        let path = self.folder.path().join("result");
        std::fs::write(&path, "").expect("writable");
        path
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// What stands in a result file.
pub(crate) fn read_lines(path: &Path, who: &str) -> ResultLines {
    let text = std::fs::read_to_string(path).expect("readable");
    ResultLines::parse(&text).unwrap_or_else(|wrong| panic!("{who}: {wrong}"))
}
