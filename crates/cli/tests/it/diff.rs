//! `hosepipe diff`: records with known changes, records that are none for it, formats of other programs, and hosepipes in turns.

use model::{BenchRecord, CaseRecord, ChangeKind, DiffRecord, Direction, PeerRecord, Sample};
use process::proc::field_value;
use rustix::process::Signal;

use crate::common::{Done, Lab, signal, soon, until};

/// So many trials make a change visible among a few cases.
const TRIALS: u32 = 9;

/// A true record, its samples replaced by ones that say what a test wants said.
struct Records {
    lab: Lab,
    made: BenchRecord,
}

impl Records {
    fn new() -> Self {
        let lab = Lab::new();
        let args = ["pipe", "fifo", "--block", "4KiB", "--count", "200", "--trials", "1"];
        let mut made = lab.bench(&args).expect_code(0).record();
        for case in &mut made.cases {
            let sample = case.samples[0].clone();
            let one = |round: u32| Sample {
                round,
                elapsed_ns: 1_000_000 + 7_000 * u64::from(round),
                ..sample.clone()
            };
            case.samples = (0..TRIALS).map(one).collect();
        }
        Self { lab, made }
    }

    /// Keeps a record that differs from the one made.
    fn keep(&self, name: &str, change: impl Fn(&mut BenchRecord)) {
        let mut record = self.made.clone();
        change(&mut record);
        let text = serde_json::to_string(&model::Record::from(record)).expect("JSON");
        std::fs::write(self.lab.here(name), text).expect("a file");
    }

    /// Keeps one whose streams over a pipe take longer by this factor.
    fn slower(&self, name: &str, factor: f64) {
        self.keep(name, |record| {
            for case in record.cases.iter_mut().filter(|case| is_stream(case)) {
                for sample in &mut case.samples {
                    sample.elapsed_ns = (sample.elapsed_ns as f64 * factor) as u64;
                }
            }
        });
    }

    fn diff(&self, args: &[&str]) -> Done {
        self.lab.run(&[&["diff"], args].concat())
    }

    fn record(&self, args: &[&str], code: i32) -> DiffRecord {
        let done = self.diff(&[args, &["--json", "-"]].concat()).expect_code(code);
        serde_json::from_str(&done.stdout).expect("a record of diff")
    }
}

fn is_stream(case: &CaseRecord) -> bool {
    case.mechanism == "pipe" && case.throughput.is_some()
}

fn kinds(record: &DiffRecord) -> Vec<(&str, ChangeKind)> {
    let judged = record.changes.iter().filter(|change| !change.control);
    judged.map(|change| (change.case["spec"].as_str(), change.kind)).collect()
}

#[test]
fn what_became_slower_is_found_and_nothing_else() {
    let records = Records::new();
    records.slower("old.json", 1.0);
    records.slower("new.json", 1.25);
    let same = records.diff(&["old.json", "old.json"]).expect_code(0);
    assert!(same.stdout.contains("without a change.\n"), "{}", same.stdout);
    let found = records.record(&["old.json", "new.json"], 1);
    let changed: Vec<_> =
        kinds(&found).into_iter().filter(|(_, kind)| *kind != ChangeKind::NoChange).collect();
    assert_eq!(changed, [("pipe", ChangeKind::Slower)]);
    let change = found.regressions().next().expect("one");
    let (low, high) = (change.low.expect("bounds"), change.high.expect("bounds"));
    assert!(low < 0.8 && 0.8 < high && high < 0.85, "{low} to {high}");
    let back = records.record(&["new.json", "old.json"], 0);
    assert!(kinds(&back).contains(&("pipe", ChangeKind::Faster)));
    for (limit, code) in [("5%", 1), ("14", 1), ("30%", 0)] {
        let done = records.diff(&["old.json", "new.json", "--fail-over", limit]).expect_code(code);
        assert!(done.stdout.contains("slower by more than"), "{}", done.stdout);
    }
    // A record of diff can be shown again.
    records.diff(&["old.json", "new.json", "--json", "diff.json"]).expect_code(1);
    let again = records.lab.run(&["report", "diff.json"]).expect_code(0);
    assert_eq!(again.stdout, records.diff(&["old.json", "new.json"]).expect_code(1).stdout);
    assert!(again.stdout.contains("hosepipe diff --run"), "{}", again.stdout);
}

/// Expected: what may lie between two runs of one program is no regression. Happened: a third of all pairs of quiet runs of one binary
/// ended with status 1, for changes of a few percent.
#[test]
fn two_runs_need_a_margin() {
    let records = Records::new();
    records.slower("old.json", 1.0);
    records.slower("new.json", 1.08);
    let new = |more: &[&str], code| {
        records.diff(&[&["old.json", "new.json"], more].concat()).expect_code(code).stdout
    };
    let text = new(&[], 0);
    assert!(text.contains("1 that differs between the two runs") && !text.contains("slower  "), "{text}");
    assert!(
        text.contains("Two runs, one after the other: ") && text.contains("Other programs used "),
        "{text}"
    );
    assert_eq!(records.record(&["old.json", "new.json"], 0).fail_over_percent, Some(10.0));
    for (limit, code) in [("10", 0), ("4", 1), ("0", 1), ("0%", 1)] {
        new(&["--fail-over", limit], code);
    }
    let wrong = new(&["--fail-over=-1"], 2);
    assert!(wrong.is_empty());
}

/// Expected: several runs of each side show what lies between runs, so that a smaller change can be found and a larger difference be none.
#[test]
fn several_runs_of_each_side_are_compared_by_their_medians() {
    let records = Records::new();
    let mut second = 0;
    let mut side = |name: &str, factors: &[f64]| -> Vec<String> {
        let one = |(at, factor): (usize, &f64)| {
            second += 1;
            let file = format!("{name}{at}.json");
            records.keep(&file, |record| {
                record.head.started = format!("2031-01-01T00:00:{second:02}Z");
                let streams = record.cases.iter_mut().filter(|case| is_stream(case));
                streams.flat_map(|case| &mut case.samples).for_each(|sample| {
                    sample.elapsed_ns = (sample.elapsed_ns as f64 * factor) as u64;
                });
            });
            file
        };
        factors.iter().enumerate().map(one).collect()
    };
    let (old, slow) = (side("old", &[1.0, 1.004, 0.996]), side("slow", &[1.05, 1.054, 1.046]));
    let (states, others) = (side("states", &[1.0, 1.5, 1.0]), side("others", &[1.5, 1.5, 1.0]));
    let compare = |old: &[String], new: &[String], more: &[&str], code| {
        let files = |side: &[String]| side.to_vec();
        let words = [files(old), vec!["--".to_owned()], files(new)].concat();
        let words: Vec<&str> = more.iter().copied().chain(words.iter().map(String::as_str)).collect();
        records.diff(&words).expect_code(code)
    };
    let record = |old: &[String], new: &[String], more: &[&str], code| -> DiffRecord {
        let done = compare(old, new, &[more, &["--json", "-"]].concat(), code);
        serde_json::from_str(&done.stdout).expect("a record")
    };
    let found = record(&old, &slow, &[], 0);
    assert_eq!((found.old.further_runs.len(), found.new.further_runs[1].name.as_str()), (2, "slow2.json"));
    assert!(kinds(&found).contains(&("pipe", ChangeKind::Slower)), "a change of 5 %: {:?}", kinds(&found));
    let change = found.changes.iter().find(|change| change.kind == ChangeKind::Slower).expect("it");
    assert!(change.old_runs.len() == 3 && change.old.len() == 3 * TRIALS as usize, "{change:?}");
    let text = compare(&old, &slow, &["--fail-over", "2"], 1).stdout;
    for said in [
        "3 old and 3 new runs: what differs between runs",
        "All old runs were made before",
        "2.0 %, with the whole interval: ",
    ] {
        assert!(text.contains(said), "{text}");
    }
    let by_chance = record(&states, &others, &["--fail-over", "0"], 0);
    assert!(
        kinds(&by_chance).iter().all(|(_, kind)| *kind == ChangeKind::NoChange),
        "{:?}",
        kinds(&by_chance)
    );
    // The median of three trials of each of two runs, and of one, is no test between runs.
    let few = record(&old[..2], &slow[..1], &[], 0);
    assert!(few.changes.iter().all(|change| change.old_runs.is_empty()));
    for (old, new) in [(&old, &old), (&vec![old[0].clone(), old[0].clone()], &slow)] {
        let twice = compare(old, new, &[], 2);
        assert!(twice.stderr.contains("are the same run, which would count twice"), "{}", twice.stderr);
    }
    for words in [
        &["old0.json"][..],
        &["old0.json", "old1.json", "slow0.json"],
        &["--run", "true", "true", "true", "--", "bench"],
    ] {
        assert!(records.diff(words).expect_code(2).stderr.contains("OLD and NEW"), "{words:?}");
    }
    records.diff(&["old0.json", "--", "slow0.json"]).expect_code(0);
}

#[test]
fn what_failed_is_missing_or_too_few_is_said_so() {
    let records = Records::new();
    records.slower("old.json", 1.0);
    records.keep("failed.json", |record| {
        let case = record.cases.iter_mut().find(|case| is_stream(case)).expect("pipe");
        case.samples.clear();
        case.error = Some(model::CaseError::new(model::ErrorKind::Died, "the sender was killed"));
    });
    let failed = records.diff(&["old.json", "failed.json"]).expect_code(1);
    assert!(failed.stdout.contains("new: the sender was killed"), "{}", failed.stdout);
    assert!(
        kinds(&records.record(&["failed.json", "old.json"], 0)).contains(&("pipe", ChangeKind::Incomparable))
    );
    records.keep("partly.json", |record| {
        let case = record.cases.iter_mut().find(|case| is_stream(case)).expect("pipe");
        case.error = Some(model::CaseError::new(model::ErrorKind::Died, "the sender was killed late"));
    });
    let partly = records.record(&["old.json", "partly.json"], 1);
    assert!(kinds(&partly).contains(&("pipe", ChangeKind::Failed)));
    records.diff(&["partly.json", "old.json", "--fail-over", "150%"]).expect_code(0);
    records.keep("less.json", |record| record.cases.retain(|case| case.mechanism != "fifo"));
    let less = records.diff(&["old.json", "less.json"]).expect_code(0);
    assert!(less.stdout.contains("only in the old record"), "{}", less.stdout);
    records.keep("few.json", |record| record.cases.iter_mut().for_each(|case| case.samples.truncate(2)));
    let few = records.diff(&["few.json", "few.json", "--md", "-"]).expect_code(0).stdout;
    assert!(few.contains("with too few trials to say") && few.contains("(`--trials 5`)"), "{few}");
}

#[test]
fn other_hosts_are_refused_and_else_named_in_every_output() {
    let records = Records::new();
    records.slower("here.json", 1.0);
    records.keep("there.json", |record| record.head.host.kernel = "Linux 5.4.321".to_owned());
    let refused = records.diff(&["here.json", "there.json"]).expect_code(2);
    assert!(
        refused.stderr.contains("Linux 5.4.321") && refused.stderr.contains("--across-hosts"),
        "{}",
        refused.stderr
    );
    let outputs: [&[&str]; 6] =
        [&[], &["--json", "-"], &["--csv", "-"], &["--md", "-"], &["--html", "-"], &["--format", "go"]];
    for output in outputs {
        let done =
            records.diff(&[&["here.json", "there.json", "--across-hosts"], output].concat()).expect_code(0);
        assert!(done.stdout.contains("then Linux 5.4.321"), "{output:?}: {}", done.stdout);
    }
}

#[test]
fn records_that_say_nothing_of_a_change_are_refused() {
    let records = Records::new();
    records.slower("old.json", 1.0);
    records.keep("else.json", |record| record.cases.iter_mut().for_each(|case| case.block_bytes += 1));
    let run = ["run", "--json", "run.json", "true | true"];
    let compare = ["compare", "--via", "pipe", "--trials", "2", "--json", "compare.json", "true | true"];
    records.lab.run(&run).expect_code(0);
    records.lab.run(&compare).expect_code(0);
    for (one, other, said) in [
        ("old.json", "run.json", "a record of `hosepipe run`, which measures only once"),
        ("old.json", "compare.json", "only records of one command"),
        ("old.json", "else.json", "no case in common"),
        ("old.json", "absent.json", "ENOENT"),
    ] {
        let done = records.diff(&[one, other]).expect_code(2);
        assert!(done.stderr.contains(said) && done.stdout.is_empty(), "{}", done.stderr);
    }
    let same = records.diff(&["compare.json", "compare.json"]).expect_code(0);
    assert!(same.stdout.contains("wall time"), "{}", same.stdout);
    records.diff(&["old.json", "old.json", "--trials", "3"]).expect_code(2);
    records.diff(&["old.json", "old.json", "--format", "go", "--json", "-"]).expect_code(2);
}

#[test]
fn other_programs_can_read_it() {
    let records = Records::new();
    records.slower("old.json", 1.0);
    records.slower("new.json", 1.25);
    let go = |side: &str| {
        records.diff(&["old.json", "new.json", "--format", "go", "--side", side]).expect_code(1).stdout
    };
    let lines =
        |text: &str| text.lines().filter(|line| line.starts_with("BenchmarkStream/spec=pipe/")).count();
    assert_eq!((lines(&go("both")), lines(&go("new"))), (2 * TRIALS as usize, TRIALS as usize));
    let sample = go("old").lines().find(|line| line.starts_with("Benchmark")).expect("a line").to_owned();
    let words: Vec<&str> = sample.split_whitespace().collect();
    assert_eq!([words[1], words[3], words[5]], ["1", "ns/op", "MB/s"], "{sample}");
    assert!(words[2].parse::<f64>().is_ok_and(|ns| ns > 0.0));
    let markdown = records.diff(&["old.json", "new.json", "--md", "-"]).expect_code(1).stdout;
    assert!(markdown.contains("<details>\n<summary>") && markdown.contains("| `pipe` |"), "{markdown}");
}

#[test]
fn two_hosepipes_are_compared_case_by_case() {
    let lab = Lab::new();
    let hosepipe = env!("CARGO_BIN_EXE_hosepipe");
    let bench = ["--", "bench", "pipe", "fifo", "--block", "4KiB", "--count", "100", "--place", "any"];
    let diff = |args: &[&str], bench: &[&str]| {
        lab.run(&[&["diff", "--run", hosepipe, hosepipe], args, bench].concat())
    };
    let done = diff(&["--trials", "2", "--warmup", "0", "--json", "-"], &bench).expect_code(0);
    let record: DiffRecord = serde_json::from_str(&done.stdout).expect("a record");
    assert!(record.old.tool.starts_with("hosepipe ") && record.changes.len() > 4, "{}", done.stdout);
    assert!(record.changes.iter().all(|change| change.old.len() == 2 && change.kind == ChangeKind::TooFew));
    let given = diff(&[], &["--", "bench", "pipe", "--trials=3"]).expect_code(2);
    assert!(given.stderr.contains("`diff` itself sets `--trials=3` for each trial"), "{}", given.stderr);
    let wrong = diff(&[], &["--", "bench", "no-such-mechanism"]).expect_code(2);
    assert!(wrong.stderr.contains("no-such-mechanism"), "{}", wrong.stderr);
}

#[test]
fn a_signal_keeps_what_was_finished() {
    let lab = Lab::new();
    let hosepipe = env!("CARGO_BIN_EXE_hosepipe");
    let args = ["diff", "--run", "--trials", "1000", "--json", "-", hosepipe, hosepipe];
    let bench = ["--", "bench", "pipe", "--block", "4KiB", "--count", "100", "--workload", "stream"];
    let running = lab.start(lab.command(&[&args[..], &bench].concat()));
    // Its fourth child is of a pair that counts; the first two printed their versions.
    let mut seen = std::collections::HashSet::new();
    until("six children", 3 * soon(), || {
        seen.extend(running.children().into_iter().map(|(pid, _)| pid));
        (seen.len() >= 6).then_some(())
    });
    signal(running.pid(), Signal::INT);
    let done = running.wait_within(soon()).expect_code(130);
    let record: DiffRecord = serde_json::from_str(&done.stdout).expect("a record");
    assert!(record.interrupted && record.changes.iter().all(|change| change.old.len() == change.new.len()));
}

/// Whether a SIGINT to the process waits to be taken in: proc_pid_status(5), bit 1 of `ShdPnd`.
fn is_pending(pid: u32) -> bool {
    let signals = field_value(&format!("/proc/{pid}/status"), "ShdPnd").expect("it runs");
    u64::from_str_radix(&signals, 16).expect("hexadecimal") & 1 << (Signal::INT.as_raw() - 1) != 0
}

/// Expected: who asks twice means it, and what is killed leaves nothing behind.
/// Happened: a command that ignores signals was waited for to its end, and outlived a hosepipe that was killed.
#[test]
fn a_command_that_ignores_signals_ends_all_the_same() {
    for is_killed in [false, true] {
        let lab = Lab::new();
        let deaf = "trap '' INT TERM; echo $$ > here; sleep 1000";
        let running = lab.start(lab.command(&["compare", "--fail-over", "0", "--warmup", "0", deaf, deaf]));
        until("a command", soon(), || {
            std::fs::read_to_string(lab.here("here")).ok().filter(|text| text.ends_with('\n'))
        });
        if is_killed {
            running.kill_and_look();
            continue;
        }
        signal(running.pid(), Signal::INT);
        // A signal that is still to be taken in is not counted twice.
        until("the first signal is taken in", soon(), || (!is_pending(running.pid())).then_some(()));
        // Two signals within a tenth of a second are one request: timeout(1) sends its own twice.
        std::thread::sleep(std::time::Duration::from_millis(150));
        signal(running.pid(), Signal::INT);
        running.wait_within(soon()).expect_code(130);
    }
}

#[test]
fn an_endless_file_is_no_record_and_two_commands_are_no_hosepipes() {
    let lab = Lab::new();
    let refuses = |args: &[&str], words: &str| {
        let done = lab.run(args).expect_code(2);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
    };
    // Not after a GiB of it.
    refuses(&["diff", "/dev/zero", "/dev/zero"], "/dev/zero: this is not a record: it does not begin with {");
    refuses(
        &["diff", "--run", "sort a", "true"],
        "two commands are compared by `hosepipe compare --fail-over 10 'sort a' 'true'`",
    );
    refuses(&["diff", "--run", "true", "true", "--", "bench"], "--run takes two hosepipes");
}

/// Expected: what was measured to another host, in another shell or after another --prepare is another case.
/// Happened: `diff` compared them as the same one, and `recommend --from` took rows of another host for local ones.
#[test]
fn what_was_measured_under_other_conditions_is_another_case() {
    let records = Records::new();
    let to = |name: &'static str, kernel: &'static str| {
        move |record: &mut BenchRecord| {
            let mut host = record.head.host.clone();
            host.kernel = kernel.to_owned();
            let tool = record.head.tool.clone();
            let address = "10.0.0.2:4711".to_owned();
            record.peer = Some(Box::new(PeerRecord { name: name.to_owned(), address, tool, host }));
            record.cases.iter_mut().for_each(|case| case.direction = Some(Direction::Peer));
        }
    };
    records.keep("a.json", to("a", "Linux 6.18.0"));
    records.keep("b.json", to("b", "Linux 6.18.0"));
    records.keep("other.json", to("a", "Linux 5.10.0"));
    for (other, said) in [
        ("b.json", "no case in common"),
        ("other.json", "the peer's kernel: Linux 6.18.0, then Linux 5.10.0"),
    ] {
        let done = records.diff(&["a.json", other]).expect_code(2);
        assert!(done.stderr.contains(said), "{}", done.stderr);
    }
    records.diff(&["a.json", "a.json"]).expect_code(0);
    let done = records.lab.run(&["recommend", "--from", "a.json", "--message", "4KiB"]).expect_code(2);
    assert!(done.stderr.contains("rows of --peer do not count"), "{}", done.stderr);

    let compare = |name: &str, more: &[&str]| {
        let args = ["compare", "--via", "pipe", "--trials", "1", "--warmup", "0", "--json", name];
        records.lab.run(&[&args, more, &["true | true"]].concat()).expect_code(0);
    };
    compare("plain.json", &["--shell", "bash"]);
    compare("again.json", &[]);
    compare("dash.json", &["--shell", "dash"]);
    compare("prepared.json", &["--prepare", "true"]);
    compare("parameter.json", &["--prepare", "echo {n} > /dev/null", "-P", "n", "1"]);
    records.diff(&["plain.json", "again.json"]).expect_code(0);
    for other in ["dash.json", "prepared.json", "parameter.json"] {
        let done = records.diff(&["plain.json", other]).expect_code(2);
        assert!(done.stderr.contains("have no case in common"), "{other}: {}", done.stderr);
    }
}
