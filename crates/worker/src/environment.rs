//! The folders and variables of a language's tools and programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::registry::Language;

/// Name of the folder for what languages keep between builds; it is in the folder of the builds.
pub(crate) const CACHES: &str = "cache";

/// The folder that a language keeps between builds.
pub(crate) fn cache_of(language: &Language, root: &Path) -> PathBuf {
    root.join(CACHES).join(&language.key)
}

/// The variables that are set for a language's programs and tools.
pub(crate) fn environment<'a>(
    language: &'a Language,
    folder: &'a Path,
    cache: &'a Path,
) -> impl Iterator<Item = (&'a String, OsString)> {
    language.environment.iter().map(|(name, value)| (name, expand(value, folder, cache)))
}

/// A word with `{src}`, `{out}` and `{cache}` replaced by those folders.
pub(crate) fn expand(word: &str, folder: &Path, cache: &Path) -> OsString {
    let folders =
        [("{src}", folder.join("src")), ("{out}", folder.join("out")), ("{cache}", cache.to_owned())];
    let mut expanded = OsString::new();
    let mut rest = word;
    while let Some(next) = rest.chars().next() {
        let found = folders.iter().find_map(|(name, folder)| Some((rest.strip_prefix(name)?, folder)));
        rest = if let Some((after, folder)) = found {
            expanded.push(folder);
            after
        } else {
            expanded.push(&rest[..next.len_utf8()]);
            &rest[next.len_utf8()..]
        };
    }
    expanded
}
