//! Finds a language's toolchain.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use model::describe_errno;
use process::{Captured, Cleaner, describe_ending};

use crate::build::{cache_of, environment};
use crate::command::{NotRun, run, shown};
use crate::registry::Language;

/// A toolchain that prints no version in this time is broken. Java on a busy machine needs two seconds.
const PROBE_MAX: Duration = Duration::from_secs(30);

/// Why a toolchain is missing, and what installs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What was tried and how it failed.
    pub reason: String,
    /// What to type.
    pub remedy: String,
}

/// The toolchain's version: the first line that the language's probe prints. The probe has the working directory and the
/// environment of the build: many toolchains choose a version by them.
pub(crate) fn probe(
    language: &Language,
    root: &Path,
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<String, Missing> {
    let words: Vec<OsString> = language.probe.iter().map(OsString::from).collect();
    let missing = |reason| Missing { reason, remedy: remedy(&language.package) };
    let Some((program, arguments)) = words.split_first() else {
        return Err(missing("it has no probe".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command.envs(environment(language, root, &cache_of(language, root)));
    command.current_dir(root.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")));
    let said = match run(command, PROBE_MAX, Captured::keeping(2048, 512), cleaner, stop) {
        Ok(said) => said,
        Err(NotRun::Start(error)) if error.raw_os_error() == Some(libc::ENOENT) => {
            return Err(missing(format!("no `{}` here", program.to_string_lossy())));
        }
        Err(NotRun::Start(error)) => {
            return Err(missing(format!("`{}`: {}", shown(&words), describe_errno(&error))));
        }
        Err(NotRun::Late(_)) => {
            let reason = format!("`{}` did not answer in {} s", shown(&words), PROBE_MAX.as_secs());
            return Err(missing(reason));
        }
        Err(NotRun::Stopped) => return Err(missing("stopped before it was searched for".to_owned())),
    };
    if !said.status.success() {
        let last = said.text.lines().last().unwrap_or_default();
        let colon = if last.is_empty() { "" } else { ": " };
        return Err(missing(format!("`{}` {}{colon}{last}", shown(&words), describe_ending(said.status))));
    }
    let first = said.text.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(first.unwrap_or("of an unknown version").to_owned())
}

/// The command that installs a package: a registered command as it is, a Debian package through apt-get.
fn remedy(package: &str) -> String {
    if package.contains(' ') { package.to_owned() } else { format!("apt-get install {package}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Receiver;

    fn probed(words: &[&str], package: &str) -> Result<String, Missing> {
        probed_for(Path::new("/"), words, package)
    }

    fn probed_for(root: &Path, words: &[&str], package: &str) -> Result<String, Missing> {
        let language = Language {
            name: "X".to_owned(),
            key: "x".to_owned(),
            folder: "x".to_owned(),
            transport: None,
            receiver: Receiver::Child,
            package: package.to_owned(),
            probe: words.iter().map(|word| (*word).to_owned()).collect(),
            build: Vec::new(),
            environment: [("KEPT".to_owned(), "{cache}".to_owned())].into(),
            variants: Vec::new(),
        };
        probe(&language, root, &Cleaner::start().expect("a cleaner"), &|| false)
    }

    #[test]
    fn the_first_line_is_the_version_on_either_output() {
        assert_eq!(probed(&["sh", "-c", "echo; echo one 1.0; echo two"], "sh").as_deref(), Ok("one 1.0"));
        assert_eq!(probed(&["sh", "-c", "echo three 3 >&2"], "sh").as_deref(), Ok("three 3"));
    }

    #[test]
    fn the_probe_runs_where_the_language_is_built_and_not_in_the_users_folder() {
        let lab = tempfile::tempdir().expect("a folder");
        let there = std::fs::canonicalize(lab.path()).expect("there");
        let root = there.join("not/made/yet");
        let said = probed_for(&root, &["sh", "-c", "echo $PWD $KEPT"], "sh").expect("a version");
        assert_eq!(said, format!("{} {}/cache/x", there.display(), root.display()));
    }

    #[test]
    fn a_missing_toolchain_is_reported_with_what_installs_it() {
        let missing = probed(&["hosepipe-no-such-compiler"], "gfortran").unwrap_err();
        assert_eq!(missing.reason, "no `hosepipe-no-such-compiler` here");
        assert_eq!(missing.remedy, "apt-get install gfortran");
        let missing = probed(&["sh", "-c", "echo no module; exit 1"], "pip install ziglang").unwrap_err();
        assert_eq!(missing.reason, "`sh -c echo no module; exit 1` exited with 1: no module");
        assert_eq!(missing.remedy, "pip install ziglang");
    }
}
