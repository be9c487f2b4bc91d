//! `hosepipe why`: real programs that hang, each for a known reason, and programs that are well.

mod hangs;
mod healthy;
mod unseen;

use std::process::{Command, Stdio};
use std::time::Instant;

use model::{WhyAnswer, WhyCause, WhyRecord, WhyVerdict};

use process::proc::threads;
use rustix::process::Signal;

use crate::common::namespaces::unshare;
use crate::common::{HANGS_AFTER, Lab, another_user, is_root, signal, skip, soon, until};
use crate::top::Scene;

const NOBODY: u32 = 65534;
const HOSEPIPE: &str = env!("CARGO_BIN_EXE_hosepipe");

/// What is said of a process and what it has started, with the exit status.
fn why(words: &[&str]) -> (WhyRecord, i32) {
    let mut command = Command::new(HOSEPIPE);
    let output =
        command.args(["why", "--json", "-"]).args(words).stderr(Stdio::inherit()).output().expect("why runs");
    let record = serde_json::from_slice(&output.stdout).expect("a record");
    (record, output.status.code().expect("it exits"))
}

/// Asks until this is the cause.
fn answer(scene: &Scene, cause: WhyCause) -> WhyAnswer {
    let began = Instant::now();
    loop {
        let (record, status) = why(&[&scene.pid().to_string()]);
        let answer = record.answers.first().expect("an answer").clone();
        if answer.cause == cause {
            let expected = match answer.verdict {
                WhyVerdict::Stuck => 0,
                WhyVerdict::NotStuck => 1,
                WhyVerdict::Unknown => 3,
            };
            assert_eq!((status, answer.verdict), (expected, cause.verdict()));
            return answer;
        }
        assert!(began.elapsed() < soon(), "{}: {answer:#?}", cause.name());
    }
}

/// A program that a script needs and that is not here.
fn missing(script: &str) -> Option<&'static str> {
    let programs = ["flock", "ipcrm", "less", "make", "nano", "perl", "python3"];
    programs.into_iter().find(|program| script.contains(program) && model::file_on_path(program).is_none())
}

/// Expected: a full message queue is named. (Perl has System V queues in its core.)
#[test]
fn a_full_message_queue_is_named() {
    let script = "exec perl -e '
$q = msgget(0, 0600 | 512); open F, \">\", \"id\"; print F $q; close F;
msgsnd($q, pack(\"l! a*\", 1, \"x\" x 4000), 0) for 1..100'";
    if let Some(program) = missing("perl ipcrm") {
        return skip(&format!("no {program}"));
    }
    let scene = Scene::new(script);
    let answer = answer(&scene, WhyCause::MessageQueue);
    let id = std::fs::read_to_string(scene.folder().join("id")).expect("the queue");
    assert!(answer.what.ends_with(&id) && answer.detail.starts_with("full"), "{answer:#?}");
    assert!(Command::new("ipcrm").args(["-q", &id]).status().expect("ipcrm").success());
}

/// Expected: a semaphore is named with the one that lowered it and sleeps, also where the other waits again and again with a time limit.
#[test]
fn a_semaphore_whose_holder_sleeps_is_named() {
    let system_v = "exec perl -e '
$s = semget(0, 1, 0600 | 512); open F, \">\", \"id\"; print F $s; close F;
if (fork() == 0) { select undef, undef, undef, 0.3; semop($s, pack(\"s!3\", 0, -1, 0)); exit }
semop($s, pack(\"s!3\", 0, 1, 0)); semop($s, pack(\"s!3\", 0, -1, 0)); sleep 100'";
    let posix = "exec python3 -c '
import ctypes, os, time
libc = ctypes.CDLL(None); libc.sem_open.restype = ctypes.c_void_p; name = f\"hosepipe-test-{os.getpid()}\"
s = ctypes.c_void_p(libc.sem_open(b\"/\" + name.encode(), os.O_CREAT, 0o600, 1)); open(\"id\", \"w\").write(name)
libc.sem_wait(s)
if os.fork() == 0:
    while 1: libc.sem_timedwait(s, (ctypes.c_long * 2)(int(time.time()) + 1, 0))
time.sleep(100)'";
    if let Some(program) = missing("perl ipcrm python3") {
        return skip(&format!("no {program}"));
    }
    for script in [system_v, posix] {
        let scene = Scene::new(script);
        let answer = answer(&scene, WhyCause::Semaphore);
        let id = std::fs::read_to_string(scene.folder().join("id")).expect("the semaphore");
        assert!(answer.what.ends_with(&id) && answer.by[0].pid == scene.pid(), "{answer:#?}");
        match script == system_v {
            true => assert!(Command::new("ipcrm").args(["-s", &id]).status().expect("ipcrm").success()),
            false => std::fs::remove_file(format!("/dev/shm/sem.{id}")).expect("removed"),
        }
    }
}

/// Expected: a daemon is named in a container whose first process is a shell, and a stage that the shell has started is none. Happened: both were sleepers, as
/// both are children of that shell.
#[test]
fn a_daemon_is_named_where_the_shell_is_process_1() {
    for (cause, script) in [
        (WhyCause::DaemonHolds, "{ echo started; sleep 100 & } | cat; wait"),
        (
            WhyCause::DaemonHolds,
            "(python3 -c 'import os, time; os.fork() and os._exit(0); time.sleep(100)') | cat",
        ),
        (WhyCause::DaemonHolds, "v=$(echo started; sleep 100 & ); echo $v"),
        (WhyCause::Sleeps, "sleep 100 | cat; wait"),
        (WhyCause::Sleeps, "sleep 100 | cat & wait"),
        (WhyCause::Sleeps, "v=$(sleep 100); echo $v"),
    ] {
        let Some(wrapper) = unshare(&["--pid", "--fork", "--kill-child"], "exec \"$0\" \"$@\"") else {
            return;
        };
        if let Some(program) = missing(script) {
            return skip(&format!("no {program}"));
        }
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).args(["bash", "-c", script]);
        let scene = Scene::of(command, tempfile::tempdir().expect("a folder"));
        answer(&scene, cause);
    }
}

/// Expected: the sentence holds the words that a user searches for, and the remedy is below it.
#[test]
fn an_answer_is_a_sentence_the_waits_and_what_ends_it() {
    let scene = Scene::new("{ echo started; sleep 100 & } | cat");
    answer(&scene, WhyCause::DaemonHolds);
    let output = Lab::new().run(&["why", &scene.pid().to_string()]);
    let text = output.stdout;
    for part in
        ["waits for the end of its input", "(a daemon)", "\n  bash (", "<- cat (", "To end it:", " kill "]
    {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

/// Expected: `top` names the deadlock of a chain in which nothing flows, and not only one of its stages.
#[test]
fn top_names_a_deadlock() {
    let scene = Scene::new("mkfifo f; (echo 1; cat f) | sed -u 's/.*/&1\\n&2/' | cat >f");
    answer(&scene, WhyCause::Deadlock);
    let chain = scene.chain(|chain| chain.why.is_some());
    let cause = chain.why.expect("an answer").cause;
    assert_eq!(cause, WhyCause::Deadlock);
}

/// Sends a signal to a program that has found the cause, in a thread of its own.
fn signal_after_search(pid: u32, sent: Signal) {
    let searches = || {
        let name = |folder: String| std::fs::read_to_string(format!("{folder}/comm"));
        threads(pid as i32)
            .any(|(_, folder)| name(folder).is_ok_and(|name| name.trim_end() == "hosepipe-why"))
    };
    until("it searches", soon(), || searches().then_some(()));
    until("it has found it", soon(), || (!searches()).then_some(()));
    signal(pid, sent);
}

/// Expected: a trial that hangs and is interrupted says why, in the record, too.
#[test]
fn an_interrupted_comparison_says_why_nothing_moved() {
    let lab = Lab::new();
    let words = ["compare", "--json", "c.json", "mkfifo f 2>/dev/null; exec 3<>f; cat <&3 | sort", "true"];
    let mut program = lab.command(&words);
    program.env("COLUMNS", "1000");
    let running = lab.start(program);
    signal_after_search(running.pid(), Signal::INT);
    let done = running.wait_within(HANGS_AFTER);
    assert!(done.stdout.contains("At the last look nothing moved: cat"), "{done:?}");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.here("c.json")).expect("saved")).expect("JSON");
    assert_eq!(record["results"][0]["why"]["cause"], "self-held");
}

/// Expected: a run that hangs and is interrupted says why, and not that it was too short.
#[test]
fn an_interrupted_run_says_why_nothing_moved() {
    let lab = Lab::new();
    let words = ["run", "--stats", "--json", "run.json", "mkfifo f; exec 3<>f; cat <&3 | sort"];
    let mut program = lab.command(&words);
    program.env("COLUMNS", "1000");
    let running = lab.start(program);
    signal_after_search(running.pid(), Signal::INT);
    let done = running.wait_within(HANGS_AFTER);
    let record = lab.here("run.json");
    assert!(done.stderr.contains("At the last look nothing moved: cat"), "{done:?}");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(record).expect("saved")).expect("JSON");
    assert_eq!(record["why"]["cause"], "self-held");
}

/// Expected: so does a spread, in its partitions and in its reduce, also where timeout(1) ends it. Happened: nothing was said of a reduce.
#[test]
fn an_ended_spread_says_why_nothing_moved() {
    let hangs = "mkfifo f 2>/dev/null; exec 3<>f; cat <&3";
    for (sent, status, words) in [
        (Signal::INT, 130, &["spread", "--work", "w", "--map", hangs, "--reduce", "cat", "lines"][..]),
        (Signal::TERM, 143, &["spread", "--work", "w", "--map", "cat", "--reduce", hangs, "lines"]),
    ] {
        let lab = Lab::new();
        std::fs::write(lab.here("lines"), "1\n2\n").expect("written");
        let mut program = lab.command(words);
        program.env("COLUMNS", "1000");
        let running = lab.start(program);
        signal_after_search(running.pid(), sent);
        let done = running.wait_within(HANGS_AFTER);
        assert!(done.stderr.contains("At the last look nothing moved: cat"), "{words:?}: {done:?}");
        assert_eq!(done.code(), status, "{words:?}: {done:?}");
    }
}

/// Expected: a command that does nothing is ended after the time, with status 124 and nothing left behind (that is looked for after every run); one that ends has its own status.
#[test]
fn a_command_that_hangs_is_ended_and_one_that_works_is_not() {
    let lab = Lab::new();
    let output = lab.run(&[
        "why",
        "--after",
        "600ms",
        "--end",
        "--",
        "bash",
        "-c",
        "{ echo started; sleep 123.5 & } | cat",
    ]);
    let said = &output.stderr;
    assert_eq!((output.code(), output.stdout.as_str()), (124, "started\n"), "{said}");
    assert!(said.contains("waits for the end of its input"), "{said}");
    let output = lab.run(&["why", "--after", "20s", "--end", "--", "bash", "-c", "seq 3 | tail -n1; exit 7"]);
    assert_eq!((output.code(), output.stdout.as_str()), (7, "3\n"));
    assert_eq!(lab.run(&["why", "--after", "1s", "--", "/nonexistent/program"]).code(), 127);
}

#[test]
fn wrong_questions_are_a_sentence_and_status_2() {
    let lab = Lab::new();
    for words in
        [&["why", "999999999"][..], &["why", "-1"], &["why", "no such program at all"], &["why", "--end"]]
    {
        let output = lab.run(words);
        assert_eq!(output.code(), 2, "{words:?}: {}", output.stderr);
    }
}

/// Expected: an ordinary user gets the same answer about a process of that user.
#[test]
fn an_ordinary_user_gets_the_same_answer() {
    if !is_root() {
        return skip("only root can start a program as another user");
    }
    let lab = Lab::new();
    let script = "mkfifo f; cat f & pid=$!; sleep 1; ./program \"$@\" $pid; kill $pid";
    let done = lab.finish(another_user::script(NOBODY, &lab, script, &["why"]));
    assert!(done.stdout.contains("opens the FIFO (named pipe)") && done.stdout.contains("/f"), "{done:?}");
}
