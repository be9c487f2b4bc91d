//! Little room and odd surroundings: a full disk, limits of the shell (ulimit), a parent with habits of its own.
//! Each costs a row with its reason and remedy, or a sentence where nothing could be begun; never a crash.
//!
//! `HOSEPIPE_TEST_FULL=1` changes nothing here.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::namespaces::unshare;
use crate::common::{
    self, ENDS, Lab, another_user, error_of, is_root, promptly, registry, signal, skip, soon, until,
};
use model::ErrorKind;
use rustix::process::Signal;

/// Fills a small file system while a run is writing to it.
fn fill_the_disk(mechanism: &str) {
    let lab = Lab::new();
    // A mount of the run's own, which goes with it.
    let script = "mkdir small && mount -t tmpfs -o size=120m none small && exec \"$0\" \"$@\"";
    let Some(wrapper) = unshare(&["--mount"], script) else { return };
    let spec = format!("{mechanism}:dir=small");
    let args = ["bench", "--json", "-", &spec, "--block", "1", "--count", "100000000", "--trials", "1"];
    let more = ["--workload", "stream"];
    let mut running = lab.start(lab.wrapped(&wrapper, &[&args[..], &more].concat()));
    running.child_in_a_long_trial(ENDS[0]);
    // Held open, so that it can be looked at when the run and its mounts are gone.
    let small = File::open(PathBuf::from(format!("/proc/{}/cwd/small", running.pid()))).expect("the mount");
    let small = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&small)));
    let mut filler = File::create(small.join("filler")).expect("create");
    while filler.write_all(&[1; 4096]).is_ok() {}
    let done = running.wait_within(soon()).expect_code(1);
    let case = done.only_case(mechanism);
    let error = error_of(&case);
    assert_eq!(error.kind, ErrorKind::Failed, "{error:?}");
    assert!(error.message.contains("ENOSPC"), "{error:?}");
    assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("space")), "{error:?}");
    let left: Vec<String> = std::fs::read_dir(&small)
        .expect("the mount")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, ["filler"], "{mechanism}");
    done.assert_the_others_went_on(mechanism);
}

#[test]
fn a_disk_that_fills_up_meanwhile_costs_a_row() {
    fill_the_disk("file");
    fill_the_disk("tmpfile");
}

/// Expected: beyond RLIMIT_FSIZE a write answers EFBIG, and the row says so with the remedy.
/// Happened: SIGXFSZ is not ignored; the row says that the sender was ended by SIGXFSZ.
#[test]
fn a_file_size_limit_costs_a_row() {
    let lab = Lab::new();
    let args =
        ["null", "pipe", "file", "tmpfile", "memcpy", "--block", "4096", "--bytes", "1MiB", "--trials", "1"];
    let args = [&["bench", "--json", "-", "--workload", "stream"], &args[..]].concat();
    // The record itself goes to a file here, and must fit: its limit is that of 128 KiB.
    let done = lab.finish(lab.wrapped(&["prlimit", "--fsize=131072"], &args)).expect_code(1);
    for case in done.record().cases {
        match case.mechanism.as_str() {
            "file" | "tmpfile" => {
                let error = error_of(&case);
                assert!(error.message.contains("EFBIG"), "{error:?}");
                assert!(
                    error.remedy.as_ref().is_some_and(|remedy| remedy.contains("ulimit -f")),
                    "{error:?}"
                );
            }
            _ => assert!(case.error.is_none(), "{case:?}"),
        }
    }
}

/// Expected: a record larger than RLIMIT_FSIZE is an error in a sentence, with status 1, and no half file.
/// Happened: the tool died of SIGXFSZ (153) without a word and left its temporary file in the user's folder.
#[test]
fn a_record_beyond_the_file_size_limit_is_an_error_and_leaves_no_half_file() {
    let lab = Lab::new();
    let args = ["bench", "null", "pipe", "memcpy", "--count", "4", "--trials", "1", "--json", "run.json"];
    // The table goes to a file as well, and must fit, with every remark about a busy machine.
    let done = lab.finish(lab.wrapped(&["prlimit", "--fsize=8192"], &args)).expect_code(1);
    assert!(done.stderr.contains("run.json") && done.stderr.contains("EFBIG"), "{}", done.stderr);
    assert_eq!(common::files_in(&lab.here("")), Vec::<String>::new());
}

/// Whatever the number of descriptors, a run ends with figures or with reasons that have a name.
#[test]
fn too_few_descriptors_are_a_reason_and_never_a_crash() {
    let mut enough = false;
    for limit in 4..=20 {
        let lab = Lab::new();
        let specs = ["null", "memcpy", "pipe", "fifo", "file", "unix-stream", "tcp", "posix-mq", "sysv-msgq"];
        let args = [&["bench", "--json", "-", "--block", "512", "--count", "4", "--trials", "1"], &specs[..]]
            .concat();
        let wrapper = format!("--nofile={limit}");
        let done = lab.finish(lab.wrapped(&["prlimit", &wrapper], &args));
        if done.stdout.is_empty() {
            // Too few to start with: then a sentence says so.
            assert_eq!(done.code(), 1, "{limit}: {}", done.stderr);
            assert!(
                done.stderr.contains("EMFILE"),
                "{limit} descriptors: no errno by name in: {}",
                done.stderr
            );
            continue;
        }
        let record = done.record();
        for error in record.cases.iter().filter_map(|case| case.error.as_ref()) {
            assert!(error.message.contains("EMFILE"), "{limit}: {error:?}");
        }
        enough = record.cases.iter().all(|case| case.error.is_none());
        let unexpected =
            record.cases.iter().filter_map(|case| case.error.as_ref()).any(|error| !error.expected);
        assert_eq!(done.code(), i32::from(unexpected), "{limit}: {}", done.stdout);
    }
    assert!(enough, "twenty descriptors are enough");
}

#[test]
fn no_room_for_message_queues_makes_them_unavailable_with_the_remedy() {
    let lab = Lab::new();
    if !registry(&lab).iter().any(|entry| entry.name == "posix-mq") {
        return;
    }
    let args = ["bench", "--json", "-", "posix-mq", "null", "memcpy", "--count", "4", "--trials", "1"];
    let done = lab.finish(lab.wrapped(&["prlimit", "--msgqueue=0"], &args)).expect_code(0);
    for case in done.cases_of("posix-mq") {
        let error = error_of(&case);
        assert_eq!((error.kind, error.expected), (ErrorKind::Unavailable, true), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("ulimit -q")), "{error:?}");
    }
    let list = lab.finish(lab.wrapped(&["prlimit", "--msgqueue=0"], &["list"])).expect_code(0);
    assert!(
        list.stdout.contains("NOT AVAILABLE HERE") && list.stdout.contains("ulimit -q"),
        "{}",
        list.stdout
    );
}

/// RLIMIT_MSGQUEUE counts a queue's capacity: first it is made less deep, then not one message fits.
#[test]
fn little_room_for_message_queues_makes_them_shallow_and_then_costs_the_row() {
    let lab = Lab::new();
    if !registry(&lab).iter().any(|entry| entry.name == "posix-mq") {
        return;
    }
    let args = ["bench", "--json", "-", "posix-mq", "null", "memcpy", "--workload", "stream"];
    let args = [&args[..], &["--block", "8KiB", "--count", "4", "--trials", "1"]].concat();
    let case = |bytes: &str| {
        let limited = format!("exec prlimit --msgqueue={bytes} ./program \"$@\"");
        // The queues of all programs of a user are counted: those of other tests, too, unless this one has a user of its own.
        let limit = format!("--msgqueue={bytes}");
        let command = match is_root() {
            true => another_user::script(64_900, &lab, &limited, &args),
            false => lab.wrapped(&["prlimit", &limit], &args),
        };
        lab.finish(command).expect_code(0).only_case("posix-mq")
    };
    let shallow = case("40000");
    assert!(shallow.error.is_none(), "{:?}", shallow.error);
    assert!(
        shallow.granted.get("queue_messages").is_some_and(|messages| (1..5).contains(messages)),
        "{shallow:?}"
    );
    let refused = case("6000");
    let error = error_of(&refused);
    assert_eq!((error.kind, error.expected), (ErrorKind::Limit, true), "{error:?}");
    assert!(error.message.contains("RLIMIT_MSGQUEUE"), "{error:?}");
    assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("ulimit -q")), "{error:?}");
}

/// An ordinary user's registered buffers count towards RLIMIT_MEMLOCK; so may, with less of it, the queues.
#[test]
fn too_little_lockable_memory_costs_the_rows_that_lock_it() {
    let lab = Lab::new();
    if !registry(&lab).iter().any(|entry| entry.name == "io-uring") {
        return;
    }
    let user: &[&str] =
        if is_root() { &["setpriv", "--reuid=64322", "--regid=64322", "--clear-groups"] } else { &[] };
    let args = ["bench", "--json", "-", "io-uring:fixed", "null", "memcpy", "--workload", "stream"];
    let args = [&args[..], &["--block", "1MiB", "--count", "4", "--trials", "1"]].concat();
    for (bytes, kind, named) in
        [("131072", ErrorKind::Limit, "RLIMIT_MEMLOCK"), ("0", ErrorKind::Unavailable, "ENOMEM")]
    {
        let limit = format!("--memlock={bytes}");
        let done = lab.finish(lab.wrapped(&[user, &["prlimit", &limit]].concat(), &args)).expect_code(0);
        let case = done.only_case("io-uring");
        let error = error_of(&case);
        assert_eq!((error.kind, error.expected), (kind, true), "{error:?}");
        assert!(error.message.contains(named), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("ulimit -l")), "{error:?}");
        done.assert_the_others_went_on("io-uring");
    }
}

/// Expected: a sentence. Happened: SIGSEGV (139) without a word.
#[test]
fn too_little_stack_is_a_sentence() {
    let lab = Lab::new();
    for verb in [&["run", "echo 1 | cat"][..], &["bench", "null"], &["top", "--once"]] {
        let done = lab.finish(lab.wrapped(&["prlimit", "--stack=131072"], verb)).expect_code(1);
        assert!(done.stderr.contains("RLIMIT_STACK") && done.stderr.contains("ulimit -s"), "{}", done.stderr);
    }
}

#[test]
fn too_little_address_space_costs_the_row_that_needs_it() {
    let lab = Lab::new();
    let args = ["bench", "--json", "-", "pipe", "shm-ring:size=128MiB", "null", "memcpy", "--count", "4"];
    let done =
        lab.finish(lab.wrapped(&["prlimit", "--as=100000000"], &[&args[..], &["--trials", "1"]].concat()));
    let done = done.expect_code(1);
    for case in done.cases_of("shm-ring") {
        assert!(error_of(&case).message.contains("ENOMEM"), "{:?}", case.error);
    }
    done.assert_the_others_went_on("shm-ring");
}

/// Expected: no more processes or threads for this user: rows with the reason (EAGAIN), or a sentence that names
/// it where not even the cleaner could be started.
/// Happened: the sentence has a number for a name ("os error 11"); and where the host process has no threads,
/// the row says "an end exited without a report (a bug in hosepipe: please tell us)".
#[test]
fn too_few_processes_are_a_reason_by_name() {
    if !is_root() {
        return skip("only root can run as another user, of whom nothing else runs");
    }
    // A user of whom there is no process, and who is not root: limits on processes do not hold root.
    let user = ["setpriv", "--reuid=64321", "--regid=64321", "--clear-groups", "prlimit"];
    for limit in 1..=5 {
        for tasks in ["processes", "threads"] {
            let lab = Lab::new();
            let wrapper = format!("--nproc={limit}");
            let args = ["bench", "--json", "-", "pipe", "null", "memcpy", "--count", "4", "--trials", "1"];
            let args = [&args[..], &["--tasks", tasks]].concat();
            let done = lab.finish(lab.wrapped(&[&user[..], &[wrapper.as_str()]].concat(), &args));
            if done.stdout.is_empty() {
                assert_eq!(done.code(), 1, "{limit}: {}", done.stderr);
                assert!(done.stderr.contains("EAGAIN"), "{limit} processes, {tasks}: {}", done.stderr);
            } else {
                let record = done.record();
                for error in record.cases.iter().filter_map(|case| case.error.as_ref()) {
                    assert!(error.message.contains("EAGAIN"), "{limit} processes, {tasks}: {error:?}");
                }
            }
        }
    }
}

/// Expected: a parent that ignores SIGCHLD (cron jobs, supervisors) changes nothing.
/// Happened: the setting is inherited, ended children cannot be waited for, and every row is "poll: ECHILD".
#[test]
fn a_parent_that_ignores_sigchld_changes_nothing() {
    let lab = Lab::new();
    let args = ["bench", "--json", "-", "pipe", "null", "memcpy", "--count", "4", "--trials", "1"];
    let done = lab.finish(lab.wrapped(&["env", "--ignore-signal=CHLD"], &args)).expect_code(0);
    assert!(done.record().cases.iter().all(|case| case.error.is_none()), "{}", done.stdout);
}

/// Expected: a signal that was ignored when hosepipe began stays ignored, as nohup(1) and `&` in a script mean it.
/// Happened: a handler is installed whatever was there before: a hang-up ends a run under nohup.
/// Expected: the suite passes however it is started.
/// Happened: behind `nohup cargo test &` 33 tests failed, whose programs never saw the signals that they were sent.
#[test]
fn programs_of_these_tests_have_default_signals() {
    const ALREADY_IGNORED: &str = "HOSEPIPE_TEST_SIGNALS_IGNORED";
    let _lab = Lab::new();
    let status = Command::new("grep").args(["SigIgn:", "/proc/self/status"]).output().expect("grep");
    let ignored = String::from_utf8_lossy(&status.stdout).split_whitespace().nth(1).map(str::to_owned);
    let ignored = u64::from_str_radix(&ignored.expect("a mask"), 16).expect("proc_pid_status(5)");
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        assert_eq!(ignored >> (signal.as_raw() - 1) & 1, 0, "{signal:?}");
    }
    if std::env::var_os(ALREADY_IGNORED).is_none() {
        let own = std::env::current_exe().expect("these tests");
        let script = "trap '' HUP INT QUIT TERM; exec \"$0\" --exact limits::programs_of_these_tests_have_default_signals";
        let run =
            Command::new("sh").args(["-c", script]).arg(own).env(ALREADY_IGNORED, "1").output().expect("sh");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"));
    }
}

#[test]
fn a_signal_ignored_from_the_beginning_stays_ignored() {
    let lab = Lab::new();
    let args = ["bench", "--json", "-", "pipe", "null", "memcpy", "--count", "10", "--trials", "200"];
    let running = lab.start(lab.wrapped(&["env", "--ignore-signal=HUP"], &args));
    until("the cleaner", promptly(), || {
        running.children().into_iter().find(|(_, name)| name == "hosepipe-clean")
    });
    until("a first trial", promptly(), || running.children().into_iter().find(|(_, name)| name == ENDS[0]));
    signal(running.pid(), Signal::HUP);
    let done = running.wait_within(common::HANGS_AFTER).expect_code(0);
    assert!(!done.record().settings.interrupted);
}

#[test]
fn blocked_signals_do_not_keep_a_run_from_its_end() {
    let lab = Lab::new();
    let args = ["bench", "--json", "-", "pipe", "null", "memcpy", "--count", "4", "--trials", "1"];
    let done = lab.finish(lab.wrapped(&["env", "--block-signal"], &args)).expect_code(0);
    assert!(done.record().cases.iter().all(|case| case.error.is_none()), "{}", done.stdout);
}

/// Expected: `--time` bounds the run: a trial of a fixed amount that takes longer than the budget is ended, or
/// said to be too long before it is begun.
/// Happened: the budget is looked at between rounds only; `--bytes 4TiB --time 1s` goes on for an hour.
#[test]
fn a_time_budget_bounds_a_trial_of_a_fixed_amount() {
    let lab = Lab::new();
    let args = ["pipe", "--workload", "stream", "--bytes", "4TiB", "--trials", "1", "--time", "1s"];
    let mut running = lab.start(lab.command(&[&["bench", "--json", "-"], &args[..]].concat()));
    let done = running.end_within(Duration::from_secs(8));
    assert!(done.elapsed < Duration::from_secs(8), "{:?}", done.elapsed);
}
