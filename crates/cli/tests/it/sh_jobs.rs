//! Job control of `hosepipe sh`, on a pseudo-terminal and inside tmux: as in a bash that nothing is preloaded into, over every link,
//! and nothing left behind.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::pty::{Person, SOON, end_all, home, pair, processes};
use crate::common::{CACHES, until};
use crate::sh_prompt::there_is;

const CTRL_C: &str = "\x03";
const CTRL_BACKSLASH: &str = "\x1c";
const CTRL_Z: &str = "\x1a";
const HOSEPIPE: &str = env!("CARGO_BIN_EXE_hosepipe");

/// What a person sees in a bash of their own, and in one over each of these links: the same.
fn as_in_bash(links: &[&str], scene: &dyn Fn(&mut Person) -> String) {
    let home = home();
    fs::write(home.path().join(".bashrc"), "PS1='> '\nstats off 2>/dev/null\n").expect("written");
    let bash = ["bash", "--rcfile", ".bashrc"];
    let mut person = Person::before(home.path(), &bash);
    person.sees_a_prompt();
    let expected = scene(&mut person);
    drop(person);
    for link in links {
        let mut person = Person::before(home.path(), &[HOSEPIPE, "sh", "--via", link]);
        person.sees_a_prompt();
        let shown = scene(&mut person).replace(&format!("({link}) "), "");
        assert_eq!(shown, expected, "over {link}");
    }
}

/// The text without the numbers of processes, which are not known beforehand.
fn without_numbers(text: &str) -> String {
    let long = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words = |line: &str| {
        line.split(' ').map(|word| if long(word) { "N" } else { word }).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

#[test]
fn lines_do_at_the_prompt_what_they_do_in_bash() {
    as_in_bash(&["pipe", "tmpfile", "socketpair"], &|person| {
        let lines = [
            "set -u; echo $nope; echo not this",
            "echo ${nope?}",
            "set +u; echo $nope | wc -c",
            "trap 'echo chld' CHLD",
            "echo no child",
            "/bin/true",
            "trap - CHLD; trap 'echo usr' USR1; kill -USR1 $$; echo on",
            "(exit 7) | (exit 3)",
            "echo $? ${PIPESTATUS[*]}",
            "sleep 0.05 & wait; echo waited",
            "jobs; sleep 77 & jobs",
            "kill %1; wait %1",
            "echo $?",
            "shopt -s lastpipe; set +m; echo kept | read x; echo $x; set -m",
            "if true; then echo a | cat; fi; for i in 1 2; do echo $i; done | tac",
            "echo one; echo $'two\\nlines' | cat",
            "echo a | | b",
            "stty -echo; stty -a | grep -o ' -echo '; stty echo",
            "( coproc cat; echo through >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y )",
            "ls /proc/self/fd | wc -w",
            "cat <(echo sub) | cat; x=$(echo inner | cat); echo $x",
            "ulimit -n 64; seq 3 | tac | head -1; ulimit -n",
            "type -t cd jobs; bind -q abort | cut -c1-5",
        ];
        lines.iter().map(|line| without_numbers(&person.answers(line))).collect()
    });
}

#[test]
fn keys_end_and_stop_as_in_bash() {
    as_in_bash(&["pipe", "tmpfile", "fifo"], &|person| {
        let mut seen = String::new();
        for key in [CTRL_C, CTRL_BACKSLASH] {
            // At the prompt: nothing ends.
            person.types(key);
            person.settles("echo ready", "ready");
            for (line, last) in [
                ("sleep 1001", "sleep 1001"),
                ("sleep 1001 | cat", "cat"),
                ("for i in 1 2; do sleep 1001; done", "sleep 1001"),
            ] {
                person.types(&format!("{line}\r"));
                person.runs_in_front("sleep 1001", last);
                person.types(key);
                person.process("sleep 1001", key == CTRL_BACKSLASH && line.starts_with("for"));
                if line.starts_with("for") && key == CTRL_BACKSLASH {
                    // The next turn of the loop, and not a `sleep` that is just ending, whose group would still get the key.
                    person.sees("Quit");
                    person.runs_in_front("sleep 1001", last);
                    person.types(CTRL_C);
                }
                person.sees_a_prompt();
                person.process("sleep 1001", false);
                seen.push_str(&person.answers("echo status $?"));
            }
        }
        person.types("{ sleep 1.5; echo through; } | tr a-z A-Z\r");
        person.runs_in_front("sleep 1.5", "tr a-z A-Z");
        person.types(CTRL_Z);
        person.sees_a_prompt();
        seen.push_str(&person.answers("echo $?; jobs"));
        person.types("fg\r");
        person.sees_line("THROUGH");
        person.sees_a_prompt();
        seen.push_str(&person.answers("echo $?; jobs"));
        person.types("sleep 1003 | cat\r");
        person.runs_in_front("sleep 1003", "cat");
        person.types(CTRL_Z);
        person.sees_a_prompt();
        // `jobs` just before would have been warning enough.
        person.answers("true");
        seen.push_str(&person.answers("exit"));
        seen.push_str(&without_numbers(&person.answers("bg; jobs")));
        seen.push_str(&without_numbers(&person.answers("kill %1; wait %1; echo $?; jobs")));
        seen
    });
}

#[test]
fn a_reader_behind_the_prompt_is_stopped() {
    let home = home();
    let mut person = Person::at_home(home.path());
    let mut said = person.answers("cat &");
    let began = Instant::now();
    while !said.contains("Stopped") {
        assert!(began.elapsed() < SOON, "it is not stopped: {said}");
        said = person.answers("");
    }
    person.types("fg\r");
    person.sees("cat\n");
    person.runs_in_front("cat", "cat");
    person.types("typed\r");
    person.sees_line("typed");
}

#[test]
fn a_shell_inside_a_shell_is_suspended_and_goes_on() {
    let home = home();
    fs::write(home.path().join(".outer"), "PS1='outer> '\n").expect("written");
    fs::write(home.path().join(".bashrc"), "PS1='inner> '\n").expect("written");
    fs::write(home.path().join(".zshrc"), "PS1='inner> '\n").expect("written");
    for shell in ["bash", "zsh"].into_iter().filter(|shell| there_is(shell)) {
        let mut person = Person::before(home.path(), &["bash", "--rcfile", ".outer"]);
        person.sees("outer> ");
        person.types(&format!("{HOSEPIPE} sh --shell {shell} --via tmpfile\r"));
        person.sees("inner> ");
        person.types("x=kept; suspend\r");
        person.sees("outer> ");
        person.types("jobs\r");
        person.sees("Stopped");
        person.types("fg\r");
        person.types("echo $x | tr a-z A-Z\r");
        person.sees_line("KEPT");
        person.types("exit 5\r");
        person.sees("outer> ");
        person.types("echo left $?\r");
        person.sees_line("left 5");
        person.types(&format!("{HOSEPIPE} sh --shell {shell}\r"));
        person.sees("inner> ");
        person.types("kill -9 $$\r");
        person.sees("outer> ");
        person.types("echo left $?\r");
        person.sees_line("left 137");
    }
}

#[test]
fn signals_are_the_shells() {
    // SIGTERM is ignored by an interactive bash.
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("via tmpfile");
    person.kills(Signal::TERM);
    person.kills(Signal::QUIT);
    // As Ctrl-C there: another prompt.
    person.kills(Signal::INT);
    person.settles("seq 3 | wc -l", "3");
    person.types("exit 9\r");
    assert_eq!(person.leaves().code(), Some(9));
    nothing_is_left(home.path());
    // SIGHUP ends it, and what it runs.
    let mut person = Person::at_home(home.path());
    person.runs("sleep 1005 | cat &");
    person.kills(Signal::HUP);
    assert!(!person.leaves().success());
    nothing_is_left(home.path());
}

#[test]
fn a_killed_shell_leaves_nothing_behind() {
    for shell in ["bash", "zsh"].into_iter().filter(|shell| there_is(shell)) {
        let home = home();
        fs::write(home.path().join(".zshrc"), "PS1='> '\n").expect("written");
        let mut person = Person::before(home.path(), &[HOSEPIPE, "sh", "--shell", shell, "--via", "fifo"]);
        person.sees_a_prompt();
        person.types("sleep 1008 | cat\r");
        person.runs_in_front("sleep 1008", "cat");
        person.kills(Signal::KILL);
        // It is the shell, the leader of the session: the kernel ends what has the terminal.
        person.leaves();
        nothing_is_left(home.path());
    }
}

#[test]
fn a_disowned_job_lives_on_over_its_link() {
    let home = home();
    let mut person = Person::at_home(home.path());
    person.runs("via tmpfile");
    person.runs("{ sleep 1; echo through; } | cat >seen & disown");
    person.types("exit\r");
    assert_eq!(person.leaves().code(), Some(0));
    let seen = home.path().join("seen");
    until("what a disowned job wrote", SOON, || {
        (fs::read_to_string(&seen).ok()? == "through\n").then_some(())
    });
    nothing_is_left(home.path());
    end_all(home.path());
}

/// tmux leaves SIGTTIN and SIGTTOU ignored.
#[test]
fn jobs_work_inside_tmux() {
    if !there_is("tmux") {
        return;
    }
    let home = home();
    fs::write(home.path().join(".bashrc"), "PS1='> '\n").expect("written");
    let tmux = |words: &[&str]| {
        let mut command = Command::new("tmux");
        command.args(["-S", "socket", "-f", "/dev/null"]).args(words).current_dir(home.path());
        command
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .env("XDG_RUNTIME_DIR", CACHES)
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8");
        let output = command.env_remove("TMUX").output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shows = |wanted: &str| {
        until(wanted, SOON, || {
            std::thread::sleep(Duration::from_millis(20));
            tmux(&["capture-pane", "-p"]).contains(wanted).then_some(())
        });
    };
    tmux(&[
        "new-session",
        "-d",
        "-x",
        "100",
        "-y",
        "30",
        &format!("{HOSEPIPE} sh --shell bash --via tmpfile"),
    ]);
    shows("(tmpfile) >");
    tmux(&["send-keys", "sleep 0.7 | { cat; echo thr''ough; }", "Enter"]);
    until("its start", SOON, || {
        processes(home.path()).iter().any(|words| words == "sleep 0.7").then_some(())
    });
    tmux(&["send-keys", "C-z"]);
    shows("Stopped");
    tmux(&["send-keys", "fg", "Enter"]);
    shows("\nthrough");
    tmux(&["send-keys", "cat & sleep 0.1; jobs", "Enter"]);
    shows("Stopped                 cat");
    // What a program finds ignored there, it finds ignored here.
    let ask = "grep SigIgn /proc/self/status >ignored-";
    tmux(&["send-keys", &format!("kill %1; {ask}here"), "Enter"]);
    tmux(&["new-window", "bash"]);
    tmux(&["send-keys", &format!("{ask}there"), "Enter"]);
    let read = |name: &str| {
        let path = home.path().join(name);
        until(name, SOON, || fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')))
    };
    assert_eq!(read("ignored-here"), read("ignored-there"));
    tmux(&["kill-server"]);
    let _ = fs::remove_file(home.path().join("socket"));
    nothing_is_left(home.path());
}

/// Expected: as in a shell of their own, the shell hears of it and hangs up its jobs. Happened: it found the end of its input first, and
/// left them alone.
#[test]
fn a_closed_terminal_ends_the_jobs_in_the_background() {
    let own = ["--norc", "-i"];
    for (via, arguments) in [("pipe", &[][..]), ("tmpfile", &[]), ("tmpfile", &own), ("tmpfile", &own[..1])] {
        let home = home();
        let (outer, inner) = pair();
        let end = || inner.try_clone().expect("a copy");
        let mut command = Command::new("setsid");
        command.args(["--ctty", HOSEPIPE, "sh", "--shell", "bash", "--via", via]).args(arguments);
        command.env("HOME", home.path()).env("TMPDIR", home.path()).env("XDG_RUNTIME_DIR", CACHES);
        command.stdin(end()).stdout(end()).stderr(end());
        let mut child = command.spawn().expect("it starts");
        drop((command, inner));
        rustix::io::write(&outer, b"sleep 1009 | cat &\n").expect("typed");
        let there = |words: &str| processes(home.path()).iter().any(|found| found == words);
        until("the job", SOON, || (there("sleep 1009") && there("cat")).then_some(()));
        drop(outer);
        until("the end", SOON, || child.try_wait().expect("wait"));
        nothing_is_left(home.path());
    }
}

fn nothing_is_left(home: &Path) {
    let began = Instant::now();
    while !processes(home).is_empty() {
        assert!(began.elapsed() < SOON, "left: {:?}", processes(home));
    }
    let entries = fs::read_dir(home).expect("there").flatten();
    let left: Vec<_> =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("hosepipe-")).collect();
    assert!(left.is_empty(), "left: {left:?}");
}
