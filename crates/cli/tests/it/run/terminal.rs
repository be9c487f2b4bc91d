//! At a terminal: keys that are signals, jobs of an interactive shell, and the live picture.

use std::fs;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use std::os::unix::process::ExitStatusExt;

use super::place::has_line;
use super::window::Window;
use crate::common::programs::{in_english, python, script};
use crate::common::{CACHES, Lab, promptly, signal, soon, until};

/// Makes the command the leader of its terminal's session (setsid(1)).
const LEADER: [&str; 2] = ["setsid", "--ctty"];

/// `./counts SIGNAL FILE`: a line in the file for each time the signal comes; ends half a second after the first. In perl, because a bash on a
/// busy machine loses one trap in a hundred while it starts programs.
const COUNTS: &str = r#"#!/usr/bin/perl
my ($signal, $file, $heard) = @ARGV;
sub line { open(my $to, ">>", $file) or die; print $to "$_[0]\n"; close($to) }
$SIG{$signal} = sub { line("heard"); $heard = 1 };
line("ready");
select(undef, undef, undef, 0.05) until $heard;
select(undef, undef, undef, 0.1) for 1 .. 5;
$SIG{$signal} = "DEFAULT";
kill $signal, $$;
"#;

fn end(lab: &Lab, child: &mut std::process::Child) -> ExitStatus {
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("wait") {
            break status;
        }
        assert!(began.elapsed() < soon(), "no end within {:?}: {:?}", soon(), lab.what_processes_do());
        std::thread::sleep(Duration::from_millis(3));
    };
    lab.assert_nothing_left(child.id(), promptly());
    status
}

/// A key at the terminal is a signal to the whole group: hosepipe must not send it on to stages that have it already.
#[test]
fn control_c_comes_to_each_stage_once() {
    for (key, name, number) in [("\x03", "INT", 2)] {
        let lab = Lab::new();
        script(&lab, "counts", COUNTS);
        let window = Window::new();
        let text = format!("./counts {name} a | ./counts {name} b | ./counts {name} c; echo next > next");
        let mut child = window.start(lab.wrapped(&LEADER, &["run", &text]));
        for stage in ["a", "b", "c"] {
            until("the stage", soon(), || has_line(lab.here(stage), "ready"));
        }
        window.type_in(key);
        let status = end(&lab, &mut child);
        assert_eq!(status.signal(), Some(number), "{status:?}");
        for stage in ["a", "b", "c"] {
            let said = fs::read_to_string(lab.here(stage)).expect("the stage's file");
            assert_eq!(said, "ready\nheard\n", "stage {stage}: {}", window.shown());
        }
        assert!(!lab.here("next").exists(), "SIG{name} ends the whole list");
    }
}

#[test]
fn stages_read_and_write_the_terminal() {
    let lab = Lab::new();
    let window = Window::new();
    let text = "head -1 | tr a-z A-Z; test -t 0 && test -t 1 && test -t 2 && echo a terminal";
    let mut child = window.start(lab.wrapped(&LEADER, &["run", text]));
    window.type_in("typed\n");
    window.expect("TYPED");
    assert!(end(&lab, &mut child).success());
    assert!(window.close().contains("a terminal"));
}

/// An interactive bash in a window.
fn shell(lab: &Lab, window: &Window) -> std::process::Child {
    let mut command = Command::new(LEADER[0]);
    command.args(&LEADER[1..]).args(["bash", "--norc", "--noprofile", "-i"]);
    command.current_dir(lab.here("")).env("TMPDIR", lab.tmp()).env("PS1", "> ").env("TERM", "dumb");
    in_english(&mut command).env("XDG_RUNTIME_DIR", CACHES).env_remove("PROMPT_COMMAND");
    window.start(command)
}

fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('-')
}

/// The name of the process that waits for the stages: over a plain pipe hosepipe has become the shell.
fn waits(via: &str) -> &'static str {
    if via == "pipe" { "bash" } else { "hosepipe" }
}

/// The processes of the job, hosepipe and its stages, when all are there.
fn job(lab: &Lab, names: &[&str]) -> Vec<u32> {
    until("the job", soon(), || {
        let processes = lab.processes();
        let of_job = |name: &&str| processes.iter().find(|(_, has)| has == name).map(|(pid, _)| *pid);
        names.iter().map(of_job).collect::<Option<Vec<u32>>>()
    })
}

#[test]
fn control_z_stops_the_whole_job_and_fg_goes_on_with_it() {
    for via in ["socketpair", "tmpfile"] {
        let lab = Lab::new();
        let window = Window::new();
        let mut shell = shell(&lab, &window);
        let hosepipe = env!("CARGO_BIN_EXE_hosepipe");
        window.type_in(&format!("{hosepipe} run --via {via} 'sleep 60 | tail -1'; echo ended=$?\n"));
        let pids = job(&lab, &["hosepipe", "sleep", "tail"]);
        window.type_in("\x1a");
        window.expect("Stopped");
        for pid in &pids {
            until("a stopped job", promptly(), || (state(*pid) == 'T').then_some(()));
        }
        window.type_in("bg\n");
        for pid in &pids {
            until("a job that runs again", promptly(), || (state(*pid) == 'S').then_some(()));
        }
        window.type_in("fg\n");
        // The shell shows the command line again as it hands the terminal over.
        until("the terminal's owner", promptly(), || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", pids[0])).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            (fields[2] == fields[5]).then_some(())
        });
        window.type_in("\x03");
        until("the end of the job", promptly(), || (state(pids[0]) == '-').then_some(()));
        window.type_in("echo status=$?\n");
        window.expect("status=130");
        window.type_in("exit\n");
        until("the end of the shell", soon(), || shell.try_wait().expect("wait"));
        lab.assert_nothing_left(shell.id(), promptly());
    }
}

/// Where the leader of its session ends, as with a window that is closed, the kernel hangs the foreground group up.
#[test]
fn a_session_that_ends_takes_the_job_along() {
    for via in ["pipe", "tmpfile", "file"] {
        let lab = Lab::new();
        let window = Window::new();
        let leader = [&LEADER[..], &["sh", "-c", "\"$0\" \"$@\"; :"]].concat();
        let text = "sleep 60 | cat | tail -1; echo next > next";
        let mut shell = window.start(lab.wrapped(&leader, &["run", "--via", via, text]));
        job(&lab, &[waits(via), "sleep", "cat", "tail"]);
        signal(shell.id(), rustix::process::Signal::KILL);
        until("the end of the shell", soon(), || shell.try_wait().expect("wait"));
        lab.assert_nothing_left(shell.id(), promptly());
        assert!(!lab.here("next").exists(), "{via}");
    }
}

/// Where hosepipe is the leader itself, as in a window that was opened for it alone, only it hears that the window was closed.
#[test]
fn a_window_that_is_closed_takes_the_job_along() {
    for via in ["pipe", "tmpfile"] {
        let lab = Lab::new();
        let (outer, inner) = crate::common::pty::pair();
        let end = || inner.try_clone().expect("a copy");
        let mut command = lab.wrapped(&LEADER, &["run", "--via", via, "sleep 60 | cat | tail -1"]);
        let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("hosepipe starts");
        drop((command, inner));
        job(&lab, &[waits(via), "sleep", "cat", "tail"]);
        drop(outer);
        until("the end", soon(), || child.try_wait().expect("wait"));
        lab.assert_nothing_left(child.id(), promptly());
    }
}

#[test]
fn the_live_picture_comes_and_goes_and_the_output_is_whole() {
    let lab = Lab::new();
    let window = Window::new();
    let text = "for i in 1 2 3 4; do echo line$i; sleep 0.15; done | cat";
    let mut command = lab.wrapped(&LEADER, &["run", "--live", text]);
    let output = fs::File::create(lab.here("output")).expect("a file");
    command.stdin(window.end()).stdout(output).stderr(window.end());
    let mut child = command.spawn().expect("hosepipe starts");
    drop(command);
    assert!(end(&lab, &mut child).success());
    let shown = window.close();
    let output = fs::read_to_string(lab.here("output")).expect("the output");
    assert_eq!(output, "line1\nline2\nline3\nline4\n", "the output has nothing of the picture");
    assert!(shown.matches("\x1b[22;1H").count() >= 3, "three of 24 rows, drawn again and again: {shown:?}");
    assert_eq!(shown.matches("\x1b[1;21r").count(), 1, "the others are the pipeline's: {shown:?}");
    assert!(shown.contains(" 2 cat") && shown.contains("waits to read"), "{shown:?}");
    let (_, after) = shown.rsplit_once("\x1b[24;1H").expect("the last drawing");
    let gone = after.find("\x1b7\x1b[r\x1b8\x1b[J");
    assert!(gone < after.find("←") && gone.is_some(), "it is cleared before the table: {after:?}");
    assert!(after.contains("←"), "then comes the table: {after:?}");
    assert!(!shown.contains("line1"));
}

#[test]
fn the_live_picture_says_how_far_the_first_stage_is_and_lines_a_second() {
    let lab = Lab::new();
    for name in ["big", "more"] {
        fs::write(lab.here(name), "a line\n".repeat(2 << 20)).expect("a file");
    }
    // As much at a time as takes it some seconds, on a busy machine too.
    let slowly = "for i in $(seq 40); do head -c 256K; sleep 0.1; done >/dev/null";
    for (first, said) in [
        ("cat big", " · big: "),
        ("cat big more", " · 2 files: "),
        ("gzip -dc small.gz", " · small.gz: "),
        ("cat < big", " · big: "),
    ] {
        let window = Window::new();
        if first.starts_with("gzip") {
            let mut made = Command::new("sh");
            made.args(["-c", "head -c 12M /dev/urandom | base64 | gzip -1 > small.gz"]);
            assert!(made.current_dir(lab.here("")).status().expect("gzip").success());
        }
        let text = format!("{first} | {slowly}");
        let mut child = window.start(lab.wrapped(&LEADER, &["run", "--live", "--lines", &text]));
        window.expect(said);
        window.expect(" % read, ");
        window.expect(" to the end");
        window.expect(" lines/s  ");
        window.expect(" MB/s ");
        window.type_in("\x03");
        end(&lab, &mut child);
    }
}

/// Expected: bytes so far behind each stage that has a link, with the sign of how they are known, and what comes a second.
#[test]
fn the_live_picture_has_the_bytes_of_each_link() {
    let lab = Lab::new();
    for (option, said) in [("--stats", "≤21.0 MB"), ("--meter", " 21.0 MB ")] {
        let window = Window::new();
        let text = "(head -c 20M /dev/zero; sleep 60) | (cat; sleep 60) >/dev/null";
        let mut child = window.start(lab.wrapped(&LEADER, &["run", "--live", option, text]));
        window.expect(said);
        window.expect("0 B/s ");
        window.type_in("\x03");
        end(&lab, &mut child);
    }
}

/// On a machine where copies to some addresses are slow, which this variable invents.
#[test]
fn the_live_picture_says_who_reads_into_a_slow_address() {
    let (lab, window) = (Lab::new(), Window::new());
    // malloc puts so large a block 16 bytes into a page.
    let reads = "import sys\nb = bytearray(1 << 20)\nwhile sys.stdin.buffer.raw.readinto(b): pass";
    let text = format!("cat /dev/zero | python3 -c '{reads}'");
    let mut command = lab.wrapped(&LEADER, &["run", "--live", &text]);
    let mut child = window.start({
        command.env("HOSEPIPE_SLOW_COPIES", "0.05");
        command
    });
    window.expect("slow reads at +16");
    window.type_in("\x03");
    end(&lab, &mut child);
}

/// A position that says nothing is not shown: of no file, of one that is in memory, of one that is read here and there.
#[test]
fn the_live_picture_says_nothing_of_what_is_not_read_on() {
    let lab = Lab::new();
    fs::write(lab.here("big"), vec![b'x'; 8 << 20]).expect("a file");
    let in_memory = "import mmap, sys, time
f = open('big', 'rb'); f.read(4096); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
for at in range(8): f.read(4096); sys.stdout.buffer.write(m[at << 20:at + 1 << 20]); time.sleep(0.1)";
    let back_and_forth = "import sys, time
f = open('big', 'rb', buffering=0)
for at in (7, 1, 6, 1, 5, 1, 4, 1, 3): f.seek(at << 20); sys.stdout.buffer.write(f.read(4096)); time.sleep(0.1)";
    let python = |text| format!("{} -c \"{text}\"", python());
    for first in ["yes".to_owned(), python(in_memory), python(back_and_forth)] {
        let window = Window::new();
        let text = format!("{first} | for i in $(seq 10); do head -c 64K; sleep 0.1; done >/dev/null");
        let mut child = window.start(lab.wrapped(&LEADER, &["run", "--live", &text]));
        until("the end", soon(), || child.try_wait().expect("wait"));
        let shown = window.close();
        assert!(shown.contains("waits to") && !shown.contains("% read"), "{first}: {shown:?}");
    }
}

#[test]
fn without_a_terminal_there_is_no_live_picture() {
    let lab = Lab::new();
    let done = lab.run(&["run", "--live", "sleep 0.3 | cat"]).expect_code(0);
    assert!(!done.stderr.contains('\x1b'), "{:?}", done.stderr);
    assert!(done.stderr.contains("sleep 0.3"), "the table all the same: {}", done.stderr);
}

#[test]
fn the_live_picture_goes_when_the_run_is_interrupted() {
    let lab = Lab::new();
    let window = Window::new();
    let mut child = window.start(lab.wrapped(&LEADER, &["run", "--live", "sleep 60 | cat"]));
    window.expect("waits to read");
    window.type_in("\x03");
    let status = end(&lab, &mut child);
    assert_eq!(status.signal(), Some(2), "{status:?}");
    let shown = window.close();
    let (_, after) = shown.rsplit_once("\x1b[24;1H").expect("the last drawing");
    assert!(after.contains("\x1b[r\x1b8\x1b[J"), "{after:?}");
}
