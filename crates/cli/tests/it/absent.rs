//! What is not there, or not allowed, is said with its reason and its remedy, and costs its own rows only: each
//! reason that a mechanism has for being absent is provoked here. Nothing of the machine is changed for it: the
//! surroundings are a seccomp filter, a namespace or a limit of the run's own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::namespaces::unshare;
use crate::common::{Lab, error_of, files_in, sandbox, skip, until};
use libc::c_long;
use model::ErrorKind;
use serde::Deserialize;

/// What `hosepipe list --json` says of one mechanism.
#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    available: bool,
    reason: Option<String>,
    remedy: Option<String>,
}

/// A mechanism, and words that its reason and its remedy must have.
struct Absence<'a> {
    mechanism: &'a str,
    reason: &'a str,
    remedy: &'a str,
}

/// Panics unless the mechanism is absent for this reason in the surroundings that `prepare` makes: in the list,
/// and in a run, which goes on without it.
fn assert_absent(absence: &Absence<'_>, prepare: impl Fn(&Lab, &[&str]) -> Command) {
    let lab = Lab::new();
    let name = absence.mechanism;
    let done = lab.finish(prepare(&lab, &["list", "--json"])).expect_code(0);
    let list: Vec<Listed> = serde_json::from_str(&done.stdout).expect("the list is JSON");
    let listed = list.iter().find(|entry| entry.name == name).expect("it is in the list");
    assert!(!listed.available, "{listed:?}");
    assert!(listed.reason.as_ref().is_some_and(|text| text.contains(absence.reason)), "{listed:?}");
    assert!(listed.remedy.as_ref().is_some_and(|text| text.contains(absence.remedy)), "{listed:?}");
    let args = ["bench", "--json", "-", name, "null", "memcpy", "--count", "4", "--trials", "1"];
    let done = lab.finish(prepare(&lab, &args)).expect_code(0);
    for case in done.cases_of(name) {
        let error = error_of(&case);
        assert_eq!((error.kind, error.expected), (ErrorKind::Unavailable, true), "{name}: {error:?}");
        assert!(error.message.contains(absence.reason), "{name}: {error:?}");
        assert!(error.remedy.as_ref().is_some_and(|text| text.contains(absence.remedy)), "{name}: {error:?}");
    }
    done.assert_the_others_went_on(name);
}

/// [`assert_absent`] where a system call is answered with an error.
fn assert_absent_without(call: c_long, errno: i32, absence: &Absence<'_>) {
    assert_absent(absence, |lab, args| {
        let mut command = lab.command(args);
        sandbox::forbid(&mut command, call, errno);
        command
    });
}

/// [`assert_absent`] in new namespaces (`unshare` FLAGS), after a script of the shell.
fn assert_absent_in(flags: &[&str], script: &str, absence: &Absence<'_>) {
    let script = format!("{script} && exec \"$0\" \"$@\"");
    let Some(wrapper) = unshare(flags, &script) else { return };
    assert_absent(absence, |lab, args| lab.wrapped(&wrapper, args));
}

/// Expected: inotify instances that are spent cost `bench` a row with a remedy, and `run` nothing.
/// Happened: the row had none.
#[test]
fn inotify_instances_that_are_spent() {
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    // A user namespace has limits of its own, also for root.
    let Some(without) = unshare(&["--user", "--map-root-user"], script) else { return };
    let lab = Lab::new();
    let args = ["bench", "--json", "-", "file", "--count", "4", "--trials", "1"];
    let done = lab.finish(lab.wrapped(&without, &args)).expect_code(1);
    for case in done.cases_of("file") {
        let error = error_of(&case);
        assert!(error.message.contains("inotify_init1: EMFILE"), "{error:?}");
        let remedy = error.remedy.as_deref().unwrap_or_default();
        assert!(remedy.contains("fs.inotify.max_user_instances"), "{error:?}");
        assert!(remedy.contains("--wait spin"), "{error:?}");
    }
    lab.finish(lab.wrapped(&without, &[&args[..], &["--wait", "spin"]].concat())).expect_code(0);
    for via in ["tmpfile", "file:order=sequential"] {
        let done = lab.finish(lab.wrapped(&without, &["run", "--via", via, "seq 1000 | wc -l"]));
        assert_eq!((done.code(), done.stdout.as_str(), done.stderr.as_str()), (0, "1000\n", ""), "{via}");
    }
}

#[test]
fn a_sandbox_without_io_uring() {
    let absence = |reason| Absence { mechanism: "io-uring", reason, remedy: "seccomp" };
    assert_absent_without(
        libc::SYS_io_uring_setup,
        libc::EPERM,
        &absence("EPERM (Operation not permitted): a sandbox forbids it"),
    );
    assert_absent_without(libc::SYS_io_uring_setup, libc::ENOSYS, &absence("ENOSYS"));
}

/// Expected: rows of vmsplice(2) have a reason and a remedy, and the others are measured.
/// Happened: in a container they failed during their trial, without a remedy, and `bench` ended with 1.
#[test]
fn a_sandbox_without_vmsplice() {
    for (errno, why) in [(libc::EPERM, "a sandbox forbids it"), (libc::ENOSYS, "or a sandbox says so")] {
        let lab = Lab::new();
        let specs = ["pipe:send=vmsplice", "splice:to=socket,send=vmsplice", "pipe", "splice:to=socket"];
        let args =
            [&["bench", "--json", "-", "--data", "none,verify", "--count", "4", "--trials", "1"], &specs[..]];
        let mut command = lab.command(&args.concat());
        sandbox::forbid(&mut command, libc::SYS_vmsplice, errno);
        let record = lab.finish(command).expect_code(0).record();
        let cases = record.cases.iter().filter(|case| ["pipe", "splice"].contains(&case.mechanism.as_str()));
        let mut refused = 0;
        for case in cases {
            if !case.spec.to_string().contains("vmsplice") {
                assert_eq!(case.error, None, "{}", case.spec);
                continue;
            }
            let error = error_of(case);
            assert_eq!(
                (error.kind, error.expected),
                (ErrorKind::Unavailable, true),
                "{}: {error:?}",
                case.spec
            );
            assert!(error.message.contains(why), "{error:?}");
            assert!(error.remedy.as_ref().is_some_and(|text| text.contains("seccomp profile")), "{error:?}");
            refused += 1;
        }
        assert_eq!(refused, 8, "two specs, of each a stream and a round trip at two levels");
    }
}

/// What the administrator has set is told from a sandbox by the setting itself, which is shown to the run as 1 or
/// 2 while a filter answers as the kernel then would. The setting of the machine stays as it is.
#[test]
fn io_uring_that_was_disabled() {
    for (value, reason) in [
        ("1", "kernel.io_uring_disabled is 1: only for root"),
        ("2", "kernel.io_uring_disabled is 2: off for all users, root too"),
    ] {
        let script = format!(
            "echo {value} > ../setting && mount --bind ../setting /proc/sys/kernel/io_uring_disabled && exec \"$0\" \"$@\""
        );
        let Some(wrapper) = unshare(&["--mount"], &script) else { return };
        let remedy = "sysctl -w kernel.io_uring_disabled=0";
        assert_absent(&Absence { mechanism: "io-uring", reason, remedy }, |lab, args| {
            let mut command = lab.wrapped(&wrapper, args);
            sandbox::forbid(&mut command, libc::SYS_io_uring_setup, libc::EPERM);
            command
        });
    }
}

#[test]
fn memory_of_another_process_that_must_not_be_read() {
    let absence =
        Absence { mechanism: "process-vm", reason: "process_vm_readv", remedy: "CONFIG_CROSS_MEMORY_ATTACH" };
    assert_absent_without(libc::SYS_process_vm_readv, libc::ENOSYS, &absence);
}

#[test]
fn a_kernel_without_posix_queues() {
    let absence = Absence { mechanism: "posix-mq", reason: "ENOSYS", remedy: "" };
    assert_absent_without(libc::SYS_mq_open, libc::ENOSYS, &absence);
}

#[test]
fn system_v_queues_that_are_spent_or_not_there() {
    let absence = |reason, remedy| Absence { mechanism: "sysv-msgq", reason, remedy };
    assert_absent_without(libc::SYS_msgget, libc::ENOSYS, &absence("ENOSYS", "CONFIG_SYSVIPC"));
    let none = "echo 0 > /proc/sys/kernel/msgmni";
    assert_absent_in(&["--ipc"], none, &absence("ENOSPC", "kernel.msgmni"));
}

#[test]
fn terminals_that_are_not_mounted() {
    let absence = Absence { mechanism: "pty", reason: "/dev/ptmx", remedy: "mount -t devpts" };
    assert_absent_in(&["--mount", "--propagation", "private"], "mount -t tmpfs none /dev/pts", &absence);
}

#[test]
fn a_loopback_interface_that_is_down() {
    let absence = Absence { mechanism: "udp", reason: "ENETUNREACH", remedy: "ip link set lo up" };
    assert_absent_in(&["--net"], "true", &absence);
}

/// Expected: a look at what this machine has leaves nothing. Happened: `list`, and `recommend` before it measured, made a queue
/// before they had a cleaner, and left it where they were killed before its removal.
#[test]
fn a_list_that_is_killed_leaves_no_queue() {
    let lab = Lab::new();
    if !crate::faults::strace_makes_calls_fail() {
        return skip("strace cannot end a process at a call here");
    }
    for call in ["msgctl", "mq_unlink"] {
        let (trace, inject) =
            (format!("trace=msgget,mq_open,{call}"), format!("inject={call}:signal=KILL:when=1"));
        let log = lab.here("log");
        let mut strace = Command::new("strace");
        strace.args(["-o"]).arg(&log).args(["-e", &trace, "-e", &inject]);
        strace.args([env!("CARGO_BIN_EXE_hosepipe"), "list"]).env("TMPDIR", lab.tmp());
        let child = strace.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("strace starts");
        let output = child.wait_with_output().expect("waited for");
        assert!(!output.status.success(), "{call}: it was not killed");
        let killed = std::fs::read_to_string(&log).expect("a log");
        assert!(killed.contains("killed by SIGKILL"), "{killed}");
        let made = queues_in(&killed);
        assert!(!made.is_empty(), "{killed}");
        until("no queue is left", Duration::from_secs(5), || (!made.iter().any(is_there)).then_some(()));
    }
}

/// The keys and names of the queues that a log of strace(1) names, as text.
fn queues_in(log: &str) -> Vec<String> {
    let made = log.lines().filter_map(|line| {
        let words = line.strip_prefix("msgget(").or_else(|| line.strip_prefix("mq_open(\""))?;
        words.split([',', '"']).next().map(str::to_owned)
    });
    made.collect()
}

/// Whether there is a queue with this key, in hexadecimal, or of this name.
fn is_there(queue: &String) -> bool {
    let table = std::fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    let key = queue.strip_prefix("0x").and_then(|key| i64::from_str_radix(key, 16).ok());
    let has_key = |line: &str| line.split_whitespace().next().and_then(|found| found.parse().ok()) == key;
    key.is_some_and(|_| table.lines().any(has_key))
        || files_in(Path::new("/dev/mqueue")).iter().any(|name| name.ends_with(&format!("/{queue}")))
}
