//! `hosepipe sh` without a terminal: texts, files and standard input run as if they were typed, and nothing is printed
//! that they do not print.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::common::pty::CACHE;

fn hosepipe(arguments: &[&str], input: &str) -> Output {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosepipe"));
    command.arg("sh").args(arguments).env("HOME", home.path()).env("TMPDIR", home.path());
    command.env("XDG_CACHE_HOME", CACHE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("read");
    child.wait_with_output().expect("ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_text_runs_and_its_last_status_is_ours() {
    let output = hosepipe(&["-c", "seq 5 | tac | head -2; (exit 7)"], "");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("5\n4\n", Some(7)));
    assert_eq!(stderr(&output), "");
    assert_eq!(hosepipe(&["-c", "exit 3\necho no"], "").status.code(), Some(3));
    assert_eq!(hosepipe(&["-c", ""], "").status.code(), Some(0));
    assert_eq!(hosepipe(&["--pipefail", "-c", "false | true"], "").status.code(), Some(1));
}

#[test]
fn standard_input_is_a_text_where_it_is_no_terminal() {
    let output = hosepipe(&[], "seq 3 | wc -l\nx=4\necho $x |\n cat\nfalse\n");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("3\n4\n", Some(1)));
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_file_is_a_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipelines.txt");
    std::fs::write(&path, "# a comment\ncd /usr\npwd | cat\n").expect("written");
    let output = hosepipe(&[&path.to_string_lossy()], "");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("/usr\n", Some(0)));
    let output = hosepipe(&["/nonexistent/file"], "");
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(stderr(&output), "bash: /nonexistent/file: No such file or directory\n");
}

#[test]
fn a_text_has_nothing_that_its_shell_does_not_have() {
    let output = hosepipe(&["-c", "type via __hosepipe 2>&1; help() { echo mine; }; help; via tmpfile"], "");
    assert_eq!(
        stdout(&output),
        "mine\n".to_owned().replace(
            "mine",
            "bash: line 1: type: via: not found\nbash: line 1: type: __hosepipe: not found\nmine"
        )
    );
    assert_eq!(output.status.code(), Some(127));
}

#[test]
fn bad_texts_are_the_shells_to_refuse() {
    let output = hosepipe(&["-c", "echo a\necho b | | c"], "");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("a\n", Some(2)));
    assert!(stderr(&output).contains("syntax error near unexpected token `|'"), "{}", stderr(&output));
    assert_eq!(hosepipe(&["--via", "nothing", "-c", "true"], "").status.code(), Some(2));
    let output = hosepipe(&["--shell", "no-such-shell", "-c", "true"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("there is no shell `no-such-shell`"), "{}", stderr(&output));
}
