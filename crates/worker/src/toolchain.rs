//! Looks for a language's toolchain on this machine.

use std::path::Path;
use std::time::Duration;

use model::{CaseError, ErrorKind, describe_errno};
use process::{Captured, Cleaner, command, describe_ending};

use crate::command::{NotFinished, run};
use crate::environment::{cache_of, environment};
use crate::registry::Language;

/// Time limit for printing a version. Java on a busy machine needs two seconds.
const PROBE_MAX: Duration = Duration::from_secs(30);

/// The toolchain's version: the first line that the language's probe prints. The probe has the working directory and the
/// environment of the build, because many toolchains choose a version by them.
///
/// # Errors
/// How the probe failed; the remedy installs the toolchain.
pub(crate) fn probe(
    language: &Language,
    root: &Path,
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<String, CaseError> {
    let shown = language.probe.join(" ");
    let missing = |reason: String| {
        CaseError::stated(ErrorKind::Unavailable, reason).with_remedy(remedy(&language.package))
    };
    let mut command = command(&language.probe);
    command.envs(environment(language, root, &cache_of(language, root)));
    command.current_dir(root.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")));
    let ran = run(command, PROBE_MAX, Captured::keeping(2048, 512), cleaner, stop);
    let (status, text) = ran.map_err(|error| {
        missing(match error {
            NotFinished::System(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                format!("no `{}` here", language.probe[0])
            }
            NotFinished::System(error) => format!("`{shown}`: {}", describe_errno(&error)),
            NotFinished::Late(_) => format!("`{shown}` did not answer in {} s", PROBE_MAX.as_secs()),
            NotFinished::Stopped => "stopped before its version was known".to_owned(),
        })
    })?;
    if !status.success() {
        let last = text.lines().last().unwrap_or_default();
        let colon = if last.is_empty() { "" } else { ": " };
        return Err(missing(format!("`{shown}` {}{colon}{last}", describe_ending(status))));
    }
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(first.unwrap_or("of an unknown version").to_owned())
}

/// The command that installs a package. `package` is the name of a Debian package, or already a command.
fn remedy(package: &str) -> String {
    if package.contains(' ') { package.to_owned() } else { format!("apt-get install {package}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Receiver;

    fn probed(words: &[&str], package: &str) -> Result<String, CaseError> {
        probed_for(Path::new("/"), words, package)
    }

    fn probed_for(root: &Path, words: &[&str], package: &str) -> Result<String, CaseError> {
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
        assert_eq!(missing.message, "no `hosepipe-no-such-compiler` here");
        assert_eq!(missing.remedy.as_deref(), Some("apt-get install gfortran"));
        let missing = probed(&["sh", "-c", "echo no module; exit 1"], "pip install ziglang").unwrap_err();
        assert_eq!(missing.message, "`sh -c echo no module; exit 1` exited with 1: no module");
        assert_eq!(missing.remedy.as_deref(), Some("pip install ziglang"));
    }
}
