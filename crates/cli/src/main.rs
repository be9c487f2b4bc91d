//! The `hosepipe` command: parses the command line and runs the subcommand.

mod bar;
mod bench;
mod boost_cmd;
mod compare_cmd;
mod completions;
mod copies;
mod demo_cmd;
mod destination;
mod diff_cmd;
mod doctor;
mod fleet_cmd;
mod gen_cmd;
mod help;
mod list;
mod live;
mod manual;
mod outputs;
mod part_cmd;
mod peer_cmd;
mod prompt_cmd;
mod recommend;
mod record;
mod report_cmd;
mod reproduce_cmd;
mod round_cmd;
mod run_cmd;
mod script;
mod sh_cmd;
mod signals;
mod sink_cmd;
mod spread_cmd;
mod standard;
mod terminal;
mod tips;
mod top;
mod topics;
mod tune_cmd;
mod typed;
mod why_cmd;
mod workers_cmd;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// The version, and in brackets the commit, if known, and what the program was built for (`build.rs`).
const VERSION: &str = env!("HOSEPIPE_VERSION");

/// A laboratory for the ways programs talk to each other.
#[derive(Debug, Parser)]
#[command(
    name = "hosepipe",
    version = VERSION,
    about,
    long_about = "A laboratory for the ways programs talk to each other: measures the mechanisms of this machine \
                  honestly, every byte checked, and says which to take.",
    after_help = include_str!("help/hosepipe.txt")
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure mechanisms and print a ranked table
    Bench(Box<bench::BenchArgs>),
    /// Say which mechanism to take for your messages, and how to set it up
    Recommend(Box<recommend::RecommendArgs>),
    /// Run a pipeline in bash, or another shell, over any link
    Run(Box<run_cmd::RunArgs>),
    /// Show the pipelines that run on this machine: throughput, which stage waits for which, and the bottleneck
    Top(top::TopArgs),
    /// Say what a program or a pipeline waits for, whose fault it is, and what ends it
    Why(why_cmd::WhyArgs),
    /// Find what makes a pipeline faster, and prove that its output stays the same
    Tune(tune_cmd::TuneArgs),
    /// Compare pipelines, or one pipeline over several links, with alternating trials
    Compare(Box<compare_cmd::CompareArgs>),
    /// Show what changed between records, or between two commands with alternating trials
    Diff(Box<diff_cmd::DiffArgs>),
    /// Show records: as tables, or as one page with charts
    Report(report_cmd::ReportArgs),
    /// Enlarge the full pipes of a command, or of a running process
    Boost(boost_cmd::BoostArgs),
    /// Run a pipeline in parallel over many files, or over the parts of a large one
    Spread(Box<spread_cmd::SpreadArgs>),
    /// Measure many nodes, and all pairs of them: which is slow?
    Fleet(Box<fleet_cmd::FleetArgs>),
    /// One partition of a spread, or its reduce
    #[command(name = "__part", hide = true)]
    Part(part_cmd::PartArgs),
    /// Run the trials of one round of a benchmark
    #[command(name = engine::ROUND_COMMAND, hide = true)]
    Round,
    /// Run the other end of a benchmark for another host
    Peer(peer_cmd::PeerArgs),
    /// Start a shell whose pipelines use the chosen link
    Sh(sh_cmd::ShArgs),
    /// Called by the functions of a prompt
    #[command(name = "__prompt", hide = true)]
    Prompt(prompt_cmd::PromptArgs),
    /// Show every mechanism: capabilities, options, limits, available here or why not
    List(list::ListArgs),
    /// Show the languages of `bench --workers`, and build their programs
    Workers(workers_cmd::WorkersArgs),
    /// Run a published study on this machine, and print its published figures next to the new ones
    Reproduce(Box<reproduce_cmd::ReproduceArgs>),
    /// Write a payload to standard output: a filter
    Gen(gen_cmd::GenArgs),
    /// Read standard input to its end, and check it: a filter
    Sink(sink_cmd::SinkArgs),
    /// Show what would distort or limit figures on this machine, and the commands that change it
    Doctor(doctor::DoctorArgs),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Manual(manual::ManualArgs),
    /// Show what hosepipe does, in four steps and less than a minute
    Demo(demo_cmd::DemoArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

fn main() -> ExitCode {
    standard::refuse_closed_streams();
    signals::reset_signals();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let is_version = matches!(words.as_slice(), [word] if word == "--version" || word == "-V");
    let version = is_version.then(|| terminal::print(&format!("hosepipe {VERSION}\n")));
    if let Some(printed) = version.or_else(|| topics::answer(&words)) {
        return printed.map_or_else(|error| terminal::report_error(&error), |()| ExitCode::SUCCESS);
    }
    if let Err(error) = check_stack() {
        return terminal::report_error(&error);
    }
    let command = match parse_frequent(&words) {
        Some(command) => command,
        None => match Cli::try_parse() {
            Ok(cli) => cli.command,
            Err(answer) => return terminal::print_answer(answer),
        },
    };
    let result = match command {
        Command::Bench(args) => bench::run(*args),
        Command::Recommend(args) => recommend::run(&args),
        Command::Run(args) => run_cmd::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Why(args) => why_cmd::run(&args),
        Command::Tune(args) => tune_cmd::run(&args),
        Command::Compare(args) => compare_cmd::run(&args),
        Command::Diff(args) => diff_cmd::run(&args),
        Command::Report(args) => report_cmd::run(&args),
        Command::Boost(args) => boost_cmd::run(&args),
        Command::Spread(args) => spread_cmd::run(&args),
        Command::Fleet(args) => fleet_cmd::run(&args),
        Command::Part(args) => Ok(part_cmd::run(&args)),
        Command::Peer(args) => peer_cmd::run(&args),
        Command::Sh(args) => sh_cmd::run(&args),
        Command::Prompt(args) => prompt_cmd::run(&args),
        Command::Round => round_cmd::run(),
        Command::List(args) => list::run(&args),
        Command::Workers(args) => workers_cmd::run(&args),
        Command::Reproduce(args) => reproduce_cmd::run(&args),
        Command::Gen(args) => gen_cmd::run(args),
        Command::Sink(args) => sink_cmd::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Manual(args) => manual::run(&args),
        Command::Demo(args) => demo_cmd::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    result.unwrap_or_else(|error| terminal::report_error(&error))
}

/// A stack that is large enough for every verb. With a smaller one the kernel would end the program by SIGSEGV, without a message.
const STACK_BYTES_MIN: u64 = 512 << 10;

fn check_stack() -> anyhow::Result<()> {
    let bytes = rustix::process::getrlimit(rustix::process::Resource::Stack).current.unwrap_or(u64::MAX);
    anyhow::ensure!(
        bytes >= STACK_BYTES_MIN,
        "a stack of {} KiB is too small (RLIMIT_STACK), hosepipe needs {} KiB: ulimit -s 8192",
        bytes >> 10,
        STACK_BYTES_MIN >> 10
    );
    Ok(())
}

/// Parses the verbs that scripts, prompts and partitions start often, with the options of that verb only: the options of all verbs
/// would take a tenth of the start-up time. `None` for every other verb, and for errors and help, whose text needs all verbs.
fn parse_frequent(words: &[OsString]) -> Option<Command> {
    /// clap skips the first word as the name of the program: here it is the verb.
    fn parse<A: Args>(words: &[OsString]) -> Option<A> {
        let tree = A::augment_args(clap::Command::new("hosepipe"));
        A::from_arg_matches_mut(&mut tree.try_get_matches_from(words).ok()?).ok()
    }
    Some(match words.first()?.to_str()? {
        "run" => Command::Run(parse(words)?),
        "sh" => Command::Sh(parse(words)?),
        "gen" => Command::Gen(parse(words)?),
        "sink" => Command::Sink(parse(words)?),
        "__prompt" => Command::Prompt(parse(words)?),
        "__part" => Command::Part(parse(words)?),
        engine::ROUND_COMMAND => Command::Round,
        _ => return None,
    })
}
