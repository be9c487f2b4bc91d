//! `hosepipe fleet`: a node among others, or the job that starts them all.

mod job;
mod node;

pub(crate) use job::check_hosts;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use model::FleetRecord;
use remote::fleet::{Measured, RECORD};
use remote::launcher::Launcher;
use report::read::Loaded;

use crate::outputs::Outputs;
use crate::record::record_head;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// Options of the command that starts nodes.
const STARTING: [&str; 2] = ["on", "hosts"];

/// Measure many nodes, and all pairs of them: which is slow?
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe fleet --hosts a,b,c                            by ssh: each host needs hosepipe on its PATH
  hosepipe fleet --on slurm --nodes 8 > job.sh            a job to look at, and to hand in with sbatch
  hosepipe fleet --on slurm --nodes 8 --submit --html fleet.html -- pipe tcp --time 20s
  hosepipe fleet --on mpi --nodes 8 --submit
  srun -N 8 hosepipe fleet --folder /shared/new           what such a job starts on every node
  hosepipe report hosepipe-fleet/fleet                    the record again

Each node runs `hosepipe bench ARGUMENTS`; then all pairs measure TCP between them, each node in one pair at a time. A node that
fails costs its own figures and nothing else.
Exit status: 0 all was measured; 1 something failed; 2 the command line is wrong;
130 stopped by Ctrl-C, with what was finished.")]
pub(crate) struct FleetArgs {
    /// Print the job for a launcher that starts the nodes
    #[arg(long, value_name = "LAUNCHER", value_parser = typed::one_of(&[Launcher::Slurm, Launcher::Mpi, Launcher::Ssh]))]
    on: Option<Launcher>,

    /// Hand the job to the launcher, and follow it to the merged record
    #[arg(long, requires = "on")]
    submit: bool,

    /// How many nodes there are
    #[arg(long, value_name = "N", value_parser = typed::whole(1u32..=10_000))]
    nodes: Option<u32>,

    /// The hosts, for ssh or mpirun; alone it means --on ssh --submit
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',')]
    hosts: Vec<String>,

    /// A folder, new or empty, that all nodes see [default for Slurm and MPI: hosepipe-fleet]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// The time of each pair
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = typed::positive_duration)]
    pair_time: Duration,

    /// How long nodes may take to come
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = typed::positive_duration)]
    wait: Duration,

    /// Measure the network through which this address is reached [default: the one of the hosts' names]
    #[arg(long, value_name = "ADDRESS")]
    toward: Option<IpAddr>,

    /// The program on the nodes [default: for Slurm and MPI this one's own file, else `hosepipe`]
    #[arg(long, value_name = "PROGRAM", value_parser = NonEmptyStringValueParser::new())]
    hosepipe: Option<String>,

    /// Which of the nodes this is, from 0 [default: as the launcher says]
    #[arg(long, value_name = "N", requires = "nodes", conflicts_with_all = STARTING, value_parser = typed::whole(0u32..=u32::MAX))]
    rank: Option<u32>,

    /// What this node is called [default: as the launcher or the system says]
    #[arg(long, value_name = "NAME", conflicts_with_all = STARTING)]
    name: Option<String>,

    /// Where this node listens for the others
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["toward", "on", "hosts"])]
    address: Option<IpAddr>,

    /// Without a folder: where the first node listens, and the others find it
    #[arg(long, value_name = "HOST:PORT", requires = "token_file", conflicts_with_all = STARTING)]
    meet: Option<String>,

    /// A secret of all nodes, 16 bytes or more, that no other user can read, on every node [default: one is made, and put into the folder]
    #[arg(long, value_name = "F")]
    token_file: Option<PathBuf>,

    /// Speak to the others through standard input and output
    #[arg(long, hide = true)]
    stdio: bool,

    #[command(flatten)]
    outputs: Outputs,

    /// What each node measures by itself: the arguments of `hosepipe bench`
    #[arg(last = true, value_name = "BENCH ARGUMENTS")]
    bench: Vec<String>,
}

/// Prints or hands in the job; or is one of its nodes.
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

fn usage<T>(problem: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError(problem.into()).into())
}

fn several(nodes: usize) -> anyhow::Result<()> {
    if nodes < 2 {
        return usage("a fleet has two nodes at least; one node is measured by `hosepipe bench`");
    }
    Ok(())
}

/// The folder, made where it is not there, in which there must be no such file yet.
fn new_folder(folder: &Path, file: &str) -> anyhow::Result<PathBuf> {
    let shown = model::one_line(&folder.to_string_lossy());
    let made = process::make_own_folder(folder).and_then(|()| std::path::absolute(folder));
    let folder = match made {
        Ok(folder) => folder,
        Err(error) => {
            let why = model::describe_errno(&error);
            return usage(format!("the nodes cannot meet in {shown}: {why}; --folder names another"));
        }
    };
    if [file, RECORD].iter().any(|file| folder.join(file).exists()) {
        return usage(format!("{shown} holds a fleet already: another --folder"));
    }
    Ok(folder)
}

fn record((nodes, meetings): Measured, started: SystemTime, began: Instant) -> FleetRecord {
    FleetRecord {
        head: record_head(host::facts(), started),
        wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        nodes,
        meetings,
    }
}

fn show(args: &FleetArgs, record: FleetRecord, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let failed = record.nodes.iter().any(|node| node.failure.is_some())
        || record.meetings.iter().any(|meeting| meeting.failure.is_some());
    let record = Loaded::new("this fleet", record);
    args.outputs.show(record, &terminal::style())?;
    Ok(stop.exit_code(failed))
}
