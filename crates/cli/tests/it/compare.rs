//! `hosepipe compare` as a user meets it: every link in turns, figures that fit together, outputs compared.

use std::fs;
use std::time::Duration;

use crate::common::{Done, Lab, promptly, signal, soon, until};
use model::{CompareRecord, CompareResult};
use rustix::process::Signal;

fn compare(lab: &Lab, args: &[&str]) -> Done {
    lab.run(&[&["compare"], args].concat())
}

/// Runs a comparison whose record goes to standard output.
fn record(lab: &Lab, args: &[&str], status: i32) -> CompareRecord {
    let done = compare(lab, &[&["--json", "-"], args].concat()).expect_code(status);
    read(&done.stdout)
}

fn read(text: &str) -> CompareRecord {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no record ({error}): {text}"))
}

fn vias(record: &CompareRecord) -> Vec<&str> {
    record.results.iter().map(|result| result.via.as_str()).collect()
}

/// The figures of a result that was measured in full.
fn assert_measured(result: &CompareResult, trials: usize) {
    assert_eq!(result.times_s.len(), trials, "{result:?}");
    assert_eq!(result.error, None, "{result:?}");
    let figure = |value: Option<f64>| value.unwrap_or_else(|| panic!("no figure: {result:?}"));
    let mean = result.times_s.iter().sum::<f64>() / trials as f64;
    assert!((figure(result.mean_s) - mean).abs() < 1e-9, "{result:?}");
    let shortest = result.times_s.iter().copied().fold(f64::INFINITY, f64::min);
    let longest = result.times_s.iter().copied().fold(0.0, f64::max);
    let (low, median, high) = (figure(result.low_s), figure(result.median_s), figure(result.high_s));
    assert!(shortest <= low && low <= median && median <= high && high <= longest, "{result:?}");
    assert!(figure(result.stddev_s) >= 0.0 && shortest > 0.0);
}

#[test]
fn every_link_gives_the_same_output_in_turns() {
    let lab = Lab::new();
    let via = "pipe,fifo,socketpair,unix-stream,tcp,tmpfile,file,file:sync,pty,tmpfile:order=sequential,bash";
    let record = record(&lab, &["--via", via, "--trials", "3", "seq 5000 | sort -r | head -3"], 0);
    assert_eq!(vias(&record), via.split(',').collect::<Vec<_>>());
    assert!(!record.interrupted);
    assert_eq!((record.trials, record.warmup, record.head.schema.as_str()), (3, 1, "hosepipe/1"));
    for result in &record.results {
        assert_measured(result, 3);
        assert_eq!(result.equal, Some(true), "{result:?}");
        assert_eq!((result.output_bytes, result.status), (12, Some(0)), "{result:?}");
        assert_eq!(result.output_hash, record.results[0].output_hash);
        assert!(result.times_first.is_some() && result.times_shell.is_some(), "{result:?}");
        let stores = result.via.contains("file");
        assert_eq!(result.stored_bytes.is_some(), stores, "{result:?}");
    }
    let first = record.results[0].times_first.expect("a ratio");
    assert!((first.median - 1.0).abs() < 1e-9, "the first is its own measure: {first:?}");
}

/// Expected: both times are of a whole program, from its start to its end.
/// Happened: bash paid for its start, and a run over a link, within `compare` itself, for none: `true | true` was 115
/// times as fast as in bash.
#[test]
fn a_trial_is_a_program_of_its_own_over_a_link_as_in_bash() {
    let lab = Lab::new();
    let text = "echo r >> log; true | true";
    let record = record(&lab, &["--via", "pipe,bash", "--trials", "5", text], 0);
    let median = |index: usize| record.results[index].median_s.expect("a median");
    let ratio = median(0) / median(1);
    assert!((0.1..10.0).contains(&ratio), "{record:?}");
    let log = fs::read_to_string(lab.here("log")).expect("a log");
    assert_eq!(log.lines().count(), 12, "{log}");
    let args = ["--via", "pipe", "--trials", "3", "--warmup", "0", "echo $$ >> pids; true | true"];
    compare(&lab, &args).expect_code(0);
    let pids = fs::read_to_string(lab.here("pids")).expect("their numbers");
    let pids: std::collections::BTreeSet<&str> = pids.lines().collect();
    assert_eq!(pids.len(), 3, "each is a shell of its own");
}

#[test]
fn what_links_store_is_counted() {
    let lab = Lab::new();
    let args = ["--via", "pipe,tmpfile,file", "--trials", "1", "--warmup", "0"];
    let record = record(&lab, &[&args[..], &["head -c 100000 /dev/zero | cat | wc -c"]].concat(), 0);
    let stored: Vec<Option<u64>> = record.results.iter().map(|result| result.stored_bytes).collect();
    assert_eq!(stored, [None, Some(200_000), Some(200_000)]);
}

#[test]
fn the_table_has_a_row_for_each_link_and_a_section_for_each_pipeline() {
    let lab = Lab::new();
    let texts = ["seq 10 | wc -l", "true | true"];
    let done =
        compare(&lab, &["--via", "pipe,tmpfile,bash", "--trials", "2", texts[0], texts[1]]).expect_code(0);
    for text in texts {
        assert_eq!(done.stdout.lines().filter(|line| *line == text).count(), 1, "{}", done.stdout);
    }
    for via in ["pipe", "tmpfile", "bash"] {
        let rows = done.stdout.lines().filter(|line| line.trim_start().starts_with(&format!("{via} ")));
        assert_eq!(rows.filter(|row| row.contains("same")).count(), 2, "{via}:\n{}", done.stdout);
    }
    for heading in ["mean ± sd", "median", "× first", "× bash", "stored", "output"] {
        assert!(done.stdout.contains(heading), "{heading}");
    }
    assert!(!done.stdout.contains("DIFFERS") && done.stderr.is_empty(), "{}", done.stderr);
}

#[test]
fn outputs_that_differ_are_found() {
    let lab = Lab::new();
    let args = ["--via", "pipe,bash", "--trials", "4", "echo $RANDOM$RANDOM$RANDOM | cat"];
    assert!(record(&lab, &args, 1).results.iter().any(|result| result.equal == Some(false)));
    let done = compare(&lab, &args).expect_code(1);
    assert!(done.stdout.contains("DIFFERS"), "{}", done.stdout);
    // The same bytes with another status are another outcome; which is what a socket makes of SIGPIPE, for a writer that
    // waits in write(2) when its reader goes.
    let text = "yes | { sleep 0.1; head -1; }; exit ${PIPESTATUS[0]}";
    let args = ["--via", "pipe,socketpair,bash", "--trials", "1", text];
    let equal: Vec<Option<bool>> = record(&lab, &args, 1).results.iter().map(|result| result.equal).collect();
    assert_eq!(equal, [Some(true), Some(false), Some(true)]);
}

#[test]
fn a_pipeline_that_fails_everywhere_alike_is_no_difference() {
    let lab = Lab::new();
    let record = record(&lab, &["--via", "pipe,bash", "--trials", "2", "seq 3 | grep 7"], 0);
    for result in &record.results {
        assert!(
            result.equal == Some(true) && result.status == Some(1) && result.output_bytes == 0,
            "{result:?}"
        );
    }
}

#[test]
fn what_a_text_sets_does_not_last_until_the_next_run() {
    let lab = Lab::new();
    let text = "pwd; umask; echo ${x-unset}; x=5; umask 0; cd /; pwd | cat";
    for result in record(&lab, &["--via", "pipe,tmpfile,bash", "--trials", "2", text], 0).results {
        assert_eq!(result.equal, Some(true), "{result:?}");
    }
}

#[test]
fn formats_go_where_they_were_sent() {
    let lab = Lab::new();
    let args =
        ["--via", "pipe,file:sync", "--trials", "2", "--json", "r.json", "--csv", "r.csv", "--md", "r.md"];
    let done = compare(&lab, &[&args[..], &["seq 3 | cat"]].concat()).expect_code(0);
    assert!(done.stdout.contains("mean ± sd"), "the table as well: {}", done.stdout);
    let json = read(&fs::read_to_string(lab.here("r.json")).expect("the record"));
    let csv = fs::read_to_string(lab.here("r.csv")).expect("the rows");
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].starts_with("pipeline,via,trials,mean_s,stddev_s,median_s"), "{csv}");
    assert_eq!(rows.len(), 3, "{csv}");
    for (row, result) in rows[1..].iter().zip(&json.results) {
        assert!(row.starts_with(&format!("seq 3 | cat,{},2,", result.via)), "{row}");
        assert!(row.contains(&format!("{:.6}", result.median_s.expect("a median"))), "{row}");
    }
    let md = fs::read_to_string(lab.here("r.md")).expect("the table");
    assert!(
        md.contains("### `seq 3 | cat`") && md.contains("| pipe |") && md.contains("| file:sync |"),
        "{md}"
    );

    let csv = compare(&lab, &["--via", "bash", "--trials", "1", "--csv", "-", "true"]).expect_code(0);
    assert!(csv.stdout.starts_with("pipeline,via,"), "no table beside it: {}", csv.stdout);
    let refused = compare(&lab, &["--json", "-", "--csv", "-", "touch ran"]).expect_code(2);
    assert!(refused.stderr.contains("cannot share standard output"), "{}", refused.stderr);
    assert!(!lab.here("ran").exists());
}

/// Expected: a row is called after what it ran.
/// Happened: `--shell dash` ran dash in a row and a column called bash.
#[test]
fn the_shell_alone_is_called_by_its_name() {
    let lab = Lab::new();
    let args = [
        "compare",
        "--shell",
        "dash",
        "--via",
        "pipe,shell",
        "--trials",
        "1",
        "--warmup",
        "0",
        "seq 3 | tail -1",
    ];
    let done = lab.run(&args).expect_code(0);
    assert!(done.stdout.contains("× dash") && !done.stdout.contains("bash"), "{}", done.stdout);
    let args = ["compare", "--shell", "dash", "--via", "pipe,bash", "true"];
    let refused = lab.run(&args).expect_code(2);
    assert!(refused.stderr.contains("`bash`"), "{}", refused.stderr);
}

#[test]
fn bash_alone_can_be_measured() {
    let lab = Lab::new();
    let record = record(&lab, &["--via", "bash", "--warmup", "0", "--trials", "2", "seq 3 | tail -1"], 0);
    assert_eq!((vias(&record), record.warmup), (vec!["bash"], 0));
    assert_measured(&record.results[0], 2);
}

/// Happened: five links were compared for `sleep 0.1`, which has nothing to put one into.
#[test]
fn a_command_without_a_pipe_is_timed_in_the_shell_alone() {
    let lab = Lab::new();
    let args = ["--trials", "1", "--json", "-", "false || true"];
    let done = compare(&lab, &args).expect_code(0);
    assert_eq!(vias(&read(&done.stdout)), ["bash"]);
    assert!(done.stderr.contains("There is no `|`"), "{}", done.stderr);
}

#[test]
fn runs_are_as_many_as_were_asked_for_and_each_is_prepared() {
    let lab = Lab::new();
    let args = ["--via", "pipe,bash", "--warmup", "2", "--trials", "3", "--prepare", "echo p >> log"];
    compare(&lab, &[&args[..], &["echo r >> log"]].concat()).expect_code(0);
    assert_eq!(fs::read_to_string(lab.here("log")).expect("a log"), "p\nr\n".repeat(2 * (2 + 3)));
    fs::remove_file(lab.here("log")).expect("the log");
    compare(&lab, &["--via", "pipe", "--warmup", "0", "--trials", "1", "echo r >> log"]).expect_code(0);
    assert_eq!(fs::read_to_string(lab.here("log")).expect("a log"), "r\n");
}

/// Expected: one timed run of each, however short the time is. Happened: the warm-up took all of it, and nothing was timed.
#[test]
fn a_short_time_leaves_one_run_of_each() {
    let lab = Lab::new();
    let record = record(&lab, &["--via", "pipe,bash", "--time", "1ms", "seq 3 | tail -1"], 0);
    for result in &record.results {
        assert_measured(result, 1);
    }
}

#[test]
fn a_preparation_that_fails_ends_it_with_a_sentence() {
    let lab = Lab::new();
    let done =
        compare(&lab, &["--via", "pipe", "--trials", "2", "--prepare", "exit 3", "touch ran"]).expect_code(2);
    assert!(done.stderr.contains("exit 3") && done.stderr.contains("status: 3"), "{}", done.stderr);
    assert!(!lab.here("ran").exists());
}

#[test]
fn options_of_a_link_stay_with_it() {
    let lab = Lab::new();
    let via = "pipe:size=4096,file:sync,order=sequential,tcp:nodelay,sndbuf=64k,bash";
    let record = record(&lab, &["--via", via, "--trials", "1", "--warmup", "0", "seq 100 | cat"], 0);
    let expected = ["pipe:size=4096", "file:sync,order=sequential", "tcp:nodelay,sndbuf=64k", "bash"];
    assert_eq!(vias(&record), expected);
}

#[test]
fn what_is_typed_wrongly_is_refused_before_anything_runs() {
    for (args, words) in [
        (&["--via", "pipe,foo", "touch ran"][..], &["unknown link `foo`"][..]),
        (&["--via", "pipe,shm-ring", "touch ran"], &["cannot connect two programs", "tmpfile"]),
        (&["--via", "pipe,,tcp", "touch ran"], &["names no mechanism"]),
        (&["--via", "", "touch ran"], &["names no mechanism"]),
        (&["--trials", "0", "touch ran"], &["--trials"]),
        (&["--trials", "many", "touch ran"], &["many"]),
        (&["--warmup", "-1", "touch ran"], &["-1"]),
        (&["--bogus", "touch ran"], &["--bogus"]),
        (&["--shell", "nosuchshell", "touch ran"], &["nosuchshell"]),
        (&["--json", "/nonexistent/r", "touch ran"], &["/nonexistent/r", "ENOENT"]),
        (&["touch ran", "echo a | | cat"], &["syntax error", "syntax error near"]),
        (&["touch ran", ""], &["empty"]),
        (&[], &["PIPELINE"]),
    ] {
        let lab = Lab::new();
        let done = compare(&lab, args).expect_code(2);
        assert_eq!(done.stdout, "", "{args:?}");
        for word in words {
            assert!(done.stderr.contains(word), "{args:?}: no `{word}` in: {}", done.stderr);
        }
        assert!(!lab.here("ran").exists(), "{args:?}");
    }
}

#[test]
fn an_interruption_keeps_what_was_finished() {
    for (sent, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let lab = Lab::new();
        let text = "echo r >> log; sleep 0.05 | cat";
        let args = ["compare", "--via", "pipe,tmpfile", "--trials", "100000", "--json", "r.json", text];
        let mut command = lab.wrapped(&["env", "--default-signal"], &args);
        command.env("COLUMNS", "200");
        let running = lab.start(command);
        until("some runs", soon(), || {
            let runs = fs::read_to_string(lab.here("log")).unwrap_or_default().lines().count();
            (runs > 8).then_some(())
        });
        signal(running.pid(), sent);
        let done = running.wait_within(promptly()).expect_code(status);
        let record = read(&fs::read_to_string(lab.here("r.json")).expect("the record was saved"));
        assert!(record.interrupted);
        for result in &record.results {
            assert!(!result.times_s.is_empty() && result.median_s.is_some(), "{result:?}");
            assert!(result.error.is_none() && result.equal == Some(true), "{result:?}");
            assert!(result.times_s.iter().all(|time| *time > 0.04), "only whole runs count: {result:?}");
        }
        assert!(done.stdout.contains("Interrupted"), "{}", done.stdout);
        // Expected: a log shows how long it takes. Happened: nothing for twelve minutes.
        assert!(done.stderr.starts_with("The first run took "), "{}", done.stderr);
    }
}

#[test]
fn a_daemon_that_holds_the_output_does_not_hold_up_the_comparison() {
    let lab = Lab::new();
    let args = ["compare", "--via", "pipe,bash", "--trials", "2", "--warmup", "0", "(sleep 4 &) ; echo x"];
    let mut running = lab.start(lab.command(&args));
    let done = running.end_within(soon()).expect_code(0);
    assert!(done.elapsed < Duration::from_secs(3), "{:?}", done.elapsed);
    for (pid, _) in lab.processes() {
        signal(pid, Signal::KILL);
    }
}

#[test]
fn complaints_are_shown_once() {
    let lab = Lab::new();
    let done = compare(&lab, &["--via", "pipe", "--trials", "5", "ls /nonexistent | cat"]).expect_code(0);
    assert_eq!(done.stderr.matches("/nonexistent").count(), 1, "{}", done.stderr);
}

/// Expected: over a plain pipe the time that is compared holds no question to the process that serves links. Happened: the library asked it
/// for every pipe.
#[test]
fn a_plain_pipe_is_made_without_the_server() {
    let lab = Lab::new();
    // While it is stopped it answers nothing.
    let text = "until [ \"$server\" ]; do for pid in $(cat /proc/$PPID/task/$PPID/children); do
[ \"$(cat /proc/$pid/comm)\" = pipe-links ] && server=$pid; done; done
trap 'kill -CONT $server' EXIT; kill -STOP $server; seq 3 | tail -1";
    let record = record(&lab, &["--via", "pipe,pipe:size=64KiB", "--trials", "1", "--warmup", "0", text], 0);
    for result in &record.results {
        assert_eq!((result.output_bytes, result.status, &result.error), (2, Some(0), &None), "{result:?}");
        assert!(result.times_s[0] < soon().as_secs_f64() / 2.0, "{result:?}");
    }
}

/// Expected: names as hyperfine has them, the value of a parameter as a column, and CPU time, in every format.
#[test]
fn names_parameters_and_cpu_times_are_in_every_format() {
    let lab = Lab::new();
    let texts = ["seq {n}00000 | sort -n | wc -l", "seq {n}"];
    let options = ["-n", "sorted {n}", "--name", "plain", "-P", "n", "1,2", "--trials", "2", "--warmup", "0"];
    let files = ["--json", "r.json", "--csv", "r.csv", "--md", "r.md", "--html", "r.html"];
    let done = lab.run(&[&["compare"], &options[..], &files, &texts].concat()).expect_code(0);
    let read = |name: &str| std::fs::read_to_string(lab.here(name)).expect(name);
    for text in [done.stdout, read("r.md"), read("r.html")] {
        for words in ["sorted 1", "sorted 2", "plain # n=1", "plain # n=2", "user", "system"] {
            assert!(text.contains(words), "no {words} in {text}");
        }
    }
    let csv = read("r.csv");
    let heading = csv.lines().next().expect("a heading");
    assert!(heading.ends_with("name,user_s,system_s,parameter_n"), "{heading}");
    let record: CompareRecord = serde_json::from_str(&read("r.json")).expect("a record");
    for result in &record.results {
        assert_eq!((result.user_times_s.len(), result.system_times_s.len()), (2, 2));
        assert!(result.user_times_s.iter().chain(&result.system_times_s).sum::<f64>() > 0.0, "{result:?}");
    }
    assert_eq!(record.results[0].name.as_deref(), Some("sorted 1"));
    for wrong in [["-n", "a", "-n", "b"], ["-n", "a", "-n", "a"]] {
        let done = lab.run(&[&["compare"], &wrong[..], &["true"]].concat()).expect_code(2);
        assert!(done.stderr.contains("-n"), "{}", done.stderr);
    }
}
