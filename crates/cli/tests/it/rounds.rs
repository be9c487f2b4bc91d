//! The trials of each round run in a process that was executed for it.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::common::{
    ENDS, Lab, ROUND, Running, alone, error_of, promptly, short_time, signal, skip, soon, state_of, typed,
    until,
};
use model::ErrorKind;
use rustix::process::Signal;

/// `hosepipe bench --json - ARGS`, started.
fn start<'a>(lab: &'a Lab, args: &[&str]) -> Running<'a> {
    lab.start(lab.command(&[&["bench", "--json", "-"], args].concat()))
}

/// Expected: the trials of each round have addresses of their own. Happened: all ends were forked by one process, whose layout they had.
#[test]
fn each_round_has_a_process_with_addresses_of_its_own() {
    let _turn = alone();
    if fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|is| is.trim() == "0") {
        return skip("this kernel does not randomise addresses");
    }
    let lab = Lab::new();
    let args = ["pipe", "--workload", "stream", "--bytes", "64MiB", "--trials", "40"];
    let mut running = start(&lab, &args);
    let mut stacks = BTreeSet::new();
    while !running.has_ended() {
        for (pid, _) in running.children().into_iter().filter(|(_, name)| name == ROUND) {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let stack = maps.lines().find(|line| line.ends_with("[stack]")).map(str::to_owned);
            stacks.extend(stack);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    running.wait_within(soon()).expect_code(0);
    assert!(stacks.len() > 2, "{stacks:?}");
}

#[test]
fn the_process_of_a_round_that_is_killed_costs_its_row_and_nothing_else() {
    let _turn = alone();
    let lab = Lab::new();
    let args = ["fifo", "--workload", "stream", "--bytes", "4TiB", "--trials", "1"];
    let mut running = start(&lab, &[&args[..], &["--time", &typed(short_time())]].concat());
    let end = running.child_stopped_in_a_long_trial(ENDS[1]);
    let round = running.children().into_iter().find(|(_, name)| name == ROUND).expect("a round").0;
    signal(round, Signal::KILL);
    let done = running.wait_within(soon()).expect_code(1);
    until("its ends end", promptly(), || state_of(end).is_none_or(|state| state == 'Z').then_some(()));
    let error = error_of(&done.only_case("fifo")).clone();
    assert_eq!(error.kind, ErrorKind::Died, "{error:?}");
    assert!(error.message.contains("of a round: was ended by SIGKILL"), "{error:?}");
    done.assert_the_others_had_their_turn("fifo");
}
