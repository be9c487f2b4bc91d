//! `hosepipe tune`: whatever it prints gives the output of the original, and what must not be run many times is refused.

use std::fmt::Write;
use std::fs;

use model::{TuneReason, TuneRecord};

use crate::common::{Done, Lab};

/// A log with `lines` lines, in which words are repeated.
fn log(lab: &Lab, name: &str, lines: u32) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let word = (line * 7919) % 101;
        writeln!(text, "{line} {} /page/{word} é{}", if line % 3 == 0 { "GET" } else { "POST" }, word * word)
            .expect("a text");
    }
    let path = lab.here(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

fn tune(lab: &Lab, text: &str, more: &[&str]) -> (Done, Option<TuneRecord>) {
    let time: &[&str] = if more.contains(&"--time") { &[] } else { &["--time", "2s"] };
    let done = lab.run(&[&["tune", "--json", "-"], time, more, &["--", text]].concat());
    let record = model::from_json(&done.stdout).ok();
    (done, record)
}

fn bash(text: &str) -> (Option<i32>, Vec<u8>) {
    let output = std::process::Command::new("bash").args(["-c", text]).output().expect("bash");
    (output.status.code(), output.stdout)
}

/// Expected: of every text the one that is printed gives the same in bash, and the status says whether it is another one.
#[test]
fn what_is_printed_gives_the_same_output() {
    let lab = Lab::new();
    let file = log(&lab, "log", 20_000);
    for text in [
        format!("cat {file} | grep GET | cut -d\" \" -f3 | sort | uniq -c | sort -rn | head -n 5"),
        format!(
            "for f in {file} {file}; do x=\"$f\"; cut -d' ' -f3 \"$x\" | sort | uniq -d; done | sort -u | wc -l"
        ),
        format!("sort {file} | uniq | grep -v POST | wc -l"),
        format!("grep -c nothing {file}"),
    ] {
        let (output, record) = tune(&lab, &text, &[]);
        let record = record.unwrap_or_else(|| panic!("{text}: {}", output.stderr));
        assert!(record.equal, "{text}");
        assert_eq!(record.pipeline, text);
        assert_eq!(Some(output.code()), Some(i32::from(!record.is_faster())), "{text}");
        assert_eq!(record.is_faster(), record.ratio < 1.0 && record.tuned_s.is_some(), "{record:?}");
        assert_eq!(record.is_faster(), !record.changes.is_empty(), "{record:?}");
        if !record.text.starts_with("hosepipe ") {
            assert_eq!(bash(&record.text), bash(&text), "{}", record.text);
        }
    }
}

/// Expected: a change whose output is another one is tried and dropped.
#[test]
fn a_change_of_the_output_is_dropped() {
    let lab = Lab::new();
    let (output, record) = tune(&lab, r#"printf "b\na\n" | xargs -n1 echo"#, &[]);
    let record = record.unwrap_or_else(|| panic!("{}", output.stderr));
    let dropped = record.left_out.iter().find(|one| one.rule == "more-arguments").expect("it was tried");
    assert_eq!((dropped.reason, dropped.after.as_str()), (TuneReason::Output, "xargs echo"));
    assert!(!record.text.contains("xargs echo"));
}

#[test]
fn what_writes_is_refused_and_nothing_is_run() {
    let lab = Lab::new();
    let out = lab.here("out");
    let text = format!("seq 5 > {}", out.display());
    let (output, _) = tune(&lab, &text, &[]);
    assert_eq!(Some(output.code()), Some(2));
    let said = &output.stderr;
    assert!(said.contains("`> ") && said.contains("--yes"), "{said}");
    assert!(!out.exists());
    let (output, record) = tune(&lab, &text, &["--yes"]);
    assert!(record.is_some() && out.exists(), "{}", output.stderr);
}

/// Expected: what a pipeline writes is of the whole input, and by the commands as given. Happened: with --yes the file had a part of it, and
/// "the output is the same" was said of no output.
#[test]
fn what_a_pipeline_writes_is_left_as_it_is() {
    let lab = Lab::new();
    let (file, out) = (log(&lab, "log", 60_000), lab.here("out"));
    let text = format!("xargs -n1 echo <{file} | sort -r > {}", out.display());
    let (done, record) = tune(&lab, &text, &["--yes", "--time", "100ms"]);
    assert!(record.is_none_or(|record| !record.is_faster()), "{}", done.stderr);
    let text = format!("sort -r {file} > {}", out.display());
    let (done, record) = tune(&lab, &text, &["--yes", "--time", "300ms"]);
    let record = record.unwrap_or_else(|| panic!("{}", done.stderr));
    assert!(!record.is_faster() && record.changes.is_empty());
    let written = fs::read_to_string(&out).expect("a file");
    assert_eq!(written.lines().count(), 60_000);
}

#[test]
fn a_search_may_be_given_any_time() {
    let lab = Lab::new();
    let done = lab.run(&["tune", "--time", "10000000000000000000s", "date +%N"]);
    assert!(done.code() == 2 && !done.stderr.contains("panicked"), "{}", done.stderr);
}

#[test]
fn what_differs_from_run_to_run_is_refused() {
    let lab = Lab::new();
    let (output, _) = tune(&lab, "date +%N | sort", &[]);
    let said = &output.stderr;
    assert!(Some(output.code()) == Some(2) && said.contains("another one each time"), "{said}");
}

/// Expected: a pipeline without an end is ended, and nothing of it is left.
#[test]
fn a_pipeline_without_an_end_is_ended() {
    let lab = Lab::new();
    let output = lab.run(&["tune", "--time", "500ms", "sleep 1000 | cat"]);
    assert_eq!(Some(output.code()), Some(1), "{}", output.stderr);
}

/// Expected: it ends. Happened: a text that ignores SIGTERM ran on for minutes.
#[test]
fn a_pipeline_that_ignores_requests_to_end_is_killed() {
    let lab = Lab::new();
    let done = lab.run(&["tune", "--yes", "--time", "200ms", "trap '' INT TERM; sleep 1778; sleep 1778"]);
    assert_eq!(done.code(), 1, "{}", done.stderr);
    assert!(done.stdout.contains("did not end"), "{}", done.stdout);
}

/// Expected: a result. Happened: a panic where `cat` has no operand.
#[test]
fn a_stage_without_operands_is_looked_at() {
    let lab = Lab::new();
    for text in ["cat | wc -l", "seq 9 | cat | sort", "xargs", "sort", "grep | head", "stdbuf -oL", "awk"] {
        let (done, _) = tune(&lab, text, &[]);
        assert!(done.code() <= 1 && !done.stderr.contains("panicked"), "{text}: {}", done.stderr);
    }
}

#[test]
fn a_script_has_the_text_and_says_what_was_changed() {
    let lab = Lab::new();
    let file = log(&lab, "log", 1000);
    let script = lab.here("fast.sh");
    let text = format!("sort {file} | uniq -c");
    let path = script.display().to_string();
    let output = lab.run(&["tune", "--time", "1s", "--script", &path, &text]);
    assert!(output.code() < 2, "{}", output.stderr);
    let kept = fs::read_to_string(&script).expect("a script");
    assert!(kept.starts_with("#!/usr/bin/env bash\n# Before: sort "), "{kept}");
    let ran = std::process::Command::new("bash").arg(&script).output().expect("bash");
    assert_eq!(ran.stdout, bash(&text).1);
}
