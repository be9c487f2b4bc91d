//! What other users put in the place of a file does not make hosepipe wait, and a second signal ends it whatever it waits for.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::tcgetattr;

use crate::common::namespaces::unshare;
use crate::common::programs::has;
use crate::common::{Done, Lab, Running, promptly, pty, signal, skip, soon, until};

/// Longer than the time in which two signals are one request.
const APART: Duration = Duration::from_millis(150);

fn fifo(lab: &Lab, name: &str) -> String {
    let path = lab.here(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o755), 0).expect("a FIFO");
    path.display().to_string()
}

/// Sends a signal until it has ended: the second one is to do that.
fn insist(mut run: Running<'_>, what: Signal) -> Done {
    for _ in 0..40 {
        if run.has_ended() {
            break;
        }
        signal(run.pid(), what);
        std::thread::sleep(APART);
    }
    run.wait_within(promptly())
}

/// Expected: the chain. Happened: any user made root's `top` wait for ever, for the other end of a FIFO that was mounted over a library.
#[test]
fn a_fifo_in_the_place_of_a_library_is_not_opened() {
    let lab = Lab::new();
    fifo(&lab, "fifo");
    let script = "lib=$(readlink -f \"$(ldd /bin/cat | grep -o '/[^ ]*libc[.]so[.]6')\")\n\
                  sleep 1000 | cat > ready & until [ -e go ]; do sleep 0.01; done\n\
                  mount --bind fifo \"$lib\" && : > mounted; wait";
    let Some(wrapper) = unshare(&["--mount"], "exec \"$0\" \"$@\"") else { return };
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).args(["bash", "-c", script]).current_dir(lab.here(""));
    let scene = super::top::Scene::of(command, tempfile::tempdir().expect("a folder"));
    scene.chain(|chain| super::top::names(chain) == ["sleep", "cat"]);
    fs::write(lab.here("go"), "").expect("written");
    until("the mount", soon(), || lab.here("mounted").exists().then_some(()));
    let done = lab.start(lab.command(&["top", "--once", "--interval", "50ms"])).wait_within(soon());
    assert!(done.expect_code(0).stdout.contains("→ cat"));
}

/// Expected: the shell's message. Happened: hosepipe waited for the other end of the FIFO, and no signal ended it.
#[test]
fn a_stage_that_is_a_fifo_fails_as_in_the_shell() {
    // bash opens such a file itself, to find out why it is not executed, and waits.
    if !has("dash") {
        return skip("dash is not here");
    }
    let lab = Lab::new();
    fifo(&lab, "stage");
    fs::write(lab.here("script"), "#! ./stage\n").expect("written");
    fs::set_permissions(lab.here("script"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("chmod");
    for option in ["--line-buffered", "--align-buffers"] {
        for stage in ["./stage", "./script"] {
            let text = format!("{stage} | cat; echo after");
            let done = lab.run(&["run", "--shell", "dash", option, &text]).expect_code(0);
            assert!(done.stdout == "after\n" && done.stderr.contains("ermission denied"), "{}", done.stderr);
        }
    }
    fs::create_dir(lab.here("folder")).expect("a folder");
    fifo(&lab, &format!("folder/{}", remote::fleet::RECORD));
    let done = lab.run(&["report", "folder"]).expect_code(2);
    assert!(done.stderr.contains("not a regular file"), "{}", done.stderr);
}

/// Expected: a FIFO that the user names is read, as `<(…)` is.
#[test]
fn a_fifo_that_the_user_names_is_read() {
    let lab = Lab::new();
    let record = format!("{}/../../records/stover.json", env!("CARGO_MANIFEST_DIR"));
    let path = fifo(&lab, "record");
    let writer = std::thread::spawn(move || fs::copy(record, path).expect("read"));
    lab.run(&["report", "record"]).expect_code(0);
    writer.join().expect("written");
}

/// Expected: the second signal ends it. Happened: signals set a flag, which a system call that does not return never looks at.
#[test]
fn a_second_signal_ends_every_verb_in_a_system_call() {
    let lab = Lab::new();
    let fifo = fifo(&lab, "fifo");
    let own = std::process::id().to_string();
    let opens = format!("{} ", libc::SYS_openat);
    for (verb, what) in [
        (&["bench", "null", "--count", "10", "--trials", "1"][..], Signal::INT),
        (&["compare", "--trials", "1", "--warmup", "0", "true | true"], Signal::INT),
        (&["top", "--once", "--interval", "50ms"], Signal::TERM),
        (&["boost", "true"], Signal::TERM),
        (&["run", "true"], Signal::INT),
        (&["boost", "--pid", &own], Signal::INT),
    ] {
        let run = lab.start(lab.command(&[&verb[..1], &["--json", &fifo], &verb[1..]].concat()));
        let syscall = format!("/proc/{}/syscall", run.pid());
        let is_at_work = verb.contains(&"--pid");
        until("the end of its work", soon(), || {
            let waits = || fs::read_to_string(&syscall).is_ok_and(|text| text.starts_with(&opens));
            // It opens other files, too, but not for long.
            let waits_on = || {
                (0..5).all(|_| {
                    std::thread::sleep(Duration::from_millis(2));
                    waits()
                })
            };
            (is_at_work || waits_on()).then_some(())
        });
        let done = insist(run, what);
        assert_eq!(done.status.signal(), Some(what.as_raw()), "{verb:?}: {}", done.stderr);
    }
}

/// Expected: nothing is left. Happened: each signal was passed on to stages that ignored it, and hosepipe waited on.
#[test]
fn a_second_signal_ends_what_ignores_the_first() {
    let lab = Lab::new();
    let stage = "trap '' INT TERM; echo > ready; while :; do sleep 0.02; done";
    for verb in [&["run", "--stats", stage][..], &["run", stage], &["boost", "--quiet", "sh", "-c", stage]] {
        let mut run = lab.start(lab.command(verb));
        until("it runs", soon(), || fs::remove_file(lab.here("ready")).ok());
        // At once, as timeout(1) sends its signal twice.
        for _ in 0..2 {
            signal(run.pid(), Signal::TERM);
        }
        std::thread::sleep(APART);
        assert!(!run.has_ended(), "{verb:?}: a stage that ignores the signal goes on");
        assert_eq!(insist(run, Signal::TERM).code(), 137, "{verb:?}");
    }
}

/// Expected: the table. Happened: none, "the process that serves the links was killed": the second signal of timeout(1) came after the shell's
/// end, and was read only after the wait for a stage that ignored the first one, as if it had come then (3 of 20 on a busy machine).
#[test]
fn a_second_signal_at_once_leaves_the_table() {
    let lab = Lab::new();
    let stage = "sh -c 'trap \"\" TERM; sleep 0.3; : > ready; sleep 2' | cat";
    let attempt = || {
        let run = lab.start(lab.command(&["run", "--stats", stage]));
        until("it runs", soon(), || fs::remove_file(lab.here("ready")).ok());
        signal(run.pid(), Signal::TERM);
        until("the shell's end", soon(), || {
            (!run.children().iter().any(|(_, name)| name == "bash")).then_some(())
        });
        signal(run.pid(), Signal::TERM);
        run.wait_within(soon()).stderr
    };
    // On a busy machine the two may come too far apart.
    let said: Vec<String> =
        std::iter::repeat_with(attempt).take(5).take_while(|said| !said.contains(" 1 sh -c")).collect();
    assert!(said.len() < 5, "{said:?}");
}

/// Expected: the second signal ends it. Happened: all signals were blocked while it waited for the server's figures.
#[test]
fn a_second_signal_ends_a_run_whose_server_does_not_answer() {
    let lab = Lab::new();
    // Nothing but builtins: another process would wait for the server.
    let text = "true | true; read -ra all < /proc/$PPID/task/$PPID/children; for pid in \"${all[@]}\"; do
                read -r name < /proc/$pid/comm; [ $name != pipe-links ] || kill -STOP $pid; done; : > stopped";
    let mut run = lab.start(lab.command(&["run", "--stats", text]));
    until("the stop", soon(), || lab.here("stopped").exists().then_some(()));
    until("the shell's end", soon(), || {
        (!run.children().iter().any(|(_, name)| name == "bash")).then_some(())
    });
    assert!(!run.has_ended(), "it waits for the server");
    assert_ne!(insist(run, Signal::INT).code(), 0);
}

/// Expected: the modes of the terminal as they were. A screen that waits for its terminal looks at no flag.
#[test]
fn a_second_signal_gives_the_terminal_back() {
    let (master, inner) = pty::pair();
    pty::resize(&master, 24, 80);
    let before = tcgetattr(&inner).expect("a terminal");
    let stream = || Stdio::from(inner.try_clone().expect("the inner end"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosepipe"));
    command.args(["top", "--interval", "50ms"]).stdin(stream()).stdout(stream()).stderr(stream());
    let mut child = command.spawn().expect("started");
    until("the screen", soon(), || {
        let now = tcgetattr(&inner).expect("a terminal").local_modes;
        (now != before.local_modes).then_some(())
    });
    // Its writes wait once the terminal takes no more.
    let name = rustix::pty::ptsname(&master, Vec::new()).expect("its name");
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let full = open(name.as_c_str(), flags, Mode::empty()).expect("the inner end");
    let writes = format!("{} ", libc::SYS_write);
    until("it waits to write", soon(), || {
        while rustix::io::write(full.as_fd(), &[b'x'; 512]) != Err(Errno::AGAIN) {}
        let waits = fs::read_to_string(format!("/proc/{}/syscall", child.id()));
        waits.is_ok_and(|text| text.starts_with(&writes)).then_some(())
    });
    for _ in 0..40 {
        signal(child.id(), Signal::INT);
        std::thread::sleep(APART);
        if child.try_wait().expect("a child").is_some() {
            break;
        }
    }
    let ended = child.try_wait().expect("a child").expect("ended");
    assert_eq!(ended.signal(), Some(libc::SIGINT));
    let after = tcgetattr(&inner).expect("a terminal");
    assert_eq!(format!("{after:?}"), format!("{before:?}"));
}
