//! Programs are printed as the formatter of their language writes them.

use std::fs;
use std::process::Command;

use super::{all, record};
use crate::common::Lab;
use crate::common::programs::has;
use crate::recommend::case;

/// What makes lines of a program come and go.
const QUESTIONS: [&[&str]; 8] = [
    &[],
    &["--pattern", "request-reply"],
    &["--must", "poll"],
    &["--senders", "3"],
    &["--senders", "3", "--must", "poll"],
    &["--receivers", "3", "--share", "compete"],
    &["--receivers", "3", "--share", "broadcast"],
    &["--senders", "2", "--receivers", "3", "--share", "compete"],
];

/// All programs of a language are given to its formatter, which prints what it would change.
fn expect_formatted(language: &str, formatter: &[&str]) {
    if !has(formatter[0]) {
        return;
    }
    let lab = Lab::new();
    let pair = format!("{language},{language}");
    let (mut files, folder) = (vec![], lab.here("all"));
    fs::create_dir(&folder).expect("a folder");
    let mut add = |text: &str| {
        let file = folder.join(format!("{}.{language}", files.len()));
        // A file of its own, which is the ring's.
        fs::write(&file, text.replace("\nmod ring;\n", "\nmod ring {}\n")).expect("a file");
        files.push(file);
    };
    for spec in all() {
        record(&lab, "run.json", vec![case(spec, 900, 900)]);
        for words in QUESTIONS {
            let ask = ["recommend", "--message", "200", "--from", "run.json", "--code"];
            if language == "rust"
                && lab.run(&[&ask[..], &["rust", "--code-to", "one.rs"], words].concat()).code() == 0
            {
                add(&fs::read_to_string(lab.here("one.rs")).unwrap_or_default());
            }
            if lab.run(&[&ask[..], &[&pair, "--code-to", "two"], words].concat()).code() == 0 {
                for file in fs::read_dir(lab.here("two")).expect("a folder").flatten() {
                    let name = file.file_name().to_string_lossy().into_owned();
                    if name.starts_with("sender.") || name.starts_with("receiver.") {
                        add(&fs::read_to_string(file.path()).expect("a program"));
                    }
                }
                fs::remove_dir_all(lab.here("two")).expect("ours");
            }
        }
    }
    assert!(files.len() > 50, "{} programs", files.len());
    let done = Command::new(formatter[0]).args(&formatter[1..]).args(&files).output().expect("it starts");
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn programs_in_rust_are_formatted() {
    let width = "max_width=140,use_small_heuristics=Max";
    expect_formatted("rust", &["rustfmt", "--check", "--edition", "2021", "--config", width]);
}

#[test]
fn programs_in_go_are_formatted() {
    expect_formatted("go", &["gofmt", "-d"]);
}
