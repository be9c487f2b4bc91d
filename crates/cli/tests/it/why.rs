//! `hosepipe why`: real programs that hang, each for a known reason, and programs that are well.

mod healthy;

use std::process::{Command, Stdio};
use std::time::Instant;

use model::{WhyAnswer, WhyCause, WhyRecord, WhyVerdict};

use process::proc::threads;
use rustix::process::Signal;

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
    let programs = ["flock", "ipcrm", "less", "make", "perl", "python3"];
    programs.into_iter().find(|program| script.contains(program) && model::file_on_path(program).is_none())
}

/// A script of bash, the cause, the program that waits, and one of those that could end it.
struct Hangs(WhyCause, &'static str, &'static str, &'static str);

const PROGRAMS: &[Hangs] = &[
    Hangs(WhyCause::DaemonHolds, "cat", "sleep", "{ echo started; sleep 100 & } | cat"),
    Hangs(WhyCause::DaemonHolds, "bash", "sleep", "v=$(echo ready; sleep 100 & ); echo $v"),
    Hangs(
        WhyCause::DaemonHolds,
        "python3",
        "sleep",
        "exec python3 -c 'import subprocess as s; s.run([\"bash\", \"-c\", \"sleep 100 >/dev/null </dev/null &\"], capture_output=True)'",
    ),
    Hangs(
        WhyCause::DaemonHolds,
        "python3",
        "sleep",
        "exec python3 -c 'import subprocess as s; s.run(\"sleep 100 & echo hi\", shell=True, capture_output=True)'",
    ),
    Hangs(
        WhyCause::DeadlockStderr,
        "seq",
        "python3",
        "exec python3 -c '
import subprocess as s
p = s.Popen(\"seq 100000 >&2; seq 5\", shell=True, stdout=-1, stderr=-1)
p.stdout.read(); p.stderr.read()'",
    ),
    Hangs(
        WhyCause::Lock,
        "python3",
        "python3",
        "exec python3 -c '
import fcntl, os, time
f = open(\"l\", \"a\"); fcntl.lockf(f, fcntl.LOCK_EX)
if os.fork() == 0:
    fcntl.lockf(open(\"l\", \"a\"), fcntl.LOCK_EX)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::DeadlockInput,
        "bash",
        "sed",
        "coproc sed s/a/b/; echo a >&${COPROC[1]}; read -r x <&${COPROC[0]}",
    ),
    Hangs(
        WhyCause::CopyHeld,
        "cat",
        "sleep",
        "exec python3 -c '
import subprocess, os
r, w = os.pipe()
a = subprocess.Popen([\"cat\"], stdin=r); os.close(r)
os.set_inheritable(w, True)
b = subprocess.Popen([\"sleep\", \"100\"], close_fds=False)
os.close(w); a.wait()'",
    ),
    Hangs(
        WhyCause::Deadlock,
        "python3",
        "cat",
        "exec python3 -c '
import subprocess
p = subprocess.Popen([\"cat\"], stdin=-1, stdout=-1)
p.stdin.write(b\"x\" * 300000)'",
    ),
    Hangs(
        WhyCause::DeadlockInput,
        "python3",
        "grep",
        "exec python3 -c 'import subprocess as s; s.Popen([\"grep\", \"x\"], stdin=-1, stdout=-1).stdout.read()'",
    ),
    Hangs(
        WhyCause::DeadlockStderr,
        "perl",
        "python3",
        "exec python3 -c '
import subprocess
p = subprocess.Popen([\"perl\", \"-e\", \"print STDERR q(e)x100000\"], stdout=-1, stderr=-1)
p.stdout.read(); p.stderr.read()'",
    ),
    Hangs(
        WhyCause::DeadlockChild,
        "python3",
        "seq",
        "exec python3 -c 'import subprocess as s; s.Popen([\"seq\", \"100000\"], stdout=-1).wait()'",
    ),
    Hangs(
        WhyCause::ParentHolds,
        "sort",
        "python3",
        "exec python3 -c 'import subprocess as s; s.Popen([\"sort\"], stdin=-1).wait()'",
    ),
    Hangs(
        WhyCause::SelfHeld,
        "python3",
        "",
        "exec python3 -c '
import os
r, w = os.pipe()
if os.fork() == 0:
    while os.read(r, 100): pass
    os._exit(0)
os.close(w); os.wait()'",
    ),
    Hangs(WhyCause::SelfHeld, "cat", "bash", "mkfifo f; exec 3<>f; cat <&3 | sort"),
    Hangs(WhyCause::FifoOpen, "cat", "", "mkfifo f; cat f; :"),
    Hangs(WhyCause::FifoOpen, "bash", "", "mkfifo f; echo hello >f"),
    Hangs(WhyCause::Lock, "flock", "sleep", "( flock 9; sleep 100 & ) 9>l; flock l true; :"),
    Hangs(
        WhyCause::Stopped,
        "sleep",
        "",
        "sleep 100 & until [ \"$(</proc/$!/comm)\" = sleep ]; do :; done; kill -STOP $!; wait",
    ),
    Hangs(
        WhyCause::ReaderLeft,
        "sed",
        "sleep",
        "(echo hello; exec sleep 100) | sed -u s/x/y/ | grep -m1 hello; :",
    ),
    Hangs(
        WhyCause::SigpipeIgnored,
        "bash",
        "",
        "trap '' PIPE; (while :; do echo x 2>/dev/null; sleep 0.1; done) | head -n1; :",
    ),
    Hangs(WhyCause::ReaderSleeps, "yes", "sleep", "yes | sleep 100"),
    Hangs(
        WhyCause::HeldInBuffer,
        "grep",
        "cut",
        "for i in {1..2000}; do echo \"GET $i\"; sleep 0.05; done | grep GET | cut -c5-",
    ),
    Hangs(
        WhyCause::LoopInput,
        "cat",
        "bash",
        "(seq 5; exec sleep 100) | while read -r host; do cat >/dev/null; done",
    ),
    Hangs(
        WhyCause::SmallPipe,
        "python3",
        "python3",
        "exec python3 -c '
import os, fcntl, time
r, w = os.pipe(); fcntl.fcntl(w, 1031, 4096)
if os.fork() == 0:
    os.close(r); os.write(w, b\"t\" * 4096); os.write(w, b\"+\"); os._exit(0)
os.close(w); os.read(r, 4000); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::TerminalFull,
        "seq",
        "python3",
        "exec python3 -c '
import pty, os, time
pid, fd = pty.fork()
if pid == 0: os.execlp(\"seq\", \"seq\", \"100000\")
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::TerminalInput,
        "sort",
        "python3",
        "exec python3 -c '
import pty, os, time
pid, fd = pty.fork()
if pid == 0: os.execlp(\"sort\", \"sort\")
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::TerminalKey,
        "less",
        "",
        "exec python3 -c '
import pty, os
pid, fd = pty.fork()
if pid == 0: os.environ[\"TERM\"] = \"xterm\"; os.execlp(\"bash\", \"bash\", \"-c\", \"seq 1000000 | less\")
while 1: os.read(fd, 1000)'",
    ),
    Hangs(
        WhyCause::ListenQueue,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(1)
for i in range(4):
    if os.fork() == 0:
        k = socket.socket(socket.AF_UNIX); k.connect(\"s\"); k.recv(10); os._exit(0)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::DatagramQueue,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(\"s\")
if os.fork() == 0:
    k = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.close(); k.connect(\"s\")
    while 1: k.send(b\"<13>message\")
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::ReaderSleeps,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s, k = socket.socketpair()
if os.fork() == 0:
    k.close()
    while 1: s.sendall(b\"x\" * 4096)
s.close(); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::PeerSilent,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(1)
if os.fork() == 0:
    c, _ = s.accept(); time.sleep(100); os._exit(0)
s.close()
if os.fork() == 0:
    k = socket.socket(socket.AF_UNIX); k.connect(\"s\"); k.recv(1); os._exit(0)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::FifoBusy,
        "python3",
        "",
        "mkfifo f; exec python3 -c '
import os, select
r = os.open(\"f\", os.O_RDONLY | os.O_NONBLOCK); w = os.open(\"f\", os.O_WRONLY); os.close(w)
p = select.poll(); p.register(r, select.POLLIN)
while 1:
    p.poll(); os.read(r, 100)'",
    ),
    Hangs(
        WhyCause::NonBlocking,
        "python3",
        "",
        "sleep 100 | python3 -c '
import os, fcntl
fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK)
while 1:
    try: os.read(0, 1)
    except BlockingIOError: pass'",
    ),
    Hangs(WhyCause::TwoReaders, "cat", "sed", "mkfifo f; cat f & sed p f & exec 3>f; sleep 100"),
    Hangs(
        WhyCause::Lock,
        "python3",
        "python3",
        "exec python3 -c '
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open(\"l\", \"w\"); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if os.fork() == 0:
    f.close(); open(\"l\"); os._exit(0)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::MutexLeft,
        "python3",
        "",
        "exec python3 -c '
import ctypes, os, threading, time
libc = ctypes.CDLL(None); mutex = ctypes.create_string_buffer(64)
def lock(): libc.pthread_mutex_lock(mutex); time.sleep(100)
threading.Thread(target=lock, daemon=True).start(); time.sleep(0.3)
if os.fork() == 0: libc.pthread_mutex_lock(mutex)
os.wait()'",
    ),
    Hangs(
        WhyCause::DeadlockThreads,
        "python3",
        "",
        "exec python3 -c 'import threading; l = threading.Lock(); l.acquire(); l.acquire()'",
    ),
    Hangs(
        WhyCause::DeadlockThreads,
        "python3",
        "",
        "exec python3 -c '
import ctypes, threading, time
libc = ctypes.CDLL(None); mutexes = [ctypes.create_string_buffer(64) for _ in range(2)]
def lock(first, second):
    libc.pthread_mutex_lock(first); time.sleep(0.3); libc.pthread_mutex_lock(second)
threading.Thread(target=lock, args=mutexes).start(); threading.Thread(target=lock, args=mutexes[::-1]).start()
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::Mutex,
        "python3",
        "python3",
        "exec python3 -c '
import ctypes, threading, time
libc = ctypes.CDLL(None); mutex = ctypes.create_string_buffer(64)
def lock(): libc.pthread_mutex_lock(mutex); time.sleep(100)
threading.Thread(target=lock, daemon=True).start(); time.sleep(0.3); lock()'",
    ),
    Hangs(
        WhyCause::DaemonHolds,
        "python3",
        "sleep",
        "{ echo started; sleep 100 & } | python3 -c '
import os, select
p = select.poll(); p.register(0, select.POLLIN)
while not p.poll(200) or os.read(0, 100): pass'",
    ),
    Hangs(
        WhyCause::MayHold,
        "python3",
        "cat",
        "env -u PYTHONUNBUFFERED python3 -c '
import time
while 1: print(\"tick\"); time.sleep(0.2)' | cat",
    ),
    Hangs(WhyCause::MayHold, "perl", "cat", "(echo a; echo b; exec sleep 100) | perl -ne print | cat"),
    Hangs(
        WhyCause::EndOfFile,
        "python3",
        "",
        "exec python3 -c '
import os
f = os.open(\"l\", os.O_RDWR | os.O_CREAT); os.write(f, b\"x\" * 100)
o = os.open(\"o\", os.O_WRONLY | os.O_CREAT)
while 1: os.sendfile(o, f, 100, 900)'",
    ),
    Hangs(
        WhyCause::TerminalQuestion,
        "bash",
        "",
        "exec python3 -c '
import pty, os
pid, fd = pty.fork()
if pid == 0: os.execlp(\"bash\", \"bash\", \"-c\", \"read -p Continue? x\")
while 1: os.read(fd, 1000)'",
    ),
    Hangs(
        WhyCause::Zombie,
        "python3",
        "python3",
        "exec python3 -c 'import os, time; os.fork() or os._exit(0); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::CloseWait,
        "python3",
        "",
        "exec python3 -c '
import socket, os, time
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()
r, w = os.pipe()
if os.fork() == 0:
    k = socket.create_connection(s.getsockname()); s.close(); k.recv(9); os.read(r, 1); os._exit(0)
c, _ = s.accept(); c.send(b\"hello\"); c.close(); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::DescriptorLeak,
        "python3",
        "",
        "exec python3 -c 'import os, time; k = [os.pipe() for _ in range(500)]; time.sleep(100)'",
    ),
];

/// Expected: the cause is named, with who waits and who could end it.
#[test]
fn each_program_that_hangs_has_its_cause() {
    std::thread::scope(|threads| {
        for Hangs(cause, who, by, script) in PROGRAMS {
            threads.spawn(move || {
                if let Some(program) = missing(script) {
                    return skip(&format!("no {program}: {}", cause.name()));
                }
                let scene = Scene::new(script);
                let answer = answer(&scene, *cause);
                assert_eq!(answer.who.command, *who, "{script}: {answer:#?}");
                let named = by.is_empty() || answer.by.iter().any(|process| process.command == *by);
                assert!(named, "{script}: no {by} in {answer:#?}");
                let said = report::why::sentence(&answer);
                assert!(!said.contains(['{', '}']) && !said.contains(" ["), "{said}");
            });
        }
    });
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

/// Expected: a run that hangs and is interrupted says why, and not that it was too short.
#[test]
fn an_interrupted_run_says_why_nothing_moved() {
    let lab = Lab::new();
    let words = ["run", "--stats", "--json", "run.json", "mkfifo f; exec 3<>f; cat <&3 | sort"];
    let mut program = lab.command(&words);
    program.env("COLUMNS", "1000");
    let running = lab.start(program);
    // The search for the cause is a thread of its own.
    let searches = || {
        threads(running.pid() as i32).any(|(_, folder)| {
            std::fs::read_to_string(format!("{folder}/comm"))
                .is_ok_and(|name| name.trim_end() == "hosepipe-why")
        })
    };
    until("it searches", soon(), || searches().then_some(()));
    until("it has found it", soon(), || (!searches()).then_some(()));
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(HANGS_AFTER);
    let record = lab.here("run.json");
    assert!(done.stderr.contains("At the last look nothing moved: cat"), "{done:?}");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(record).expect("saved")).expect("JSON");
    assert_eq!(record["why"]["cause"], "self-held");
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
