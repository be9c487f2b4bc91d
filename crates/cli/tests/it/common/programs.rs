//! Programs that tests start.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::{Lab, skip};

/// Whether a program is there; without it a test skips, and fails where everything has to be there.
pub(crate) fn has(program: &str) -> bool {
    let there = model::file_on_path(Path::new(program)).is_some();
    assert!(there || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !there {
        skip(&format!("{program} is not installed"));
    }
    there
}

/// Where Python is: `python3` may be a script that looks for it, in a fifth of a second, and is itself read on.
pub(crate) fn python() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut python = Command::new("python3");
        let done = python.args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
        String::from_utf8(done.stdout).expect("a path").trim().to_owned()
    })
}

/// A script in the lab's folder, which can be run as `./NAME` there.
pub(crate) fn script(lab: &Lab, name: &str, text: &str) {
    let path = lab.here(name);
    fs::write(&path, text).expect("a script");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("chmod");
}

/// Has a program write its messages in English, of which tests know words; all else is as the locale has it.
pub(crate) fn in_english(command: &mut Command) -> &mut Command {
    // LC_ALL counts for more than LC_MESSAGES (locale(7)).
    if let Some(locale) = std::env::var_os("LC_ALL").filter(|locale| !locale.is_empty()) {
        command.env_remove("LC_ALL");
        for category in ["LC_COLLATE", "LC_CTYPE", "LC_MONETARY", "LC_NUMERIC", "LC_TIME"] {
            command.env(category, &locale);
        }
    }
    command.env("LC_MESSAGES", "C")
}
