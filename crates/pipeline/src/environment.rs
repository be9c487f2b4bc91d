//! The environment that stages are given: the user's own, with what the command line has exported since.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Environment variables by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    values: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// This process's own, with what bash adds when it starts: `PWD`, and `SHLVL` one deeper (bash(1)).
    pub(crate) fn of_a_shell() -> Self {
        let mut environment = Self { values: std::env::vars_os().collect() };
        if let Ok(folder) = std::env::current_dir() {
            // A logical name that leads to the same place is kept, as bash does.
            let kept = environment.get("PWD").is_some_and(|pwd| same_folder(pwd, folder.as_os_str()));
            if !kept {
                environment.set("PWD", folder);
            }
        }
        let depth = environment.depth();
        environment.set("SHLVL", (depth + 1).to_string());
        environment
    }

    /// What `env -0` prints.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let entries = text.split(|byte| *byte == 0).filter_map(|entry| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            let (name, value) = (&entry[..equals], &entry[equals + 1..]);
            Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
        });
        Self { values: entries.collect() }
    }

    /// A variable's value.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.values.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.values.insert(name.into(), value.into());
    }

    /// Removes a variable and gives its value.
    pub(crate) fn take(&mut self, name: &str) -> Option<OsString> {
        self.values.remove(OsStr::new(name))
    }

    /// How deep shells are nested (`SHLVL`); 0 where it says nothing.
    pub(crate) fn depth(&self) -> u32 {
        self.get("SHLVL").and_then(OsStr::to_str).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Names of the functions that were exported to programs (`export -f`).
    pub(crate) fn exported_functions(&self) -> impl Iterator<Item = &str> {
        self.values.keys().filter_map(|name| name.to_str()?.strip_prefix("BASH_FUNC_")?.strip_suffix("%%"))
    }

    /// As execve(2) takes it: `NAME=value`, for a program at `path` (`_` names it, as bash does).
    pub(crate) fn entries_for(&self, path: &OsStr) -> Vec<CString> {
        let entry = |name: &OsStr, value: &OsStr| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        };
        let others = self.values.iter().filter(|(name, _)| *name != "_");
        let mut entries: Vec<CString> = others.filter_map(|(name, value)| entry(name, value)).collect();
        entries.extend(entry(OsStr::new("_"), path));
        entries
    }
}

fn same_folder(one: &OsStr, other: &OsStr) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &OsStr| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    one.as_bytes().first() == Some(&b'/') && identity(one).is_some() && identity(one) == identity(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_env_prints_is_read() {
        let environment = Environment::parse(b"A=1\0B=x=y\nz\0BASH_FUNC_f%%=() { :; }\0");
        assert_eq!(environment.get("A"), Some(OsStr::new("1")));
        assert_eq!(environment.get("B"), Some(OsStr::new("x=y\nz")));
        assert_eq!(environment.exported_functions().collect::<Vec<_>>(), ["f"]);
        let entries = environment.entries_for(OsStr::new("/bin/true"));
        assert!(entries.contains(&CString::new("_=/bin/true").expect("no NUL")));
        assert_eq!(entries.len(), 4);
    }
}
