//! `hosepipe fleet`: one node of a fleet, or the job that starts all nodes.

mod job;
mod node;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use model::FleetRecord;
use remote::fleet::{Measured, RECORD};
use remote::launcher::Launcher;
use report::read::Loaded;

use crate::outputs::Outputs;
use crate::signals::StopRequest;
use crate::terminal::{self, usage};
use crate::{record, typed};

/// Options for starting nodes, which are not for a node itself.
const START_OPTIONS: [&str; 2] = ["on", "hosts"];

/// Measure many nodes, and all pairs of them: which is slow?
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/fleet.txt"))]
pub(crate) struct FleetArgs {
    /// Print the job for a launcher that starts the nodes
    #[arg(long, value_name = "LAUNCHER", value_parser = typed::one_of(Launcher::OF_FLEET))]
    on: Option<Launcher>,

    /// Submit the job to the launcher, wait for it, and show the merged record
    #[arg(long, requires = "on")]
    submit: bool,

    /// How many nodes there are
    #[arg(long, value_name = "N", value_parser = typed::whole(1u32..=10_000))]
    nodes: Option<u32>,

    /// The hosts, for ssh or mpirun; alone it means --on ssh --submit
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',', value_parser = typed::host)]
    hosts: Vec<String>,

    /// A folder, new or empty, that all nodes see [default for Slurm and MPI: hosepipe-fleet]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// The time of each pair
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = typed::positive_duration)]
    pair_time: Duration,

    /// How long to wait for all nodes to start
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = typed::positive_duration)]
    wait: Duration,

    /// Measure the network that leads to this address [default: the network of the hosts' names]
    #[arg(long, value_name = "ADDRESS")]
    toward: Option<IpAddr>,

    /// The program on the nodes [default: for Slurm and MPI the file of this program, else `hosepipe`]
    #[arg(long, value_name = "PROGRAM", value_parser = NonEmptyStringValueParser::new())]
    hosepipe: Option<String>,

    /// The number of this node, from 0 [default: the launcher's]
    #[arg(long, value_name = "N", requires = "nodes", conflicts_with_all = START_OPTIONS, value_parser = typed::whole(0u32..=u32::MAX))]
    rank: Option<u32>,

    /// The name of this node [default: the launcher's or the system's]
    #[arg(long, value_name = "NAME", conflicts_with_all = START_OPTIONS)]
    name: Option<String>,

    /// Where this node listens for the others
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["toward", "on", "hosts"])]
    address: Option<IpAddr>,

    /// Without a folder: the address at which the first node listens, and at which the others reach it
    #[arg(long, value_name = "HOST:PORT", requires = "token_file", conflicts_with_all = START_OPTIONS)]
    meet: Option<String>,

    /// A file on every node with the same secret: 16 bytes or more, readable by no other user [default: one is made in the folder]
    #[arg(long, value_name = "F")]
    token_file: Option<PathBuf>,

    /// Reach the other nodes through standard input and output
    #[arg(long, hide = true)]
    stdio: bool,

    #[command(flatten)]
    outputs: Outputs,

    /// What each node measures by itself: the arguments of `hosepipe bench`
    #[arg(last = true, value_name = "BENCH ARGUMENTS")]
    bench: Vec<String>,
}

/// Prints or submits the job, or runs as one of its nodes.
pub(crate) fn run(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    match args.on {
        Some(launcher) => job::start(args, launcher, args.submit),
        None if args.hosts.is_empty() && args.hosepipe.is_some() => {
            usage("--hosepipe is for a job: --on slurm, mpi or ssh, or --hosts A,B")
        }
        None if args.hosts.is_empty() => node::run(args),
        None => job::start(args, Launcher::Ssh, true),
    }
}

fn check_size(nodes: usize) -> anyhow::Result<()> {
    if nodes < 2 {
        return usage("a fleet has two nodes at least; one node is measured by `hosepipe bench`");
    }
    Ok(())
}

/// The folder in which the nodes of a new fleet meet. It is made if it does not exist, and must contain neither this file nor a record.
fn new_folder(folder: &Path, file: &str) -> anyhow::Result<PathBuf> {
    let shown = model::one_line(&folder.to_string_lossy());
    let made = process::make_own_folder(folder).and_then(|()| std::path::absolute(folder));
    let folder = match made {
        Ok(folder) => folder,
        Err(error) => {
            let why = model::describe_errno(&error);
            return usage(format!("the nodes cannot meet in {shown}: {why}; choose another with --folder"));
        }
    };
    if [file, RECORD].iter().any(|file| folder.join(file).exists()) {
        return usage(format!("{shown} already contains a fleet: choose another with --folder"));
    }
    Ok(folder)
}

/// Makes records of the fleet that begins now.
fn recorder() -> impl Fn(Measured) -> FleetRecord {
    let (head, began) = (record::begin(true), Instant::now());
    move |(nodes, meetings)| FleetRecord {
        head: head.clone(),
        wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        nodes,
        meetings,
    }
}

fn show(args: &FleetArgs, record: FleetRecord, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let failed = record.nodes.iter().any(|node| node.failure.is_some())
        || record.meetings.iter().any(|meeting| meeting.failure.is_some());
    let is_empty = record.is_without_samples();
    args.outputs.show(Loaded::new("this fleet", record), &terminal::style())?;
    Ok(stop.exit_code_of(is_empty, failed))
}
