//! `hosepipe run --latency`, `compare --by latency`, and `--without`: how long lines take, and what a program does without a system call.

use std::fs;

use model::{CompareRecord, Delays, Matched, RunRecord};

use crate::common::{Lab, soon};

/// What is known of a text over a link: how lines were matched, and of how many.
fn latency(lab: &Lab, via: &str, text: &str) -> (RunRecord, Delays) {
    let json = format!("--json={}", lab.here("r.json").display());
    let done = lab.run(&["run", "--latency", "--via", via, &json, text]).expect_code(0);
    let record = fs::read_to_string(lab.here("r.json")).expect("a record");
    let record: RunRecord = serde_json::from_str(&record).expect("a record");
    let known = record.latency.clone().expect("asked for");
    assert!(
        known.len() == 1 && done.stderr.contains("Latency from the first link to the last: p50"),
        "{known:?}"
    );
    let whole = known[0].whole.clone();
    (record, whole)
}

#[test]
fn the_time_of_lines_is_told_and_the_stage_that_takes_it() {
    let lab = Lab::new();
    // Two lines wait for the end of their stage, and the third in another.
    let text = "(echo a; sleep 0.3; echo b) | sort | cat | cat";
    let (record, whole) = latency(&lab, "pipe", text);
    assert_eq!((whole.matched, whole.count), (Matched::Content, 2));
    assert!(whole.max_ns >= 100_000_000 && whole.max_ns < soon().as_nanos() as u64, "{whole:?}");
    let stages = &record.latency.expect("asked for")[0].stages;
    let of: Vec<(u32, bool)> =
        stages.iter().map(|stage| (stage.stage, stage.share.is_some_and(|share| share > 0.5))).collect();
    assert_eq!(of, [(1, true), (2, false)]);
    for (text, matched, count) in [
        ("seq 1000 | sed s/^/x/ | cat", Matched::Position, 1000),
        ("seq 1000 | grep 7 | cat", Matched::Content, 271),
        ("seq 1000 | tac | cat", Matched::Content, 1000),
        ("yes | head -n 1000 | cat | cat", Matched::Content, 1000),
    ] {
        let (_, whole) = latency(&lab, "pipe", text);
        // Of one line that is often in both links it is not known which is which where the first has more.
        let is_known = whole.matched == matched && whole.count == count;
        assert!(is_known || text.starts_with("yes") && whole.matched == Matched::Block, "{text}: {whole:?}");
    }
    assert_eq!(latency(&lab, "pipe", "seq 1001 2000 | wc -l | cat").1.matched, Matched::Block);
}

#[test]
fn the_bytes_are_the_same_over_every_link() {
    let lab = Lab::new();
    let text = "seq 200000 | cat | sed s/7/x/ | md5sum";
    let expected = lab.run(&["run", text]).expect_code(0).stdout;
    for via in ["pipe", "pipe:size=4KiB", "fifo", "socketpair", "tcp", "tmpfile", "pty"] {
        let done = lab.run(&["run", "--latency", "--via", via, text]).expect_code(0);
        assert_eq!(done.stdout, expected, "{via}");
        let (_, whole) = latency(&lab, via, text);
        // A terminal is as many lines, too.
        assert_eq!(whole.matched, Matched::Content, "{via}: most lines stay as they are");
        assert!(whole.count > 1000, "{via}: {whole:?}");
    }
    // A reader that leaves ends its writer.
    let done = lab.run(&["run", "--latency", "--pipefail", "yes | cat | head -n 1"]).expect_code(141);
    assert_eq!(done.stdout, "y\n");
}

/// Expected: each line counts once. Happened: when a full pipe took a part of a piece, the rest counted again, 249,939 lines of 200,000.
#[test]
fn lines_that_wait_for_a_full_pipe_are_counted_once() {
    let lab = Lab::new();
    for via in ["tmpfile", "file"] {
        let (record, whole) = latency(&lab, via, "seq 200000 | (sleep 0.3; cat) | cat");
        let lines: Vec<Option<u64>> = record.links.iter().map(|link| link.lines).collect();
        assert_eq!(lines, [Some(200_000); 2], "{via}");
        assert_eq!(whole.matched, Matched::Content, "{via}");
    }
}

#[test]
fn what_has_no_latency_says_why() {
    let lab = Lab::new();
    let done = lab.run(&["run", "--latency", "seq 3 | cat"]).expect_code(0);
    assert!(done.stderr.contains("No latency: it is the time of a line"), "{}", done.stderr);
    let done = lab.run(&["run", "--latency", "--via", "tmpfile:order=sequential", "a | b"]).expect_code(2);
    assert!(done.stderr.contains("--latency needs a link that both stages use"), "{}", done.stderr);
    let done = lab.run(&["compare", "--by", "latency", "--via", "bash", "a | b"]).expect_code(2);
    assert!(
        done.stderr.contains("--by latency: the time of lines cannot be measured over `bash`"),
        "{}",
        done.stderr
    );
    let args =
        ["compare", "--by", "latency", "--trials", "1", "--warmup", "0", "seq 3 | cat", "seq 3 | sort"];
    let done = lab.run(&args).expect_code(1);
    assert!(done.stdout.contains("nothing went"), "{}", done.stdout);
}

#[test]
fn pipelines_are_ranked_by_the_time_of_their_lines() {
    let lab = Lab::new();
    let texts = ["seq 10 | (sleep 0.7; cat) | cat", "(sleep 0.8; seq 10) | cat | cat"];
    let args = ["compare", "--by", "latency", "--trials", "3", "--warmup", "0", "--json", "r.json"];
    let done = lab.run(&[&args[..], &texts].concat()).expect_code(0);
    assert!(done.stdout.contains("by the median time of a line"), "{}", done.stdout);
    // Rows are in this order, whether or not so few trials on this machine make it certain.
    let row = |text: &str| done.stdout.find(&text[..9]).expect("a row");
    assert!(row(texts[1]) < row(texts[0]), "{}", done.stdout);
    let record = fs::read_to_string(lab.here("r.json")).expect("a record");
    let record: CompareRecord = serde_json::from_str(&record).expect("a record");
    assert_eq!(record.conditions["by"], "latency");
    assert!(record.results[0].median_s > record.results[1].median_s, "{record:?}");
}

#[test]
fn a_program_finds_calls_missing() {
    let lab = Lab::new();
    let text = "mkdir made 2>/dev/null && echo made || echo none";
    assert_eq!(lab.run(&["run", text]).expect_code(0).stdout, "made\n");
    fs::remove_dir(lab.here("made")).expect("it was made");
    let without = ["--without", "mkdir,mkdirat"];
    let done =
        lab.run(&[&["run"], &without[..], &["--stats", &format!("{text} | cat")]].concat()).expect_code(0);
    assert_eq!(done.stdout, "none\n");
    assert!(done.stderr.contains("Refused to all programs: mkdir,mkdirat."), "{}", done.stderr);
    let done = lab.run(&["run", "--without", "splise", "ls | cat"]).expect_code(2);
    assert!(
        done.stderr.contains("there is no system call `splise`: did you mean `splice`?"),
        "{}",
        done.stderr
    );
    lab.run(&["compare", "--without", "splise", "ls"]).expect_code(2);
    for via in ["bash", "pipe"] {
        let args = ["compare", "--via", via, "--trials", "1", "--warmup", "0", "--json", "r.json"];
        let text = "mkdir made 2>/dev/null && rmdir made && echo made || echo none";
        let done = lab.run(&[&args[..], &without, &[text]].concat()).expect_code(0);
        assert!(done.stdout.contains("# without=mkdir,mkdirat"), "{via}: {}", done.stdout);
        let record = fs::read_to_string(lab.here("r.json")).expect("a record");
        let record: CompareRecord = serde_json::from_str(&record).expect("a record");
        let results: Vec<(bool, u64)> = record
            .results
            .iter()
            .map(|one| (one.parameters.contains_key("without"), one.output_bytes))
            .collect();
        assert_eq!(results, [(false, 5), (true, 5)], "{via}");
        assert_eq!(record.results[1].same_output, Some(false), "{via}: none is not made");
    }
}
