//! `hosepipe demo`: its steps, shown and run, and its end by Ctrl-C and by a signal to it alone.

use rustix::process::Signal;

use crate::common::pty::{Person, home, processes};
use crate::common::{Lab, alone, promptly, signal, soon, until};

const SILENT: &str =
    "'for n in {1..600}; do echo job $n; sleep .1; done | grep job | cut -c 5-' &\n$ hosepipe top --once $!";

#[test]
fn the_demo_shows_each_command_and_what_it_prints() {
    let lab = Lab::new();
    let done = lab.run(&["demo", "--short"]).expect_code(0);
    let mut rest = done.stdout.as_str();
    for there in [
        "\n1. ",
        "\n$ hosepipe bench pipe unix-stream file shm-ring --place any",
        "\n mechanism ",
        "\n2. ",
        "\n$ hosepipe run --stats 'seq 1000 | rev | sort | tail -n 1'\n999\n",
        "\n3. ",
        SILENT,
        "\n stage ",
        " grep ",
        "\n4. ",
        "\n$ hosepipe run --line-buffered 'for n in {1..3}; ",
        "\n1\n2\n3\n",
        "What to try next",
    ] {
        let place = rest.find(there).unwrap_or_else(|| panic!("no {there:?} in {rest}"));
        rest = &rest[place..];
    }
    for of_stats in [" stage ", " 2 rev "] {
        assert!(done.stderr.contains(of_stats), "{}", done.stderr);
    }
}

#[test]
fn control_c_ends_the_demo_in_any_step_and_leaves_nothing() {
    let _alone = alone();
    for (option, step) in [(None, "$ hosepipe bench "), (Some("--short"), "$ hosepipe top ")] {
        let home = home();
        let words = [env!("CARGO_BIN_EXE_hosepipe"), "demo"];
        let words: Vec<&str> = words.into_iter().chain(option).collect();
        let mut person = Person::before(home.path(), &words);
        person.sees(step);
        person.types("\x03");
        assert_eq!(person.leaves().code(), Some(130), "{step}");
        until("nothing is left", promptly(), || processes(home.path()).is_empty().then_some(()));
        let files: Vec<_> = std::fs::read_dir(home.path()).expect("its folder").flatten().collect();
        assert!(files.is_empty(), "{step}: {files:?}");
    }
}

#[test]
fn a_signal_to_the_demo_alone_ends_its_command() {
    let lab = Lab::new();
    let running = lab.start(lab.command(&["demo"]));
    until("its command", soon(), || {
        running.children().iter().any(|(_, name)| name == "hosepipe").then_some(())
    });
    signal(running.pid(), Signal::TERM);
    running.wait_within(soon()).expect_code(143);
}
