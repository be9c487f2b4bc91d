//! The command line of `hosepipe recommend`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use model::ByteSize;
use stats::Demand;

use super::program::CodeLanguage;
use super::question::{Between, Must, Pattern, Question};
use crate::bench::PlaceArgument;
use crate::outputs::Outputs;
use crate::typed;

/// Says which mechanism to take for your messages, and why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe recommend --message 200B --between processes              one way, between unrelated programs
  hosepipe recommend --message 64B --pattern request-reply --between threads
  hosepipe recommend --message 1KiB --messages-per-second 50000      the cheapest in CPU that reaches it
  hosepipe recommend --message 4KiB --must filter --code python      for programs that read standard input
  hosepipe recommend --message 64KiB --from run.json                 from a record of `hosepipe bench`

It measures and ranks the mechanisms that could be the answer, compiles and runs the programs of the best, and prints the reason,
the command that proves it and the program. A mechanism whose ends spin is taken only if --cpu-budget allows it.
docs/RECOMMEND.md has the rule.
Exit status: 0 one is recommended; 1 none is left after measuring; 2 no mechanism can do what is asked.")]
pub(crate) struct RecommendArgs {
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    message: ByteSize,

    /// One way, or there and back
    #[arg(long, default_value_t = Pattern::Stream, value_parser = typed::one_of(Pattern::ALL))]
    pattern: Pattern,

    /// The two ends: a parent and its child, unrelated processes, or threads of one process
    #[arg(long, default_value_t = Between::ParentChild, value_parser = typed::one_of(Between::ALL))]
    between: Between,

    /// Messages, or round trips, that must be made in a second (50k: 50000); of the mechanisms that reach it the one with the least CPU
    /// time is taken
    #[arg(long, value_name = "N", value_parser = typed::rate)]
    messages_per_second: Option<f64>,

    /// CPU time that both ends together may take, in percent of one CPU (200: two CPUs, which allows ends that spin)
    #[arg(long, value_name = "PERCENT", value_parser = typed::any_percent)]
    cpu_budget: Option<f64>,

    /// What else it must do; may be given several times
    #[arg(long, value_name = "WHAT", value_parser = typed::one_of(Must::ALL))]
    must: Vec<Must>,

    /// Read the figures from a record of `hosepipe bench` instead of measuring (- is standard input)
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["time", "seed"])]
    pub(super) from: Option<PathBuf>,

    /// The time for the answer: two thirds to measure mechanisms, the rest to compile and run programs
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = typed::positive_duration)]
    pub(super) time: Duration,

    /// The CPUs of the ends, as in `bench` [default: the scheduler's choice, and pinned ends for comparison]
    #[arg(long, value_name = "PLACE")]
    pub(super) place: Option<PlaceArgument>,

    /// The language of the program to print
    #[arg(long, value_name = "LANGUAGE", default_value_t = CodeLanguage::C, value_parser = typed::one_of(CodeLanguage::ALL))]
    pub(super) code: CodeLanguage,

    /// Write the program to a file, and the ring that it uses beside it; regular files of these names are replaced
    #[arg(long, value_name = "FILE")]
    pub(super) code_to: Option<PathBuf>,

    /// Seed of the trial order and of random payloads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::seed)]
    pub(super) seed: u64,

    #[command(flatten)]
    pub(super) outputs: Outputs,
}

impl RecommendArgs {
    pub(super) fn question(&self) -> Question {
        Question {
            message_bytes: self.message.0,
            pattern: self.pattern,
            between: self.between,
            demand: Demand {
                messages_per_s: self.messages_per_second,
                cpus_max: self.cpu_budget.map(|percent| percent / 100.0),
            },
            must: self.must.clone(),
        }
    }
}
