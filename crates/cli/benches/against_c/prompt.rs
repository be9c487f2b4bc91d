//! The time until the first prompt of `hosepipe sh`, through a pseudo-terminal as in the tests. Afterwards the prompt is the shell's
//! own.

// The tests use what is not used here.
#[allow(dead_code)]
#[path = "../../tests/it/common/pty.rs"]
pub(crate) mod pty;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::hosepipe;
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::{Laboratory, Target};
use pty::{Person, home};

/// A delay that a person does not notice.
const START_S_MAX: f64 = 0.050;
const STARTS: usize = 21;

pub(crate) const TARGETS: &[Target] = &[Target::quick(
    "prompt-start",
    "`hosepipe sh` to its first prompt: at most 50 ms (and `bash -i` beside it)",
    starts,
)];

/// Both shells in turns, in the same home.
fn starts(name: &str, lab: &Laboratory) -> Result<Vec<BenchRow>> {
    let home = home();
    std::fs::write(home.path().join(".bashrc"), "PS1='ready> '\n").context(".bashrc")?;
    let to_prompt = |program: &[&str]| seconds_to_prompt(home.path(), program);
    let contenders: [&dyn Fn() -> Result<f64>; 2] =
        [&|| to_prompt(&[hosepipe::PROGRAM, "sh"]), &|| to_prompt(&["bash", "-i"])];
    let pair = lab.interleave(STARTS, contenders)?;
    Ok(vec![
        BenchRow::alone(name, Unit::Seconds, pair[0].clone(), Wanted::AtMost(START_S_MAX)),
        BenchRow::beside(format!("{name} / bash -i"), Unit::Seconds, pair, Wanted::Nothing),
    ])
}

fn seconds_to_prompt(home: &Path, program: &[&str]) -> Result<f64> {
    let began = Instant::now();
    let mut person = Person::before(home, program);
    person.sees("ready> ");
    let seconds = began.elapsed().as_secs_f64();
    person.types("\x04");
    person.leaves();
    Ok(seconds)
}
