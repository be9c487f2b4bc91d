//! `hosepipe bench --suite`: a fixed set of cases, with a name and a version in the record.

use std::fs;

use crate::common::{Lab, read_record};

const MINE: &str = "name = \"mine\"\nversion = 3\ntrials = 2\n
[[cases]]\nspecs = [\"pipe\", \"null\", \"memcpy\"]\nworkload = \"stream\"\nblock = [\"4KiB\"]\nplace = [\"any\"]
[[cases]]\nspecs = [\"pipe\"]\nworkload = \"pingpong\"\nblock = [\"1\"]\nplace = [\"any\"]\npairs = [2]\n";

#[test]
fn a_suite_is_its_cases() {
    let lab = Lab::new();
    fs::write(lab.here("mine.toml"), MINE).expect("write");
    let plan = lab.run(&["bench", "--suite", "mine.toml", "--dry-run"]).expect_code(0).stdout;
    assert!(plan.contains("suite mine, version 3") && plan.contains("pairs 2"), "{plan}");
    assert!(plan.contains("4 cases x 2 trials"), "{plan}");
}

#[test]
fn the_suites_of_this_program_are_planned_as_they_are() {
    let lab = Lab::new();
    for name in ["kernel", "ipc"] {
        let plan = lab.run(&["bench", "--suite", name, "--dry-run"]).expect_code(0).stdout;
        assert!(plan.contains(&format!("suite {name}, version ")) && plan.contains("x 9 trials"), "{plan}");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_a_wrong_command_line() {
    let lab = Lab::new();
    fs::write(lab.here("wrong.toml"), MINE.replace("place =", "places =")).expect("write");
    let done = lab.run(&["bench", "--suite", "wrong.toml", "--dry-run"]).expect_code(2);
    assert!(done.stderr.contains("wrong.toml, line 9: unknown field `places`"), "{}", done.stderr);
    let done = lab.run(&["bench", "--suite", "nowhere", "--dry-run"]).expect_code(2);
    assert!(done.stderr.contains("kernel, ipc") && done.stderr.contains("ENOENT"), "{}", done.stderr);
    lab.run(&["bench", "pipe", "--suite", "kernel", "--dry-run"]).expect_code(2);
    lab.run(&["bench", "--suite", "kernel", "--payload", "zero", "--dry-run"]).expect_code(2);
}

#[test]
fn records_of_two_versions_are_not_compared() {
    let lab = Lab::new();
    for (version, file) in [("3", "old.json"), ("4", "new.json")] {
        fs::write(lab.here("mine.toml"), MINE.replace("version = 3", &format!("version = {version}")))
            .expect("write");
        // Without the option that the tests add to every bench: a suite says itself where its ends sit.
        let line = format!("\"$0\" bench --suite mine.toml --time 1s --json {file}");
        lab.finish(lab.wrapped(&["sh", "-c", &line], &[])).expect_code(0);
        let record = read_record(&fs::read_to_string(lab.here(file)).expect("the record"));
        let suite = record.settings.suite.expect("named");
        assert_eq!((suite.name.as_str(), suite.version.to_string().as_str()), ("mine", version));
        assert_eq!(record.cases.iter().filter(|case| case.pairs == Some(2)).count(), 1);
        assert!(record.cases.iter().all(|case| case.error.is_none() && !case.samples.is_empty()));
    }
    let done = lab.run(&["diff", "old.json", "new.json"]).expect_code(2);
    assert!(done.stderr.contains("version 3 of the suite `mine` and version 4"), "{}", done.stderr);
    lab.run(&["diff", "old.json", "old.json"]).expect_code(0);
}
