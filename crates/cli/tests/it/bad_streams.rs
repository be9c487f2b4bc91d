//! Standard streams that take nothing, are closed, or go elsewhere: an error by name, and the record is kept.

use std::process::Stdio;

use crate::bad_input::{NOBODY, quick};
use crate::common::{Done, Lab, is_root, read_record, skip};

/// Runs a shell command line in which `$H` is hosepipe; nothing may be left of it.
fn shell(script: &str) -> Done {
    let lab = Lab::new();
    let line = format!("set -o pipefail; H=\"$0\"; {script}");
    let mut done = lab.finish(lab.wrapped(&["bash", "-c", &line], &[]));
    if let Ok(text) = std::fs::read_to_string(lab.here("out")) {
        done.stdout = text;
    }
    done
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    for command in
        ["list", "list --json", "doctor --quick", "completions bash", "bench null pipe --count 4 --trials 1"]
    {
        // The reader is gone before the first word.
        let done = shell(&format!("$H {command} | true"));
        assert!([0, 141].contains(&done.code()), "{command}: {done:?}");
        assert_eq!(done.stderr, "", "{command}");
    }
}

/// Expected: output that cannot be written is an error that names the errno (ENOSPC), status 1.
/// Happened: "No space left on device (os error 28)".
#[test]
fn a_full_disk_behind_standard_output_is_an_error_by_name() {
    for command in [
        "list",
        "list --json",
        "doctor --quick",
        "completions bash",
        "bench null pipe --count 4 --trials 1",
        "bench null pipe --count 4 --trials 1 --json -",
        "bench null pipe --count 4 --trials 1 --dry-run",
        "bench null pipe --count 4 --trials 1 --json /dev/full",
    ] {
        let done = shell(&format!("$H {command} > /dev/full"));
        assert_eq!(done.code(), 1, "{command}: {done:?}");
        assert!(done.stderr.contains("ENOSPC"), "{command}: {}", done.stderr);
    }
}

/// Expected: help and version that cannot be written are an error too.
/// Happened: status 0, as if all had been said.
#[test]
fn help_that_cannot_be_written_is_an_error() {
    for command in ["--help", "--version", "bench --help"] {
        let done = shell(&format!("$H {command} > /dev/full"));
        assert_ne!(done.code(), 0, "{command}: {done:?}");
    }
}

/// Expected: a closed standard output is EBADF and status 1, as with echo(1) and ls(1), and the record is kept.
/// Happened: the Rust runtime had put /dev/null in its place: status 0, and everything lost.
#[test]
fn a_closed_standard_output_is_an_error() {
    for command in [
        "list",
        "--help",
        "doctor --quick",
        "completions bash",
        "bench null --count 4 --trials 1 --json out",
        "bench null --count 4 --trials 1 --json -",
        "compare --via pipe --trials 1 true",
        "gen --bytes 10",
        "sink --json -",
    ] {
        let done = shell(&format!("$H {command} >&-"));
        assert_eq!(done.code(), 1, "{command}: {done:?}");
        assert!(done.stderr.contains("standard output") && done.stderr.contains("EBADF"), "{}", done.stderr);
        if command.ends_with("out") {
            read_record(&done.stdout);
        }
    }
    let done = shell("$H sink --verify <&-");
    assert_eq!(done.code(), 1, "{done:?}");
    assert!(done.stderr.contains("standard input at byte 0: EBADF"), "{}", done.stderr);
}

/// Programs are not given what stands in the place of a closed stream.
#[test]
fn a_pipelines_closed_streams_are_closed() {
    for text in ["echo hi", "ls /", "ls / | cat", "ls -l /proc/self/fd/1"] {
        let (ours, bash) = (shell(&format!("$H run '{text}' >&-")), shell(&format!("bash -c '{text}' >&-")));
        assert_ne!(ours.code(), 0, "{text}: {ours:?}");
        assert_eq!(ours.code(), bash.code(), "{text}: {ours:?}, {bash:?}");
    }
    let (ours, bash) = (shell("$H run cat <&-"), shell("bash -c cat <&-"));
    assert_eq!((ours.code(), ours.stderr), (bash.code(), bash.stderr));
}

/// Expected: that nothing can be said on standard error is no reason to end otherwise.
/// Happened: a panic, status 101, in `sink`.
#[test]
fn a_standard_error_that_takes_nothing_changes_no_status() {
    for (command, status) in [
        ("bench null pipe --count 4 --trials 1", 0),
        ("bench null pipe --place 0,999", 2),
        ("--bogus", 2),
        ("gen --bytes 3 | $H sink --verify", 0),
        ("gen --bytes 300 | tail -c +2 | $H sink --verify", 1),
        ("run --stats \"echo hi | cat\"", 0),
        ("run \"time true\"", 0),
        ("run nosuchcommand", 127),
        ("compare --via pipe,bash --trials 1 \"ls /nosuch\"", 0),
    ] {
        for nowhere in ["2>/dev/full", "2>&-"] {
            let done = shell(&format!("$H {command} {nowhere}"));
            assert_eq!(done.code(), status, "{command} {nowhere}: {done:?}");
        }
    }
}

#[test]
fn the_record_is_kept_where_the_table_could_not_be_shown() {
    let done = shell("$H bench null pipe --count 4 --trials 1 --csv - --json out > /dev/full");
    assert_eq!(done.code(), 1, "{done:?}");
    read_record(&done.stdout);
}

/// Expected: `--json >(command)` works as any output of any program in bash.
/// Happened: a temporary file is tried beside /dev/fd/63 first: status 2.
#[test]
fn a_record_can_be_written_into_a_process_substitution() {
    let done =
        shell("$H bench null pipe --count 4 --trials 1 --json >(cat > out); code=$?; wait $!; exit $code");
    assert_eq!(done.code(), 0, "{done:?}");
    read_record(&done.stdout);
}

/// Expected: /dev/null and /dev/stderr can be written to by everybody.
/// Happened: a temporary file is tried beside them first: EACCES in /dev for an ordinary user, status 2.
#[test]
fn an_ordinary_user_can_write_to_a_device() {
    if !is_root() {
        return skip("only root can run as nobody");
    }
    for device in ["/dev/null", "/dev/stderr"] {
        let lab = Lab::new();
        let mut command = lab.wrapped(&NOBODY, &quick(&["--json", device]));
        if device == "/dev/stderr" {
            // The user `nobody` could not open a file of root again.
            command.stderr(Stdio::null());
        }
        lab.finish(command).expect_code(0);
    }
}
