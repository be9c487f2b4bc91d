//! The arguments of `hosepipe bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValue;
use engine::{ENDS_MAX, RATE_MAX, RELAYS_MAX};
use model::{
    AXES, Alignment, ByteSize, Check, DataLevel, PayloadKind, Placement, Spec, Tasks, Wait, Workload,
};

use super::peer_args::FarEndArgs;
use super::workers::WorkerChoiceArgs;
use crate::outputs::Outputs;
use crate::{tips, typed};

/// Options that conflict with `--suite`, because the suite decides their values.
fn not_with_a_suite() -> impl Iterator<Item = &'static str> {
    let others = ["specs", "all", "sweep", "bytes", "count", "workers", "worker", "peer"];
    AXES.iter().filter(|axis| axis.is_option).filter_map(|axis| axis.name).chain(others)
}

/// Options that conflict with `--like`: the same, and `--suite`. Of `--place` it is checked whether it contradicts the record.
fn not_with_a_record() -> impl Iterator<Item = &'static str> {
    not_with_a_suite().filter(|option| *option != "place").chain(["suite"])
}

/// The heading of the options for several pairs, senders or receivers, and for a rate.
const LOAD: &str = "Load";

/// Measures mechanisms and prints a ranked table.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/bench.txt"))]
pub(crate) struct BenchArgs {
    /// Mechanisms to measure (none: the default set)
    #[arg(value_name = "SPEC", value_parser = spec())]
    pub(crate) specs: Vec<Spec>,

    /// Measure every mechanism
    #[arg(long, conflicts_with = "specs")]
    pub(crate) all: bool,

    /// A fixed set of cases to compare kernels and machines with: kernel, ipc, or a file like theirs (docs/SUITES.md)
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = not_with_a_suite())]
    pub(crate) suite: Option<String>,

    /// Measure the cases of a record of `bench` again, at its placements and with as many blocks per trial as there: hosepipe diff then compares
    /// like with like
    #[arg(long, value_name = "RECORD", conflicts_with_all = not_with_a_record())]
    pub(crate) like: Option<PathBuf>,

    /// Bytes handed over in one call; several with commas [default: 64KiB; round trips: 1 B]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = typed::positive_size)]
    pub(crate) block: Vec<ByteSize>,

    /// Block sizes in powers of two, 1 B to 1 MiB
    #[arg(long, conflicts_with = "block")]
    pub(crate) sweep: bool,

    /// Bytes per trial of a stream; of round trips only with --workload pingpong [default: as many as the time allows]
    #[arg(long, value_name = "SIZE", value_parser = typed::positive_size)]
    pub(crate) bytes: Option<ByteSize>,

    /// Blocks, or round trips, per trial
    #[arg(long, value_name = "BLOCKS", conflicts_with = "bytes", value_parser = typed::whole(1u64..=u64::MAX))]
    pub(crate) count: Option<u64>,

    /// stream (throughput) or pingpong (round trips) [default: both, in one table]
    #[arg(long, value_parser = typed::one_of(Workload::ALL))]
    pub(crate) workload: Option<Workload>,

    /// The tasks at the two ends [default: processes]
    #[arg(long, value_parser = typed::one_of(Tasks::ALL))]
    pub(crate) tasks: Option<Tasks>,

    /// How an end waits [default: the mechanism's own way]
    #[arg(long, value_parser = typed::one_of(Wait::ALL))]
    pub(crate) wait: Option<Wait>,

    /// The CPUs of the ends: any (the scheduler's choice), same, smt, cross, numa, CPU,CPU, or all (each that this machine has, in turn)
    /// [default: any and cross]
    #[arg(long, value_name = "PLACE")]
    pub(crate) place: Option<PlaceArgument>,

    /// What the ends do with the payload; several with commas show what a check costs [default: verify]
    #[arg(long, value_delimiter = ',', value_parser = typed::one_of(DataLevel::ALL))]
    pub(crate) data: Vec<DataLevel>,

    /// How the receiver checks under --data verify
    #[arg(long, default_value_t = Check::Xxh3, value_parser = typed::one_of(Check::ALL))]
    pub(crate) check: Check,

    /// The payload: sequence, printable, random, zero, or file:PATH
    #[arg(long, value_name = "PAYLOAD", default_value_t = PayloadKind::Random, value_parser = typed::payload())]
    pub(crate) payload: PayloadKind,

    /// Number of copying tasks between the two ends, like `| cat` in a pipeline
    #[arg(id = "chain", long = "chain", value_name = "N", default_value_t = 0, value_parser = typed::whole(0u32..=RELAYS_MAX))]
    pub(crate) relays: u32,

    /// Where the ends' buffers begin, in bytes past the start of a page: N of both, or of the sender and the receiver; `sweep`:
    /// receivers at 0 to 128 and senders at 4064 to 4095 (docs/ALIGNMENT.md) [default: 0]
    #[arg(long, value_name = "N[,N]", value_parser = offsets, conflicts_with_all = ["peer", "senders", "receivers"])]
    pub(crate) align: Option<AlignArgument>,

    /// Number of independent pairs of ends, each with a channel of its own; several with commas, as in 1,2,4,8
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = typed::whole(1u32..=ENDS_MAX),
        help_heading = LOAD)]
    pub(crate) pairs: Vec<u32>,

    /// Number of senders that share one channel to one receiver; several with commas. Under --data verify every block is checked as a whole
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = typed::whole(1u32..=ENDS_MAX),
        conflicts_with_all = ["pairs", "rate", "chain"], help_heading = LOAD)]
    pub(crate) senders: Vec<u32>,

    /// Number of receivers that compete for the blocks of one sender on one channel; several with commas. Under --data verify the blocks
    /// that were divided among receivers are counted
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = typed::whole(1u32..=ENDS_MAX),
        conflicts_with_all = ["pairs", "senders", "rate", "chain"], help_heading = LOAD)]
    pub(crate) receivers: Vec<u32>,

    /// Round trips that each client begins in a second, at times fixed beforehand: a stall counts for each round trip that it delays; with
    /// --workload stream the messages that each sender sends; several with commas (50k: 50000)
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = typed::whole(1u32..=RATE_MAX),
        conflicts_with = "chain", help_heading = LOAD)]
    pub(crate) rate: Vec<u32>,

    /// Trials of each case [default: 9, and more of the cases that may be the best until one is known to be]
    #[arg(long, value_name = "N", value_parser = typed::whole(1u32..=100_000))]
    pub(crate) trials: Option<u32>,

    /// Longest time of the run, as in 30s or 2m [default: 45s, unless --trials, --bytes or --count decide]
    #[arg(long, value_name = "DURATION", value_parser = typed::positive_duration)]
    pub(crate) time: Option<Duration>,

    /// Repeat a case until its interval is this narrow, in percent of the median on either side
    #[arg(long, value_name = "PERCENT", value_parser = typed::percent)]
    pub(crate) precision: Option<f64>,

    /// Seed of the trial order and of random payloads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = typed::seed)]
    pub(crate) seed: u64,

    /// Print the plan and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print all remarks under the table, not only the most important ones
    #[arg(long)]
    pub(crate) explain: bool,

    #[command(flatten)]
    pub(crate) peer: FarEndArgs,

    #[command(flatten)]
    pub(crate) workers: WorkerChoiceArgs,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// The offsets of the ends' buffers that are measured.
#[derive(Debug, Clone)]
pub(crate) struct AlignArgument(pub(crate) Vec<Alignment>);

fn offsets(word: &str) -> Result<AlignArgument, String> {
    let offsets = if word == "sweep" { Ok(Alignment::sweep()) } else { word.parse().map(|one| vec![one]) };
    offsets.map(AlignArgument)
}

/// One placement, or all that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceArgument {
    One(Placement),
    All,
}

impl std::str::FromStr for PlaceArgument {
    type Err = model::UnknownWord;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if word == "all" { Ok(Self::All) } else { word.parse().map(Self::One) }
    }
}

impl std::fmt::Display for PlaceArgument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(placement) => placement.fmt(f),
            Self::All => f.pad("all"),
        }
    }
}

/// Parses a spec of the registry.
fn spec() -> typed::Listed<Spec> {
    typed::Listed {
        read: |text| {
            known_spec(text).map_err(|problem| tips::of_spec(text, problem, |one| known_spec(one).is_ok()))
        },
        values: || {
            let all = mechanism::all().iter();
            all.map(|has| PossibleValue::new(has.name).help(has.summary)).collect()
        },
    }
}

fn known_spec(text: &str) -> Result<Spec, String> {
    let spec: Spec = text.parse().map_err(|error: model::SpecError| error.to_string())?;
    mechanism::resolve(&spec).map_err(|problem| problem.to_string())?;
    Ok(spec)
}
