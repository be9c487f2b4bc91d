//! Signals that come to hosepipe alone, and what the stages see of them.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::place::{bash, has_line, links, run};
use crate::common::namespaces::unshare;
use crate::common::programs::script;
use crate::common::{Lab, promptly, signal, soon, until};

/// `./hears SIGNAL FILE`: waits for the signal, writes that it came, and ends by it.
const HEARS: &str = "\
#!/bin/bash
trap 'echo heard >> \"$2\"; exec sh -c \"kill -$1 \\$\\$\"' $1
echo ready > \"$2\"
while :; do sleep 0.01; done
";

/// Whoever starts the tests may ignore signals; and a core is not asked for.
const PLAIN: [&str; 4] = ["env", "--default-signal", "sh", "-c"];
const WITHOUT_CORE: &str = "ulimit -c 0; exec \"$0\" \"$@\"";

fn start(lab: &Lab, args: &[&str]) -> Child {
    let wrapper = [&PLAIN[..], &[WITHOUT_CORE]].concat();
    lab.wrapped(&wrapper, args).spawn().expect("hosepipe starts")
}

fn end(lab: &Lab, mut child: Child, deadline: Duration) -> ExitStatus {
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("wait") {
            break status;
        }
        if began.elapsed() > deadline {
            let processes = lab.processes();
            let _ = child.kill();
            let _ = child.wait();
            for (pid, _) in &processes {
                signal(*pid, Signal::KILL);
            }
            panic!("did not end within {deadline:?}: {processes:?}");
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    lab.assert_nothing_left(child.id(), promptly());
    status
}

#[test]
fn a_signal_to_hosepipe_reaches_every_stage_once_and_ends_it_too() {
    for (name, sent) in
        [("INT", Signal::INT), ("TERM", Signal::TERM), ("HUP", Signal::HUP), ("QUIT", Signal::QUIT)]
    {
        let lab = Lab::new();
        script(&lab, "hears", HEARS);
        let text = format!("./hears {name} a | {{ ./hears {name} b; }} | ./hears {name} c; echo next > next");
        let child = start(&lab, &["run", &text]);
        for stage in ["a", "b", "c"] {
            until("the stage", soon(), || has_line(lab.here(stage), "ready"));
        }
        signal(child.id(), sent);
        let status = end(&lab, child, promptly());
        // bash(1): "In all cases, bash ignores SIGQUIT": it ends the stages, and the list goes on.
        let ends = sent != Signal::QUIT;
        assert_eq!(status.signal(), ends.then_some(sent.as_raw()), "{name}: {status:?}");
        for stage in ["a", "b", "c"] {
            let said = fs::read_to_string(lab.here(stage)).expect("the stage's file");
            assert_eq!(said, "ready\nheard\n", "stage {stage}, SIG{name}");
        }
        assert_eq!(lab.here("next").exists(), !ends, "SIG{name}");
    }
}

/// As bash: a program that takes SIGINT as something else than its end does not end the list.
#[test]
fn a_stage_that_lives_on_after_sigint_lets_the_list_go_on() {
    let lab = Lab::new();
    let text = "sh -c 'trap \"exit 0\" INT; echo ready > a; while :; do sleep 0.01; done'; echo next > next";
    let child = start(&lab, &["run", text]);
    until("the stage", soon(), || has_line(lab.here("a"), "ready"));
    // Before it waits for a program, bash dies of the signal itself; on a busy machine the stage is there earlier.
    let waits =
        |pid: u32| fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|place| place.contains("wait"));
    until("bash waiting", soon(), || {
        lab.processes().into_iter().find(|(pid, name)| name == "bash" && waits(*pid))
    });
    signal(child.id(), Signal::INT);
    assert_eq!(end(&lab, child, promptly()).code(), Some(0));
    assert!(lab.here("next").exists());
}

#[test]
fn nothing_is_left_over_any_link_after_a_signal() {
    for via in links() {
        // In sequential order an endless writer would fill the disk before its reader starts.
        let endless = !via.contains("sequential");
        let text = if endless { "yes | cat > /dev/null" } else { "sleep 100 | cat | cat" };
        for sent in [Signal::TERM, Signal::INT] {
            let lab = Lab::new();
            let child = start(&lab, &["run", "--via", via, text]);
            let stages = if endless { 2 } else { 1 };
            until("the stages", soon(), || (lab.processes().len() > stages).then_some(()));
            std::thread::sleep(Duration::from_millis(50));
            signal(child.id(), sent);
            let status = end(&lab, child, promptly());
            // Where the reader sees the end of its input first, it ends well: then, as in bash, so does the list.
            let ended =
                status.signal() == Some(sent.as_raw()) || (sent == Signal::INT && status.code().is_some());
            assert!(ended, "{via}: {status:?}");
        }
    }
}

#[test]
fn nothing_is_left_over_any_link_after_a_kill_of_its_own_stages() {
    for via in links() {
        let lab = Lab::new();
        let child = start(&lab, &["run", "--via", via, "sleep 100 | cat | sleep 0"]);
        let sleeper = until("the first stage", soon(), || {
            lab.processes().into_iter().find(|(_, name)| name == "sleep").map(|(pid, _)| pid)
        });
        // The last stage's `sleep 0` may have been seen; the first is killed as soon as it is alone.
        std::thread::sleep(Duration::from_millis(60));
        signal(sleeper, Signal::KILL);
        for (pid, name) in lab.processes() {
            if name == "sleep" {
                signal(pid, Signal::KILL);
            }
        }
        end(&lab, child, promptly());
    }
}

/// Expected: nothing of a run goes on when hosepipe is killed. Happened: a shell did that killed it in its first 10 ms.
#[test]
fn a_shell_does_not_outlive_a_hosepipe_that_is_killed_at_once() {
    // Its loop takes some seconds, and ends by itself.
    let text = "kill -KILL $PPID; i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo survived";
    for shell in ["bash", "dash"] {
        let lab = Lab::new();
        // Standard output is open for as long as the shell lives.
        let done = run(&lab, &["--shell", shell, text]);
        assert_eq!((done.code(), done.stdout.as_str()), (137, ""), "{shell}");
        assert!(lab.processes().is_empty(), "{shell}: {:?}", lab.processes());
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let lab = Lab::new();
    let wrapper = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];
    let text = "echo ready > a; sleep 0.3 | cat; echo done | cat";
    let running = lab.start(lab.wrapped(&wrapper, &["run", text]));
    until("the first stage", soon(), || has_line(lab.here("a"), "ready"));
    signal(running.pid(), Signal::HUP);
    let done = running.wait_within(soon()).expect_code(0);
    assert_eq!(done.stdout, "done\n", "{}", done.stderr);
}

#[test]
fn stages_have_the_signals_they_would_have_under_bash() {
    let text = "grep -E 'Sig(Ign|Blk)' /proc/self/status | cat; (grep -E 'Sig(Ign|Blk)' /proc/self/status)";
    let lab = Lab::new();
    let (_, expected) = bash(&lab, &[], text);
    for args in [&[][..], &["--stats"], &["--via", "tmpfile"], &["--keep", "kept"]] {
        let done = run(&lab, &[args, &[text]].concat()).expect_code(0);
        assert_eq!(done.stdout, expected, "{args:?}");
        assert!(expected.lines().next().is_some_and(|line| line.ends_with("0000")), "{expected}");
    }
    // posix_spawn(3) of the C library ignores its own signals, 32 and 33, in the program that it starts. (By their numbers, because it lets no
    // program set them.)
    if cfg!(target_arch = "x86_64") {
        let wrapper = [
            "perl",
            "-e",
            "for my $n (32, 33) { my $zeros = pack('x32'); syscall(13, $n + 0, $zeros, 0, 8) } exec @ARGV",
        ];
        for args in [&["run", text][..], &["run", "--stats", text]] {
            let done = lab.finish(lab.wrapped(&wrapper, args)).expect_code(0);
            let ignored = done.stdout.lines().filter(|line| line.starts_with("SigIgn"));
            assert!(
                ignored.clone().count() == 2
                    && ignored.clone().all(|line| line.ends_with("\t0000000000000000")),
                "{}",
                done.stdout
            );
        }
    }
    // Ignored from the beginning, they stay so: bits 0, 1 and 12.
    let wrapper = ["sh", "-c", "trap '' HUP INT PIPE; exec \"$0\" \"$@\""];
    let text = "grep SigIgn /proc/self/status | cat; grep SigIgn /proc/self/status";
    let done = lab.finish(lab.wrapped(&wrapper, &["run", text])).expect_code(0);
    assert!(done.stdout.lines().all(|line| line.ends_with("1003")), "{}", done.stdout);
}

/// As in a shell that was started without hosepipe: what is sent to it is its own, and a program that it waits for lives on.
#[test]
fn a_signal_to_sh_is_the_shells_alone() {
    for via in ["pipe", "tmpfile"] {
        let lab = Lab::new();
        let text = "trap 'echo got HUP' HUP; sh -c 'echo ready > a; until [ -e go ]; do sleep 0.01; done'; echo ended $?";
        let running = lab.start(lab.wrapped(&["env", "--default-signal"], &["sh", "--via", via, "-c", text]));
        until("the program", soon(), || has_line(lab.here("a"), "ready"));
        signal(running.pid(), Signal::HUP);
        std::thread::sleep(Duration::from_millis(100));
        fs::write(lab.here("go"), "").expect("written");
        let done = running.wait_within(soon()).expect_code(0);
        assert_eq!(done.stdout, "got HUP\nended 0\n", "{via}: {}", done.stderr);
    }
}

/// What a shell sends to its own group has reached the shell; what comes to hosepipe alone is the shell's to hear.
#[test]
fn the_shell_hears_each_signal_once() {
    let lab = Lab::new();
    let text = "n=0; trap 'n=$((n+1))' INT HUP TERM USR1; \
        for s in TERM HUP INT USR1; do kill -$s 0; sleep 0.1; done; echo $n";
    for args in [&["run", text][..], &["run", "--via", "tmpfile", text]] {
        let done = lab.finish(lab.wrapped(&["setsid", "--wait"], args)).expect_code(0);
        assert_eq!(done.stdout, "4\n", "{}", done.stderr);
    }
    let text = "trap 'echo heard; exit 3' USR1; echo ready > a; while :; do sleep 0.02; done";
    let running = lab.start(lab.command(&["run", text]));
    until("the shell", soon(), || has_line(lab.here("a"), "ready"));
    signal(running.pid(), Signal::USR1);
    let done = running.wait_within(soon()).expect_code(3);
    assert_eq!(done.stdout, "heard\n");
}

/// If the shell stops itself, the process that waits for hosepipe sees it stop, and can let both go on.
#[test]
fn a_shell_that_stops_itself_stops_us() {
    let lab = Lab::new();
    let running = lab.start(lab.command(&["run", "kill -STOP $$; echo resumed | cat"]));
    let stat = format!("/proc/{}/stat", running.pid());
    until("a stop", soon(), || {
        fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")).then_some(())
    });
    signal(running.pid(), Signal::CONT);
    assert_eq!(running.wait_within(soon()).expect_code(0).stdout, "resumed\n");
}

/// Expected: it stops with its shell. Happened: a panic, where the group of both was made outside of their namespace of process
/// numbers (`unshare --fork`, some containers) and has the number 0 in it.
#[test]
fn a_group_from_outside_of_the_namespace_has_no_number() {
    // The first process of a namespace cannot be stopped from within: it is a shell.
    let shell = "\"$0\" \"$@\"; exit $?";
    let Some(wrapper) = unshare(&["--pid", "--fork", "--mount-proc"], shell) else { return };
    let lab = Lab::new();
    let text = "(sleep 0.2; kill -CONT 0) & kill -STOP $$; echo resumed | cat";
    let mut command = lab.wrapped(&wrapper, &["run", text]);
    // A group of its own: what goes on in ours, other tests have stopped.
    command.process_group(0);
    let run = lab.start(command).wait_within(soon());
    assert_eq!(run.expect_code(0).stdout, "resumed\n");
}
