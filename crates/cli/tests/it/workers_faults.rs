//! Workers that break the contract are failed rows that say why, and nothing of them is left behind.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use model::{BenchRecord, CaseError, ErrorKind};
use rustix::process::{Pid, Signal, kill_process};
use worker::{Job, Launcher, NoRun, Registry, Silent, WORKERS_VARIABLE, Workshop};

/// The registry of awkward workers.
fn awkward() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/workers/awkward")
}

fn hosepipe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hosepipe"));
    command.args(arguments).env(WORKERS_VARIABLE, awkward());
    command
}

fn run(arguments: &[&str]) -> Output {
    hosepipe(arguments).output().expect("hosepipe runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What became of these workers, in the order named.
fn errors(workers: &str) -> Vec<CaseError> {
    let output = run(&["bench", "--workers", workers, "--bytes", "1MiB", "--trials", "1", "--json", "-"]);
    let record: BenchRecord = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    assert!(record.cases.iter().all(|case| case.samples.is_empty()));
    record.cases.into_iter().map(|case| case.error.expect("an error")).collect()
}

#[test]
fn each_fault_is_a_row_that_says_what_happened_and_what_the_worker_said() {
    let expected = [
        ("crashes", ErrorKind::Died, "was ended by SIGSEGV"),
        ("leaves", ErrorKind::Died, "exited with 3"),
        ("silent", ErrorKind::Corrupt, "left no `recv` line"),
        ("rubbish", ErrorKind::Corrupt, "wrote a result line that is none: `all is well`"),
        ("miscounts", ErrorKind::Corrupt, "says that it received 1310719 of 1310720 bytes"),
        ("wrong-xor", ErrorKind::Corrupt, "their XOR is 77, not 0"),
        ("other-clock", ErrorKind::Corrupt, "not of CLOCK_MONOTONIC"),
    ];
    let workers: Vec<String> = expected.iter().map(|(name, ..)| format!("awkward:{name}")).collect();
    let errors = errors(&workers.join(","));
    for ((name, kind, message), error) in expected.iter().zip(&errors) {
        assert_eq!(error.kind, *kind, "{name}: {}", error.message);
        assert!(error.message.contains(message), "{name}: {}", error.message);
        assert!(!error.expected, "{name} went wrong while measuring");
        if *name != "other-clock" {
            assert!(error.message.ends_with(&format!("it said: this worker {name}")), "{}", error.message);
        }
    }
}

#[test]
fn of_a_flood_of_words_the_end_is_kept() {
    let error = errors("awkward:flood").remove(0);
    assert!(error.message.contains("exited with 4; it said: […]xxx"), "{}", error.message);
    assert!(error.message.len() < 3000);
}

#[test]
fn a_failed_row_makes_the_status_1_and_does_not_end_the_run() {
    let output =
        run(&["bench", "--workers", "awkward:crashes,awkward:leaves", "--bytes", "1MiB", "--trials", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let table = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("SIGSEGV") && table.contains("exited with 3"), "{table}");
}

#[test]
fn a_missing_toolchain_is_a_row_with_what_brings_it() {
    let error = errors("absent").remove(0);
    assert_eq!((error.kind, error.expected), (ErrorKind::Unavailable, true));
    assert_eq!(error.message, "no `hosepipe-no-such-compiler` here");
    assert_eq!(error.remedy.as_deref(), Some("pip install absent"));
}

#[test]
fn a_build_error_shows_the_compilers_words() {
    let words = "worker.broken:3:14: error: expected a semicolon";
    let error = errors("broken").remove(0);
    assert!(error.message.contains("exited with 1") && error.message.contains(words), "{}", error.message);

    let output = run(&["workers", "--build"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("failed") && table.contains("missing") && table.contains("ready"), "{table}");
    // Looking is no failure.
    let output = run(&["workers", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let entries: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(entries[1]["state"], "not-built");
    assert_eq!(entries[2]["state"], "missing");
    assert_eq!(entries[2]["remedy"], "pip install absent");
}

#[test]
fn wrong_command_lines_name_what_there_is() {
    for arguments in [&["workers", "akward"][..], &["bench", "--workers", "akward"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("did you mean `awkward`?"), "{}", text(&output.stderr));
    }
    let output = run(&["workers", "awkward:slowly"]);
    assert_eq!(output.status.code(), Some(2));
    let output =
        hosepipe(&["workers"]).env(WORKERS_VARIABLE, "/nonexistent").output().expect("hosepipe runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nonexistent: workers.toml: ENOENT"), "{}", text(&output.stderr));
}

#[test]
fn a_program_of_ones_own_is_a_worker_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("mine");
    let script = format!("#!/bin/sh\nexec sh '{}/awkward/worker.sh' leaves \"$@\"\n", awkward().display());
    write_program(&program, &script);
    let name = program.to_str().expect("text");
    let output = run(&["bench", "--worker", name, "--bytes", "1MiB", "--trials", "1", "--json", "-"]);
    let record: BenchRecord = serde_json::from_slice(&output.stdout).expect("a record");
    let error = record.cases[0].error.as_ref().expect("an error");
    assert_eq!(error.message, format!("{name} exited with 3; it said: this worker leaves"));
    let output = run(&["bench", "--worker", "/nonexistent", "--bytes", "1MiB", "--json", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a program that is not there"));
}

/// In another process: a descriptor of ours that is open for writing while a test beside this one forks would make
/// the program ETXTBSY.
fn write_program(path: &Path, script: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    shell.stdin.take().expect("piped").write_all(script.as_bytes()).expect("written");
    assert!(shell.wait().expect("waited for").success());
}

#[test]
fn a_worker_that_hangs_is_ended_at_its_limit() {
    let registry = Registry::open_folder(&awkward()).expect("a registry");
    let folder = tempfile::tempdir().expect("a folder");
    let workshop = Workshop::open_in(registry, folder.path().to_owned()).expect("a workshop");
    let choices = workshop.registry().select("awkward:hangs").expect("registered");
    let workers = workshop.workers(&choices, &mut Silent, &|| false);
    let program = workers[0].program.as_ref().expect("built");
    let job = Job { bytes: 1000, block_bytes: 10, warmup_bytes: 0 };
    let mut launcher = Launcher::new().expect("a launcher");
    let began = Instant::now();
    let limit = Duration::from_millis(300);
    let NoRun::Failed(failure) = launcher.run_pair(program, program, &job, limit, &|| false).unwrap_err()
    else {
        panic!("nobody stopped it");
    };
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(failure.kind, ErrorKind::Hung);
    assert_eq!(failure.message, "awkward:hangs took longer than 300ms");
    assert_eq!(failure.said, "this worker hangs");
    let stopped = launcher.run_between(program, program, &job, job.limit(), &|| true);
    assert_eq!(stopped, Err(NoRun::Stopped));
}

/// A hosepipe with a hanging worker, its folder for temporary files.
fn hanging() -> (std::process::Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let child = hosepipe(&["bench", "--workers", "awkward:hangs", "--bytes", "1MiB"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("hosepipe starts");
    // The worker, the shell that it starts, both marked with the path of the result.
    wait_until("the worker hangs", || marked_by(folder.path()) >= 2);
    (child, folder)
}

/// Processes that have this path, or one that begins like it, on their command line.
fn marked_by(path: &Path) -> usize {
    let mark = path.to_str().expect("text");
    let processes = std::fs::read_dir("/proc").expect("procfs").flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal_to(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("a folder").next().is_none()
}

#[test]
fn ctrl_c_ends_the_worker_and_all_it_started() {
    let (mut child, folder) = hanging();
    signal_to(&child, Signal::INT);
    assert_eq!(child.wait().expect("waited for").code(), Some(130));
    assert_eq!(marked_by(folder.path()), 0);
    assert!(is_empty(folder.path()));
}

#[test]
fn nothing_is_left_behind_when_hosepipe_is_killed() {
    let (mut child, folder) = hanging();
    signal_to(&child, Signal::KILL);
    child.wait().expect("waited for");
    wait_until("no process is left", || marked_by(folder.path()) == 0);
    wait_until("no file is left", || is_empty(folder.path()));
}

#[test]
fn a_build_that_hangs_ends_with_hosepipe_however_that_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let home = tempfile::tempdir().expect("a folder");
        // Outside the cargo target folder, as if it were installed.
        let installed = home.path().join("installed");
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_hosepipe")).arg(&installed).status();
        assert!(copied.expect("cp runs").success());
        let mut child = Command::new(&installed)
            .args(["workers", "--build"])
            .env(WORKERS_VARIABLE, Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/workers/slow"))
            .env("XDG_CACHE_HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hosepipe starts");
        let folder = home.path().join("hosepipe/workers");
        wait_until("the compiler hangs", || marked_by(&folder) >= 2);
        signal_to(&child, signal);
        let status = child.wait().expect("waited for");
        assert_eq!(status.code(), (signal == Signal::INT).then_some(130));
        wait_until("no process is left", || marked_by(&folder) == 0);
        let left = std::fs::read_dir(&folder).expect("a folder").flatten();
        let unfinished = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".making-"));
        // What SIGKILL leaves is removed by a later build.
        assert_eq!(unfinished.count(), usize::from(signal == Signal::KILL));
    }
}
