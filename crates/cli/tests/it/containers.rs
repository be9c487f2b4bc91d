//! Runs in containers: each is process 1 there, and they share the machine's queues and folders.

use std::time::Duration;

use crate::common::namespaces::unshare;
use crate::common::{ENDS, Lab, files_in, soon, until};

/// Namespaces of process numbers; the queues (the IPC namespace) are those of the machine.
const PIDS: [&str; 3] = ["--pid", "--fork", "--mount-proc"];
const EXEC: &str = "exec \"$0\" \"$@\"";

/// Expected: a run that ends removes its own queues. Happened: it removed those of a run in another container, whose row failed with EIDRM.
#[test]
fn a_run_that_ends_leaves_the_queues_of_another_container() {
    let (first, second) = (Lab::new(), Lab::new());
    let Some(wrapper) = unshare(&PIDS, EXEC) else { return };
    let quick = ["bench", "sysv-msgq", "posix-mq", "--block", "1KiB", "--bytes", "1MiB", "--trials", "1"];
    let long =
        ["bench", "sysv-msgq", "--block", "1KiB", "--bytes", "1GiB", "--trials", "1", "--workload", "stream"];
    let mut running = first.start(first.wrapped(&wrapper, &long));
    // A queue is in use when the other run ends.
    until("a trial runs", soon(), || {
        first.processes().iter().any(|(_, name)| ENDS.contains(&name.as_str())).then_some(())
    });
    for _ in 0..2 {
        second.finish(second.wrapped(&wrapper, &quick)).expect_code(0);
        if running.has_ended() {
            break;
        }
    }
    running.end_within(Duration::from_secs(120)).expect_code(0);
}

/// Expected: two tasks of a spread have files of their own. Happened: with one host name and one process number they shared them.
#[test]
fn tasks_of_a_spread_in_two_containers_have_logs_of_their_own() {
    let lab = Lab::new();
    let Some(wrapper) = unshare(&PIDS, EXEC) else { return };
    let folder = lab.here("work");
    std::fs::create_dir(&folder).expect("a folder");
    let words = ["__part", &folder.display().to_string(), "--task", "--log"];
    for _ in 0..2 {
        let mut task = lab.wrapped(&wrapper, &words);
        task.stdin(std::process::Stdio::null());
        lab.finish(task).expect_code(0);
    }
    assert_eq!(files_in(&folder).len(), 2, "{:?}", files_in(&folder));
}
