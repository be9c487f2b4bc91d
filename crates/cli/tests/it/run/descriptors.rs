//! Each stage has the descriptors it would have under bash, and none of ours.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::place::{PARALLEL, has_line, run};
use crate::common::programs::script;
use crate::common::{Lab, soon, until};

/// `./fds FILE`: what the script's own shell holds, as ls(1) lists it, into a file.
const FDS: &str = "#!/bin/bash\nls -l /proc/$$/fd > \"$1\"\nexit 0\n";

/// First, middle and last; started as a program, by a shell as a group, and by a shell that it replaces.
const STAGES: &str = "./fds first | { ./fds middle; } | ./fds $(echo last)";
const NAMES: [&str; 3] = ["first", "middle", "last"];

/// By number: how a descriptor is open, and what kind of thing it is.
type Held = BTreeMap<u32, (String, String)>;

fn held(lab: &Lab, name: &str) -> Held {
    let text = fs::read_to_string(lab.here(name)).expect("the stage's list");
    let entry = |line: &str| {
        let (left, target) = line.split_once(" -> ")?;
        let number = left.split_whitespace().next_back()?.parse().ok()?;
        // The number of a pipe or socket is its own; its kind is not.
        let kind = target.split('[').next().unwrap_or(target).to_owned();
        Some((number, (left.split_whitespace().next()?.to_owned(), kind)))
    };
    let held: Held = text.lines().filter_map(entry).collect();
    assert!(held.len() >= 4, "0, 1, 2 and the script: {text}");
    held
}

fn lab() -> Lab {
    let lab = Lab::new();
    script(&lab, "fds", FDS);
    lab
}

/// The stages' descriptors under bash, which has the same descriptors of its own as hosepipe has.
fn under_bash(opened: &str) -> Vec<Held> {
    let lab = lab();
    let mut command: Command =
        lab.wrapped(&["bash", "-c", &format!("shift; exec bash -c \"$1\" {opened}")], &["", STAGES]);
    assert!(command.status().expect("bash").success());
    NAMES.iter().map(|name| strip(held(&lab, name), &lab)).collect()
}

fn under_hosepipe(opened: &str, args: &[&str]) -> Vec<Held> {
    let lab = lab();
    let wrapper = ["bash", "-c", &format!("exec \"$0\" \"$@\" {opened}")];
    let args = [&["run"], args, &[STAGES]].concat();
    lab.finish(lab.wrapped(&wrapper, &args)).expect_code(0);
    NAMES.iter().map(|name| strip(held(&lab, name), &lab)).collect()
}

/// Without the path of the lab.
fn strip(held: Held, lab: &Lab) -> Held {
    let here = lab.here("");
    let root = here.parent().and_then(|root| root.to_str()).expect("a plain path").to_owned();
    let plain =
        |(number, (mode, kind)): (u32, (String, String))| (number, (mode, kind.replace(&root, "LAB")));
    held.into_iter().map(plain).collect()
}

#[test]
fn a_stage_has_what_it_would_have_under_bash() {
    let expected = under_bash("");
    assert_eq!(expected[0][&1].1, "pipe:");
    for args in [&[][..], &["--pipefail"], &["--stats"], &["--live"], &["--json", "r"], &["--keep", "kept"]] {
        assert_eq!(under_hosepipe("", args), expected, "with {args:?}");
    }
}

#[test]
fn a_stage_has_what_hosepipe_was_given() {
    let opened = "3> extra 5< /dev/null 17<> both";
    let expected = under_bash(opened);
    for stage in &expected {
        assert_eq!(stage[&17], ("lrwx------".to_owned(), "LAB/here/both".to_owned()), "{stage:?}");
    }
    for args in [&[][..], &["--stats", "--json", "r"], &["--keep", "kept"]] {
        assert_eq!(under_hosepipe(opened, args), expected, "with {args:?}");
    }
}

#[test]
fn nothing_of_ours_leaks_over_any_link() {
    let opened = "7< /dev/null";
    let expected = under_bash(opened);
    for via in PARALLEL {
        for more in [&[][..], &["--keep", "kept", "--stats", "--json", "r"]] {
            let got = under_hosepipe(opened, &[&["--via", via], more].concat());
            for (stage, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let numbers = |held: &Held| held.keys().copied().collect::<Vec<u32>>();
                assert_eq!(numbers(got), numbers(expected), "stage {stage} over {via} {more:?}: {got:?}");
                let others = |held: &Held| {
                    held.iter()
                        .filter(|(number, _)| **number > 1)
                        .map(|(_, what)| what.clone())
                        .collect::<Vec<_>>()
                };
                assert_eq!(others(got), others(expected), "stage {stage} over {via} {more:?}");
            }
        }
    }
}

/// Expected: a lock, and the end of a pipe, go when the shell that had them closes them. Happened: hosepipe had copies until its end.
#[test]
fn hosepipe_keeps_nothing_open_that_the_shell_has_closed() {
    let text = "exec 9>&- <&- >&-; echo ready > a; until [ -e go ]; do sleep 0.01; done; seq 3 | tac | cat";
    let held = |lab: &Lab, name: &str| {
        let holds = |pid: &u32| {
            let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target == lab.here(name))
        };
        lab.processes().into_iter().filter(|(pid, _)| holds(pid)).collect::<Vec<_>>()
    };
    for args in [
        &["sh", "-c"][..],
        &["sh", "--via", "tmpfile", "-c"],
        &["run", "--stats", "--via", "fifo"],
        &["boost", "sh", "-c"],
    ] {
        let lab = Lab::new();
        fs::write(lab.here("in"), "").expect("written");
        let wrapper = ["bash", "-c", "exec \"$0\" \"$@\" 9>lock <in >out"];
        let running = lab.start(lab.wrapped(&wrapper, &[args, &[text]].concat()));
        until("the shell", soon(), || has_line(lab.here("a"), "ready"));
        // The server begins while the shell does.
        until("closed descriptors", soon(), || {
            ["lock", "in", "out"].iter().all(|name| held(&lab, name).is_empty()).then_some(())
        });
        fs::write(lab.here("go"), "").expect("written");
        running.wait_within(soon());
    }
}

#[test]
fn stages_read_the_input_of_the_whole_only_in_the_first() {
    let lab = Lab::new();
    fs::write(lab.here("input"), "from outside\n").expect("a file");
    let script = "exec \"$0\" \"$@\" < input";
    let text = "cat | cat; echo next; cat | wc -c";
    let done = lab.finish(lab.wrapped(&["sh", "-c", script], &["run", text])).expect_code(0);
    assert_eq!(done.stdout, "from outside\nnext\n0\n", "{}", done.stderr);
    let done = run(&lab, &["wc -c < input | cat"]).expect_code(0);
    assert_eq!(done.stdout, "13\n");
}
