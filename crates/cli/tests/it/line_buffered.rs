//! Lines that do not come: `top` and `run --stats` see who holds them back, and `--line-buffered` lets them come.

mod seen;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use model::RunRecord;

use crate::common::{Lab, skip, soon, until};

const HOSEPIPE: &str = env!("CARGO_BIN_EXE_hosepipe");

/// A run that is killed, with all that it started, when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The first line of what a command prints, before it ends.
fn first_line(arguments: &[&str], lab: &Lab) -> (String, Running) {
    let mut command = lab.command(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("hosepipe");
    let output = child.stdout.take().expect("a pipe");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line);
        let _ = sender.send(line);
    });
    let line = lines.recv_timeout(soon()).unwrap_or_else(|_| "nothing came".to_owned());
    (line, Running(child))
}

fn has(program: &str) -> bool {
    let has = model::file_on_path(program).is_some();
    if !has {
        skip(&format!("{program} is not installed"));
    }
    has
}

/// A program without a loader that writes with stdio: no library can be preloaded into it.
fn static_program(lab: &Lab) -> bool {
    let source = lab.here("echoes.c");
    let text = "#include <stdio.h>\nint main(void) { int c; while ((c = getchar()) != EOF) putchar(c); return 0; }\n";
    std::fs::write(&source, text).expect("a file");
    let program = lab.here("echoes");
    let made = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).output();
    let made = made.is_ok_and(|made| made.status.success());
    if !made {
        skip("cc -static makes no program here");
    }
    made
}

/// Expected: a line passes programs of every kind while the source still runs.
#[test]
fn the_first_line_comes_before_the_source_ends() {
    let lab = Lab::new();
    let first = |filter: &str, expected: &str| {
        let text = format!("(echo ax1; exec sleep 100) | {filter}");
        let (line, _running) = first_line(&["run", "--line-buffered", &text], &lab);
        assert_eq!(line, format!("{expected}\n"), "{filter}");
    };
    first("grep a | sed s/x/y/ | cut -c 1-2 | tr a b", "by");
    first("(uniq; echo z) | timeout 100 tr a b", "bx1");
    if has("perl") {
        first("perl -pe 's/x/y/'", "ay1");
    }
    if has("python3") {
        first("python3 -c 'import sys\nfor line in sys.stdin: print(line.upper(), end=\"\")'", "AX1");
    }
    if has("mawk") {
        first("mawk '{print $1 \"b\"}'", "ax1b");
    }
    if has("jq") {
        first("jq -R .", "\"ax1\"");
    }
    if static_program(&lab) {
        first("./echoes | ./echoes | cat", "ax1");
    }
}

#[test]
fn other_shells_and_sh_do_so_too() {
    let lab = Lab::new();
    let text = "(echo ax1; sleep 100) | grep a | tr a b";
    for shell in ["dash", "zsh", "fish", "yash"].into_iter().filter(|shell| has(shell)) {
        let text = if shell == "fish" { "sh -c 'echo ax1; exec sleep 100' | grep a | tr a b" } else { text };
        let (line, _running) = first_line(&["run", "--line-buffered", "--shell", shell, text], &lab);
        assert_eq!(line, "bx1\n", "{shell}");
    }
    let (line, _running) = first_line(&["sh", "--line-buffered", "-c", text], &lab);
    assert_eq!(line, "bx1\n");
    let (line, _running) = first_line(&["run", "--via", "socketpair", "--line-buffered", text], &lab);
    assert_eq!(line, "bx1\n");
}

/// Expected: the stages that are named, and no others, have stdbuf's variables; numbers count from the left.
#[test]
fn stages_are_chosen() {
    let lab = Lab::new();
    let mine = "env | grep -c _STDBUF_O";
    let text = format!("{{ cat; {mine}; }} < /dev/null | {{ cat; {mine}; }} | {{ cat; {mine}; }}");
    for (option, expected) in [
        ("--line-buffered", "1\n1\n1\n"),
        ("--line-buffered=2", "0\n1\n0\n"),
        ("--line-buffered=1,3", "1\n0\n1\n"),
        ("--via=pipe", "0\n0\n0\n"),
    ] {
        let output = lab.run(&["run", option, &text]);
        assert_eq!(output.stdout, expected, "{option}");
    }
    let refused = lab.run(&["run", "--line-buffered=0", "ls | cat"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr.contains("numbers of stages"));
}

/// Expected: a number that no stage has is said. Happened: nothing, and the user waited for lines that never came at once.
#[test]
fn stages_that_no_pipeline_has_are_said() {
    let lab = Lab::new();
    for (option, text, absent) in [
        ("--line-buffered=9", "seq 3 | cat", Some("no stage 9: the longest pipeline had 2")),
        ("--line-buffered=2,3,4", "seq 3 | cat", Some("no stage 3,4:")),
        ("--line-buffered=2", "seq 3", Some("no stage 2: the longest pipeline had 1")),
        ("--line-buffered=3", "seq 3 | cat; seq 3 | cat | cat", None),
        ("--line-buffered=2", "seq 3 | while read line; do :; done", None),
    ] {
        for more in [None, Some("--json=r.json")] {
            let output = lab.run(&["run", option].into_iter().chain(more).chain([text]).collect::<Vec<_>>());
            let said = output.stderr.contains("there is no stage");
            assert!(said == absent.is_some(), "{option} {text}: {}", output.stderr);
            assert!(absent.is_none_or(|words| output.stderr.contains(words)), "{}", output.stderr);
        }
    }
}

/// Expected: every byte, in the same order, the same status, and no program that is left.
#[test]
fn bytes_and_statuses_are_those_without() {
    let lab = Lab::new();
    let made = static_program(&lab);
    std::fs::write(lab.here("bytes"), (0..=255u8).cycle().take(70_000).collect::<Vec<u8>>()).expect("a file");
    let mut texts = vec![
        "seq 20000 | grep 7 | sed s/1/2/ | tr 3 4 | cut -c 1-4 | cksum",
        "cat bytes | tr a b | cksum; false | true; echo $?",
        "cat bytes | head -c 999 | cksum; exit 3",
        "seq 9 | (grep 3; exit 7)",
        "yes | tr y x | head -n 3",
        "sh -c 'echo a; echo b >&2' 2>&1 | cat",
        "printf 'a\\r\\nb' | cat | od -c",
    ];
    if made {
        texts.extend([
            "cat bytes | ./echoes | cksum",
            "cat bytes | ./echoes | ./echoes | head -c 5000 | cksum",
            "yes | ./echoes | head -n 2",
            "printf '' | ./echoes | wc -c",
            "printf 'a\\r\\nb\\4\\3c' | ./echoes | od -c",
        ]);
    }
    for text in texts {
        let plain = Command::new("bash").args(["-c", text]).current_dir(lab.here("")).output().expect("bash");
        let ours = lab.run(&["run", "--line-buffered", text]);
        assert_eq!(ours.stdout, String::from_utf8_lossy(&plain.stdout), "{text}");
        assert_eq!(Some(ours.code()), plain.status.code(), "{text}");
    }
}

/// Expected: it is said, once, which way each program went, on standard error and in the record.
#[test]
fn the_way_of_each_stage_is_said() {
    let lab = Lab::new();
    let output = lab.run(&[
        "run",
        "--line-buffered",
        "--json",
        "r.json",
        "for i in 1 2; do seq 9 | grep 7 | cut -c 1; done",
    ]);
    let said = output.stderr;
    assert_eq!(said.matches("line by line: grep: by stdbuf's library").count(), 1, "{said}");
    let record: RunRecord =
        serde_json::from_slice(&std::fs::read(lab.here("r.json")).expect("a record")).expect("JSON");
    let cut = record.stages.iter().find(|stage| stage.command.starts_with("cut")).expect("a stage");
    assert_eq!(cut.line_buffered.as_deref(), Some("by stdbuf's library"));
    if static_program(&lab) {
        let output = lab.run(&["run", "--line-buffered", "seq 3 | ./echoes | cat; seq 3 | ./echoes > file"]);
        let said = output.stderr;
        assert!(said.contains("echoes: through a terminal (pty), as it is linked statically"), "{said}");
        assert!(said.contains("echoes: as it is: it needs a terminal, and its output is no pipe"), "{said}");
    }
}

/// Expected: variables of the user's own stay, with ours behind them.
#[test]
fn the_users_own_variables_stay() {
    let lab = Lab::new();
    let text = "PERL5OPT=-Mstrict LD_PRELOAD= env | grep -a -e PERL5OPT -e LD_PRELOAD";
    let output = lab.run(&["run", "--line-buffered", text]);
    let said = output.stdout;
    assert!(said.contains("PERL5OPT=-Mstrict -Mvars;$|=1\n"), "{said}");
    assert!(said.contains("LD_PRELOAD=/") && !said.contains("/proc/self/fd"), "{said}");
}

/// Expected: `run --stats` says afterwards who held back, and with what option that is cured.
#[test]
fn statistics_name_the_option() {
    let lab = Lab::new();
    let text = "(for i in $(seq 9); do echo line $i; sleep 0.1; done; sleep 1) | grep line | cat";
    let output = lab.run(&["run", "--stats", "--json", "r.json", text]);
    let said = output.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "(stage 2) held its output back: 63 B in its buffer";
    assert!(said.contains(expected) && said.contains("`grep --line-buffered`"), "{said}");
    let record: RunRecord =
        serde_json::from_slice(&std::fs::read(lab.here("r.json")).expect("a record")).expect("JSON");
    let held = record.stages[1].held_back.as_ref().expect("held back");
    assert!(
        held.held_bytes == Some(63) && held.for_ns > Duration::from_millis(500).as_nanos() as u64,
        "{held:?}"
    );
    let cured = lab.run(&["run", "--stats", "--line-buffered", text]);
    let said = cured.stderr;
    assert!(!said.contains("held its output back") && said.contains("by stdbuf's library"), "{said}");
    // Happened: it was said where a later stage needs all its input.
    let late = lab.run(&["run", "--stats", &format!("{text} | tail -n +1 | sort")]).stderr;
    assert!(late.contains("tail -n +1") && !late.contains("held its output back"), "{late}");
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    let lab = Lab::new();
    if !static_program(&lab) {
        return;
    }
    let text = "(echo a; exec sleep 99.125) | ./echoes | ./echoes";
    let (line, mut running) = first_line(&["run", "--line-buffered", text], &lab);
    assert_eq!(line, "a\n");
    running.0.kill().expect("killed");
    running.0.wait().expect("reaped");
    until("the stages have ended", soon(), || lab.processes().is_empty().then_some(()));
}
