//! With what status a run ends, and what the next item of a list sees of it.

use super::place::{assert_as_in_bash, bash, links, recorded, run};
use crate::common::Lab;

#[test]
fn the_status_is_the_last_stages() {
    for (text, status) in [
        ("true | false", 1),
        ("false | true", 0),
        ("cat /nonexistent | sort", 0),
        ("sh -c 'exit 7'", 7),
        ("seq 3 | sh -c 'cat > /dev/null; exit 9'", 9),
        ("grep -q nothing /etc/passwd", 1),
        ("! false | true", 1),
        ("! true | false", 0),
        ("! sh -c 'exit 7'", 0),
    ] {
        assert_as_in_bash(text, status, "");
    }
}

#[test]
fn with_pipefail_it_is_the_last_failing_stages() {
    let lab = Lab::new();
    for (text, status) in [
        ("sh -c 'exit 3' | sh -c 'exit 4' | true", 4),
        ("sh -c 'exit 3' | true | true", 3),
        ("true | true", 0),
        ("! sh -c 'exit 3' | true", 0),
        ("false | true && echo no", 1),
        ("(sh -c 'exit 3' | true)", 3),
        ("x=5; sh -c 'exit 3' | true; (exit $?)", 3),
        ("set +o pipefail; sh -c 'exit 3' | true", 0),
    ] {
        assert_eq!(bash(&lab, &["-o", "pipefail"], text), (status, String::new()), "bash itself: {text}");
        for via in links() {
            let done = run(&lab, &["--via", via, "--pipefail", text]);
            assert_eq!(
                (done.code(), done.stdout.as_str()),
                (status, ""),
                "{text} over {via}: {}",
                done.stderr
            );
        }
    }
}

#[test]
fn a_command_that_cannot_be_run_is_126_or_127() {
    assert_as_in_bash("/etc/passwd", 126, "");
    assert_as_in_bash("/", 126, "");
    assert_as_in_bash("nosuchcommand", 127, "");
    assert_as_in_bash("./nosuchscript", 127, "");
    assert_as_in_bash("nosuchcommand | cat; echo ${PIPESTATUS[*]}", 0, "127 0\n");
    let lab = Lab::new();
    let done = run(&lab, &["nosuchcommand | cat"]);
    assert!(done.stderr.contains("nosuchcommand: command not found"), "{}", done.stderr);
    let done = run(&lab, &["cat | /etc/passwd"]).expect_code(126);
    assert!(done.stderr.contains("/etc/passwd: Permission denied"), "{}", done.stderr);
}

#[test]
fn a_stage_that_a_signal_ended_is_128_and_the_number() {
    for (name, number) in [("HUP", 1), ("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
        let text = format!("ulimit -c 0; sh -c 'kill -{name} $$' | cat; echo ${{PIPESTATUS[*]}}");
        assert_as_in_bash(&text, 0, &format!("{} 0\n", 128 + number));
        let lab = Lab::new();
        let last = format!("true | sh -c 'ulimit -c 0; kill -{name} $$'");
        let (done, record) = recorded(&lab, &[&last]);
        assert_eq!(done.code(), 128 + number, "{last}");
        assert_eq!(record.stages[1].signal, Some(number), "{record:?}");
        assert_eq!((record.stages[1].status, record.status), (Some(128 + number), 128 + number));
    }
}

#[test]
fn a_writer_without_a_reader_ends_by_sigpipe() {
    assert_as_in_bash("yes | head -1; echo ${PIPESTATUS[*]}", 0, "y\n141 0\n");
    assert_as_in_bash("yes | cat | head -1; echo ${PIPESTATUS[*]}", 0, "y\n141 141 0\n");
    let lab = Lab::new();
    let (done, record) = recorded(&lab, &["--pipefail", "yes | head -1"]);
    assert_eq!((done.code(), record.status), (141, 141));
    assert_eq!(record.pipestatus, [Some(141), Some(0)]);
}

#[test]
fn the_next_item_sees_the_statuses() {
    for (text, status, stdout) in [
        ("false; echo $?", 0, "1\n"),
        ("sh -c 'exit 5' | sh -c 'exit 6'; echo $? ${PIPESTATUS[0]} ${PIPESTATUS[1]}", 0, "6 5 6\n"),
        ("false | true | sh -c 'exit 2'; echo \"${PIPESTATUS[@]}\"", 0, "1 0 2\n"),
        ("(exit 9); echo ${PIPESTATUS[*]} $?", 0, "9 9\n"),
        ("! true; echo $? ${PIPESTATUS[*]}", 0, "1 0\n"),
        ("sh -c 'exit 4'; (exit $?)", 4, ""),
        ("set -o pipefail; sh -c 'exit 3' | true; echo $?", 0, "3\n"),
        ("set -o pipefail; false | true | true", 1, ""),
        ("set -e; ! true; echo $? ${PIPESTATUS[*]}", 0, "1 0\n"),
        ("set -e; sh -c 'exit 4' && true; echo $?", 0, "4\n"),
        ("f() { echo $?; }; sh -c 'exit 4'; f; echo $?", 0, "4\n0\n"),
        ("set -o pipefail; sh -c 'exit 3' | true; echo $? ${PIPESTATUS[*]}", 0, "3 3 0\n"),
    ] {
        assert_as_in_bash(text, status, stdout);
    }
}

#[test]
fn exit_ends_the_list() {
    for (text, status, stdout) in [
        ("echo a; exit 3; echo b", 3, "a\n"),
        ("echo a | cat; exit; echo b", 0, "a\n"),
        ("false; exit", 1, ""),
        ("true && exit 4 || echo no", 4, ""),
        ("echo a | { cat; exit 5; }; echo $?", 0, "a\n5\n"),
        ("(exit 6); echo $?", 0, "6\n"),
    ] {
        assert_as_in_bash(text, status, stdout);
    }
}

#[test]
fn errexit_ends_the_list_where_bash_would() {
    for (text, status, stdout) in [
        ("set -e; echo a; false; echo b", 1, "a\n"),
        ("set -e; false | true; echo b", 0, "b\n"),
        ("set -eo pipefail; false | true; echo b", 1, ""),
        ("set -e; false || echo b; echo c", 0, "b\nc\n"),
        ("set -e; false && echo b; echo c", 0, "c\n"),
        ("set -e; ! true; echo c", 0, "c\n"),
        ("set -e; set +e; false; echo c", 0, "c\n"),
        ("set -e; nosuchcommand; echo c", 127, ""),
        ("set -u; echo $nothing_of_this_name; echo b", 127, ""),
    ] {
        assert_as_in_bash(text, status, stdout);
    }
}

#[test]
fn the_record_has_the_statuses() {
    let lab = Lab::new();
    let (done, record) = recorded(&lab, &["sh -c 'exit 5' | sh -c 'exit 6' | true; false | sh -c 'exit 8'"]);
    assert_eq!((done.code(), record.status), (8, 8));
    assert_eq!(record.pipestatus, [Some(1), Some(8)], "the last pipeline's");
    let statuses: Vec<(u32, Option<i32>)> =
        record.stages.iter().map(|stage| (stage.pipeline, stage.status)).collect();
    let expected =
        [(0, 5), (0, 6), (0, 0), (1, 1), (1, 8)].map(|(pipeline, status)| (pipeline, Some(status)));
    assert_eq!(statuses, expected);
}
