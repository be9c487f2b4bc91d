//! `cargo bench`: the speed targets of hosepipe, measured side by side with plain C and with the machine's
//! own ceilings. `cargo bench -- --help` lists the options; `cargo bench -- trip` measures a few rows.
//! Comes in: names of rows and how often. Goes out: one table row per target as soon as it is measured,
//! then remarks on the machine. Nothing here knows how hosepipe works inside: it runs the binary, as a user would.

mod aligns;
mod boosts;
mod by_reference;
mod changes;
mod hosepipe;
mod memory;
mod neighbours;
mod one_run;
mod peers;
mod pipelines;
mod printed;
mod programs;
mod prompt;
mod recommended;
mod reference;
mod ring_library;
mod rings;
mod rounds;
mod scripts;
mod spreading;
mod table;
mod target;
mod targets;
mod tops;
mod trips;
mod tuned;
mod workers;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, error::ErrorKind};
use model::{ByteSize, parse_size};

use reference::References;
use target::{Laboratory, Skipped, Target};

/// The speed targets of hosepipe, side by side with plain C.
#[derive(Parser)]
#[command(bin_name = "cargo bench --", after_help = targets::list())]
struct Arguments {
    /// Only the rows that have one of these names, or contain it where none has it
    names: Vec<String>,
    /// Rounds per row; in a round each contender runs once, in shuffled order [default: as the row needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Bytes through the rows `filters` (else 10GiB) and `memory` (else 8GiB), for quick runs
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<ByteSize>,
    /// Seed of the order within the rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Of the questions of `recommend` every N-th only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    every: u16,
    /// The rows that take a minute, too
    #[arg(long)]
    full: bool,
    /// Exit with status 1 if a target is missed or could not be measured
    #[arg(long)]
    strict: bool,
    /// Given by `cargo bench`; `cargo test` leaves it out and only wants to know that this starts.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let chosen = choose(&arguments);
    if !arguments.bench {
        println!("{} rows to measure: run `cargo bench`", chosen.len());
        return Ok(ExitCode::SUCCESS);
    }
    let laboratory = Laboratory {
        rounds: arguments.rounds.map(usize::from),
        bytes: arguments.bytes.map(|size| size.0),
        seed: arguments.seed,
        every: usize::from(arguments.every),
        references: References::compile().context("the C programs to compare with cannot be built")?,
    };
    let mut remarks: Vec<String> = neighbours::remark().into_iter().collect();
    print!("{}", table::heading(&laboratory.references.compiler, arguments.seed));
    let mut all_met = true;
    for target in chosen {
        all_met &= measure(&target, &laboratory, &mut remarks);
    }
    print!("{}", table::remarks(&remarks));
    Ok(if arguments.strict && !all_met { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The rows asked for, in the order of the plan. A name that fits none ends the program with status 2.
fn choose(arguments: &Arguments) -> Vec<Target> {
    let is_name = |word: &String| targets::all().any(|target| target.name == word);
    let fits = |target: &Target, word: &String| match is_name(word) {
        true => target.name == word,
        false => target.name.contains(word.as_str()),
    };
    if let Some(stray) = arguments.names.iter().find(|word| !targets::all().any(|target| fits(&target, word)))
    {
        let message = format!("no row has `{stray}` in its name\n\n{}\n", targets::list());
        Arguments::command().error(ErrorKind::InvalidValue, message).exit();
    }
    let wanted = |target: &Target| {
        let named = arguments.names.iter().any(|word| fits(target, word));
        named || (arguments.names.is_empty() && (arguments.full || !target.slow))
    };
    targets::all().filter(wanted).collect()
}

/// Measures one target and prints its rows at once, so that a later failure loses nothing.
/// False where something wanted was missed or could not be measured; what is skipped counts as neither.
fn measure(target: &Target, laboratory: &Laboratory, remarks: &mut Vec<String>) -> bool {
    if std::io::stderr().is_terminal() {
        eprint!(" {} …\r", target.name);
    }
    match (target.measure)(target.name, laboratory) {
        Ok(rows) => {
            for row in &rows {
                println!("{}", table::line(row));
                remarks.extend(table::remark(row));
            }
            rows.iter().all(|row| row.verdict() != table::Verdict::Missed)
        }
        Err(error) => {
            let skipped = error.downcast_ref::<Skipped>().is_some();
            println!("{}", table::line_without_figures(target.name, skipped, &error));
            skipped
        }
    }
}
