//! Job control of `hosepipe sh`, on a pseudo-terminal: keys that end and stop, jobs behind the prompt and the commands
//! about them, nothing left behind.

use std::time::{Duration, Instant};

use crate::common::pty::{Person, SOON, end_all, home, processes};
use rustix::process::Signal;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

#[test]
fn ctrl_c_ends_the_pipeline_and_never_the_shell() {
    let home = home();
    let mut person = Person::at_home(home.path());
    for (line, last) in [
        ("sleep 1001", "sleep 1001"),
        ("sleep 1001 | cat", "cat"),
        ("sleep 1001; echo not this", "sleep 1001"),
        ("for i in 1 2; do sleep 1001; done", "sleep 1001"),
    ] {
        person.types(&format!("{line}\r"));
        person.runs_in_front("sleep 1001", last);
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
        person.runs_in_front("sleep 1003", "sleep 1003");
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
fn what_went_on_is_spoken_of_like_any_other() {
    let home = home();
    let mut person = Person::at_home(home.path());
    for link in ["pipe", "tmpfile"] {
        person.runs(&format!("via {link}"));
        person.types("{ sleep 0.4; seq 1000; } | sort | wc -l\r");
        person.runs_in_front("sleep 0.4", "wc -l");
        person.types(CTRL_Z);
        person.sees_a_prompt();
        std::thread::sleep(Duration::from_millis(300));
        let said = person.runs("fg");
        assert!(said.contains("\n1000\n"), "{said}");
        // 3893 bytes and the time it ran, without the time it stood still.
        assert!(said.contains("→3.89 kB→ sort →3.89 kB→ wc · ") && said.contains(" stopped) · "), "{said}");
        assert!(said.contains(&format!("wc · {link} · ")), "{said}");
    }
    // One that was in the background, and failed.
    person.runs("{ sleep 0.3; echo x; } | grep y &");
    let said = person.runs("fg; echo status $?");
    assert!(said.contains("stage 2 `grep y` left with status 1: nothing matched"), "{said}");
    assert!(said.contains("\nstatus 1\n"), "{said}");
}

#[test]
fn jobs_are_waited_for() {
    let home = home();
    let mut person = Person::at_home(home.path());
    let said = person.runs("(sleep 0.2; exit 4) &");
    assert!(said.contains("[1] runs in the background"), "{said}");
    let said = person.runs("wait %1; echo status $?");
    assert!(said.contains("[1] left with status 4") && said.contains("\nstatus 4\n"), "{said}");
    let said = person.runs("(sleep 0.2; exit 5) & wait $! && echo fine || echo status $?");
    assert!(said.contains("\nstatus 5\n"), "{said}");
    // One that has ended is remembered by its number, which a variable can hold.
    person.runs("(exit 6) &");
    person.runs("x=$!");
    assert!(person.runs("wait $!; echo status $?").contains("\nstatus 6\n"));
    assert!(person.runs("test $x = $! && echo the same").contains("\nthe same\n"));
    // All of them.
    person.runs("sleep 0.1 | cat & sleep 0.3 &");
    let said = person.runs("wait; jobs; echo over");
    assert!(said.contains("done: sleep 0.1 | cat") && said.contains("done: sleep 0.3"), "{said}");
    assert!(said.contains("\nover\n"), "{said}");
    assert!(person.runs("wait %1").contains("there is no job `%1`"));
    let said = person.runs("wait 1; echo status $?");
    assert!(said.contains("1 is no job of this shell") && said.contains("\nstatus 127\n"), "{said}");
    // Ctrl-C ends the waiting, and not what is waited for.
    person.runs("sleep 1009 &");
    person.types("wait\r");
    std::thread::sleep(Duration::from_millis(100));
    person.types(CTRL_C);
    person.sees_a_prompt();
    assert!(
        person.runs("echo status $?; jobs").contains("\nstatus 130\n[1] runs in the background: sleep 1009")
    );
    person.runs("kill %1");
    person.process("sleep 1009", false);
}

#[test]
fn jobs_are_sent_signals_by_name() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("sleep 1010 | cat &");
    person.runs("sleep 1011 &");
    person.runs("kill -STOP %sleep\u{20}");
    let said = person.runs("kill %1 && echo sent");
    assert!(said.contains("\nsent\n"), "{said}");
    person.process("sleep 1010", false);
    person.runs("kill -9 $!");
    person.process("sleep 1011", false);
    // One that is stopped is woken to see its end.
    person.types("sleep 1012 | cat\r");
    person.runs_in_front("sleep 1012", "cat");
    person.types(CTRL_Z);
    person.sees_a_prompt();
    person.runs("kill %?1012");
    person.process("sleep 1012", false);
    let said = person.runs("kill %7; echo status $?");
    assert!(said.contains("there is no job `%7`") && said.contains("\nstatus 1\n"), "{said}");
}

#[test]
fn a_disowned_job_lives_on() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("sleep 1013 &");
    person.runs("disown; jobs");
    person.runs("via tmpfile");
    person.runs("sleep 1014 | cat &");
    assert!(person.runs("disown %1").contains("cannot live on without this shell"));
    person.runs("via pipe");
    person.types(CTRL_D);
    person.leaves();
    let began = Instant::now();
    while processes(home.path()) != ["sleep 1013"] {
        assert!(began.elapsed() < SOON, "there are {:?}", processes(home.path()));
    }
    end_all(home.path());
    nothing_is_left(home.path());
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
