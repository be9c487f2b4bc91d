//! Pipelines that end in other ways than at the end of their input.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use super::place::{PARALLEL, assert_as_in_bash, bash, links, recorded, run};
use crate::common::{Lab, promptly, signal, soon, until};

/// Two CPUs shared with the other tests.

#[test]
fn a_writer_without_an_end_ends_with_its_reader_over_any_link() {
    for via in PARALLEL {
        let lab = Lab::new();
        let (done, record) = recorded(&lab, &["--via", via, "yes | head -1"]);
        assert_eq!((done.code(), done.stdout.as_str()), (0, "y\n"), "{via}: {}", done.stderr);
        assert!(done.elapsed < promptly(), "{via}: {:?}", done.elapsed);
        assert_eq!(record.pipestatus.len(), 2);
        assert_ne!(record.pipestatus[0], Some(0), "{via}: the writer was told");
        let stored = record.links[0].stored_bytes;
        assert_eq!(stored.is_some(), via.contains("file"), "{via}: {stored:?}");
    }
}

#[test]
fn a_chain_without_an_end_ends_with_its_reader_over_any_link() {
    for via in PARALLEL {
        let lab = Lab::new();
        let done = run(&lab, &["--via", via, "yes | cat | tr y z | head -c 4"]).expect_code(0);
        assert_eq!(done.stdout, "z\nz\n", "{via}");
        assert!(done.elapsed < promptly(), "{via}: {:?}", done.elapsed);
    }
}

#[test]
fn no_input_is_an_end_over_every_link() {
    for via in links() {
        let lab = Lab::new();
        let done =
            run(&lab, &["--via", via, "true | cat | wc -c; cat < /dev/null | cat | wc -c"]).expect_code(0);
        assert_eq!(done.stdout, "0\n0\n", "{via}: {}", done.stderr);
    }
}

#[test]
fn binary_data_comes_through_every_link() {
    for via in links() {
        let lab = Lab::new();
        let bytes: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fs::write(lab.here("in"), &bytes).expect("a file");
        run(&lab, &["--via", via, "cat in | tee copy | cat > out"]).expect_code(0);
        assert!(fs::read(lab.here("out")).expect("the output") == bytes, "{via}");
        assert!(fs::read(lab.here("copy")).expect("the copy") == bytes, "{via}");
    }
}

#[test]
fn a_killed_stage_in_the_middle_ends_the_pipeline() {
    for via in PARALLEL {
        let lab = Lab::new();
        let text =
            "yes | sh -c 'echo $$ > pid; exec cat' | cat > /dev/null; echo ${PIPESTATUS[1]} ${PIPESTATUS[2]}";
        let running = lab.start(lab.command(&["run", "--via", via, text]));
        let pid =
            until("the stage", soon(), || fs::read_to_string(lab.here("pid")).ok()?.trim().parse().ok());
        // It has read something by then.
        std::thread::sleep(Duration::from_millis(50));
        signal(pid, Signal::KILL);
        let done = running.wait_within(soon()).expect_code(0);
        assert_eq!(done.stdout, "137 0\n", "{via}: {}", done.stderr);
    }
}

#[test]
fn a_crashed_stage_is_told_by_its_status() {
    assert_as_in_bash("ulimit -c 0; echo a | sh -c 'kill -SEGV $$'; echo $?", 0, "139\n");
    let lab = Lab::new();
    let (done, record) = recorded(&lab, &["--stats", "sh -c 'ulimit -c 0; kill -SEGV $$' | cat"]);
    assert_eq!(done.code(), 0);
    assert_eq!((record.stages[0].signal, record.stages[0].status), (Some(11), Some(139)));
    assert!(done.stderr.contains("SIGSEGV"), "the table says so: {}", done.stderr);
}

/// Nobody waits for a daemon that a stage leaves behind, unless the reader does who sees no end of its input.
#[test]
fn a_daemon_that_a_stage_leaves_behind_is_waited_for_only_by_its_reader() {
    for via in PARALLEL.into_iter().filter(|via| *via != "pty") {
        let lab = Lab::new();
        let mut running = lab.start(lab.command(&["run", "--via", via, "echo y | (sleep 3 & echo x)"]));
        let done = running.end_within(soon()).expect_code(0);
        assert_eq!(done.stdout, "x\n", "{via}");
        assert!(done.elapsed < Duration::from_secs(2), "nobody reads from it ({via}): {:?}", done.elapsed);
        end_daemons(&lab);

        let lab = Lab::new();
        let mut running = lab.start(lab.command(&["run", "--via", via, "(sleep 0.4 & echo x) | cat"]));
        let done = running.end_within(soon()).expect_code(0);
        assert_eq!(done.stdout, "x\n", "{via}");
        assert!(
            done.elapsed > Duration::from_millis(390),
            "its end is the input's ({via}): {:?}",
            done.elapsed
        );
        assert!(done.elapsed < Duration::from_secs(3), "{via}: {:?}", done.elapsed);
    }
}

/// The same, as the first of several items: the shell ends at once, and so must its item.
#[test]
fn a_daemon_does_not_hold_up_the_list() {
    let text = "(sleep 3 & ) ; echo x; sh -c 'sleep 3 &'; echo y | cat";
    let lab = Lab::new();
    let began = std::time::Instant::now();
    let mut running = lab.start(lab.command(&["run", text]));
    let done = running.end_within(soon()).expect_code(0);
    assert_eq!(done.stdout, "x\ny\n");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    end_daemons(&lab);
}

fn end_daemons(lab: &Lab) {
    for (pid, _) in lab.processes() {
        signal(pid, Signal::KILL);
    }
}

#[test]
fn a_stage_that_never_reads_does_not_hold_up_the_rest() {
    for via in PARALLEL {
        let lab = Lab::new();
        let done = run(&lab, &["--via", via, "seq 200000 | true | echo over"]).expect_code(0);
        assert_eq!(done.stdout, "over\n", "{via}");
    }
    let lab = Lab::new();
    assert_eq!(bash(&lab, &[], "seq 200000 | true | echo over"), (0, "over\n".to_owned()));
}

/// Expected: nothing is left to reap. Happened: the process that serves the links was a zombie for as long as process 1, or another one in
/// its place, reaped nothing.
#[test]
fn hosepipe_reaps_its_server() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let lab = Lab::new();
    // Who gets the orphans (PR_SET_CHILD_SUBREAPER) says whether there is one.
    let reaper = "syscall(157, 36, 1, 0, 0, 0); system(@ARGV); print waitpid(-1, 0), qq(\n)";
    for args in [&["run", "--stats"][..], &["run", "--via", "tmpfile"], &["run"]] {
        let args = [args, &["seq 3 | wc -l"]].concat();
        let done = lab.finish(lab.wrapped(&["perl", "-e", reaper], &args)).expect_code(0);
        assert_eq!(done.stdout.lines().last(), Some("-1"), "{args:?}: {}", done.stdout);
    }
}
