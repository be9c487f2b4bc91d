//! `hosepipe bench --workers`, as a user types it: rows, matrix, a program of one's own, and what goes wrong.
//! C stands for all languages here; whether each keeps the contract is tested in workers.rs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::{self, Done, Lab, soon};
use crate::workers::sources_out_of_reach;
use model::{BenchRecord, CaseRecord, Check, ErrorKind, Placement, Role, WorkerCase, WorkerStart, Workload};
use worker::Registry;

const MIB: u64 = 1 << 20;

fn has_cc() -> bool {
    let found = std::process::Command::new("cc").arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "CI has a C compiler");
        common::skip("no C compiler: apt-get install gcc");
    }
    found
}

/// The record's rows of workers; the last row of a record is the ceiling.
fn record(done: &Done) -> BenchRecord {
    let mut record = common::read_record(&done.stdout);
    let ceiling = record.cases.pop().expect("a ceiling");
    assert_eq!((ceiling.mechanism.as_str(), ceiling.role), ("memcpy", Role::Ceiling));
    assert!(ceiling.throughput.is_some_and(|found| found.median_bytes_per_s > 1e9));
    record
}

fn worker(record: &BenchRecord, place: usize) -> &WorkerCase {
    record.cases[place].worker.as_ref().expect("a worker's case")
}

#[test]
fn both_ways_of_a_language_are_measured_and_their_calls_counted() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    let done = lab.bench(&["--workers", "c", "--bytes", "32MiB", "--trials", "2"]).expect_code(0);
    let record = record(&done);
    assert_eq!(record.cases.len(), 2);
    for (place, case) in record.cases.iter().enumerate() {
        let worker = worker(&record, place);
        assert_eq!((worker.start, worker.writer == worker.reader), (WorkerStart::Pair, true));
        assert_eq!((worker.writer.language.as_str(), worker.warmup_bytes), ("C", 8 * MIB));
        assert!(worker.writer.toolchain.is_some());
        assert_eq!((case.samples.len(), case.block_bytes, case.error.as_ref()), (2, 65536, None));
        for sample in &case.samples {
            // And a few more, so that no XOR is 0.
            assert!((32 * MIB + 1..32 * MIB + 256).contains(&sample.bytes), "{}", sample.bytes);
            assert_eq!((sample.messages, sample.checksum.as_deref() != Some("00")), (513, true));
            assert!(sample.elapsed_ns > 0 && sample.setup_ns > 0 && sample.user_ns + sample.system_ns > 0);
        }
        let median = case.throughput.as_ref().expect("a summary").median_bytes_per_s;
        assert!(median > 1e6, "{median} bytes/s");
    }
}

#[test]
fn without_bytes_a_trial_lasts_about_as_long_for_everybody() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    let record = record(&lab.bench(&["--workers", "c:tuned", "--trials", "1"]).expect_code(0));
    let sample = &record.cases[0].samples[0];
    assert!(sample.bytes % MIB < 256, "whole MiB, and a few more so that no XOR is 0: {}", sample.bytes);
    // Its buffers begin at a page, where it was seen asleep in a call with one.
    let offsets = [sample.read_buffer_offset, sample.write_buffer_offset];
    assert!(offsets.into_iter().flatten().all(|offset| offset == 0), "{offsets:?}");
    let seconds = sample.elapsed_ns as f64 / 1e9;
    assert!((0.05..10.0).contains(&seconds), "{seconds} s for {} bytes", sample.bytes);
}

#[test]
fn a_matrix_has_a_cell_for_every_writer_and_reader() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    let words = ["--workers", "c:idiomatic,c:tuned", "--matrix", "--bytes", "4MiB", "--trials", "1"];
    let matrix = record(&lab.bench(&words).expect_code(0));
    let cells: Vec<String> = (0..matrix.cases.len())
        .map(|place| {
            let worker = worker(&matrix, place);
            assert_eq!(worker.start, WorkerStart::Harness);
            format!("{}>{}", worker.writer.variant, worker.reader.variant)
        })
        .collect();
    assert_eq!(cells, ["idiomatic>idiomatic", "idiomatic>tuned", "tuned>idiomatic", "tuned>tuned"]);
    assert!(
        matrix.cases.iter().all(|case| case.granted.contains_key("pipe_bytes") && case.samples.len() == 1)
    );

    // Without a variant, a language stands in it once.
    let words = ["--workers", "c", "--matrix", "--bytes", "4MiB", "--trials", "1"];
    let one = record(&lab.bench(&words).expect_code(0));
    assert_eq!((one.cases.len(), worker(&one, 0).writer.variant.as_str()), (1, "tuned"));
}

#[test]
fn ends_sit_where_they_are_told_to_and_each_trial_says_where_they_ran() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    // Pairs start their own readers, which have to sit apart from them; the two of a matrix are started by us.
    for matrix in [&[][..], &["--matrix"]] {
        let words = [&["--workers", "c:tuned", "--place", "all", "--trials", "1"], matrix].concat();
        let record = record(&lab.bench(&words).expect_code(0));
        assert!(record.cases.iter().any(|case| case.placement == Placement::Any));
        assert!(record.cases.iter().any(|case| case.placement == Placement::Same));
        for case in &record.cases {
            // A cell is short: on a busy machine there may be no sample of its CPUs.
            let Some(share) = case.samples[0].same_cpu_share else {
                assert!(!matrix.is_empty(), "half a second is long enough to be looked at");
                continue;
            };
            match case.cpus.as_slice() {
                [] => assert!((0.0..=1.0).contains(&share)),
                [one, other] => assert_eq!(share, if one == other { 1.0 } else { 0.0 }, "{:?}", case.cpus),
                several => panic!("{several:?}"),
            }
        }
    }
}

#[test]
fn a_child_behind_a_socket_is_no_row_of_a_pipe() {
    if std::process::Command::new("node").arg("--version").output().is_err() {
        common::skip("no node: apt-get install nodejs");
        return;
    }
    let lab = Lab::new();
    let words = ["--workers", "javascript", "--trials", "1", "--bytes", "1MiB"];
    let record = record(&lab.bench(&words).expect_code(0));
    let joined: Vec<&str> = record.cases.iter().map(|case| case.mechanism.as_str()).collect();
    assert_eq!(joined, ["socketpair", "pipe"], "the idiomatic way and the tuned one");
}

/// A program of the user's own: a script that hands over to the C worker, once it has done `first`.
fn own_program(lab: &Lab, name: &str, first: &str) -> String {
    let built = lab.run(&["workers", "--build", "--json", "c"]).expect_code(0);
    let entries: serde_json::Value = serde_json::from_str(&built.stdout).expect("JSON");
    let folder = entries[0]["folder"].as_str().expect("a folder");
    let path = lab.here(name);
    fs::write(&path, format!("#!/bin/sh\n{first}\nexec {folder}/out/worker tuned \"$@\"\n"))
        .expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
    path.to_str().expect("plain text").to_owned()
}

#[test]
fn a_program_of_ones_own_stands_beside_a_language() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    let program = own_program(&lab, "mine", "");
    let words = ["--workers", "c:tuned", "--worker", &program, "--bytes", "8MiB", "--trials", "1"];
    let record = record(&lab.bench(&words).expect_code(0));
    assert_eq!(record.cases.len(), 2);
    assert_eq!(worker(&record, 1).writer.label(), program);
    assert_eq!(record.cases[1].samples.len(), 1);
}

#[test]
fn a_program_that_fails_is_a_row_with_what_it_said() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    let program = own_program(&lab, "broken", "echo 'the hose has a hole' >&2; exit 3");
    let words = ["--workers", "c:tuned", "--worker", &program, "--bytes", "8MiB", "--trials", "1"];
    let done = lab.bench(&words).expect_code(1);
    let record = record(&done);
    let error = record.cases[1].error.as_ref().expect("a failed row");
    assert!(error.message.contains("the hose has a hole") && error.message.contains('3'), "{error:?}");
    assert_eq!(record.cases[0].samples.len(), 1, "the others go on");
}

#[test]
fn a_program_that_leaves_somebody_in_another_session_is_measured_and_nobody_left() {
    if !has_cc() {
        return;
    }
    let lab = Lab::new();
    let program = own_program(&lab, "leaver", "setsid sleep 1000 >/dev/null 2>&1 &");
    let words = ["bench", "--json", "-", "--worker", &program, "--bytes", "8MiB", "--trials", "1"];
    // Its system calls are counted too, before the trials.
    let record = record(&lab.start(lab.command(&words)).wait_within(soon()).expect_code(0));
    assert_eq!(record.cases[0].samples.len(), 1);
}

#[test]
fn a_missing_toolchain_is_a_row_with_what_brings_it() {
    let lab = Lab::new();
    let folder = lab.here("workers");
    fs::create_dir_all(folder.join("algol")).expect("a folder");
    let registry = r#"
        [[language]]
        name = "Algol"
        key = "algol"
        folder = "algol"
        package = "algol-compiler"
        probe = ["no-such-algol-compiler", "--version"]

        [[language.variant]]
        name = "idiomatic"
        run = ["{src}/worker"]
    "#;
    fs::write(folder.join("workers.toml"), registry).expect("a registry");
    let mut command = lab.command(&["bench", "--workers", "all", "--json", "-"]);
    command.env("HOSEPIPE_WORKERS", &folder);
    // Nothing was measured.
    let record = record(&lab.finish(command).expect_code(1));
    let error = record.cases[0].error.as_ref().expect("a row with its reason");
    assert_eq!((error.kind, error.expected), (ErrorKind::Unavailable, true));
    assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("algol-compiler")), "{error:?}");
}

#[test]
fn wrong_words_are_told_before_anything_is_built() {
    let lab = Lab::new();
    for (words, said) in [
        (&["--workers", "zug"][..], "no worker `zug`"),
        (&["--workers", "c:fast"], "c:idiomatic and c:tuned"),
        (&["--matrix"], "--workers all --matrix"),
        (&["--workers", "c", "--block", "1,2"], "one block size"),
        (&["--workers", "c,zeromq", "--workload", "pingpong"], "--workers peers"),
        (&["--workers", "c", "--chain", "2"], "no relays"),
        (&["--workers", "c", "--sweep"], "--sweep"),
        (&["--workers", "c", "--place", "0,9999"], "CPU 9999 is not among"),
        (&["--worker", "./not-there"], "no such program"),
    ] {
        let done = lab.run(&[&["bench"], words].concat()).expect_code(2);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}

#[test]
fn the_plan_names_the_workers_and_runs_none() {
    let lab = Lab::new();
    let done = lab.run(&["bench", "--workers", "c", "--dry-run"]).expect_code(0);
    assert!(done.stdout.contains("C idiomatic\nC tuned\n"), "{}", done.stdout);
}

/// A peer's library may be missing, and its sources out of reach.
fn why_skipped(error: &model::CaseError) -> Option<&str> {
    let skipped = error.kind == ErrorKind::Unavailable && std::env::var_os("CI").is_none()
        || sources_out_of_reach(&error.message);
    skipped.then_some(error.message.as_str())
}

/// What peers have put into shared memory.
fn segments() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/dev/shm").expect("shared memory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    // A process's number follows; other programs of tests have names of their own.
    let is_peers = |name: &String| {
        let owner = name.strip_prefix("hosepipe-");
        owner.is_some_and(|owner| owner.starts_with(|first: char| first.is_ascii_digit()))
    };
    names.filter(is_peers).collect()
}

/// How long the first build of all peers may take: beside eight busy processes more than five minutes.
const BUILT_WITHIN: Duration = Duration::from_secs(900);

/// A run of peers' streams or round trips.
fn peers(lab: &Lab, workers: &str, workload: &str) -> BenchRecord {
    let words = ["--workers", workers, "--workload", workload, "--block", "4,1000", "--trials", "1"];
    let bench = lab.command(&[&["bench", "--json", "-"], &words[..], &["--bytes", "20000"]].concat());
    record(&lab.start(bench).wait_within(BUILT_WITHIN))
}

#[test]
fn transports_of_others_are_measured_with_both_ends_their_own() {
    let lab = Lab::new();
    let before = segments();
    let record = peers(&lab, "peers", "pingpong");
    let keys = Registry::open().expect("the registry reads");
    let keys = keys.languages().iter().filter_map(|language| language.transport.as_deref());
    for transport in keys {
        let of = |case: &&CaseRecord| case.worker.is_some() && case.mechanism == transport;
        let cases: Vec<&CaseRecord> = record.cases.iter().filter(of).collect();
        assert!(cases.len() >= 2, "{transport} has a row for each block size");
        for case in cases {
            if let Some(why) = case.error.as_ref().and_then(why_skipped) {
                common::skip(&format!("{transport}: {why}"));
                continue;
            }
            assert_eq!((case.error.as_ref(), case.workload), (None, Workload::PingPong), "{transport}");
            let sample = &case.samples[0];
            assert!(sample.bytes > 20_000 && sample.checksum.as_deref() != Some("00"), "{sample:?}");
            assert!(sample.user_ns + sample.system_ns > 0, "{sample:?}");
        }
    }
    let own = record.cases.iter().filter(|case| case.role == Role::Ranked && case.worker.is_none());
    assert!(own.clone().count() > 4 && own.clone().all(|case| case.check == Some(Check::Xor)));
    assert_eq!(segments().difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn peers_that_are_named_have_no_rows_of_hosepipes_beside_them() {
    let lab = Lab::new();
    let record = peers(&lab, "multiprocessing:pipe,message-port", "stream");
    assert!(record.cases.iter().all(|case| case.worker.is_some() || case.role == Role::Ceiling));
    let refused = lab.bench(&["--workers", "zeromq", "--matrix"]).expect_code(2);
    assert!(refused.stderr.contains("without --matrix"), "{}", refused.stderr);
}
