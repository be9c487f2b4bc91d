//! What goes wrong under mechanisms that carry no stream, only round trips (eventfd, futex, signals...): an end
//! that is killed, a run that is stopped or killed. Each costs a row at most and leaves nothing behind.
//!
//! `HOSEPIPE_TEST_FULL=1` adds what takes longer than ten seconds (ends that hang).

use std::time::{Duration, Instant};

use crate::common::{
    ENDS, Entry, Lab, Running, alone, error_of, full, promptly, registry, short_time, signal, skip, soon,
    typed,
};
use model::{ErrorKind, Tasks, Workload};
use rustix::process::Signal;

/// The one process of two threads, as /proc/PID/comm has it.
const THREADS: &str = "hosepipe-tasks";

/// The mechanisms of this machine that do round trips only.
fn round_trips_only() -> Vec<Entry> {
    let mut entries = registry(&Lab::new());
    entries.retain(|entry| entry.workloads == [Workload::PingPong]);
    assert!(!entries.is_empty(), "there are mechanisms of this kind");
    entries
}

/// The processes that a trial of it consists of, by name.
fn processes_of(entry: &Entry) -> &'static [&'static str] {
    if entry.tasks.contains(&Tasks::Processes) { &ENDS } else { &[THREADS] }
}

/// For minutes, were it not for the budget: it ends the floor, too, as soon as the end under test is gone.
const ENDLESS: [&str; 2] = ["--count", "1000000000"];
/// Ten seconds and more of the fastest of them, and few enough for the floor, without a budget that would end a trial
/// before it is found to hang.
const LONG: [&str; 2] = ["--count", "100000000"];

/// Starts a run of one trial of this length, and waits until it is under way. Returns the process of this name.
fn start<'a>(lab: &'a Lab, entry: &Entry, process: &str, length: &[&str]) -> (Running<'a>, u32) {
    let tasks = if process == THREADS { "threads" } else { "processes" };
    let args = ["bench", "--json", "-", &entry.name, "--tasks", tasks, "--workload", "pingpong"];
    let mut running = lab.start(lab.command(&[&args[..], &["--trials", "1"], length].concat()));
    let pid = running.child_in_a_long_trial(process);
    (running, pid)
}

/// The same for a trial that only the budget ends.
fn start_endless<'a>(lab: &'a Lab, entry: &Entry, process: &str) -> (Running<'a>, u32) {
    start(lab, entry, process, &[&ENDLESS[..], &["--time", &typed(short_time())]].concat())
}

#[test]
fn an_end_that_is_killed_costs_its_row_which_names_it() {
    let _turn = alone();
    for entry in round_trips_only() {
        for process in processes_of(&entry) {
            let lab = Lab::new();
            let (mut running, _) = start_endless(&lab, &entry, process);
            let pid = running.child_stopped_in_a_long_trial(process);
            signal(pid, Signal::KILL);
            let killed = Instant::now();
            let done = running.wait_within(soon()).expect_code(1);
            let what = format!("{} {process} {pid}", entry.name);
            // The references may take what is left of the time.
            assert!(killed.elapsed() < promptly() + short_time(), "{what}: {:?}", killed.elapsed());
            let case = done.only_case(&entry.name);
            let error = error_of(&case);
            assert_eq!(error.kind, ErrorKind::Died, "{what}: {error:?}");
            assert!(error.message.contains("SIGKILL"), "{what}: {error:?}");
            assert!(*process == THREADS || error.message.contains(&pid.to_string()), "{what}: {error:?}");
            assert!(!error.expected && case.samples.is_empty(), "{what}: {error:?}");
            done.assert_the_others_went_on(&entry.name);
        }
    }
}

#[test]
fn a_signal_ends_a_trial_that_would_go_on_for_minutes() {
    let _turn = alone();
    for entry in round_trips_only() {
        let lab = Lab::new();
        let (running, _) = start_endless(&lab, &entry, processes_of(&entry)[0]);
        running.stop_as_ctrl_c_does(&entry.name);
    }
}

#[test]
fn nothing_is_left_of_a_hosepipe_that_was_killed() {
    let _turn = alone();
    for entry in round_trips_only() {
        let lab = Lab::new();
        start_endless(&lab, &entry, processes_of(&entry)[0]).0.kill_and_look();
    }
}

#[test]
fn an_end_that_hangs_costs_its_row() {
    if !full() {
        return skip("takes more than ten seconds (HOSEPIPE_TEST_FULL=1)");
    }
    let _turn = alone();
    for entry in round_trips_only() {
        let lab = Lab::new();
        let processes = processes_of(&entry);
        let (running, end) = start(&lab, &entry, processes[processes.len() - 1], &LONG);
        signal(end, Signal::STOP);
        let done = running.wait_within(Duration::from_secs(30)).expect_code(1);
        let case = done.only_case(&entry.name);
        assert_eq!(error_of(&case).kind, ErrorKind::Hung, "{}: {:?}", entry.name, case.error);
        done.assert_the_others_went_on(&entry.name);
    }
}
