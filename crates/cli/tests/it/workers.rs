//! Conformance: every registered worker is given the same jobs, and docs/WORKERS.md is what it is held to.

mod drive;
mod fleet;
mod peers;
mod trial_sizes;

use std::ffi::OsString;
use std::process::{Command, Stdio};

use drive::{drive, drive_without_a_reader};
pub(crate) use fleet::sources_out_of_reach;
use fleet::{Results, fleet, read_lines};
use model::{WorkerStart, Workload, monotonic_ns};
use trial_sizes::{sequence, trial_sizes, xor};
use worker::{Launch, Launcher, Program, TrialSize};

const SMALL: TrialSize = TrialSize { bytes: 1000, block_bytes: 64, warmup_bytes: 24 };

/// More than any pipe holds by default, so that a sender notices that nobody reads.
const LARGE: TrialSize = TrialSize { bytes: 1 << 20, block_bytes: 65536, warmup_bytes: 0 };

/// For messages.
fn name(program: &Program, size: &TrialSize) -> String {
    format!("{} {} in {} after {}", program.end.label(), size.bytes, size.block_bytes, size.warmup_bytes)
}

#[test]
fn send_writes_the_sequence() {
    let results = Results::new();
    for program in fleet() {
        for size in trial_sizes() {
            let name = name(program, &size);
            let (result, began_ns) = (results.fresh(), monotonic_ns());
            let sent = drive(program.end_command("send", &size, &result), b"");
            assert!(sent.status.success(), "{name}: {}: {}", sent.status, sent.stderr);
            let expected = sequence(size.total_bytes());
            assert_eq!(sent.stdout.len(), expected.len(), "{name}: {}", sent.stderr);
            let wrong = sent.stdout.iter().zip(&expected).position(|(found, expected)| found != expected);
            assert_eq!(wrong, None, "{name}: the byte at this position");
            let lines = read_lines(&result, &name);
            assert_eq!(lines.recv, None, "{name}");
            let line = lines.send.unwrap_or_else(|| panic!("{name}: no line"));
            assert_eq!(line.bytes, size.total_bytes(), "{name}");
            let times = [began_ns, line.ready_ns, line.began_ns, monotonic_ns()];
            assert!(times.is_sorted(), "{name}: {times:?}");
        }
    }
}

#[test]
fn recv_counts_and_xors() {
    let results = Results::new();
    for program in fleet() {
        for size in trial_sizes() {
            let name = name(program, &size);
            let input = sequence(size.total_bytes());
            let lines = received(program, &size, &input, true, &results);
            assert_eq!(lines.bytes, size.total_bytes(), "{name}");
            assert_eq!(lines.xor, xor(&input), "{name}");
        }
        // What arrives is what is counted, and not what was expected.
        let mut other = sequence(SMALL.total_bytes());
        other[700] ^= 0x55;
        let line = received(program, &SMALL, &other, true, &results);
        assert_eq!(line.xor, xor(&other), "{}", program.end.label());
    }
}

/// Feeds a receiver and gives its line; `exactly` is whether it was fed what it was told of.
fn received(
    program: &Program,
    size: &TrialSize,
    input: &[u8],
    exactly: bool,
    results: &Results,
) -> worker::RecvLine {
    let name = name(program, size);
    let (result, began_ns) = (results.fresh(), monotonic_ns());
    let driven = drive(program.end_command("recv", size, &result), input);
    if exactly {
        assert!(driven.status.success(), "{name}: {}: {}", driven.status, driven.stderr);
    } else {
        assert_eq!(driven.status.code(), Some(1), "{name}: {}", driven.stderr);
        assert!(!driven.stderr.trim().is_empty(), "{name} says nothing");
    }
    assert!(driven.stdout.is_empty(), "{name} wrote to standard output");
    let lines = read_lines(&result, &name);
    assert_eq!(lines.send, None, "{name}");
    let line = lines.recv.unwrap_or_else(|| panic!("{name}: no line: {}", driven.stderr));
    let times = [began_ns, line.ready_ns, line.ended_ns, monotonic_ns()];
    assert!(times.is_sorted(), "{name}: {times:?}");
    line
}

#[test]
fn the_clock_stops_after_the_last_fold() {
    // The tuned Python takes an integer as long as a block apart at the end: of a long block that is most of its time.
    let size = TrialSize { bytes: 1000, block_bytes: 16 << 20, warmup_bytes: 24 };
    let results = Results::new();
    for program in fleet().iter().filter(|program| program.end.label() == "python:tuned") {
        let line = received(program, &size, &sequence(size.total_bytes()), true, &results);
        let (timed, all) = (line.ended_ns - line.ready_ns, monotonic_ns() - line.ready_ns);
        assert!(timed > all / 2, "{timed} of {all} ns");
    }
}

#[test]
fn a_stream_that_ends_early_or_late_is_counted_and_refused() {
    let results = Results::new();
    for program in fleet() {
        for len in [0, 10, 24, 500, 1023, 1025, 3000] {
            let input = sequence(len);
            let line = received(program, &SMALL, &input, false, &results);
            assert_eq!(line.bytes, len, "{}: the input ended there", program.end.label());
            assert_eq!(line.xor, xor(&input), "{}: {len} bytes", program.end.label());
        }
    }
}

#[test]
fn pair_starts_its_own_receiver() {
    let mut launcher = Launcher::new().expect("a launcher");
    for program in fleet() {
        for size in trial_sizes() {
            let run = launcher.run(&Launch::pair(program, program), &size, size.limit(), &|| false);
            let run = run.unwrap_or_else(|error| panic!("{}: {error:?}", name(program, &size)));
            assert_eq!(run.sample.bytes, size.bytes);
        }
    }
}

#[test]
fn pair_and_pipe_work_across_languages() {
    let mut launcher = Launcher::new().expect("a launcher");
    let size = TrialSize { bytes: 300_000, block_bytes: 65536, warmup_bytes: 4099 };
    let programs = fleet();
    for (index, writer) in programs.iter().enumerate() {
        // A stride that is no divisor: every language meets several others, and each variant both kinds.
        let reader = &programs[(index + 3) % programs.len()];
        let who = format!("{} to {}", writer.end.label(), reader.end.label());
        let run = launcher.run(&Launch::pair(writer, reader), &size, size.limit(), &|| false);
        run.unwrap_or_else(|error| panic!("pair, {who}: {error:?}"));
        let between = Launch { start: WorkerStart::Harness, ..Launch::pair(writer, reader) };
        let run = launcher.run(&between, &size, size.limit(), &|| false);
        let run = run.unwrap_or_else(|error| panic!("pipe, {who}: {error:?}"));
        assert!(run.pipe_bytes.is_some_and(|bytes| bytes >= 4096));
        assert_eq!(run.sample.ends.len(), 2);
    }
}

/// A `pair` whose child is a shell with this script and these arguments.
fn pair_with(
    program: &Program,
    size: &TrialSize,
    script: &str,
    arguments: &[OsString],
    results: &Results,
) -> Command {
    let shell = Program { command: ["sh", "-c", script].map(OsString::from).to_vec(), ..program.clone() };
    let mut command = program.pair_command(Workload::Stream, &shell, size, &results.fresh());
    command.args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn pair_hands_its_childs_arguments_on_as_they_are() {
    let results = Results::new();
    let file = results.folder().join("arguments");
    for program in fleet() {
        // The script is handed `recv BYTES BLOCK WARMUP RESULT` first: $0 to $4.
        let arguments: Vec<OsString> =
            ["a  b", "*", "$HOME", "", "it's \"so\"", "back\\slash", "; exit 9"].map(OsString::from).to_vec();
        let script = "cat >/dev/null; result=$4; shift 4; printf '%s\\n' \"$@\" >\"${result%/*}/arguments\"";
        let driven = drive(pair_with(program, &SMALL, script, &arguments, &results), b"");
        let label = program.end.label();
        assert!(driven.status.success(), "{label}: {}: {}", driven.status, driven.stderr);
        let expected: String = arguments.iter().map(|word| format!("{}\n", word.to_string_lossy())).collect();
        assert_eq!(std::fs::read_to_string(&file).expect("written"), expected, "{label}");
        std::fs::remove_file(&file).expect("removed");
    }
}

#[test]
fn pair_fails_with_its_child() {
    let results = Results::new();
    for program in fleet() {
        for script in ["cat >/dev/null; exit 3", "cat >/dev/null; kill -KILL $$"] {
            let driven = drive(pair_with(program, &SMALL, script, &[], &results), b"");
            assert!(!driven.status.success(), "{}: {script}", program.end.label());
        }
    }
}

#[test]
fn a_sender_whose_receiver_leaves_ends() {
    let results = Results::new();
    for program in fleet() {
        let status = drive_without_a_reader(program.end_command("send", &LARGE, &results.fresh()));
        assert!(!status.success(), "send {}", program.end.label());
        let driven = drive(pair_with(program, &LARGE, "exit 0", &[], &results), b"");
        assert!(!driven.status.success(), "pair {}", program.end.label());
    }
}

#[test]
fn wrong_arguments_are_one_sentence_and_status_2() {
    let results = Results::new();
    for program in fleet() {
        for words in [
            &[][..],
            &["send"],
            &["fling", "1", "1", "0", "RESULT"],
            &["send", "1", "1", "0"],
            &["recv", "1x", "1", "0", "RESULT"],
            &["send", "-1", "1", "0", "RESULT"],
            &["recv", "1", "0", "0", "RESULT"],
            &["send", "1", "1", "", "RESULT"],
            &["pair", "1", "1", "0", "RESULT"],
        ] {
            let result = results.fresh();
            let mut command = Command::new(&program.command[0]);
            command.args(&program.command[1..]);
            command.envs(program.environment.iter().map(|(name, value)| (name, value)));
            for word in words {
                let word = if *word == "RESULT" { result.clone().into_os_string() } else { word.into() };
                command.arg(word);
            }
            let who = format!("{} {words:?}", program.end.label());
            let driven = drive(command, b"");
            assert_eq!(driven.status.code(), Some(2), "{who}: {}", driven.stderr);
            assert!(driven.stdout.is_empty(), "{who} wrote to standard output");
            // A Java announces the options it takes from its environment.
            let lines = driven.stderr.lines().filter(|line| !line.starts_with("Picked up "));
            assert_eq!(lines.count(), 1, "{who} says: {}", driven.stderr);
            assert_eq!(std::fs::read_to_string(&result).expect("readable"), "", "{who}");
        }
    }
}
