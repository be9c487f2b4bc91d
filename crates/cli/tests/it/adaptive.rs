//! `--precision`: cases go on for as long as they need and the time lasts, and rounds that something else disturbed are repeated.

use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::time::Duration;

use crate::common::{Lab, read_record, soon};

/// Keeps CPUs busy for a moment.
fn neighbours() -> Vec<Child> {
    let busy = || Command::new("timeout").args(["0.15", "sh", "-c", "while :; do :; done"]).spawn();
    (0..4).map(|_| busy().expect("timeout(1)")).collect()
}

/// Expected: a disturbed sample is kept, marked, and made once more; a round counts once.
#[test]
fn disturbed_rounds_are_repeated_and_none_is_lost() {
    let lab = Lab::new();
    let args =
        ["bench", "pipe", "null", "memcpy", "--workload", "stream", "--precision", "0.01", "--time", "3s"];
    let running = lab.start(lab.command(&[&args[..], &["--explain", "--json", "r.json"]].concat()));
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(250));
        neighbours().into_iter().for_each(|mut child| {
            child.wait().expect("it ends by itself");
        });
    }
    let done = running.wait_within(soon()).expect_code(0);
    let record = read_record(&std::fs::read_to_string(lab.here("r.json")).expect("the record"));
    let repeated = record.settings.repeated_rounds.expect("with --precision");
    let most = record.cases.iter().map(|case| case.samples.len()).max().unwrap_or(0);
    assert_eq!(record.settings.trials as usize, most, "as many as the case with the most");
    assert!(repeated as usize <= most / 4 + 1, "{repeated} of {most}: bounded");
    for case in &record.cases {
        assert!(case.samples.iter().all(|sample| !sample.disturbed), "{}", case.spec);
        assert!(case.disturbed.iter().all(|sample| sample.disturbed), "{}", case.spec);
        assert!(case.disturbed.len() <= repeated as usize, "{}", case.spec);
        let rounds: BTreeSet<u32> = case.samples.iter().map(|sample| sample.round).collect();
        assert_eq!(rounds.len(), case.samples.len(), "{}: a round counts once", case.spec);
        // The budget may end between an attempt and its repeat.
        let lost = case.disturbed.iter().filter(|sample| !rounds.contains(&sample.round)).count();
        assert!(lost <= 1, "{}: {lost} rounds are gone", case.spec);
    }
    let told = done.stdout.contains("Something else used the CPUs");
    assert_eq!(told, repeated > 0, "{}", done.stdout);
}

#[test]
fn without_a_precision_nothing_is_repeated_or_marked() {
    let lab = Lab::new();
    let done = lab.bench(&["pipe", "null", "memcpy", "--count", "3", "--trials", "2"]).expect_code(0);
    for field in ["disturbed", "repeated_rounds"] {
        assert!(!done.stdout.contains(field), "{field}: {}", done.stdout);
    }
}
