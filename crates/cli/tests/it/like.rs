//! `hosepipe bench --like OLD.json`: the cases, placements and amounts of a record again.

use std::fs;

use model::{BenchRecord, CaseRecord, DiffRecord};

use crate::common::{Lab, read_record};

/// The amount of each trial, in order.
fn amounts(case: &CaseRecord) -> Vec<u64> {
    case.samples.iter().map(|sample| sample.messages).collect()
}

/// Runs a bench without the options that the tests add to every bench.
fn bench(lab: &Lab, words: &str, code: i32) -> String {
    let line = format!("\"$0\" bench {words}");
    lab.finish(lab.wrapped(&["sh", "-c", &line], &[])).expect_code(code).stderr
}

fn record(lab: &Lab, file: &str) -> BenchRecord {
    read_record(&fs::read_to_string(lab.here(file)).expect("the record"))
}

#[test]
fn a_record_is_measured_again_with_the_same_amounts() {
    let lab = Lab::new();
    let place = "--place any --trials 2 --block 4KiB --time 300ms";
    for words in [
        format!("fifo eventfd {place}"),
        format!("pipe --pairs 1,2 --workload stream {place}"),
        format!("pipe --senders 1,3 {place}"),
        format!("pipe --receivers 2 {place}"),
        format!("socketpair --rate 2000 --count 200 {place}"),
        format!("pipe --chain 1 --data write,verify --check xor --payload zero {place}"),
        format!("pipe --align 0,16 --tasks threads --wait poll {place}"),
    ] {
        bench(&lab, &format!("{words} --json old.json"), 0);
        bench(&lab, "--like old.json --trials 3 --json new.json", 0);
        let [old, new] = ["old.json", "new.json"].map(|file| record(&lab, file).cases);
        let identities = |cases: &[CaseRecord]| cases.iter().map(CaseRecord::identity).collect::<Vec<_>>();
        assert_eq!(identities(&old), identities(&new), "{words}");
        for (old, new) in old.iter().zip(&new).filter(|(old, _)| !old.samples.is_empty()) {
            let (most, least) = (amounts(old).into_iter().max(), amounts(old).into_iter().min());
            let again = amounts(new);
            assert_eq!(again.len(), 3, "{words}");
            let is_between = |one: &u64| Some(*one) <= most && Some(one + 8) >= least;
            assert!(again.iter().all(|one| *one == again[0] && is_between(one)), "{words}: {again:?}");
        }
    }
}

#[test]
fn what_contradicts_a_record_is_refused() {
    let lab = Lab::new();
    bench(&lab, "pipe --count 50 --trials 1 --place any --json old.json", 0);
    for other in [
        "fifo",
        "--block 4KiB",
        "--count 9",
        "--bytes 1MiB",
        "--workload stream",
        "--suite kernel",
        "--all",
        "--sweep",
        "--rate 100",
        "--workers c",
        "--peer box",
    ] {
        let said = bench(&lab, &format!("--like old.json --dry-run {other}"), 2);
        assert!(said.contains("cannot be used with"), "{other}: {said}");
    }
    for place in ["cross", "all", "0,1"] {
        let said = bench(&lab, &format!("--like old.json --dry-run --place {place}"), 2);
        assert!(said.contains("--place contradicts --like old.json, which has `pipe` at any"), "{said}");
    }
    for further in ["--place any", "--trials 2", "--time 2s", "--precision 5", "--seed 4"] {
        bench(&lab, &format!("--like old.json --dry-run {further}"), 0);
    }
    lab.run(&["compare", "--trials", "1", "--json", "compare.json", "true | true"]).expect_code(0);
    let change = |file: &str, change: &dyn Fn(&mut BenchRecord)| {
        let mut made = record(&lab, "old.json");
        change(&mut made);
        fs::write(lab.here(file), serde_json::to_string(&model::Record::from(made)).expect("JSON"))
            .expect("a file");
    };
    change("unknown.json", &|record| record.cases[0].spec.mechanism = "no-such-one".to_owned());
    change("many.json", &|record| record.cases[0].relays = 4_000_000);
    change("huge.json", &|record| record.cases[0].samples[0].messages = 1 << 52);
    change("empty.json", &|record| record.cases.clear());
    change("there.json", &|record| record.cases[0].direction = Some(model::Direction::Peer));
    for (file, said) in [
        ("absent.json", "ENOENT"),
        ("compare.json", "a record of `hosepipe compare` has no cases of mechanisms"),
        ("unknown.json", "no-such-one"),
        ("many.json", "4000000"),
        ("huge.json", "more than 1 EiB"),
        ("empty.json", "has no cases"),
        ("there.json", "--workers or --peer"),
    ] {
        let problem = bench(&lab, &format!("--like {file} --dry-run"), 2);
        assert!(problem.contains(said), "{file}: {problem}");
    }
}

/// Expected: trials of other amounts are named, as longer ones have other figures. Happened: nothing was said where one run had 1,876
/// blocks in a trial and the other 4,448.
#[test]
fn amounts_that_differ_are_named() {
    let lab = Lab::new();
    for (count, file) in [("1000", "a.json"), ("1200", "b.json"), ("1400", "c.json")] {
        let words = format!("pipe --count {count} --trials 2 --block 4KiB --place any --json {file}");
        bench(&lab, &words, 0);
    }
    let remarks = |new: &str| -> Vec<String> {
        let done = lab.run(&["diff", "a.json", new, "--json", "-"]).expect_code(0);
        let record: DiffRecord = serde_json::from_str(&done.stdout).expect("a record");
        record
            .changes
            .into_iter()
            .filter(|change| !change.control)
            .filter_map(|change| change.remark)
            .collect()
    };
    assert!(remarks("b.json").is_empty(), "a factor of 1.2");
    let said = remarks("c.json");
    assert!(
        said.iter().any(|one| one.contains("blocks of a trial: 1000, then 1400 (`bench --like`")),
        "{said:?}"
    );
    assert!(said.iter().any(|one| one.contains("round trips of a trial: 1000, then 1400")), "{said:?}");
}
