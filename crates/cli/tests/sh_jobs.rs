//! Job control of `hosepipe sh`, on a pseudo-terminal: keys that end and stop, jobs behind the prompt, the terminal
//! handed over and set right, nothing left behind.

mod pty;

use std::time::Instant;

use pty::{Person, SOON, home, processes};
use rustix::process::Signal;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

#[test]
fn ctrl_c_ends_the_pipeline_and_never_the_shell() {
    let home = home();
    let mut person = Person::at_home(home.path());
    for line in
        ["sleep 1001", "sleep 1001 | cat", "sleep 1001; echo not this", "for i in 1 2; do sleep 1001; done"]
    {
        person.types(&format!("{line}\r"));
        person.runs_in_front("sleep 1001", "sleep 1001");
        person.types(CTRL_C);
        person.sees_a_prompt();
        person.process("sleep 1001", false);
        let said = person.runs("echo status $?");
        assert!(said.contains("status 130") && !said.contains("not this"), "{line}: {said}");
    }
    for (link, last) in
        [("tmpfile", "cat"), ("tmpfile:order=sequential", "sleep 1002"), ("pty", "cat"), ("fifo", "cat")]
    {
        person.runs(&format!("via {link}"));
        person.types("sleep 1002 | cat\r");
        person.runs_in_front("sleep 1002", last);
        person.types(CTRL_C);
        person.sees_a_prompt();
        person.process("sleep 1002", false);
    }
}

#[test]
fn ctrl_z_stops_and_fg_goes_on() {
    let home = home();
    let mut person = Person::at_home(home.path());
    for link in ["pipe", "tmpfile", "socketpair"] {
        person.runs(&format!("via {link}"));
        // The reader works behind the sleep, so that it is seen that the whole goes on.
        person.types("{ sleep 0.4; echo through; } | tr a-z A-Z\r");
        person.runs_in_front("sleep 0.4", "tr a-z A-Z");
        person.types(CTRL_Z);
        let said = person.sees_a_prompt();
        assert!(
            said.contains("[1] stopped (fg 1 goes on): { sleep 0.4; echo through; } | tr a-z A-Z"),
            "{said}"
        );
        assert!(person.runs("jobs").contains("[1] stopped"), "{link}");
        person.types("fg\r");
        person.sees_line("THROUGH");
        person.sees_a_prompt();
        let said = person.runs("jobs; fg %1");
        assert!(said.contains("there is no job"), "{said}");
    }
    // One that a shell runs, stopped twice, and ended by a key.
    person.types("x=1; sleep 1003 $y\r");
    person.runs_in_front("sleep 1003", "sleep 1003");
    for _ in 0..2 {
        person.types(CTRL_Z);
        person.sees_a_prompt();
        person.types("fg\r");
        person.sees("sleep 1003 $y");
    }
    person.types(CTRL_C);
    person.sees_a_prompt();
    person.process("sleep 1003", false);
}

#[test]
fn an_ampersand_leaves_it_behind_and_its_end_is_reported() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("via tmpfile");
    let said = person.runs("{ sleep 0.3; echo from behind >seen; } | cat & echo at once");
    assert!(said.contains("[1] runs in the background:") && said.contains("\nat once\n"), "{said}");
    let began = Instant::now();
    while !person.runs("").contains("[1] done: { sleep 0.3;") {
        assert!(began.elapsed() < SOON, "the end is not reported");
    }
    assert_eq!(std::fs::read_to_string(home.path().join("seen")).ok().as_deref(), Some("from behind\n"));
    // More than one item: a shell of its own runs them.
    person.runs("sleep 0.2 && (exit 3) &");
    let began = Instant::now();
    while !person.runs("").contains("[1] left with status 3") {
        assert!(began.elapsed() < SOON, "the end is not reported");
    }
    // Stopped, then sent behind.
    person.types("sleep 0.3\r");
    person.runs_in_front("sleep 0.3", "sleep 0.3");
    person.types(CTRL_Z);
    person.sees_a_prompt();
    assert!(person.runs("bg").contains("[1] runs in the background: sleep 0.3"));
    let began = Instant::now();
    while !person.runs("").contains("[1] done: sleep 0.3") {
        assert!(began.elapsed() < SOON, "the end is not reported");
    }
}

#[test]
fn the_terminal_is_handed_over_and_set_right() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("stty -echo -icanon");
    let said = person.runs("stty -a");
    assert!(said.contains(" echo ") && said.contains(" icanon "), "{said}");
    person.resizes(41, 90);
    assert!(person.runs("stty size").contains("\n41 90\n"));
    // A program that reads the terminal, behind another one.
    person.types("echo head | cat - /dev/tty\r");
    person.sees_line("head");
    person.types("typed\r");
    person.sees_line("typed");
    person.types(CTRL_D);
    person.sees_a_prompt();
    // A reader behind the prompt is stopped when it reaches for the terminal.
    person.runs("cat /dev/tty &");
    let began = Instant::now();
    while !person.runs("").contains("[1] stopped") {
        assert!(began.elapsed() < SOON, "it is not stopped");
    }
}

#[test]
fn a_pager_can_be_a_stage() {
    if std::process::Command::new("less").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no less");
        return;
    }
    let home = home();
    let mut person = Person::at_home(home.path());
    person.types("seq 1000 | less\r");
    person.sees_line("29");
    person.types("G");
    person.sees_line("1000");
    person.types("q");
    person.sees_a_prompt();
    assert!(person.runs("echo here").contains("\nhere\n"));
}

#[test]
fn stopped_jobs_make_leaving_a_question() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.types("sleep 1004\r");
    person.runs_in_front("sleep 1004", "sleep 1004");
    person.types(CTRL_Z);
    person.sees_a_prompt();
    person.types(CTRL_D);
    person.sees("There are stopped jobs");
    person.sees_a_prompt();
    person.types(CTRL_D);
    person.leaves();
    nothing_is_left(home.path());
}

#[test]
fn a_killed_shell_leaves_nothing_behind() {
    for signal in [Signal::TERM, Signal::HUP] {
        let home = home();
        let mut person = Person::at_home(home.path());
        person.runs("via file");
        person.runs("preset 1");
        person.runs("sleep 1005 &");
        person.types("sleep 1006 | cat\r");
        person.runs_in_front("sleep 1006", "cat");
        person.types(CTRL_Z);
        person.sees_a_prompt();
        person.kills(signal);
        assert!(!person.leaves().success());
        nothing_is_left(home.path());
        // And while a pipeline is in front.
        let mut person = Person::at_home(home.path());
        person.types("sleep 1007 | cat\r");
        person.runs_in_front("sleep 1007", "cat");
        person.kills(signal);
        assert!(!person.leaves().success());
        nothing_is_left(home.path());
    }
    // SIGKILL asks nobody; the kernel hangs up what has the terminal (setpgid(2), credentials(7)).
    let home = home();
    let mut person = Person::at_home(home.path());
    person.types("sleep 1008 | cat\r");
    person.runs_in_front("sleep 1008", "cat");
    person.kills(Signal::KILL);
    person.leaves();
    nothing_is_left(home.path());
}

fn nothing_is_left(home: &std::path::Path) {
    let began = Instant::now();
    while !processes(home).is_empty() {
        assert!(began.elapsed() < SOON, "left: {:?}", processes(home));
    }
    let entries = std::fs::read_dir(home).expect("there").flatten();
    let left: Vec<_> =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("hosepipe-")).collect();
    assert!(left.is_empty(), "left: {left:?}");
}
