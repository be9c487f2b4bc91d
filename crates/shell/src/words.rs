//! What the line editor knows while a line is typed: the names that are commands. Shared with the prompt, which tells
//! it what each line has changed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pipeline::Session;

use crate::builtins;

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
}

impl Words {
    /// Takes over what a line has changed.
    pub(crate) fn learn(&self, session: &Session) {
        let mut known = self.lock();
        known.path = session.variable("PATH").map(ToOwned::to_owned);
        known.defined = session.defined().map(str::to_owned).collect();
    }

    /// Whether a command of this name would be found.
    pub(crate) fn is_command(&self, name: &str) -> bool {
        let known = self.lock();
        builtins::is_ours(name)
            || pipeline::is_builtin(name)
            || known.defined.contains(name)
            || pipeline::program(name, known.path.as_deref()).is_some()
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
