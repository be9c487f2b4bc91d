//! `hosepipe sh` as a person feels it: how long until the first prompt, and from a key press to the screen. Typed and
//! read through a pseudo-terminal, by the same hands as in the tests.

// The tests use what is not used here.
#[allow(dead_code)]
#[path = "../../tests/it/common/pty.rs"]
mod pty;

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::hosepipe;
use crate::rounds::interleave;
use crate::table::{Row, Unit, Wanted};
use crate::targets::{Laboratory, Target};
use pty::{Person, home, plain};

/// What a person does not notice.
const START_S_MAX: f64 = 0.050;
const KEY_S_MAX: f64 = 0.010;
/// Starts of each shell, and keys of each kind, unless asked otherwise.
const STARTS: usize = 21;
const KEYS: usize = 200;
/// As many lines as are kept.
const HISTORY_LINES: usize = 20_000;
/// Bytes of a line that fills a good part of the screen.
const LONG_LINE_BYTES: usize = 2000;
/// What is typed at once to begin such a line: below what the editor reads at once.
const CHUNK_BYTES: usize = 500;
/// So much of a line's end is looked for on the screen.
const TAIL_BYTES: usize = 8;

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "prompt-start",
        promise: "`hosepipe sh` to its first prompt, also with a full history: at most 50 ms (and `bash --norc -i` beside it)",
        slow: false,
        measure: starts,
    },
    Target {
        name: "prompt-key",
        promise: "a key press to the screen, p50 and p99, also with a full history and in a long line: at most 10 ms",
        slow: false,
        measure: keys,
    },
];

/// Both shells in turns, in an empty home; then ours alone with all the history that it keeps.
fn starts(name: &str, lab: &Laboratory) -> Result<Vec<Row>> {
    let empty = home();
    let full = home();
    with_prompt(empty.path())?;
    with_prompt(full.path())?;
    write_history(full.path())?;
    let rounds = lab.rounds_or(STARTS);
    let ours = |home: &Path| seconds_to_prompt(home, &[hosepipe::PROGRAM, "sh"], "(pipe)> ");
    let bash = || seconds_to_prompt(empty.path(), &["bash", "--norc", "-i"], "bash-");
    let [empty_home, full_history, reference] =
        interleave(rounds, lab.seed, [&|| ours(empty.path()), &|| ours(full.path()), &bash])?;
    let row = |more: &str, ours: &[f64], reference: &[f64], wanted| Row {
        name: format!("{name}{more}"),
        unit: Unit::Seconds,
        ours: ours.to_vec(),
        reference: reference.to_vec(),
        wanted,
    };
    Ok(vec![
        row("", &empty_home, &[], Wanted::AtMost(START_S_MAX)),
        row(" history", &full_history, &[], Wanted::AtMost(START_S_MAX)),
        row(" / bash -i", &empty_home, &reference, Wanted::Nothing),
    ])
}

fn seconds_to_prompt(home: &Path, program: &[&str], prompt: &str) -> Result<f64> {
    let began = Instant::now();
    let mut person = Person::before(home, program);
    person.sees(prompt);
    let seconds = began.elapsed().as_secs_f64();
    // Its history is written before the next one reads it.
    person.types("\x04");
    person.leaves();
    Ok(seconds)
}

fn keys(name: &str, lab: &Laboratory) -> Result<Vec<Row>> {
    let count = lab.rounds_or(KEYS);
    let empty = home();
    let full = home();
    with_prompt(empty.path())?;
    with_prompt(full.path())?;
    write_history(full.path())?;
    let long: String = "cat file | sort -k 2 'a word' | ".chars().cycle().take(LONG_LINE_BYTES).collect();
    let cases = [("", empty.path(), ""), (" history", full.path(), ""), (" long line", empty.path(), &*long)];
    let mut rows = Vec::new();
    for (more, home, before) in cases {
        let mut seconds = seconds_per_key(home, before, count);
        seconds.sort_by(f64::total_cmp);
        let p99 = seconds[(seconds.len() * 99).div_ceil(100) - 1];
        for (which, ours) in [("", seconds), (" p99", vec![p99])] {
            let name = format!("{name}{more}{which}");
            let wanted = Wanted::AtMost(KEY_S_MAX);
            rows.push(Row { name, unit: Unit::Seconds, ours, reference: Vec::new(), wanted });
        }
    }
    Ok(rows)
}

/// Types a line key by key behind `before`, and again from its beginning where it has grown by a screen's line: each
/// key is pressed when the one before it is on the screen.
fn seconds_per_key(home: &Path, before: &str, count: usize) -> Vec<f64> {
    let text = "cat access.log | cut -d ' ' -f 1 | sort | uniq -c | sort -rn | head";
    let mut person = Person::at_home(home);
    let mut line = String::new();
    let mut seconds = Vec::with_capacity(count);
    for key in text.chars().cycle().take(count) {
        if line.len() <= before.len() || line.len() >= before.len() + text.len() {
            // Ctrl-C: a new line.
            person.types("\x03");
            // All of it: keys that come before the prompt is painted belong to no repaint of their own.
            person.sees("> ");
            line.clear();
            for chunk in before.as_bytes().chunks(CHUNK_BYTES) {
                line.push_str(&String::from_utf8_lossy(chunk));
                person.types(&line[line.len() - chunk.len()..]);
                shows_the_end_of(&person, &line);
            }
        }
        line.push(key);
        let began = Instant::now();
        person.types(key.encode_utf8(&mut [0; 4]));
        shows_the_end_of(&person, &line);
        seconds.push(began.elapsed().as_secs_f64());
    }
    seconds
}

/// Waits until the last few characters are on the screen, as one piece: a repaint shows the line anew.
fn shows_the_end_of(person: &Person, line: &str) {
    let tail: String = line.chars().rev().take(TAIL_BYTES).collect::<Vec<_>>().into_iter().rev().collect();
    person.waits(&tail, |seen| plain(seen).replace('\n', "").contains(&tail));
}

/// A prompt that is known when it is seen, and room for the history.
fn with_prompt(home: &Path) -> Result<()> {
    let text = format!("PS1='(pipe)> '\nHISTSIZE={HISTORY_LINES} HISTFILESIZE={HISTORY_LINES}\n");
    std::fs::write(home.join(".bashrc"), text).context(".bashrc")
}

/// A history as long as one gets, of lines that begin like what is typed and go on otherwise.
fn write_history(home: &Path) -> Result<()> {
    let mut text = String::new();
    for line in 0..HISTORY_LINES {
        writeln!(text, "cat access.log.{line} | cut -d ' ' -f {line} | sort")?;
    }
    std::fs::write(home.join(".bash_history"), text).context("the history")
}
