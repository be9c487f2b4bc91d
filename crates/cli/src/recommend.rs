//! `hosepipe recommend`: measures with `bench` what could be the answer, runs the programs of the best mechanisms, and prints which one to
//! take, the reason, the command that proves it, and the program.

mod answer;
mod candidates;
mod code_to;
mod figures;
mod question_args;
mod remarks;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use engine::{Ask, AskedSpecs};
use model::{BenchRecord, ByteSize, Placement, Record, Spec};
use programs::race::{self, ProgramRace, ProgramRaceRequest};
use programs::{Must, Program, Question, folder, programs};
use report::read::Loaded;

use crate::bench::PlaceArgument;
use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};
use crate::{bench, record, typed};
use answer::Answer;
use candidates::{Candidate, candidates};
use figures::Figures;
use question_args::QuestionArgs;

/// Says which mechanism to take for your messages, and why.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct RecommendArgs {
    #[command(flatten)]
    question: QuestionArgs,

    /// Read the figures from a record of `hosepipe bench` instead of measuring (- is standard input)
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["time", "seed"])]
    from: Option<PathBuf>,

    /// The time for the answer: two thirds (with a rate, or of two programs, one third) to measure mechanisms, the rest to compile and run programs
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = typed::positive_duration)]
    time: Duration,

    /// The CPUs of the ends, as in `bench` [default: the scheduler's choice, and pinned ends for comparison]
    #[arg(long, value_name = "PLACE")]
    place: Option<PlaceArgument>,

    /// Write the program to a file, and the ring that it uses beside it; of two programs the folder for both and a README. Regular files of
    /// these names are replaced
    #[arg(long, value_name = "FILE|DIR")]
    code_to: Option<PathBuf>,

    /// Seed of the trial order and of random payloads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::seed)]
    seed: u64,

    #[command(flatten)]
    outputs: Outputs,
}

const EXAMPLES: &str = "\
Examples:
  hosepipe recommend --message 200B --between processes              one way, between unrelated programs
  hosepipe recommend --message 64B --pattern request-reply --between threads
  hosepipe recommend --message 1KiB --messages-per-second 50000      the least CPU at this rate
  hosepipe recommend --message 4KiB --must filter --code python      for programs that read standard input
  hosepipe recommend --message 64KiB --from run.json                 from a record of `hosepipe bench`
  hosepipe recommend --message 200B --code rust,python --code-to pair  a sender in Rust, a receiver in Python
  hosepipe recommend --message 1KiB --receivers 4 --share compete    each message to one of four receivers
  hosepipe recommend --message 64B --must reader-crash --must containers

It measures and ranks the mechanisms that could be the answer, compiles and runs the programs of the best, and prints the reason,
the command that proves it and the program. A mechanism whose ends spin is taken only if --cpu-budget allows it.
Two languages, several ends, and what must survive: the answer is two programs, one for each end, started in any order.
docs/RECOMMEND.md has the rule.
Exit status: 0 one is recommended; 1 none is left after measuring; 2 no mechanism can do what is asked.";

/// The examples, and what each word of `--must` asks for.
fn after_help() -> String {
    let lines = Must::ALL.iter().map(|must| format!("  {:<15}{}\n", must.word(), must.text().asks));
    let (examples, rest) = EXAMPLES.split_once("\n\n").unwrap_or((EXAMPLES, ""));
    format!("{examples}\n\nWhat --must asks for:\n{}\n{rest}", lines.collect::<String>())
}

/// Thirds of `--time` for the loops of `bench` at full speed; the programs are compiled and run in the rest.
const THIRDS_FOR_LOOPS: u32 = 2;

/// Answers the question.
pub(crate) fn run(args: &RecommendArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    args.outputs.check()?;
    let question = &args.question.question().map_err(UsageError)?;
    args.code_to.as_deref().map(|path| code_to::check(path, question)).transpose()?;
    let candidates = candidates(question).map_err(UsageError)?;
    let (record, stop) = read_or_measured(args, question, &candidates)?;
    let comparable = figures::within_limits(record.clone(), question.message_bytes);
    let figures = Figures::select(&comparable, question, &candidates, args.place).map_err(UsageError)?;
    let mut choice = stats::choose(&figures.cases, &question.demand);
    let taken_by_loops = choice.taken;
    let is_stopped = stop.as_ref().is_some_and(StopRequest::is_set);
    let timed = match &stop {
        Some(_) if is_stopped => Vec::new(),
        Some(stop) => race::run(&ProgramRaceRequest {
            question,
            rows: &figures.cases,
            choice: &choice,
            time: args.time,
            until: began + args.time,
            seed: args.seed,
            is_stopped: &|| stop.is_set(),
        })?,
        // A record of `recommend` with the same question has figures of programs.
        None => {
            let title = answer::title(question, &figures);
            let saved = record.recommendation.as_deref();
            let same =
                saved.filter(|saved| saved.title == title && saved.language == question.code.to_string());
            same.map_or(Vec::new(), |saved| saved.programs.clone())
        }
    };
    let took = stop.is_some().then(|| began.elapsed());
    let race = ProgramRace::new(timed, &figures.cases, &question.demand);
    let row = |spec: &Spec| figures.cases.iter().position(|case| case.spec == *spec);
    let best_program = race.taken().filter(|_| race.does_all || taken_by_loops.is_some());
    choice.taken = best_program.and_then(row).or(taken_by_loops);
    let answer = Answer {
        args,
        question,
        candidates: &candidates,
        figures: &figures,
        choice: &choice,
        taken_by_loops,
        race: &race,
        stopped_by: stop.as_ref().filter(|stop| stop.is_set()).map(StopRequest::reason),
        took,
    };
    let taken = choice.taken.map(|at| &figures.cases[at].spec);
    let sources = taken.and_then(|spec| programs(spec, question)).unwrap_or_default();
    if !args.outputs.has_stdout() {
        let specs: Vec<Spec> = figures.cases.iter().map(|case| case.spec.clone()).collect();
        let place = args.place.or(figures.place());
        // At a rate `bench` takes the time that its trials need.
        let time = question.rate_per_s.is_none().then(|| time_for_loops(args, question));
        let proof = command_line(&ask(args, question, specs, time), place);
        let of_pair = taken.filter(|_| sources.len() > 1);
        let build_and_time = of_pair.map(|spec| folder::build_and_time(&sources, spec, question));
        let mut text = answer.document(&proof, build_and_time).terminal(&terminal::style());
        if args.code_to.is_none() {
            text.extend(sources.iter().map(|one| printed(one, sources.len())));
        }
        terminal::print_painted(&text)?;
    }
    if let (Some(path), Some(spec)) = (&args.code_to, taken) {
        code_to::save(path, &sources, spec, question)?;
    }
    let recommendation = Some(Box::new(answer.recommendation(&sources)));
    args.outputs.write(&[Loaded::new("this run", BenchRecord { recommendation, ..record })])?;
    let has_no_answer = choice.taken.is_none();
    Ok(stop.map_or_else(|| ExitCode::from(u8::from(has_no_answer)), |stop| stop.exit_code(has_no_answer)))
}

/// The figures of a record, or those of a run and its request to stop.
fn read_or_measured(
    args: &RecommendArgs,
    question: &Question,
    candidates: &[Candidate],
) -> anyhow::Result<(BenchRecord, Option<StopRequest>)> {
    if let Some(path) = &args.from {
        return Ok((bench_record(record::load(path)?)?, None));
    }
    let specs = available(candidates);
    if specs.is_empty() {
        return usage(none_is_here(candidates));
    }
    // At a rate a trial is long, and the time is for one placement.
    let any = question.rate_per_s.map(|_| PlaceArgument::One(Placement::Any));
    let ask = ask(args, question, specs, Some(time_for_loops(args, question)));
    let (record, stop) = bench::measure(&ask, args.place.or(any), question.demand)?;
    Ok((record, Some(stop)))
}

/// A program below the answer; one of two has a heading.
fn printed(program: &Program, programs: usize) -> String {
    let heading = if programs > 1 { format!("\n==> {} <==", program.file()) } else { String::new() };
    format!("{heading}\n{}", program.text())
}

/// The specs of the candidates that can be measured on this machine.
fn available(candidates: &[Candidate]) -> Vec<Spec> {
    let available = candidates.iter().filter(|one| one.missing.is_none() && one.unfit.is_none());
    available.map(|candidate| candidate.spec.clone()).collect()
}

/// Why none of the candidates can be measured.
fn none_is_here(candidates: &[Candidate]) -> String {
    let missing = |one: &Candidate| {
        Some(format!("`{}` is not there on this machine: {}", one.spec, one.missing.as_ref()?))
    };
    let why: Vec<String> =
        candidates.iter().filter_map(|one| one.left_out().or_else(|| missing(one))).collect();
    format!("no mechanism can be measured: {}", why.join("; "))
}

/// The time for the loops of `bench`. At a rate the runs of programs are longer, and decide all the same.
fn time_for_loops(args: &RecommendArgs, question: &Question) -> Duration {
    let programs_take_long = question.rate_per_s.is_some() || question.is_of_pair();
    let thirds = if programs_take_long { 1 } else { THIRDS_FOR_LOOPS };
    Duration::from_millis((args.time * thirds / 3).as_millis().max(1) as u64)
}

/// What is measured for the answer.
fn ask(args: &RecommendArgs, question: &Question, specs: Vec<Spec>, time: Option<Duration>) -> Ask {
    Ask {
        specs: AskedSpecs::Named(specs),
        blocks: vec![question.message_bytes],
        workload: Some(question.pattern.workload()),
        tasks: Some(question.between().tasks()),
        rates_per_s: question.rate_per_s.into_iter().collect(),
        time,
        seed: args.seed,
        ..Ask::default()
    }
}

/// The `bench` that measures it, as users type it.
fn command_line(ask: &Ask, place: Option<PlaceArgument>) -> String {
    let AskedSpecs::Named(specs) = &ask.specs else { return String::new() };
    let blocks = ask.blocks.iter().map(|bytes| ByteSize(*bytes).to_string());
    let options = [
        ("block", blocks.collect::<Vec<_>>().join(",")),
        ("workload", ask.workload.map_or_else(String::new, |workload| workload.to_string())),
        ("tasks", ask.tasks.map_or_else(String::new, |tasks| tasks.to_string())),
        ("rate", ask.rates_per_s.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
        ("time", ask.time.map_or_else(String::new, |time| humantime::format_duration(time).to_string())),
        ("seed", ask.seed.to_string()),
        ("place", place.map_or_else(String::new, |place| place.to_string())),
    ];
    let given = options.into_iter().filter(|(_, value)| !value.is_empty());
    let options: String =
        given.map(|(name, value)| format!(" --{name} {}", value.replace(' ', ""))).collect();
    let specs: Vec<String> = specs.iter().map(Spec::to_string).collect();
    format!("hosepipe bench {}{options}", specs.join(" "))
}

/// A record, if it is one of `bench`.
fn bench_record(loaded: Loaded) -> Result<BenchRecord, UsageError> {
    match loaded.record {
        Record::Bench(record) => Ok(record),
        other => Err(UsageError(format!(
            "{} is a record of `hosepipe {}`, and figures of mechanisms are in records of `hosepipe bench`",
            loaded.name,
            other.kind()
        ))),
    }
}
