//! Many pairs at once, many senders on one channel, round trips at a given rate: over the whole registry, and what goes wrong.

use std::time::{Duration, Instant};

use model::{CaseRecord, DataLevel, ErrorKind, Role, Workload};
use rustix::process::Signal;

use crate::common::{ENDS, Lab, alone, error_of, promptly, registry, short_time, signal, soon, typed};

fn ranked(cases: &[CaseRecord]) -> impl Iterator<Item = &CaseRecord> {
    cases.iter().filter(|case| case.role == Role::Ranked)
}

/// What is named beside the mechanisms, so that no floor or ceiling of adaptive length is added.
const REFERENCES: [&str; 2] = ["null", "memcpy"];

#[test]
fn two_pairs_of_every_mechanism() {
    let lab = Lab::new();
    let entries = registry(&lab);
    let mut args: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    args.extend(["--pairs", "1,2", "--block", "512", "--count", "130", "--trials", "1"]);
    let done = lab.bench(&args).expect_code(0);
    let record = done.record();
    for case in ranked(&record.cases) {
        let what = format!("{} {} of {:?} pairs", case.spec, case.workload, case.pairs);
        assert!(case.error.is_none(), "{what}: {:?}", case.error);
        let pairs = case.pairs.expect("asked for") as usize;
        let [sample] = case.samples.as_slice() else { panic!("{what}: {:?}", case.samples) };
        assert_eq!(sample.shares.len(), pairs, "{what}");
        assert_eq!(sample.messages, 130 * pairs as u64, "{what}");
        assert_eq!(sample.bytes, sample.shares.iter().map(|share| share.bytes).sum::<u64>(), "{what}");
        assert!(
            sample.shares.iter().all(|share| share.bytes_while_all_ran <= share.bytes),
            "{what}: {sample:?}"
        );
        assert!(
            sample.shares.iter().any(|share| share.bytes_while_all_ran == share.bytes),
            "{what}: {sample:?}"
        );
        assert!(sample.all_ran_ns.expect("several") <= sample.elapsed_ns, "{what}: {sample:?}");
        assert!(stats::load::fairness(sample).is_none_or(|index| index >= 0.5 - 1e-9), "{what}: {sample:?}");
        if case.workload == Workload::PingPong {
            let counted = case.latency_ns.as_ref().map(|latency| latency.count);
            assert_eq!(counted, Some(sample.messages), "{what}: the round trips of all pairs");
        }
    }
}

#[test]
fn three_senders_of_every_mechanism_that_can_have_them() {
    let lab = Lab::new();
    let entries = registry(&lab);
    let streams = entries.iter().filter(|entry| entry.has_two_ends());
    let mut args: Vec<&str> = streams.map(|entry| entry.name.as_str()).collect();
    args.extend(REFERENCES);
    args.extend(["--senders", "3", "--block", "4096", "--count", "200", "--trials", "1"]);
    let record = lab.bench(&args).expect_code(0).record();
    let mut able = Vec::new();
    for case in ranked(&record.cases) {
        if let Some(error) = &case.error {
            assert_eq!(error.kind, ErrorKind::Unsupported, "{}: {error:?}", case.spec);
            assert!(error.message.contains("only one task can have"), "{}: {error:?}", case.spec);
            continue;
        }
        able.push(case.mechanism.as_str());
        let sample = &case.samples[0];
        assert_eq!((sample.messages, sample.shares.len()), (600, 3), "{}", case.spec);
        assert!(sample.torn_blocks.is_some(), "{}: every block was looked at", case.spec);
        let (mechanism, _) = mechanism::resolve(&case.spec).expect("a spec of the registry");
        let promised = Some(mechanism.atomic_bytes.min(4096));
        assert_eq!(case.atomic_bytes, promised, "{}: what records are judged by", case.spec);
        if mechanism.atomic_bytes >= 4096 {
            assert_eq!(sample.torn_blocks, Some(0), "{}", case.spec);
        }
    }
    for expected in ["pipe", "fifo", "unix-dgram", "sysv-msgq", "posix-mq"] {
        assert!(
            able.contains(&expected) || !entries.iter().any(|entry| entry.name == expected),
            "{expected}"
        );
    }
}

#[test]
fn three_receivers_of_every_mechanism_that_can_have_them() {
    let lab = Lab::new();
    let entries = registry(&lab);
    let streams = entries.iter().filter(|entry| entry.has_two_ends());
    let mut args: Vec<&str> = streams.map(|entry| entry.name.as_str()).collect();
    args.extend(REFERENCES);
    args.extend(["--receivers", "3", "--block", "4096", "--count", "200", "--trials", "1"]);
    for more in [&[][..], &["--tasks", "threads"], &["--data", "write"], &["--wait", "poll"]] {
        let record = lab.bench(&[&args[..], more].concat()).expect_code(0).record();
        let mut able = Vec::new();
        for case in ranked(&record.cases) {
            let what = format!("{} {more:?}", case.spec);
            if let Some(error) = &case.error {
                assert_eq!(error.kind, ErrorKind::Unsupported, "{what}: {error:?}");
                continue;
            }
            able.push(case.mechanism.as_str());
            let sample = &case.samples[0];
            assert_eq!((sample.messages, sample.shares.len()), (200, 3), "{what}");
            let received: u64 = sample.shares.iter().map(|share| share.bytes).sum();
            assert_eq!(
                (received, sample.bytes),
                (200 * 4096, 200 * 4096),
                "{what}: every byte came to one of them"
            );
            assert_eq!(sample.torn_blocks.is_some(), case.data == DataLevel::Verify, "{what}");
            let (mechanism, _) = mechanism::resolve(&case.spec).expect("a spec of the registry");
            if mechanism.atomic_bytes >= 4096 && case.data == DataLevel::Verify {
                assert_eq!(sample.torn_blocks, Some(0), "{what}");
            }
        }
        for expected in
            ["pipe", "fifo", "socketpair", "unix-seqpacket", "unix-dgram", "sysv-msgq", "posix-mq"]
        {
            let is_able = able.contains(&expected) || !entries.iter().any(|entry| entry.name == expected);
            let waits = expected == "sysv-msgq" || expected == "posix-mq";
            assert!(is_able || (waits && more.contains(&"poll")), "{expected} {more:?}");
        }
    }
}

/// pipe(7) promises nothing to readers: one takes what is there, and another what comes later. No byte of that is lost.
#[test]
fn blocks_beyond_a_pipe_are_divided_and_all_there() {
    let lab = Lab::new();
    let amount = ["--receivers", "1,3", "--block", "100000", "--count", "300", "--trials", "2"];
    let done = lab.run(&[&["bench", "pipe"][..], &REFERENCES, &amount, &["--json", "r.json"]].concat());
    let done = done.expect_code(0);
    let text = std::fs::read_to_string(lab.here("r.json")).expect("the record");
    let record = crate::common::read_record(&text);
    let case = ranked(&record.cases).find(|case| case.receivers == Some(3)).expect("three");
    let torn: u64 = case.samples.iter().filter_map(|sample| sample.torn_blocks).sum();
    assert!(torn > 0, "{:?}", case.samples);
    assert!(done.stdout.contains("Blocks were divided among receivers on pipe"), "{}", done.stdout);
}

/// pipe(7): writes of more than PIPE_BUF bytes may be mixed with those of others. No byte of them is lost.
#[test]
fn blocks_beyond_pipe_buf_are_mixed_and_all_there() {
    let lab = Lab::new();
    let amount = ["--senders", "3", "--block", "100000", "--count", "300", "--trials", "2"];
    let done = lab.run(&[&["bench", "pipe"][..], &REFERENCES, &amount, &["--json", "r.json"]].concat());
    let done = done.expect_code(0);
    let text = std::fs::read_to_string(lab.here("r.json")).expect("the record");
    let record = crate::common::read_record(&text);
    let case = ranked(&record.cases).next().expect("pipe");
    let torn: u64 = case.samples.iter().filter_map(|sample| sample.torn_blocks).sum();
    assert!(torn > 0, "{:?}", case.samples);
    assert!(done.stdout.contains("Blocks of several senders were mixed on pipe"), "{}", done.stdout);
    // Below the level at which anybody looks there is nothing to tell.
    let unchecked = [&["pipe"][..], &REFERENCES, &amount, &["--data", "write"]].concat();
    let record = lab.bench(&unchecked).expect_code(0).record();
    let case = ranked(&record.cases).next().expect("pipe");
    assert_eq!((case.data, case.samples[0].torn_blocks), (DataLevel::Write, None));
}

#[test]
fn a_killed_end_of_one_of_four_pairs_costs_the_row_and_is_named() {
    let _turn = alone();
    for (args, role) in [
        (["--pairs", "4", "--workload", "stream"], "of 4 ("),
        (["--senders", "4", "--workload", "stream"], "sender "),
        (["--receivers", "4", "--workload", "stream"], "sender"),
        (["--pairs", "4", "--workload", "pingpong"], "of 4 ("),
    ] {
        for spec in ["pipe", "sysv-msgq"] {
            let lab = Lab::new();
            let amount =
                ["bench", "--json", "-", spec, "--block", "4096", "--count", "100000000", "--trials", "1"];
            let time = typed(short_time());
            let args = [&amount[..], &args, &["--time", &time]].concat();
            let mut running = lab.start(lab.command(&args));
            let pid = running.child_stopped_in_a_long_trial(ENDS[0]);
            signal(pid, Signal::KILL);
            let killed = Instant::now();
            let done = running.wait_within(soon()).expect_code(1);
            assert!(killed.elapsed() < promptly() * 2 + short_time(), "{args:?}: {:?}", killed.elapsed());
            let error = error_of(&done.only_case(spec)).clone();
            assert_eq!(error.kind, ErrorKind::Died, "{args:?}: {error:?}");
            assert!(
                error.message.contains(role) && error.message.contains(&pid.to_string()),
                "{args:?}: {error:?}"
            );
            done.assert_the_others_went_on(spec);
        }
    }
}

/// A closed loop sees one slow round trip; who asks every millisecond sees three hundred.
#[test]
fn a_stall_counts_for_every_request_it_held_up() {
    let _turn = alone();
    let lab = Lab::new();
    let paced = ["bench", "--json", "-", "pipe", "--rate", "1000", "--count", "1000", "--trials", "1"];
    let mut running = lab.start(lab.command(&[&paced[..], &REFERENCES].concat()));
    let answerer = running.child_in_a_long_trial(ENDS[1]);
    signal(answerer, Signal::STOP);
    std::thread::sleep(Duration::from_millis(300));
    signal(answerer, Signal::CONT);
    let done = running.wait_within(soon()).expect_code(0);
    let case = done.only_case("pipe");
    let response = case.latency_ns.clone().expect("round trips");
    assert!(response.p99 >= 200_000_000, "{response:?}");
    assert!(response.p90 >= 100_000_000, "three in ten were held up: {response:?}");
    let [p50, max] = stats::load::service_ns(&case, [0.5, 1.0]).expect("a histogram").expect("paced");
    assert!(max >= 200_000_000 && p50 < response.p90, "{p50} {max}");
}

#[test]
fn a_rate_that_cannot_be_reached_is_told() {
    let lab = Lab::new();
    let args = ["bench", "pipe", "null", "--workload", "pingpong", "--count", "3000", "--trials", "2"];
    let done = lab.run(&[&args[..], &["--rate", "10000000", "--json", "r.json"]].concat()).expect_code(0);
    assert!(done.stdout.contains("pipe does not keep up with 10,000,000/s"), "{}", done.stdout);
    let text = std::fs::read_to_string(lab.here("r.json")).expect("the record");
    let record = crate::common::read_record(&text);
    let case = ranked(&record.cases).next().expect("pipe");
    assert!(stats::load::reached_per_s(case).is_some_and(|reached| reached < 9.5e6), "{case:?}");
}

/// Expected: a stream is sent at its rate, of every mechanism, and a trial lasts two seconds. Happened: only round trips had a rate, and
/// 46 of them made a trial.
#[test]
fn a_paced_trial_lasts_two_seconds_and_keeps_its_rate() {
    let lab = Lab::new();
    for (workload, rate) in [("stream", 200), ("pingpong", 200)] {
        let (rate_word, words) =
            (rate.to_string(), ["pipe", "null", "memcpy", "--place", "any", "--trials", "1"]);
        let asked = ["--workload", workload, "--rate", &rate_word, "--data", "verify"];
        let record = lab.bench(&[&words[..], &asked].concat()).expect_code(0).record();
        let case = ranked(&record.cases).next().expect("pipe");
        let [sample] = case.samples.as_slice() else { panic!("{case:?}") };
        assert_eq!((case.rate_per_s, sample.messages), (Some(rate), 2 * u64::from(rate) + 1), "{workload}");
        assert!(sample.elapsed_ns >= 2_000_000_000, "{workload}: {sample:?}");
        // The sender sleeps; the client's polling is no CPU time of its end.
        let cpu_ns: u64 = sample.ends.iter().map(|end| end.user_ns + end.system_ns).sum();
        assert!(cpu_ns < sample.elapsed_ns / 10, "{workload}: {cpu_ns} ns of CPU time: {sample:?}");
    }
}

#[test]
fn streams_of_every_mechanism_keep_a_rate() {
    let lab = Lab::new();
    let entries = registry(&lab);
    let mut args: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    args.extend(["--workload", "stream", "--rate", "1000", "--count", "40", "--block", "200"]);
    for more in [&[][..], &["--tasks", "single"]] {
        let record = lab.bench(&[&args[..], &["--trials", "1"], more].concat());
        for case in ranked(&record.record().cases).filter(|case| case.error.is_none()) {
            let [sample] = case.samples.as_slice() else { panic!("{case:?}") };
            assert!(sample.elapsed_ns >= 39_000_000, "{}: {sample:?}", case.spec);
        }
    }
}

/// Expected: no percentile with fewer than ten round trips beyond it, in no format. Happened: the 99.9th of 20.
#[test]
fn a_percentile_of_few_round_trips_is_not_shown() {
    let lab = Lab::new();
    let words = ["bench", "pipe", "null", "--workload", "pingpong", "--place", "any", "--trials", "3"];
    let few = ["--count", "20", "--explain", "--csv", "t.csv", "--md", "t.md"];
    for more in [&[][..], &["--rate", "1000"]] {
        let said = lab.run(&[&words[..], &few, more].concat()).expect_code(0).stdout;
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for text in ["needs 1,000", "needs 10,000"] {
            assert!(said.contains(text), "{said}");
        }
        let csv = std::fs::read_to_string(lab.here("t.csv")).expect("a file");
        let mut lines = csv.lines();
        let heading: Vec<&str> = lines.next().expect("a heading").split(',').collect();
        for line in lines.filter(|line| line.starts_with("pipe,")) {
            let cells: Vec<&str> = line.split(',').collect();
            for name in ["round_trip_p90_ns", "round_trip_p99_ns", "round_trip_p999_ns"] {
                let at = heading.iter().position(|one| *one == name).expect("a column");
                assert_eq!(cells[at], "", "{name}: {csv}");
            }
        }
        let page = std::fs::read_to_string(lab.here("t.md")).expect("a file");
        assert!(page.contains("| – |"), "{page}");
    }
}

#[test]
fn many_pairs_work_or_are_refused_with_a_sentence() {
    let lab = Lab::new();
    let args =
        ["pipe", "sysv-msgq", "pty", "null", "memcpy", "--pairs", "64", "--block", "64", "--count", "20"];
    let record = lab.bench(&[&args[..], &["--trials", "1"]].concat()).expect_code(0).record();
    for case in ranked(&record.cases) {
        let whole = case.samples.iter().any(|sample| sample.shares.len() == 64);
        let refused = case.error.as_ref().is_some_and(|error| {
            error.kind == ErrorKind::Limit && error.message.contains("of 64") && error.remedy.is_some()
        });
        assert!(whole || refused, "{} {}: {:?}", case.spec, case.workload, case.error);
        assert!(whole || case.mechanism != "pipe", "{:?}", case.error);
    }
    let few_descriptors = ["sh", "-c", "ulimit -n 48; exec \"$0\" \"$@\""];
    let args =
        ["bench", "--json", "-", "pipe", "null", "memcpy", "--pairs", "64", "--count", "1", "--trials", "1"];
    let record = lab.finish(lab.wrapped(&few_descriptors, &args)).expect_code(0).record();
    for case in ranked(&record.cases) {
        let error = error_of(case);
        assert!(error.message.contains("EMFILE"), "{error:?}");
        assert!(error.remedy.as_ref().is_some_and(|remedy| remedy.contains("ulimit -n")), "{error:?}");
    }
}

#[test]
fn what_has_no_meaning_is_a_wrong_command_line() {
    let lab = Lab::new();
    for args in [
        ["--senders", "2", "--pairs", "2"],
        ["--senders", "2", "--workload", "pingpong"],
        ["--receivers", "2", "--workload", "pingpong"],
        ["--receivers", "2", "--senders", "2"],
        ["--pairs", "0", "--trials", "1"],
        ["--rate", "10", "--chain", "1"],
    ] {
        lab.run(&[&["bench", "pipe"][..], &args].concat()).expect_code(2);
    }
    let small = lab.bench(&["pipe", "--senders", "2", "--block", "1", "--count", "1", "--time", "1s"]);
    let error = error_of(&small.expect_code(1).only_case("pipe")).clone();
    assert!(error.message.contains("12 bytes"), "{error:?}");
}

#[test]
fn a_record_of_one_pair_at_its_own_speed_is_as_it_was() {
    let lab = Lab::new();
    let args = ["pipe", "null", "memcpy", "--count", "3", "--trials", "1"];
    let done = lab.bench(&args).expect_code(0);
    let new = [
        "pairs",
        "senders",
        "receivers",
        "rate_per_s",
        "shares",
        "all_ran_ns",
        "torn_blocks",
        "service_histogram",
    ];
    assert!(new.iter().all(|field| !done.stdout.contains(&format!("\"{field}\""))), "{}", done.stdout);
    let csv = lab.run(&[&["bench", "--csv", "-"][..], &args].concat()).expect_code(0).stdout;
    assert!(csv.lines().next().is_some_and(|heading| heading.ends_with(",remedy")), "{csv}");
}
