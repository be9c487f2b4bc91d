//! Command lines that are wrong: a sentence that points at the place, status 2, and nothing has run.

use super::place::run;
use crate::common::programs::in_english;
use crate::common::{Done, Lab, promptly};

fn refused(args: &[&str], words: &[&str]) -> Done {
    let lab = Lab::new();
    let done = run(&lab, args).expect_code(2);
    assert_eq!(done.stdout, "", "{args:?}");
    assert!(done.elapsed < promptly(), "{args:?}: {:?}", done.elapsed);
    for word in words {
        assert!(done.stderr.contains(word), "{args:?}: no `{word}` in: {}", done.stderr);
    }
    assert!(crate::common::files_in(&lab.here("")).is_empty(), "{args:?}: something ran");
    done
}

#[test]
fn a_syntax_error_is_the_shells_own() {
    for text in [
        "echo a; echo b | | cat",
        "| cat",
        "echo a\necho (",
        "echo a && && echo b",
        "echo a; done",
        "echo 'a",
        "echo a |",
        "(echo a",
        "if true; then echo a",
    ] {
        let mut bash = std::process::Command::new("bash");
        let bash = in_english(&mut bash).args(["-c", text]).output().expect("bash");
        for via in ["pipe", "tmpfile"] {
            let lab = Lab::new();
            let done =
                lab.run(&["run", "--via", via, text]).expect_code(bash.status.code().expect("a status"));
            assert_eq!(done.stderr, String::from_utf8_lossy(&bash.stderr), "{text} over {via}");
            assert_eq!(done.stdout, String::from_utf8_lossy(&bash.stdout), "{text} over {via}");
        }
    }
}

#[test]
fn a_text_without_a_command_is_refused() {
    for text in ["", "   ", "\n\n", "# only a comment"] {
        refused(&[text], &["empty", "hosepipe run 'ls | wc -l'"]);
    }
    refused(&[], &["PIPELINE"]);
}

#[test]
fn a_wrong_link_is_refused_with_what_would_be_right() {
    let can = "pipe, fifo, socketpair, unix-stream, tcp";
    for (via, words) in [
        ("pip", &["unknown link `pip`", "did you mean `pipe`?"][..]),
        ("tmpfiles", &["did you mean `tmpfile`?"]),
        ("socket-pair", &["did you mean `socketpair`?"]),
        ("zzzz", &["unknown link `zzzz`. These are links: pipe, fifo, "]),
        ("", &["names no mechanism"]),
        ("shm-ring", &["cannot connect two programs", can]),
        ("sysv-msgq", &["cannot connect two programs", can]),
        ("null", &["cannot connect two programs", can]),
        ("pipe:siez=1k", &["did you mean `size`?"]),
        ("pipe:size=lots", &["lots"]),
        ("pipe:send=vmsplice", &["send", "only for benchmarks"]),
        ("tmpfile:order=later", &["parallel, sequential"]),
        ("file:dir=/nonexistent", &["/nonexistent"]),
    ] {
        refused(&["--via", via, "touch a | cat"], words);
    }
}

#[test]
fn a_wrong_option_is_named() {
    refused(&["--bogus", "touch a"], &["--bogus"]);
    refused(&["--stat", "touch a"], &["--stat", "--stats"]);
    refused(&["--shell", "nosuchshell", "touch a"], &["nosuchshell", "--shell"]);
    refused(&["--shell", "/etc/passwd", "touch a"], &["/etc/passwd"]);
    refused(&["--json", "/nonexistent/r.json", "touch a"], &["/nonexistent/r.json", "ENOENT"]);
    refused(&["--json", "/", "touch a"], &["EISDIR"]);
    refused(&["--via", "pipe", "--via", "tcp", "touch a"], &["--via"]);
    refused(&["touch a", "touch b"], &["touch b"]);
}

#[test]
fn a_text_that_begins_with_a_dash_follows_two() {
    let lab = Lab::new();
    let done = run(&lab, &["--", "-x; echo $?"]).expect_code(0);
    assert_eq!(done.stdout, "127\n", "{}", done.stderr);
}

#[test]
fn another_shell_runs_what_needs_one() {
    let lab = Lab::new();
    let done =
        run(&lab, &["--shell", "sh", "x=5; echo ${x} ${BASH_VERSION:-none} | cat; echo $0"]).expect_code(0);
    assert_eq!(done.stdout, "5 none\nsh\n", "{}", done.stderr);
}
