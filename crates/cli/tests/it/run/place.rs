//! What these tests run, and where.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use model::RunRecord;

use crate::common::programs::in_english;
use crate::common::{CACHES, Done, Lab, another_user};

/// Links whose reader runs with the writer.
pub(crate) const PARALLEL: [&str; 9] =
    ["pipe", "fifo", "socketpair", "unix-stream", "tcp", "tmpfile", "file", "file:sync", "pty"];

/// Links whose reader starts when the writer is done.
pub(crate) const SEQUENTIAL: [&str; 2] = ["tmpfile:order=sequential", "file:order=sequential"];

/// All of them.
pub(crate) fn links() -> impl Iterator<Item = &'static str> {
    PARALLEL.into_iter().chain(SEQUENTIAL)
}

/// `nobody`, who may not do what root may.
const NOBODY: u32 = 65534;

/// Runs `hosepipe run ARGS` to its end; nothing may be left of it.
pub(crate) fn run(lab: &Lab, args: &[&str]) -> Done {
    lab.run(&[&["run"], args].concat())
}

/// `hosepipe ARGS` as `nobody`.
pub(crate) fn as_nobody(lab: &Lab, args: &[&str]) -> Command {
    another_user::script(NOBODY, lab, "exec ./program \"$@\"", args)
}

/// What bash makes of a text: its status as a shell shows it, and its output.
pub(crate) fn bash(lab: &Lab, options: &[&str], text: &str) -> (i32, String) {
    let mut command = Command::new("bash");
    command.args(options).args(["-c", text]).current_dir(lab.here("")).env("TMPDIR", lab.tmp());
    in_english(&mut command).env("XDG_RUNTIME_DIR", CACHES);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("bash");
    let signal = output.status.signal().map(|signal| 128 + signal);
    let status = output.status.code().or(signal).expect("an end");
    (status, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Panics unless bash and `hosepipe run` both print `stdout` and end with `status`.
pub(crate) fn assert_as_in_bash(text: &str, status: i32, stdout: &str) {
    let lab = Lab::new();
    assert_eq!(bash(&lab, &[], text), (status, stdout.to_owned()), "bash itself: {text}");
    let lab = Lab::new();
    let done = run(&lab, &[text]);
    assert_eq!((done.code(), done.stdout.as_str()), (status, stdout), "{text}\n{}", done.stderr);
}

/// Runs a text and gives its record as well.
pub(crate) fn recorded(lab: &Lab, args: &[&str]) -> (Done, RunRecord) {
    let file = lab.here("run.json");
    let path = file.to_str().expect("a plain path").to_owned();
    let done = run(lab, &[&["--json", &path], args].concat());
    let text = fs::read_to_string(&file).expect("a record");
    let record = serde_json::from_str(&text).unwrap_or_else(|error| panic!("no record ({error}): {text}"));
    (done, record)
}

/// Whether a file of the lab has this line in it.
pub(crate) fn has_line(path: PathBuf, line: &str) -> Option<()> {
    fs::read_to_string(path).is_ok_and(|text| text.lines().any(|has| has == line)).then_some(())
}
