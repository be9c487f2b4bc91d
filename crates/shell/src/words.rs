//! What the line editor knows while a line is typed: the names that are commands. Shared with the prompt, which tells
//! it what each line has changed.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pipeline::Session;

use crate::{builtins, options};

/// Names that are commands now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    path: Option<OsString>,
    /// Functions and aliases.
    defined: BTreeSet<String>,
    /// The programs in the folders of this path, read when first asked for.
    programs: Option<(Option<OsString>, Vec<String>)>,
    /// Names that were looked for since the last line.
    looked_for: HashMap<String, bool>,
    /// Options of programs that were asked for them, by the words that name them.
    options: HashMap<String, Vec<String>>,
}

impl Words {
    /// Takes over what a line has changed.
    pub(crate) fn learn(&self, session: &Session) {
        let mut known = self.lock();
        known.path = session.variable("PATH").map(ToOwned::to_owned);
        known.defined = session.defined().map(str::to_owned).collect();
        known.looked_for.clear();
    }

    /// Whether a command of this name would be found.
    pub(crate) fn is_command(&self, name: &str) -> bool {
        let mut known = self.lock();
        if builtins::is_ours(name) || pipeline::is_builtin(name) || known.defined.contains(name) {
            return true;
        }
        if let Some(found) = known.looked_for.get(name) {
            return *found;
        }
        let found = pipeline::program(name, known.path.as_deref()).is_some();
        known.looked_for.insert(name.to_owned(), found);
        found
    }

    /// Commands that begin so, sorted.
    pub(crate) fn commands(&self, start: &str) -> Vec<String> {
        let mut known = self.lock();
        let path = known.path.clone();
        if known.programs.as_ref().is_none_or(|(of, _)| *of != path) {
            let programs = programs(path.as_ref());
            known.programs = Some((path, programs));
        }
        let programs = known.programs.iter().flat_map(|(_, programs)| programs);
        let names = programs.chain(&known.defined).cloned().chain(builtins::names().map(str::to_owned));
        let all: BTreeSet<String> = names.filter(|name| name.starts_with(start)).collect();
        all.into_iter().collect()
    }

    /// Options of a program, which may depend on its first argument; none where it is not asked for them.
    pub(crate) fn options(&self, name: &str, first: Option<&str>) -> Vec<String> {
        self.asked(&format!("{name} {}", first.unwrap_or_default()), name, |path| {
            options::options(path, first)
        })
    }

    /// Subcommands of a program.
    pub(crate) fn subcommands(&self, name: &str) -> Vec<String> {
        self.asked(name, name, options::subcommands)
    }

    fn asked(&self, key: &str, name: &str, ask: impl Fn(&Path) -> Vec<String>) -> Vec<String> {
        let mut known = self.lock();
        if let Some(options) = known.options.get(key) {
            return options.clone();
        }
        let path = pipeline::program(name, known.path.as_deref());
        let options = path.map(|path| ask(&path)).unwrap_or_default();
        known.options.insert(key.to_owned(), options.clone());
        options
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names in the folders of a path; whether each may be executed is seen when it is.
fn programs(path: Option<&OsString>) -> Vec<String> {
    let Some(path) = path else { return Vec::new() };
    let folders = std::env::split_paths(path).filter_map(|folder| std::fs::read_dir(folder).ok());
    let entries = folders.flat_map(|folder| folder.flatten());
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
