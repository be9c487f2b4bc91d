//! `hosepipe sh` without a terminal: texts, files and standard input run as if they were typed, and nothing is printed
//! that they do not print.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::common::programs::in_english;
use crate::common::{CACHES, namespaces::unshare, skip};
use crate::sh_prompt::there_is;

fn hosepipe(arguments: &[&str], input: &str) -> Output {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosepipe"));
    command.arg("sh").args(arguments).env("HOME", home.path()).env("TMPDIR", home.path());
    in_english(&mut command).env("XDG_RUNTIME_DIR", CACHES);
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

/// What scripts ask of their descriptors, and what a writer says that lost its reader, are as over a pipe.
#[test]
fn with_ends_of_pipes_sockets_and_terminals_are_pipes_to_programs() {
    let text = "echo data | if [ -p /dev/stdin ]; then cat; else echo usage; fi
        yes 1 | head -1; echo ${PIPESTATUS[*]}
        { [ -p /dev/stdout ] && echo a > /dev/stdout; } | cat /dev/stdin
        yes | { read x; exec <&-; }; echo ${PIPESTATUS[*]}";
    for link in ["fifo", "socketpair", "unix-stream", "tcp", "pty"] {
        let output = hosepipe(&["--shell", "bash", "--via", &format!("{link}:ends=pipe"), "-c", text], "");
        assert_eq!(stdout(&output), "data\n1\n141 0\na\n141 0\n", "{link}");
        assert_eq!((stderr(&output).as_str(), output.status.code()), ("", Some(0)), "{link}");
    }
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

#[test]
fn fish_says_that_there_is_no_such_file() {
    if !there_is("fish") {
        return;
    }
    for via in ["pipe", "socketpair"] {
        let output = hosepipe(&["--via", via, "--shell", "fish", "/nonexistent"], "");
        assert_eq!(output.status.code(), Some(127), "{via}");
        // What makes fish start programs in a way that is seen stays its own.
        let output = hosepipe(&["--via", via, "--shell", "fish", "-c", "env | grep -c use_posix_spawn"], "");
        assert_eq!(stdout(&output), "0\n", "{via}");
    }
}

/// Expected: a library that the user preloads sees what the shell does, as without hosepipe.
#[test]
fn another_preloaded_library_sees_what_the_shell_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <unistd.h>\n#include <stdio.h>\n\
        int execve(const char *path, char *const words[], char *const environment[]) {\n\
          dprintf(9, \"%s \", words[0]);\n\
          int (*next)(const char *, char *const[], char *const[]) = dlsym(RTLD_NEXT, \"execve\");\n\
          return next(path, words, environment);\n}\n";
    let (c, library) = (folder.path().join("seen.c"), folder.path().join("seen.so"));
    std::fs::write(&c, source).expect("written");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&c).status();
    if !built.is_ok_and(|built| built.success()) {
        return skip("there is no C compiler");
    }
    for via in ["pipe", "socketpair"] {
        let text = format!(
            "exec \"$0\" sh --via {via} -c 'readlink /proc/self/fd/1 | tr -d 0-9; echo \"$LD_PRELOAD\"' 9>{0}/seen",
            folder.path().display()
        );
        let mut command = Command::new("bash");
        command.args(["-c", &text, env!("CARGO_BIN_EXE_hosepipe")]).env("LD_PRELOAD", &library);
        let said = stdout(&command.output().expect("runs"));
        let kind = if via == "pipe" { "pipe" } else { "socket" };
        assert_eq!(said, format!("{kind}:[]\n{}\n", library.display()));
        let seen = std::fs::read_to_string(folder.path().join("seen")).expect("read");
        assert!(seen.contains("readlink ") && seen.contains("tr "), "{via}: {seen}");
    }
}

/// Expected: a script finds its home as it left it, and hosepipe's own descriptors and variables nowhere.
/// Happened: `~/.cache/hosepipe/shells` was made; where pipes could not be told apart, descriptor 60 was the shell's, too; where there was
/// no /proc, and a shell that was known, LD_PRELOAD reached its programs; without /dev/null no shell could be learnt.
#[test]
fn nothing_of_ours_is_found_in_odd_places() {
    let home = tempfile::tempdir().expect("a folder");
    let run = |before: &[&str], words: &[&str]| {
        let words = [before, &[env!("CARGO_BIN_EXE_hosepipe"), "sh"], words].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path().join("run"));
        command.env_remove("XDG_CACHE_HOME").env_remove("LD_PRELOAD").stdin(Stdio::null());
        command.output().expect("starts")
    };
    std::fs::create_dir(home.path().join("run")).expect("made");
    assert_eq!(stdout(&run(&[], &["-c", "ls -A ~; seq 3 | wc -l"])), "run\n3\n");
    let told = run(&[], &["--shell", "ls", "/proc/self/fd"]);
    // Whatever these tests were given.
    let plain = Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()).output().expect("ls");
    assert_eq!(stdout(&told), stdout(&plain));
    assert!(stderr(&told).contains("cannot be distinguished from its other pipes"), "{}", stderr(&told));
    let apart = |script| unshare(&["--mount"], script);
    let Some(without_proc) = apart("mount -t tmpfs none /proc && exec \"$0\" \"$@\"") else { return };
    let Some(without_dev) = apart("mount -t tmpfs none /dev && exec \"$0\" \"$@\"") else { return };
    let text = ["--via", "socketpair", "-c", "env | grep LD_PRELOAD; seq 3 | wc -l"];
    let without_proc = run(&without_proc, &text);
    assert_eq!(stdout(&without_proc), "3\n", "{}", stderr(&without_proc));
    std::fs::remove_dir_all(home.path().join("run")).expect("removed");
    std::fs::create_dir(home.path().join("run")).expect("made");
    let without_dev = run(&without_dev, &text);
    assert_eq!((stdout(&without_dev).as_str(), stderr(&without_dev).as_str()), ("3\n", ""));
}
