//! What goes wrong while a run is under way costs a row at most, and leaves nothing behind: no process, no
//! temporary file, no queue. Every run of every test here is looked after for that (`Lab::run`).
//!
//! `HOSEPIPE_TEST_FULL=1` adds what takes longer than ten seconds (ends that hang).

use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use crate::common::{
    self, Done, ENDS, Entry, Lab, Running, alone, error_of, full, holds_both_ends, promptly, read_record,
    registry, short_time, signal, skip, soon, state_of, typed, until,
};
use model::{CaseRecord, ErrorKind};
use rustix::process::{Pid, Signal, kill_process_group};

/// `hosepipe bench --json - ARGS`, started.
fn start<'a>(lab: &'a Lab, args: &[&str]) -> Running<'a> {
    lab.start(lab.command(&[&["bench", "--json", "-"], args].concat()))
}

fn is_alive(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

/// Kills one end of a mechanism by SIGKILL in the midst of a long trial.
fn kill_an_end(entry: &Entry, end: &str) -> (u32, Done) {
    let lab = Lab::new();
    let mut running = start(&lab, &entry.endless_stream());
    let pid = running.child_stopped_in_a_long_trial(end);
    // On a busy machine the other end may get its name later.
    let ends = until(&format!("{}: two ends", entry.name), soon(), || {
        let children = running.children().into_iter().filter(|(_, name)| ENDS.contains(&name.as_str()));
        let ends: Vec<u32> = children.map(|(pid, _)| pid).collect();
        (ends.len() == 2).then_some(ends)
    });
    signal(pid, Signal::KILL);
    let what = format!("{}: the trial is over after its {end} was killed", entry.name);
    until(&what, promptly(), || ends.iter().all(|pid| !is_alive(*pid)).then_some(()));
    (pid, running.wait_within(soon()).expect_code(1))
}

/// Expected: the row names the end that was killed from outside, by role and number, and the signal.
/// Happened: where the other end notices nothing (queues, files, rings) the supervisor ends it half a second
/// later, and then the sender was named whichever end had died first.
#[test]
fn an_end_that_is_killed_costs_its_row_which_names_it_and_nothing_else() {
    let _turn = alone();
    for entry in registry(&Lab::new()).iter().filter(|entry| entry.has_two_ends()) {
        for (end, role) in ENDS.iter().zip(["sender", "receiver"]) {
            let (pid, done) = kill_an_end(entry, end);
            let case = done.only_case(&entry.name);
            let error = error_of(&case);
            let what = format!("{}, {role} {pid} killed: {error:?}", entry.name);
            assert_eq!(error.kind, ErrorKind::Died, "{what}");
            assert!(error.message.contains("SIGKILL"), "{what}");
            assert!(error.message.contains(role) && error.message.contains(&pid.to_string()), "{what}");
            assert!(!error.expected && case.samples.is_empty(), "{what}");
            done.assert_the_others_went_on(&entry.name);
        }
    }
}

#[test]
fn an_asker_or_answerer_that_is_killed_costs_its_row() {
    let _turn = alone();
    for spec in ["pipe", "shm-ring:wait=spin", "shm-ring:wait=futex", "tcp", "sysv-msgq"] {
        for end in ENDS {
            let lab = Lab::new();
            let args = [
                spec,
                "--workload",
                "pingpong",
                "--count",
                "1000000000",
                "--trials",
                "1",
                "--time",
                &typed(short_time()),
            ];
            let mut running = start(&lab, &args);
            let pid = running.child_stopped_in_a_long_trial(end);
            signal(pid, Signal::KILL);
            let killed = Instant::now();
            let done = running.wait_within(soon()).expect_code(1);
            assert!(killed.elapsed() < promptly() + short_time(), "{spec} {end}: {:?}", killed.elapsed());
            let name = spec.split(':').next().unwrap_or(spec);
            let error = error_of(&done.only_case(name)).clone();
            assert_eq!(error.kind, ErrorKind::Died, "{spec} {end}: {error:?}");
            done.assert_the_others_had_their_turn(name);
        }
    }
}

#[test]
fn the_process_that_holds_both_ends_can_be_killed_too() {
    let _turn = alone();
    for tasks in ["threads", "single"] {
        let lab = Lab::new();
        let args = ["pipe", "--workload", "stream", "--bytes", "4TiB", "--trials", "1", "--tasks", tasks];
        let mut running = start(&lab, &[&args[..], &["--time", &typed(short_time())]].concat());
        // On a busy machine the trials of the references take long, too.
        until("a process holds both ends of a pipe", soon(), || {
            let pid = running.child_stopped_in_a_long_trial("hosepipe-tasks");
            let found = holds_both_ends(pid);
            signal(pid, if found { Signal::KILL } else { Signal::CONT });
            found.then_some(())
        });
        let killed = Instant::now();
        let done = running.wait_within(soon()).expect_code(1);
        assert!(killed.elapsed() < promptly() + short_time(), "{tasks}: {:?}", killed.elapsed());
        let error = error_of(&done.only_case("pipe")).clone();
        assert_eq!(error.kind, ErrorKind::Died, "{tasks}: {error:?}");
        assert!(error.message.contains("SIGKILL"), "{tasks}: {error:?}");
        done.assert_the_others_had_their_turn("pipe");
    }
}

#[test]
fn the_other_mechanisms_of_the_run_have_their_figures() {
    let _turn = alone();
    let lab = Lab::new();
    let specs = ["pipe", "fifo", "socketpair", "null", "memcpy"];
    let mut running =
        start(&lab, &[&specs[..], &["--workload", "stream", "--bytes", "1GiB", "--trials", "1"]].concat());
    let pid = running.child_stopped_in_a_long_trial("hosepipe-recv");
    signal(pid, Signal::KILL);
    let done = running.wait_within(common::HANGS_AFTER).expect_code(1);
    let record = done.record();
    let failed: Vec<&CaseRecord> = record.cases.iter().filter(|case| case.error.is_some()).collect();
    assert_eq!(failed.len(), 1, "{}", done.stdout);
    assert_eq!(error_of(failed[0]).kind, ErrorKind::Died);
    assert!(record.cases.iter().filter(|case| case.error.is_none()).all(|case| case.samples.len() == 1));
}

/// Lets a run of many short trials make some of them. Returns once `trials` senders were seen.
fn let_trials_pass(running: &Running<'_>, trials: usize) {
    let mut seen = std::collections::BTreeSet::new();
    until("short trials", Duration::from_secs(30), || {
        seen.extend(running.children().into_iter().filter(|(_, name)| name == ENDS[0]).map(|(pid, _)| pid));
        (seen.len() >= trials).then_some(())
    });
}

#[test]
fn a_signal_ends_the_run_and_saves_what_was_finished() {
    let _turn = alone();
    let signals =
        [(Signal::INT, 130, "Ctrl-C (SIGINT)"), (Signal::TERM, 143, "SIGTERM"), (Signal::HUP, 129, "SIGHUP")];
    for (sent, code, by) in signals {
        let lab = Lab::new();
        let file = lab.here("run.json");
        let path = file.to_str().expect("a plain path");
        let args = ["bench", "pipe", "socketpair", "null", "memcpy", "--count", "10", "--trials", "100000"];
        // A suite under nohup(1) has SIGHUP ignored, and what is ignored from the beginning stays so.
        let heard = ["env", "--default-signal=HUP"];
        let running =
            lab.start(lab.wrapped(&heard, &[&args[..], &["--workload", "stream", "--json", path]].concat()));
        let_trials_pass(&running, 30);
        signal(running.pid(), sent);
        let done = running.wait_within(promptly()).expect_code(code);
        let record = read_record(&std::fs::read_to_string(&file).expect("the record was saved"));
        assert!(record.settings.interrupted, "{sent:?}");
        for case in &record.cases {
            assert!(!case.samples.is_empty() && case.error.is_none(), "{sent:?}: {case:?}");
            assert!(case.throughput.is_some(), "{sent:?}: {case:?}");
        }
        assert!(done.stdout.contains(&format!("Stopped early by {by}: ")), "{}", done.stdout);
    }
}

#[test]
fn a_signal_ends_a_trial_that_would_go_on_for_minutes() {
    let _turn = alone();
    for entry in registry(&Lab::new()).iter().filter(|entry| entry.has_two_ends()) {
        let lab = Lab::new();
        let mut running = start(&lab, &entry.endless_stream());
        running.child_in_a_long_trial(ENDS[1]);
        running.stop_as_ctrl_c_does(&entry.name);
    }
}

/// Expected: a stop is heard within two seconds, whatever is being done.
/// Happened: after the last byte the supervisor computes the checksum that the payload should have over all bytes
/// of the trial; meanwhile it hears nothing (12 GiB by XOR: three seconds; 64 GiB: a quarter of a minute).
#[test]
fn a_signal_is_heard_while_the_expected_checksum_is_computed() {
    if !full() {
        return skip("moves many gigabytes (HOSEPIPE_TEST_FULL=1)");
    }
    let _turn = alone();
    let lab = Lab::new();
    let args = ["shm-ring", "--workload", "stream", "--bytes", "16GiB", "--check", "xor", "--trials", "1"];
    let mut running = start(&lab, &[&args[..], &["null", "memcpy"]].concat());
    let end = running.child_in_a_long_trial(ENDS[1]);
    until("the end of the trial", common::HANGS_AFTER, || (!is_alive(end)).then_some(()));
    signal(running.pid(), Signal::INT);
    running.wait_within(promptly()).expect_code(130);
}

/// A terminal sends SIGINT to the whole foreground group: the ends die of it, and that is no failed row.
#[test]
fn control_c_in_a_terminal_is_a_stop_and_not_a_death_of_both_ends() {
    let _turn = alone();
    let lab = Lab::new();
    let args = ["bench", "pipe", "--workload", "stream", "--bytes", "4TiB", "--trials", "1", "--json", "-"];
    let mut command = lab.command(&args);
    command.process_group(0);
    let mut running = lab.start(command);
    running.child_in_a_long_trial(ENDS[0]);
    let group = Pid::from_raw(running.pid() as i32).expect("a process group");
    kill_process_group(group, Signal::INT).expect("kill");
    let done = running.wait_within(promptly()).expect_code(130);
    let record = done.record();
    assert!(
        record.settings.interrupted && record.cases.iter().all(|case| case.error.is_none()),
        "{}",
        done.stdout
    );
}

#[test]
fn nothing_is_left_of_a_hosepipe_that_was_killed() {
    let _turn = alone();
    for entry in registry(&Lab::new()).iter().filter(|entry| entry.has_two_ends()) {
        let lab = Lab::new();
        let mut running = start(&lab, &entry.endless_stream());
        running.child_in_a_long_trial(ENDS[1]);
        running.kill_and_look();
    }
}

#[test]
fn nothing_is_left_in_a_folder_of_the_users_choice() {
    let _turn = alone();
    for mechanism in ["file", "tmpfile"] {
        let lab = Lab::new();
        let folder = lab.here("chosen");
        std::fs::create_dir(&folder).expect("mkdir");
        std::fs::write(folder.join("mine"), b"mine").expect("write");
        let spec = format!("{mechanism}:dir={}", folder.display());
        let args =
            [spec.as_str(), "--block", "1", "--count", "100000000", "--trials", "1", "--workload", "stream"];
        let mut running = start(&lab, &args);
        running.child_in_a_long_trial(ENDS[1]);
        if mechanism == "file" {
            assert_eq!(common::files_in(&folder).len(), 2, "the file has a name while it is in use");
        }
        running.kill_and_look();
        let left = common::files_in(&folder);
        assert_eq!(left, [folder.join("mine").display().to_string()]);
    }
}

#[test]
fn a_stopped_end_does_not_keep_the_run_from_ending() {
    let _turn = alone();
    let args = ["pipe", "--workload", "stream", "--bytes", "4TiB", "--trials", "1"];
    let stopped = |lab| {
        let mut running = start(lab, &args);
        let end = running.child_in_a_long_trial(ENDS[1]);
        signal(end, Signal::STOP);
        running
    };
    let lab = Lab::new();
    let running = stopped(&lab);
    signal(running.pid(), Signal::INT);
    running.wait_within(promptly()).expect_code(130);
    let lab = Lab::new();
    let running = stopped(&lab);
    running.kill_and_look();
}

#[test]
fn an_end_that_hangs_costs_its_row() {
    if !full() {
        return skip("takes more than ten seconds (HOSEPIPE_TEST_FULL=1)");
    }
    let _turn = alone();
    for entry in registry(&Lab::new()).iter().filter(|entry| entry.has_two_ends() && !entry.fills_a_disk()) {
        let lab = Lab::new();
        let mut running = start(&lab, &entry.endless_stream());
        let end = running.child_in_a_long_trial(ENDS[1]);
        signal(end, Signal::STOP);
        let stopped = Instant::now();
        let done = running.wait_within(Duration::from_secs(30)).expect_code(1);
        assert!(stopped.elapsed() > Duration::from_secs(9), "{}: {:?}", entry.name, stopped.elapsed());
        let case = done.only_case(&entry.name);
        assert_eq!(error_of(&case).kind, ErrorKind::Hung, "{}: {:?}", entry.name, case.error);
        assert!(error_of(&case).remedy.as_ref().is_some_and(|remedy| remedy.contains("SIGSTOP")));
        done.assert_the_others_went_on(&entry.name);
    }
}

#[test]
fn a_run_whose_cleaner_was_killed_cleans_up_after_itself() {
    let _turn = alone();
    let lab = Lab::new();
    let args = ["file", "sysv-msgq", "null", "memcpy", "--block", "512", "--count", "2000", "--trials", "30"];
    let running = start(&lab, &args);
    let cleaner = until("the cleaner", soon(), || {
        running.children().into_iter().find(|(_, name)| name == "hosepipe-clean").map(|(pid, _)| pid)
    });
    signal(cleaner, Signal::KILL);
    let done = running.wait_within(common::HANGS_AFTER).expect_code(0);
    assert!(done.record().cases.iter().all(|case| case.error.is_none()), "{}", done.stdout);
}

/// Expected: the cleaner removes what was announced to it, and nothing else.
/// Happened: paths are announced one a line. With TMPDIR="X/precious\nfolder" the first line is "X/precious",
/// and at the end of every run, good or bad, the cleaner removes that folder with all that is in it.
/// Expected: a signal to the whole process group never ends the cleaner alone.
/// Happened: in its first moments, before it had a session of its own, it did; nothing was left to clean up after a
/// run that was then killed.
#[test]
fn an_early_signal_to_the_group_does_not_end_who_cleans_up() {
    let _turn = alone();
    let lab = Lab::new();
    let mut reached = 0;
    for microseconds in (0..4000).step_by(50) {
        let args = ["bench", "file", "--workload", "stream", "--block", "1", "--count", "100000000"];
        // On one CPU the cleaner waits for its turn, and the moments are long ones.
        let mut command = lab.wrapped(&["taskset", "-c", "0", "chrt", "--batch", "0"], &args);
        command.process_group(0);
        let mut running = lab.start(command);
        let pid = running.pid();
        let folder = || (!common::files_in(&lab.tmp()).is_empty()).then_some(());
        let ended = |running: &mut Running<'_>| running.has_ended().then_some(());
        let began = Instant::now();
        while running.children().is_empty() && began.elapsed() < soon() {}
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(microseconds) {}
        let group = Pid::from_raw(pid as i32).expect("a number");
        let _ = kill_process_group(group, Signal::INT);
        until("a folder, or the end", soon(), || folder().or_else(|| ended(&mut running)));
        reached += u32::from(folder().is_some());
        signal(pid, Signal::KILL);
        running.end_within(soon());
        lab.assert_nothing_left(pid, promptly());
    }
    println!("{reached} runs had made something when they were killed");
}

pub(crate) fn strace_makes_calls_fail() -> bool {
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-e", "trace=close", "-e", "inject=close:error=EIO:when=9999", "true"]);
    strace.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    strace.status().is_ok_and(|status| status.success())
}

/// Expected: where one system call of a process fails, a run over a link ends, as it should or with an error, and leaves nothing.
/// Happened: hangs (a lease that was not given back), panics in new threads, folders that were left, and lost output with status 0.
#[test]
fn one_failing_call_costs_a_pipeline_no_more_than_an_error() {
    if !strace_makes_calls_fail() {
        return common::skip("strace cannot make calls fail here");
    }
    for (via, call, error, most) in [
        ("tmpfile", "fcntl", "EIO", 6),
        ("tmpfile", "dup3", "EMFILE", 3),
        ("tmpfile", "clone3", "EAGAIN", 2),
        ("tmpfile", "mprotect", "ENOMEM", 3),
        ("file", "unlinkat", "EIO", 3),
        ("file", "getdents64", "EIO", 3),
    ] {
        for number in 1..=most {
            let lab = Lab::new();
            let (trace, inject) =
                (format!("trace={call}"), format!("inject={call}:error={error}:when={number}"));
            let wrapper = ["strace", "-f", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let what = format!("{via}: {inject}");
            let done =
                lab.start(lab.wrapped(&wrapper, &["run", "--via", via, "seq 5 | wc -l"])).wait_within(soon());
            let code = done.status.code();
            // What bash, or the loader, makes of its own failing calls is theirs.
            let said = done.stdout == "5\n" || done.stderr.contains("bash: ");
            assert!(code != Some(0) || said, "{what}: {}{}", done.stdout, done.stderr);
            assert!(![101, 134].contains(&code.unwrap_or(0)), "{what}: {}", done.stderr);
        }
    }
}

/// Expected: where one write of a process fails, a spread ends.
/// Happened: the cleaner was not heard of its maker's end, and its maker waited for it for ever.
#[test]
fn one_failing_write_costs_a_spread_no_more_than_an_error() {
    if !strace_makes_calls_fail() {
        return skip("strace cannot make calls fail here");
    }
    let inputs = Lab::new();
    let numbers = inputs.here("numbers");
    std::fs::write(&numbers, "2\n1\n3\n").expect("written");
    for when in ["1", "1+", "2", "3"] {
        let lab = Lab::new();
        let inject = format!("inject=write:error=EIO:when={when}");
        let wrapper = ["strace", "-f", "-o", "/dev/null", "-e", "trace=write", "-e", &inject];
        let args = ["spread", "--map", "sort -n", "--reduce", "cat", numbers.to_str().expect("a plain path")];
        let done = lab.start(lab.wrapped(&wrapper, &args)).wait_within(soon());
        assert!(done.status.code() != Some(0) || done.stdout == "1\n2\n3\n", "{inject}: {}", done.stdout);
    }
}

/// Expected: a call that fails while a shell is learnt costs that run its link at most.
/// Happened: that nothing was learnt was kept, and every later pipeline of that shell went over a plain pipe.
#[test]
fn a_call_that_failed_while_a_shell_was_learnt_is_not_remembered() {
    if !strace_makes_calls_fail() {
        return skip("strace cannot make calls fail here");
    }
    let lab = Lab::new();
    let runtime = lab.here("runtime");
    std::fs::create_dir(&runtime).expect("mkdir");
    let run = |wrapper: &[&str]| {
        let mut command = lab.wrapped(wrapper, &["run", "--via", "tmpfile", "seq 5 | wc -l"]);
        command.env("XDG_RUNTIME_DIR", &runtime);
        lab.start(command).wait_within(soon()).stderr
    };
    let inject = "inject=write:error=EIO:when=2";
    run(&["strace", "-f", "-o", "/dev/null", "-e", "trace=write", "-e", inject]);
    assert_eq!(run(&["env"]), "");
}

/// Expected: a program that can start no thread does its work without, or ends with an error.
/// Happened: a panic of the standard library.
#[test]
fn where_no_thread_can_be_started_records_are_compared_all_the_same() {
    if !strace_makes_calls_fail() {
        return skip("strace cannot make calls fail here");
    }
    let lab = Lab::new();
    let file = lab.here("run.json");
    let path = file.to_str().expect("a plain path");
    lab.run(&["bench", "null", "--count", "4", "--trials", "1", "--json", path]).expect_code(0);
    let wrapper =
        ["strace", "-f", "-o", "/dev/null", "-e", "trace=clone3", "-e", "inject=clone3:error=EAGAIN"];
    let alone = lab.run(&["diff", path, path]);
    let without = lab.start(lab.wrapped(&wrapper, &["diff", path, path])).wait_within(soon());
    assert_eq!(
        (without.status.code(), without.stdout),
        (alone.status.code(), alone.stdout),
        "{}",
        without.stderr
    );
}

/// Expected: a signal in the first milliseconds of a run leaves nothing.
/// Happened: `run --via file` made a link, to see that it can be had, before there was anybody to remove what it leaves.
#[test]
fn a_pipeline_that_is_ended_as_it_begins_leaves_nothing() {
    let lab = Lab::new();
    let runtime = lab.here("runtime");
    std::fs::create_dir(&runtime).expect("mkdir");
    for (round, via) in ["file", "fifo"].into_iter().cycle().take(24).enumerate() {
        for sent in [Signal::HUP, Signal::KILL] {
            let mut command =
                lab.wrapped(&["env", "--default-signal"], &["run", "--via", via, "seq 10 | cat"]);
            command.env("XDG_RUNTIME_DIR", &runtime);
            let mut running = lab.start(command);
            let pid = running.pid();
            std::thread::sleep(Duration::from_millis(round as u64));
            signal(pid, sent);
            running.end_within(soon());
            lab.assert_nothing_left(pid, soon());
            let mut left = common::files_in(&runtime);
            // What is learnt of shells stays there.
            left.retain(|path| !path.contains("hosepipe-shells-"));
            assert_eq!(left, Vec::<String>::new());
        }
    }
}

#[test]
fn the_cleaner_removes_nothing_that_is_not_ours() {
    let _turn = alone();
    let lab = Lab::new();
    let precious = lab.here("precious");
    let odd = lab.here("precious\nfolder");
    for folder in [&precious, &odd] {
        std::fs::create_dir(folder).expect("mkdir");
    }
    std::fs::write(precious.join("keep"), b"years of work").expect("write");
    let mut command = lab.command(&["bench", "null", "pipe", "memcpy", "--count", "4", "--trials", "1"]);
    command.env("TMPDIR", &odd);
    let _ = lab.finish(command);
    assert!(precious.join("keep").exists(), "the cleaner removed a folder of the user's");
    assert_eq!(common::files_in(&odd), Vec::<String>::new());
}

/// Expected: a file that exists already belongs to another program: it is neither used nor removed.
#[test]
fn a_file_of_the_same_name_is_not_removed() {
    let _turn = alone();
    let lab = Lab::new();
    let folder = lab.here("chosen");
    std::fs::create_dir(&folder).expect("mkdir");
    // The name has the process's number in it: a shell that says its own and then becomes hosepipe knows it.
    let script = "for n in 0 1 2 3; do echo mine > chosen/.hosepipe-$$-$n; done; exec \"$0\" \"$@\"";
    let args = ["bench", "null", "file:dir=chosen", "memcpy", "--count", "4", "--trials", "1", "--json", "-"];
    let done = lab.start(lab.wrapped(&["sh", "-c", script], &args)).end_within(soon());
    assert_eq!(common::files_in(&folder).len(), 4, "somebody's files were removed: {}", done.stdout);
}
