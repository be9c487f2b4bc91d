//! `hosepipe sh` without a terminal: texts, files and standard input run as if they were typed, and nothing is printed
//! that they do not print.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn hosepipe(arguments: &[&str], input: &str) -> Output {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosepipe"));
    command.arg("sh").args(arguments).env("HOME", home.path()).env("TMPDIR", home.path());
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
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot read /nonexistent/file: "), "{}", stderr(&output));
}

#[test]
fn commands_of_the_shell_work_in_texts_too_and_state_goes_past_them() {
    let text = "x=5; f() { echo f$1; }; via tmpfile; readlink /proc/self/fd/1 | cat; via\nvia socketpair\nf $x | cat; via";
    let output = hosepipe(&["--via", "pipe:size=1MiB", "-c", text], "");
    assert!(stdout(&output).starts_with('/'), "a file stood between the two: {}", stdout(&output));
    assert!(stdout(&output).ends_with("tmpfile\nf5\nsocketpair\n"), "{}", stdout(&output));
}

#[test]
fn what_an_item_with_our_name_hangs_on_is_the_shells_own_affair() {
    let output = hosepipe(&["-c", "false && via tmpfile || echo no; help() { echo mine; }; help"], "");
    assert_eq!(stdout(&output), "no\nmine\n");
}

#[test]
fn bad_texts_cost_nothing() {
    let output = hosepipe(&["-c", "echo a\necho b | | c"], "");
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(2)));
    let caret = "hosepipe: syntax error near unexpected token `|'\n  echo b | | c\n           ^\n";
    assert_eq!(stderr(&output), caret);
    assert_eq!(hosepipe(&["-c", "echo 'open"], "").status.code(), Some(2));
    let output = hosepipe(&["-c", "via nothing"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("links are pipe, fifo, "), "{}", stderr(&output));
    assert_eq!(hosepipe(&["--via", "nothing", "-c", "true"], "").status.code(), Some(2));
}

#[test]
fn presets_are_the_studys() {
    let output = hosepipe(&["-c", "presets; preset 2; via tmpfile; preset 2; preset 9"], "");
    let text = stdout(&output);
    assert!(text.contains("1  ps -ef | grep systemd | cut -c9-16"), "{text}");
    assert!(text.contains("4  ls -l | grep ourpipe | wc"), "{text}");
    let counts: Vec<&str> = text.lines().skip(4).collect();
    assert_eq!(counts, ["117286", "117286"], "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no preset `9`"), "{}", stderr(&output));
}

#[test]
fn keep_keeps_each_line_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_string_lossy();
    let output = hosepipe(
        &["-c", &format!("keep {path}/k; seq 2 | cat; keep; seq 3 | cat; keep off; seq 4 | cat")],
        "",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let kept = |number: u32| std::fs::read_to_string(folder.path().join(format!("k/{number}/1-seq")));
    assert_eq!((kept(1).ok().as_deref(), kept(2).ok().as_deref()), (Some("1\n2\n"), Some("1\n2\n3\n")));
    assert!(kept(3).is_err());
}
