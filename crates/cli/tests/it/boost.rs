//! `hosepipe boost`: whatever it runs does not notice, and full pipes become larger.

use std::fs::{self, File};
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::BoostRecord;
use observe::brief_pipe::BriefPipe;
use observe::endpoint::{IpcFile, endpoints};
use process::proc::children;
use rustix::process::Signal;

use crate::common::namespaces::unshare;
use crate::common::programs::in_english;
use crate::common::{CACHES, Done, Lab, another_user, full, is_root, promptly, signal, skip, soon, until};

/// The size of a pipe that was not changed, and the largest that boost gives it, in bytes.
const USUAL: u64 = 64 << 10;
const LARGE: u64 = 1 << 20;
const EVEN: (&str, &str) = ("HOSEPIPE_SLOW_COPIES", "1");
const NOBODY: u32 = 65534;

fn boost(lab: &Lab, words: &[&str]) -> Done {
    let mut command = lab.command(&[&["boost"], words].concat());
    // A CPU that copies as fast into one address as into another: elsewhere the environment is changed.
    command.env(EVEN.0, EVEN.1);
    lab.finish(command)
}

fn record(path: &Path) -> BoostRecord {
    let text = fs::read_to_string(path).expect("a record");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no record ({error}): {text}"))
}

/// The size of the pipe that a process writes to.
fn size(pid: u32) -> Option<u64> {
    let own = endpoints(pid as i32).ok()?.find(|end| end.fd == 1)?;
    let IpcFile::Pipe(pipe) = own.ipc_file else { return None };
    BriefPipe::open(pid as i32, 1, Some(pipe)).and_then(|pipe| pipe.size()).ok()
}

/// The process of this name, and the pipe behind it.
fn writer(lab: &Lab, name: &str) -> u32 {
    let found = || lab.processes().into_iter().find(|(_, its)| its == name).map(|(pid, _)| pid);
    until(name, soon(), || found().filter(|pid| size(*pid).is_some()))
}

#[test]
fn a_command_is_as_it_would_be_without() {
    let lab = Lab::new();
    fs::write(lab.here("without an interpreter"), "echo \"$0\" \"$1\"; exit 4\n").expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(lab.here("without an interpreter"), mode).expect("chmod");
    for (words, code, stdout) in [
        (&["printf", "%s.", "a b", "--json", "-x"][..], 0, "a b.--json.-x."),
        (&["sh", "-c", "exit 3"], 3, ""),
        (&["--quiet", "sh", "-c", "kill -TERM $$"], 143, ""),
        (&["./without an interpreter", "one"], 4, "./without an interpreter one\n"),
        (&["--", "echo", "x"], 0, "x\n"),
        (&["true", "|", "false"], 0, ""),
        (&["grep", "-c", "^Sig\\(Blk\\|Ign\\):.*0000$", "/proc/self/status"], 0, "2\n"),
        (&["readlink", "/proc/self/fd/0"], 0, "/dev/null\n"),
    ] {
        let done = boost(&lab, words).expect_code(code);
        assert_eq!(done.stdout, stdout, "{words:?}");
        assert_eq!(done.stderr.is_empty(), words[0] == "--quiet", "{words:?}: {}", done.stderr);
    }
    // sh sets variables of its own in either case.
    let bare = in_english(&mut Command::new("env"))
        .env(EVEN.0, EVEN.1)
        .env("TMPDIR", lab.tmp())
        .env("XDG_RUNTIME_DIR", CACHES)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("env");
    let [mut ours, mut theirs] =
        [boost(&lab, &["env"]).stdout, String::from_utf8_lossy(&bare.stdout).into_owned()]
            .map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    let same = |line: &String| !["_=", "COLUMNS=", "NO_COLOR="].iter().any(|name| line.starts_with(name));
    ours.retain(same);
    theirs.retain(same);
    assert_eq!(ours, theirs);
}

#[test]
fn what_cannot_be_run_is_said_and_has_the_status_of_a_shell() {
    let lab = Lab::new();
    fs::write(lab.here("data"), "no program").expect("a file");
    for (words, code, said) in [
        (&["no-such-program"][..], 127, "there is no program `no-such-program`"),
        (&["./no-such-file"], 127, "there is no program"),
        (&[""], 127, "there is no program"),
        (&["cat x | wc -l"], 127, "hosepipe boost bash -c"),
        (&["./data"], 126, "EACCES"),
        (&["/"], 126, "cannot execute /"),
        (&[], 2, "COMMAND"),
        (&["--pid", "0"], 2, "0"),
        (&["--pid", "-1"], 2, "-1"),
        (&["--pid", "cat"], 2, "cat"),
        (&["--pid", "2147483647"], 2, "there is no process 2147483647"),
        (&["--pid", "1", "true"], 2, "--pid"),
        (&["--json", "/no/where", "true"], 2, "/no/where"),
        (&["--nonsense", "true"], 2, "--nonsense"),
        (&["\u{1b}]0;x\u{7}"], 127, "␛"),
    ] {
        let done = boost(&lab, words).expect_code(code);
        assert!(done.stderr.contains(said) && done.stdout.is_empty(), "{words:?}: {}", done.stderr);
    }
}

#[test]
fn a_full_pipe_grows_to_a_mebibyte_and_is_told() {
    let lab = Lab::new();
    let json = lab.here("boost.json");
    let args = ["boost", "--json", "boost.json", "bash", "-c", "yes | { sleep 100; exit 7; }"];
    let running = lab.start(lab.command(&args));
    let yes = writer(&lab, "yes");
    until("a large pipe", soon(), || (size(yes) == Some(LARGE)).then_some(()));
    let inner = lab.processes().into_iter().find(|(_, name)| name == "sleep").expect("it sleeps").0;
    signal(inner, Signal::TERM);
    let done = running.wait_within(promptly()).expect_code(7);
    assert!(
        done.stderr.contains(&format!("yes {yes}")) && done.stderr.contains("64 KiB → 1 MiB"),
        "{}",
        done.stderr
    );
    let record = record(&json);
    let [pipe] = &record.boosted[..] else { panic!("{record:?}") };
    assert_eq!((pipe.before_bytes, pipe.after_bytes, pipe.left), (USUAL, LARGE, false));
    assert_eq!(pipe.writer.as_ref().map(|end| (&*end.command, end.pid)), Some(("yes", yes as i32)));
    assert_eq!(pipe.reader.as_ref().map(|end| &*end.command), Some("bash"));
    assert!(
        pipe.full_ns > 0 && pipe.full_ns <= pipe.watched_ns && pipe.watched_ns <= record.wall_ns,
        "{pipe:?}"
    );
    assert_eq!((record.status, &record.refused, record.unseen), (Some(7), &None, 0));
    // Nobody reads: nothing flows.
    assert!(done.stderr.replace('\n', " ").contains("Whether it helped is not known"), "{}", done.stderr);
    let shown = lab.run(&["report", "boost.json"]).expect_code(0).stdout;
    assert!(shown.contains("64 KiB → 1 MiB"), "{shown}");
    for (flag, words) in [("--csv", "1048576"), ("--md", "| yes"), ("--html", "1 MiB")] {
        let text = lab.run(&["report", "boost.json", flag, "-"]).expect_code(0).stdout;
        assert!(text.contains(words), "{flag}: {text}");
    }
}

/// Expected: whether it helped. Happened: the new size, and no more.
#[test]
fn what_is_written_before_and_after_is_measured() {
    let lab = Lab::new();
    let line = "(timeout 3 dd if=/dev/zero bs=64k | wc -c > /dev/null) & sleep 1; exec \"$0\" boost --json boost.json --pid $!";
    let done = lab.finish(lab.wrapped(&["bash", "-c", line], &[])).expect_code(0);
    let record = record(&lab.here("boost.json"));
    let [pipe] = &record.boosted[..] else { panic!("{record:?}") };
    assert!(pipe.before_bytes_per_s > Some(0) && pipe.after_bytes_per_s > Some(0), "{pipe:?}");
    let said = done.stderr.replace('\n', " ");
    assert!(["It may have helped: ", "It did not help: "].iter().any(|words| said.contains(words)), "{said}");
}

#[test]
fn idle_pipes_and_those_that_are_read_soon_enough_stay_as_they_are() {
    let lab = Lab::new();
    let text = "sleep 0.4 | cat; for i in 1 2 3; do echo $i; sleep 0.1; done | cat";
    let done = boost(&lab, &["--json", "boost.json", "bash", "-c", text]).expect_code(0);
    assert_eq!(done.stdout, "1\n2\n3\n");
    assert!(
        done.stderr.contains("none was enlarged") || done.stderr.contains("none was\n"),
        "{}",
        done.stderr
    );
    let record = record(&lab.here("boost.json"));
    assert!(record.boosted.is_empty() && record.samples > 3, "{record:?}");
}

#[test]
fn the_pipe_from_outside_and_what_an_orphan_writes_grow_too() {
    let lab = Lab::new();
    let (reader, _writer) = pipe().expect("a pipe");
    let mut yes = Command::new("yes").stdout(_writer).spawn().expect("yes");
    // The parent ends before anything is written.
    let text = "( (sleep 0.6; exec tr y n < /dev/zero | sleep 100) & sleep 0.3); sleep 100";
    let mut command = lab.command(&["boost", "bash", "-c", text]);
    command.stdin(reader);
    let running = lab.start(command);
    until("a large pipe", soon(), || (size(yes.id()) == Some(LARGE)).then_some(()));
    let tr = writer(&lab, "tr");
    until("a large pipe of an orphan", soon(), || (size(tr) == Some(LARGE)).then_some(()));
    for (pid, _) in lab.processes().into_iter().filter(|(_, name)| name != "hosepipe") {
        signal(pid, Signal::KILL);
    }
    running.wait_within(promptly()).expect_code(137);
    yes.kill().and_then(|()| yes.wait()).expect("ended");
}

/// Whether a process has a handler for a signal (`SigCgt` of proc_pid_status(5)).
fn listens(pid: u32, signal: Signal) -> bool {
    let caught = process::proc::field_value(&format!("/proc/{pid}/status"), "SigCgt");
    let caught = caught.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    caught >> (signal.as_raw() - 1) & 1 == 1
}

/// Its pipe is given back where it can be, and said to be left where it holds too much.
#[test]
fn what_runs_already_is_boosted_until_ctrl_c_and_given_back() {
    for drained in [true, false] {
        let lab = Lab::new();
        let mut yes = Command::new("yes").stdout(Stdio::piped()).spawn().expect("yes");
        let mut output = File::from(OwnedFd::from(yes.stdout.take().expect("a pipe")));
        let pid = yes.id().to_string();
        let running = lab.start(lab.command(&["boost", "--pid", &pid, "--json", "boost.json"]));
        until("a large pipe", soon(), || (size(yes.id()) == Some(LARGE)).then_some(()));
        if drained {
            signal(yes.id(), Signal::STOP);
            // A stopped writer may have filled it, or not.
            rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::NONBLOCK).expect("a pipe's flags");
            while output.read(&mut [0; 65536]).is_ok() {}
        }
        signal(running.pid(), Signal::INT);
        let done = running.wait_within(promptly()).expect_code(130);
        assert_eq!(size(yes.id()), Some(if drained { USUAL } else { LARGE }));
        assert_eq!(
            done.stderr.contains("held more than fits into the old size"),
            !drained,
            "{}",
            done.stderr
        );
        let record = record(&lab.here("boost.json"));
        assert_eq!((record.status, record.boosted[0].left), (None, !drained));
        yes.kill().and_then(|()| yes.wait()).expect("ended");
    }
    // Happened: Ctrl-\ left the pipe large and said nothing; and one that watched itself waited for its own end.
    let lab = Lab::new();
    let mut sleep = Command::new("sleep").arg("100").spawn().expect("sleep");
    let running = lab.start(lab.command(&["boost", "--pid", &sleep.id().to_string()]));
    until("it watches", soon(), || listens(running.pid(), Signal::QUIT).then_some(()));
    signal(running.pid(), Signal::QUIT);
    running.wait_within(promptly()).expect_code(131);
    sleep.kill().and_then(|()| sleep.wait()).expect("ended");
    let mut itself = lab.wrapped(&["sh", "-c", "exec \"$0\" boost --pid $$"], &[]);
    itself.stdin(Stdio::null());
    let done = lab.start(itself).wait_within(promptly()).expect_code(2);
    assert!(done.stderr.contains("is this boost itself"), "{}", done.stderr);
}

#[test]
fn a_process_that_ends_meanwhile_ends_the_watching() {
    let lab = Lab::new();
    let mut sleeper = Command::new("sleep").arg("0.3").spawn().expect("sleep");
    boost(&lab, &["--pid", &sleeper.id().to_string()]).expect_code(0);
    // It is not reaped yet: it has ended, too.
    boost(&lab, &["--pid", &sleeper.id().to_string()]).expect_code(0);
    sleeper.wait().expect("ended");
}

#[test]
fn somebody_elses_process_is_refused_in_words() {
    if !is_root() {
        return skip("only root can run as nobody");
    }
    let lab = Lab::new();
    let done =
        lab.finish(another_user::script(NOBODY, &lab, "exec ./program \"$@\"", &["boost", "--pid", "1"]));
    let done = done.expect_code(2);
    assert!(done.stderr.contains("process 1 belongs to another user"), "{}", done.stderr);
    // What a user starts is that user's to boost, and says nothing of rights.
    let args = ["boost", "bash", "-c", "yes | sleep 0.3"];
    let done = lab.finish(another_user::script(NOBODY, &lab, "exec ./program \"$@\"", &args)).expect_code(0);
    assert!(done.stderr.contains("1 pipe enlarged"), "{}", done.stderr);
    // A zombie is not counted as another user's process.
    let args = ["boost", "bash", "-c", "true & exec sleep 0.3"];
    let done = lab.finish(another_user::script(NOBODY, &lab, "exec ./program \"$@\"", &args)).expect_code(0);
    assert!(!done.stderr.contains("could not be sampled"), "{}", done.stderr);
}

#[test]
fn signals_stops_and_the_end_of_a_stream_pass_as_without() {
    let lab = Lab::new();
    let running = lab.start(lab.command(&["boost", "sh", "-c", "kill -STOP $$; echo resumed"]));
    let stat = format!("/proc/{}/stat", running.pid());
    until("a stop", soon(), || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")).then_some(())
    });
    signal(running.pid(), Signal::CONT);
    assert_eq!(running.wait_within(soon()).expect_code(0).stdout, "resumed\n");
    // To boost alone: everybody below has it.
    let running = lab.start(lab.command(&["boost", "bash", "-c", "sleep 100 | sleep 100"]));
    until("the sleepers", soon(), || (lab.processes().len() >= 4).then_some(()));
    signal(running.pid(), Signal::TERM);
    running.wait_within(promptly()).expect_code(143);
    // A command that closes its streams is not kept from that by boost.
    let (mut reader, writer) = pipe().expect("a pipe");
    let mut command = lab.command(&["boost", "sh", "-c", "echo x; exec >&-; sleep 100"]);
    command.stdout(writer);
    let running = lab.start(command);
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("its end");
    assert_eq!((said.as_str(), lab.processes().len() > 1), ("x\n", true));
    signal(running.pid(), Signal::TERM);
    running.wait_within(promptly()).expect_code(143);
}

/// Numbers in a /proc of another namespace are other processes'.
#[test]
fn a_proc_of_another_namespace_is_not_taken_for_ours() {
    let Some(wrapper) = unshare(&["--pid", "--fork"], "exec \"$0\" \"$@\"") else { return };
    let lab = Lab::new();
    let done = lab.start(lab.wrapped(&wrapper, &["boost", "bash", "-c", "yes | head -c 9 | wc -c; exit 5"]));
    let done = done.wait_within(soon()).expect_code(5);
    assert_eq!(done.stdout, "9\n");
    assert!(done.stderr.contains("/proc is not of this PID namespace"), "{}", done.stderr);
    // One that was made for another namespace, looked at from here.
    let with_proc = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let Some(wrapper) = unshare(&with_proc, "exec \"$0\" \"$@\"") else { return };
    let mut apart = Command::new(wrapper[0]);
    apart.args(&wrapper[1..]).args(["sh", "-c", "yes | sleep 100"]);
    let mut apart = apart.env("TMPDIR", lab.tmp()).spawn().expect("unshare");
    let running = lab.start(lab.command(&["boost", "--pid", &apart.id().to_string()]));
    let yes = writer(&lab, "yes");
    until("a large pipe", soon(), || (size(yes) == Some(LARGE)).then_some(()));
    apart.kill().and_then(|()| apart.wait()).expect("ended");
    running.wait_within(soon()).expect_code(0);
}

/// Somebody opens the pipes of short pipelines as boost does, but without a pause: every reader has its end, and every writer whose
/// reader has left its SIGPIPE.
#[test]
fn no_end_and_no_sigpipe_is_lost_while_pipes_are_opened_all_the_time() {
    const TEXT: &str = "
        for ((i = 0; i < $0; i++)); do
            yes | head -1 > /dev/null; first=${PIPESTATUS[*]}
            seq 40000 | head -1 > /dev/null; second=${PIPESTATUS[*]}
            true | cat; third=${PIPESTATUS[*]}
            [[ $first/$second/$third == '141 0/141 0/0 0' ]] || echo \"$i: $first/$second/$third\"
        done";
    // Three pipelines each time.
    let rounds = if full() { "3400" } else { "60" };
    let mut bash = Command::new("bash");
    let mut bash = bash.args(["-c", TEXT, rounds]).stdout(Stdio::piped()).spawn().expect("bash");
    let root = bash.id() as i32;
    let over = AtomicBool::new(false);
    let (said, opened) = std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let mut opened = 0u64;
            while !over.load(Ordering::Relaxed) {
                for pid in children(root) {
                    for end in endpoints(pid).into_iter().flatten().filter(|end| end.fd < 2) {
                        let IpcFile::Pipe(pipe) = end.ipc_file else { continue };
                        opened += u64::from(BriefPipe::open(pid, end.fd, Some(pipe)).is_ok());
                    }
                }
            }
            opened
        });
        let mut said = String::new();
        bash.stdout.take().expect("a pipe").read_to_string(&mut said).expect("its output");
        over.store(true, Ordering::Relaxed);
        (said, opener.join().expect("no panic"))
    });
    assert!(bash.wait().expect("ended").success() && said.is_empty(), "{said}");
    assert!(opened > 20, "{opened} opened");
}

/// The same under boost itself, which makes pipes larger.
#[test]
fn short_pipelines_end_under_boost_as_without() {
    let lab = Lab::new();
    let text = "for ((i = 0; i < $0; i++)); do
        yes | head -1 > /dev/null; echo ${PIPESTATUS[*]}; true | cat; echo ${PIPESTATUS[*]}; done | sort | uniq -c";
    let rounds = if full() { 5000 } else { 60 };
    let done = lab.start(lab.command(&["boost", "bash", "-c", text, &rounds.to_string()]));
    let done = done.wait_within(Duration::from_secs(250)).expect_code(0);
    let counted: Vec<&str> = done.stdout.split_whitespace().collect();
    assert_eq!(counted, [&*rounds.to_string(), "0", "0", &*rounds.to_string(), "141", "0"]);
}
