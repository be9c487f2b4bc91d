//! Commands in namespaces of their own. An ordinary user, and root in a container, may make them only inside a new user namespace.

use std::process::Command;
use std::sync::OnceLock;

use super::skip;

/// Options of unshare(1) without which this user may make no other namespace.
pub(crate) fn rights() -> &'static [&'static str] {
    static MAY: OnceLock<bool> = OnceLock::new();
    let may = || {
        Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|tried| tried.status.success())
    };
    if *MAY.get_or_init(may) { &[] } else { &["--user", "--map-root-user"] }
}

/// What comes before a command that starts in namespaces (options of unshare(1)), after a script of the shell that ends with
/// `exec "$0" "$@"`. `None`, with the reason, where this user may not do what it takes.
pub(crate) fn unshare<'a>(options: &[&'a str], script: &'a str) -> Option<Vec<&'a str>> {
    let wrapper = [&["unshare"], rights(), options, &["sh", "-c", script]].concat();
    // A script may write beside the folder that it starts in.
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("a folder");
    let mut tried = Command::new(wrapper[0]);
    let tried = tried.args(&wrapper[1..]).arg("true").current_dir(&inner).env("TMPDIR", &inner).output();
    let tried = tried.expect("unshare(1), of util-linux");
    if tried.status.success() {
        return Some(wrapper);
    }
    let why = String::from_utf8_lossy(&tried.stderr);
    assert!(std::env::var_os("CI").is_none(), "{wrapper:?}: {why}");
    skip(&format!("this user may not make namespaces: {}", why.trim()));
    None
}

/// What comes before a command that starts in the network of a process, and in its user namespace where it has another.
pub(crate) fn enter_network(pid: u32) -> Vec<String> {
    let mut command = vec!["nsenter".to_owned(), format!("--net=/proc/{pid}/ns/net")];
    if !rights().is_empty() {
        command.extend(["--preserve-credentials".to_owned(), format!("--user=/proc/{pid}/ns/user")]);
    }
    command
}
