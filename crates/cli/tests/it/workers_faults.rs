//! Workers that break the contract are failed rows that say why, and nothing of them is left behind.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use model::{BenchRecord, CaseError, ErrorKind, NoSample, Silent, WorkerStart};
use rustix::process::{Pid, Signal, kill_process};
use worker::{BuildCache, Launch, Launcher, Registry, TrialSize, WORKERS_VARIABLE};

use crate::common::CACHES;

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
    errors_over(workers, "1MiB")
}

fn errors_over(workers: &str, bytes: &str) -> Vec<CaseError> {
    let output = run(&["bench", "--workers", workers, "--bytes", bytes, "--trials", "1", "--json", "-"]);
    let record: BenchRecord = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let cases = record.cases.into_iter().filter(|case| case.worker.is_some());
    cases
        .map(|case| {
            assert!(case.samples.is_empty());
            case.error.expect("an error")
        })
        .collect()
}

#[test]
fn each_fault_is_a_row_that_says_what_happened_and_what_the_worker_said() {
    let expected = [
        ("crashes", ErrorKind::Died, "was ended by SIGSEGV"),
        ("leaves", ErrorKind::Died, "exited with 3"),
        ("rubbish", ErrorKind::Corrupt, "wrote a line that is not a result line: `all is well`"),
        ("miscounts", ErrorKind::Corrupt, "says that it received 1310"),
        ("wrong-xor", ErrorKind::Corrupt, "their XOR is 77, not "),
        ("other-clock", ErrorKind::Corrupt, "not of CLOCK_MONOTONIC"),
        // What they leave in the place of the result disturbs no later trial.
        ("fifo", ErrorKind::Corrupt, "left no `recv` line"),
        ("folder", ErrorKind::Corrupt, "left no `recv` line"),
        ("silent", ErrorKind::Corrupt, "left no `recv` line"),
    ];
    let workers: Vec<String> = expected.iter().map(|(name, ..)| format!("awkward:{name}")).collect();
    let errors = errors(&workers.join(","));
    assert_eq!(errors.len(), expected.len());
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
fn a_worker_that_lies_is_a_row_that_says_what_gave_it_away() {
    // Beside a memory copy that cannot be as fast, and one that cannot cost as little.
    let expected = [
        ("zeros", "1MiB", "received other bytes than were sent: their XOR is 0, not "),
        ("never-xors", "1MiB", "received other bytes than were sent: their XOR is 0, not "),
        ("moves-nothing", "1MiB", "received other bytes than were sent: their XOR is 0, not "),
        (
            "guesses",
            "1MiB",
            "bytes in 0.0ns: a memory copy of as many bytes, which is less work, takes at least ",
        ),
        (
            "guesses-slowly",
            "8GiB",
            "bytes: a memory copy of as many bytes, which is less work, takes at least ",
        ),
    ];
    for (name, bytes, message) in expected {
        let error = errors_over(&format!("awkward:{name}"), bytes).remove(0);
        assert_eq!(error.kind, ErrorKind::Corrupt, "{name}: {}", error.message);
        assert!(error.message.contains(message), "{name}: {}", error.message);
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
    // One that is named is wanted; looking is no failure.
    assert_eq!(run(&["workers", "--build", "absent"]).status.code(), Some(1));
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
    assert!(text(&output.stderr).contains("there is no such program"));
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
    let cache = BuildCache::open_in(&registry, folder.path().to_owned()).expect("a build cache");
    let choices = registry.select("awkward:hangs,awkward:hides").expect("registered");
    for worker in cache.workers(&choices, &mut Silent, &|| false) {
        let program = worker.program.expect("built");
        let name = program.end.label();
        let size = TrialSize { bytes: 1000, block_bytes: 10, warmup_bytes: 0 };
        let mut launcher = Launcher::new().expect("a launcher");
        let began = Instant::now();
        let limit = Duration::from_millis(300);
        let pair = Launch::pair(&program, &program);
        let NoSample::Failed(failure) = launcher.run(&pair, &size, limit, &|| false).unwrap_err() else {
            panic!("nobody stopped it");
        };
        assert!(began.elapsed() < Duration::from_secs(10), "{name}");
        assert_eq!(failure.kind, ErrorKind::Hung);
        let said = format!("this worker {}", name.trim_start_matches("awkward:"));
        assert_eq!(failure.message, format!("{name} took longer than 300ms; it said: {said}"));
        assert_eq!(marked_by(launcher.folder.path()), 0, "{name} left a process behind");
        let between = Launch { start: WorkerStart::Harness, ..pair };
        let stopped = launcher.run(&between, &size, size.limit(), &|| true);
        assert_eq!(stopped, Err(NoSample::Stopped));
    }
}

/// A hosepipe with a worker that hangs in this way, its folder for temporary files.
fn hanging(how: &str) -> (std::process::Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let child = hosepipe(&["bench", "--workers", &format!("awkward:{how}"), "--bytes", "1MiB"])
        .env("TMPDIR", folder.path())
        .env("XDG_RUNTIME_DIR", CACHES)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("hosepipe starts");
    // The worker, the shells that it starts, all marked with the path of the result.
    wait_until("the worker hangs", || marked_by(folder.path()) >= if how == "hides" { 3 } else { 2 });
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
fn a_signal_ends_the_worker_and_all_it_started() {
    for (how, signal, code) in
        [("hangs", Signal::INT, 130), ("hides", Signal::INT, 130), ("hides", Signal::TERM, 143)]
    {
        let (mut child, folder) = hanging(how);
        let began = Instant::now();
        signal_to(&child, signal);
        assert_eq!(child.wait().expect("waited for").code(), Some(code), "{how}");
        assert!(began.elapsed() < Duration::from_secs(10), "{how}");
        assert_eq!(marked_by(folder.path()), 0, "{how}");
        assert!(is_empty(folder.path()), "{how}");
    }
}

#[test]
fn nothing_is_left_behind_when_hosepipe_is_killed() {
    for how in ["hangs", "hides"] {
        let (mut child, folder) = hanging(how);
        signal_to(&child, Signal::KILL);
        child.wait().expect("waited for");
        wait_until("no process is left", || marked_by(folder.path()) == 0);
        wait_until("no file is left", || is_empty(folder.path()));
    }
}

/// A copy of hosepipe outside the cargo target folder, as if it were installed, and a folder for it.
fn installed() -> (PathBuf, tempfile::TempDir) {
    let home = tempfile::tempdir().expect("a folder");
    let program = home.path().join("installed");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_hosepipe")).arg(&program).status();
    assert!(copied.expect("cp runs").success());
    (program, home)
}

#[test]
fn a_build_that_hangs_ends_with_hosepipe_however_that_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let (program, home) = installed();
        let temporary = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(&program)
            .args(["workers", "--build"])
            .env(WORKERS_VARIABLE, Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/workers/slow"))
            .env("XDG_CACHE_HOME", home.path())
            .env("TMPDIR", temporary.path())
            .env("XDG_RUNTIME_DIR", CACHES)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("hosepipe starts");
        let folder = home.path().join("hosepipe/workers");
        wait_until("the compiler hangs", || marked_by(&folder) >= 3);
        signal_to(&child, signal);
        let status = child.wait().expect("waited for");
        assert_eq!(status.code(), (signal == Signal::INT).then_some(130));
        wait_until("no process is left", || marked_by(&folder) == 0);
        let left = std::fs::read_dir(&folder).expect("a folder").flatten();
        let unfinished = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".making-"));
        // What SIGKILL leaves is removed by a later build.
        assert_eq!(unfinished.count(), usize::from(signal == Signal::KILL));
        assert!(is_empty(temporary.path()), "the compiler's own files are gone, or with the rest");
    }
}

#[test]
fn a_built_worker_that_another_user_put_there_is_not_run() {
    let (program, lab) = installed();
    let sources = lab.path().join("sources");
    std::fs::create_dir_all(sources.join("x")).expect("made");
    write_program(&sources.join("x/worker"), "#!/bin/sh\necho genuine >&2; exit 3\n");
    let registry = r#"
        [[language]]
        name = "X"
        key = "x"
        folder = "x"
        package = "x"
        probe = ["sh", "-c", "echo 1.0"]
        build = ["cp", "{src}/worker", "{out}/worker"]
        [[language.variant]]
        name = "idiomatic"
        run = ["{out}/worker"]
    "#;
    std::fs::write(sources.join("workers.toml"), registry).expect("written");
    // A folder for the temporary files of all users, and no home.
    let temporary = lab.path().join("tmp");
    std::fs::create_dir(&temporary).expect("made");
    std::fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).expect("chmod");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env_remove("HOME").env_remove("XDG_CACHE_HOME");
        command.env("XDG_RUNTIME_DIR", CACHES);
        let output = command.env("TMPDIR", &temporary).env(WORKERS_VARIABLE, &sources).output();
        output.expect("hosepipe runs")
    };
    let measured = || {
        let output = run(&["bench", "--workers", "x", "--bytes", "1MiB", "--trials", "1", "--json", "-"]);
        let record: BenchRecord = serde_json::from_slice(&output.stdout).ok()?;
        record.cases[0].error.clone().map(|error| error.message)
    };
    let genuine = Some("x:idiomatic exited with 3; it said: genuine".to_owned());
    assert_eq!(measured(), genuine);

    let entries = run(&["workers", "--json"]).stdout;
    let entries: serde_json::Value = serde_json::from_slice(&entries).expect("JSON");
    let folder = PathBuf::from(entries[0]["folder"].as_str().expect("a folder"));
    assert!(folder.starts_with(&temporary), "{}", folder.display());
    let plant = || write_program(&folder.join("out/worker"), "#!/bin/sh\necho planted >&2; exit 3\n");
    plant();
    std::fs::set_permissions(folder.join("out"), Permissions::from_mode(0o777)).expect("chmod");
    assert_eq!(measured(), genuine, "what others could have changed is built again");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    plant();
    chown_all(&folder);
    assert_eq!(measured(), genuine, "what others have made is built again");
    chown_all(&std::fs::read_dir(&temporary).expect("a folder").next().expect("ours").expect("there").path());
    assert_eq!(measured(), None);
    let said = text(&run(&["bench", "--workers", "x"]).stderr);
    assert!(said.contains("belongs to user 65534") && said.contains("set XDG_CACHE_HOME"), "{said}");
}

fn chown_all(folder: &Path) {
    let status = Command::new("chown").args(["-R", "65534"]).arg(folder).status();
    assert!(status.expect("chown runs").success());
}
