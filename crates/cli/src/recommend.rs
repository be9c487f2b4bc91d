//! `hosepipe recommend`: a question becomes a plan of `bench`, its record an answer: what to take, why, what proves it, and how to set it up.

mod args;
mod besides;
mod contest;
mod explain;
mod figures;
mod program;
mod question;
mod timing;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
pub(crate) use args::RecommendArgs;
use clap::Parser;
use model::{BenchRecord, Record, Spec};
use report::read::Loaded;
use stats::Demand;

use crate::bench::PlaceArgument;
use crate::destination::Destination;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::{Cli, Command, bench, record};
use contest::Contest;
use figures::Figures;
use program::Program;
use question::{Candidate, Question};

/// Thirds of `--time` for the loops of `bench`; in what they leave of it the programs are compiled and run.
const THIRDS_FOR_LOOPS: u32 = 2;

/// Answers the question.
pub(crate) fn run(args: &RecommendArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    args.outputs.check()?;
    args.code_to.as_deref().map(written).transpose()?;
    let question = args.question();
    let candidates = question.candidates().map_err(UsageError)?;
    let (record, stop) = match &args.from {
        Some(path) => (of_bench(record::load(path)?)?, None),
        None => {
            let (record, stop) =
                measure(&proof(args, &question, &available(&candidates), args.place), question.demand)?;
            (record, Some(stop))
        }
    };
    let weighable = figures::within_limits(record.clone(), question.message_bytes);
    let figures = Figures::of(&weighable, &question, &candidates, args.place).map_err(UsageError)?;
    let mut weighing = stats::choose(&figures.cases, &question.demand);
    let taken_by_loops = weighing.taken;
    let programs = match &stop {
        Some(stop) if !stop.is_set() => {
            let plan = contest::Plan {
                question: &question,
                language: args.code,
                time: args.time,
                until: began + args.time,
                seed: args.seed,
            };
            contest::run(&plan, &figures, &weighing, &|| stop.is_set())?
        }
        Some(_) => Vec::new(),
        // Those of a record that answers this question.
        None => {
            let title = explain::title(&question, &figures);
            let recommendation = record.recommendation.as_deref();
            let own = recommendation.filter(|one| one.title == title && one.language == args.code.word());
            own.map_or(Vec::new(), |own| own.programs.clone())
        }
    };
    let took = stop.is_some().then(|| began.elapsed());
    let contest = Contest::new(&programs, &figures, &question.demand);
    let place = |spec: &Spec| figures.cases.iter().position(|case| case.spec == *spec);
    let by_programs = contest.taken().filter(|_| contest.does_all || weighing.taken.is_some());
    weighing.taken = by_programs.and_then(place).or(weighing.taken);
    let answer = explain::Answer {
        question: &question,
        candidates: &candidates,
        figures: &figures,
        weighing: &weighing,
        is_stopped: stop.as_ref().is_some_and(StopRequest::is_set),
        programs: &programs,
        contest: &contest,
        took,
        language: args.code,
        taken_by_loops,
    };
    let program = weighing.taken.and_then(|at| Program::new(&figures.cases[at].spec, args.code, &question));
    if let (Some(path), Some(program)) = (&args.code_to, &program) {
        save(path, program)?;
    }
    if !args.outputs.has_stdout() {
        let specs: Vec<String> = figures.cases.iter().map(|case| case.spec.to_string()).collect();
        let proof =
            format!("hosepipe {}", proof(args, &question, &specs, args.place.or(figures.place())).join(" "));
        let mut text = answer.document(&proof).terminal(&terminal::style());
        let shown = program.as_ref().filter(|_| args.code_to.is_none());
        text.extend(shown.map(|program| format!("\n{}", program.text())));
        terminal::print_painted(&text)?;
    }
    let recommendation = Some(Box::new(answer.recommendation(program.as_ref())));
    args.outputs.write(&[Loaded::new("this run", BenchRecord { recommendation, ..record })])?;
    match stop {
        Some(stop) => Ok(stop.exit_code(weighing.taken.is_none())),
        None => Ok(ExitCode::from(u8::from(weighing.taken.is_none()))),
    }
}

/// Where a program is written to: a regular file, or one that is not there yet.
///
/// # Errors
/// It is neither, or cannot be written.
fn written(path: &Path) -> anyhow::Result<Destination> {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(UsageError(format!("`{}` is no regular file", path.display())).into());
    }
    let destination = Destination::File(path.to_owned());
    destination.check().map(|()| destination)
}

/// Writes a program, and its library beside it.
fn save(path: &Path, program: &Program) -> anyhow::Result<()> {
    if let Some(library) = program.library {
        written(&path.with_file_name(library.file))?.write(library.text)?;
    }
    written(path)?.write(&program.text_in(path))
}

/// The specs of the candidates that are there on this machine.
fn available(candidates: &[Candidate]) -> Vec<String> {
    let there = candidates.iter().filter(|one| one.missing.is_none() && one.unfit.is_none());
    there.map(|candidate| candidate.spec.to_string()).collect()
}

/// The command line, after the program's name, that measures what the answer rests on. It is what is run.
fn proof(
    args: &RecommendArgs,
    question: &Question,
    specs: &[String],
    place: Option<PlaceArgument>,
) -> Vec<String> {
    let block = model::ByteSize(question.message_bytes).to_string();
    let time = Duration::from_millis((args.time * THIRDS_FOR_LOOPS / 3).as_millis().max(1) as u64);
    let time = humantime::format_duration(time).to_string().replace(' ', "");
    let seed = args.seed.to_string();
    let mut words = vec!["bench".to_owned()];
    words.extend(specs.iter().cloned());
    let options = [
        ("--block", block.as_str()),
        ("--workload", question.pattern.workload().word()),
        ("--tasks", question.between.tasks().word()),
        ("--time", time.as_str()),
        ("--seed", seed.as_str()),
    ];
    words.extend(options.iter().flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]));
    words.extend(place.into_iter().flat_map(|place| ["--place".to_owned(), place.to_string()]));
    words
}

/// Runs a command line of `bench`, and gives its record.
fn measure(words: &[String], demand: Demand) -> anyhow::Result<(BenchRecord, StopRequest)> {
    let typed = std::iter::once("hosepipe").chain(words.iter().map(String::as_str));
    match Cli::try_parse_from(typed).context("cannot measure")?.command {
        Command::Bench(args) => bench::measure(&args, demand),
        _ => anyhow::bail!("`{}` is not a bench", words.join(" ")),
    }
}

/// A record of `bench`, where it is one.
fn of_bench(loaded: Loaded) -> Result<BenchRecord, UsageError> {
    match loaded.record {
        Record::Bench(record) => Ok(record),
        other => Err(UsageError(format!(
            "{} is a record of `hosepipe {}`, and figures of mechanisms are in records of `hosepipe bench`",
            loaded.name,
            other.kind()
        ))),
    }
}
