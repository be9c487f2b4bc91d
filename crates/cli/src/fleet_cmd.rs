//! `hosepipe fleet`: a node among others, or the job that starts them all.

use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use clap::{Args, ValueEnum};
use fleet::{Board, Job, Measured, Node, RECORD, Seat, Started, Status, Trouble};
use model::{FleetRecord, SCHEMA};
use process::{Announcement, Cleaner};
use report::read::{AnyRecord, Loaded};
use tempfile::TempDir;

use crate::bar::Bar;
use crate::bench::BenchArgs;
use crate::outputs::Outputs;
use crate::record::{arguments, rfc3339, tool};
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::typed;

/// How often the progress is read: of a large fleet that is a file for each node.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long the first node stays reachable after all is done.
const LINGER: Duration = Duration::from_secs(2);

/// Measure many nodes, and all pairs of them: which is slow?
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hosepipe fleet --hosts a,b,c                            by ssh: each host needs hosepipe on its PATH
  hosepipe fleet --on slurm --nodes 8 > job.sh            a job to look at, and to hand in with sbatch
  hosepipe fleet --on slurm --nodes 8 --submit --html fleet.html -- pipe tcp --time 20s
  hosepipe fleet --on mpi --nodes 8 --submit
  hosepipe fleet --on kubernetes --nodes 8 --image registry/hosepipe | kubectl apply -f -
  srun -N 8 hosepipe fleet --folder /shared/new           what such a job starts on every node
  hosepipe report hosepipe-fleet/fleet                    the record again

Each node runs `hosepipe bench ARGUMENTS`; then all pairs measure TCP between them, each node in one pair at a time. A node that
fails costs its own figures and nothing else. Exit status: 0 all was measured; 1 something failed; 2 the command line is wrong;
130 stopped by Ctrl-C, with what was finished.")]
pub(crate) struct FleetArgs {
    /// Print the job for an engine that starts the nodes
    #[arg(long, value_name = "ENGINE")]
    on: Option<Engine>,

    /// Hand the job to the engine, and follow it to the merged record
    #[arg(long, requires = "on")]
    submit: bool,

    /// How many nodes there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
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
    #[arg(long, value_name = "PROGRAM")]
    hosepipe: Option<String>,

    /// The container image, which has hosepipe on its PATH
    #[arg(long, value_name = "IMAGE", required_if_eq("on", "kubernetes"))]
    image: Option<String>,

    /// Which of the nodes this is, from 0 [default: as the launcher says]
    #[arg(long, value_name = "N", requires = "nodes")]
    rank: Option<u32>,

    /// What this node is called [default: as the launcher or the system says]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Where this node listens for the others
    #[arg(long, value_name = "ADDRESS", conflicts_with = "toward")]
    address: Option<IpAddr>,

    /// Without a folder: where the first node listens, and the others find it
    #[arg(long, value_name = "HOST:PORT", requires = "token_file")]
    meet: Option<String>,

    /// A secret of all nodes, 16 bytes or more, that nobody else can read [default: one is made, and put into the folder]
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

/// What starts the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Slurm,
    Mpi,
    Kubernetes,
    Ssh,
}

/// Prints or hands in the job; or is one of its nodes.
pub(crate) fn run(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    args.outputs.check()?;
    match args.on {
        Some(engine) => start(args, engine, args.submit),
        None if args.hosts.is_empty() => node(args),
        None => start(args, Engine::Ssh, true),
    }
}

fn usage<T>(problem: impl Into<String>) -> anyhow::Result<T> {
    Err(UsageError(problem.into()).into())
}

fn node(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    let (started, began) = (SystemTime::now(), Instant::now());
    let seat = match args.rank {
        Some(rank) => Some(Seat { rank: rank as usize, size: None, node: None }),
        None => fleet::seat(&|name| std::env::var(name).ok()).map_err(UsageError)?,
    };
    let Some(seat) = seat else {
        return usage(
            "no launcher has started this as one of many nodes: --on slurm, mpi, kubernetes or ssh prints the job that does, and \
             --hosts A,B starts them by ssh",
        );
    };
    let Some(size) = args.nodes.map(|nodes| nodes as usize).or(seat.size) else {
        return usage("the launcher does not say how many nodes there are: --nodes N");
    };
    several(size)?;
    if seat.rank >= size {
        return usage(format!("node {} of {size} cannot be: they are counted from 0", seat.rank));
    }
    let cleaner = Cleaner::start().context("cannot start the process that cleans up after us")?;
    let stop = StopRequest::listen()?;
    let own_address = address(args)?;
    let temporary = temporary(&cleaner)?;
    let board = match (&args.folder, &args.meet) {
        _ if args.stdio => Board::over(peer::Wire::over_stdio("the launcher")?),
        (Some(folder), _) => Board::Folder(new_folder(folder, &format!("node-{}", seat.rank))?),
        (None, Some(meet)) => meeting(args, meet, (seat.rank, own_address), temporary.path())?,
        (None, None) => {
            return usage("where do the nodes meet? --folder DIR names a folder that all of them see");
        }
    };
    let own_name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = args.name.clone().or(seat.node).unwrap_or_else(own_name);
    let status = Status::of(name, tool(), Some(own_address));
    let node = Node {
        rank: seat.rank,
        size,
        board: &board,
        status,
        hosepipe: std::env::current_exe().context("this program's own file")?,
        folder: temporary.path(),
        bench: args.bench.iter().map(Into::into).collect(),
        pair_time: args.pair_time,
        token_file: args.token_file.clone(),
        patience: args.wait,
        cleaner: &cleaner,
        stop: &|| stop.is_set(),
    };
    let mut merged = None;
    let name = node.status.name.clone();
    let done = node.run(&mut |measured| {
        let record = record(measured, started, began);
        board.put(RECORD, &record)?;
        merged = Some(record);
        Ok(())
    });
    match done {
        Err(Trouble::Stopped) if stop.is_set() => {
            // The first that came brings together what there is.
            let known = fleet::known(&board, size)?;
            if !args.stdio && known.iter().position(Option::is_some) == Some(seat.rank) {
                let stopped = || Some("was stopped".to_owned());
                let gone: Vec<_> = known
                    .iter()
                    .map(|one| one.as_ref().and_then(|one| one.failure.clone()).or_else(stopped))
                    .collect();
                let record = record(fleet::merged(&board, &gone)?, started, began);
                board.put(RECORD, &record)?;
                return show(args, record, &stop);
            }
            return Ok(stop.exit_code(true));
        }
        Err(trouble) => {
            let trouble = match trouble {
                Trouble::Stopped => anyhow::Error::msg("the place where the nodes meet is gone"),
                other => anyhow::Error::new(other),
            };
            // What this node has measured is not lost with the others.
            let mut gone = vec![Some("was lost sight of".to_owned()); size];
            gone[seat.rank] = Some(format!("{trouble:#}"));
            let kept = fleet::merged(&Board::Folder(temporary.path().to_owned()), &gone)?;
            if !args.stdio && kept.0[seat.rank].bench.is_some() {
                show(args, record(kept, started, began), &stop)?;
            }
            return Err(trouble.context(format!("this node, {name}")));
        }
        // The others are about to see that it is over.
        Ok(()) if args.meet.is_some() => stop.wait(LINGER),
        Ok(()) => {}
    }
    match merged {
        Some(record) if !args.stdio => show(args, record, &stop),
        _ => Ok(stop.exit_code(false)),
    }
}

/// The board of nodes that see no common folder: kept by the first of them.
fn meeting(
    args: &FleetArgs,
    meet: &str,
    (rank, own): (usize, IpAddr),
    folder: &Path,
) -> anyhow::Result<Board> {
    let file = args.token_file.as_deref().unwrap_or(Path::new(""));
    let token = peer::Token::read(file).map_err(|problem| UsageError(problem.to_string()))?;
    if rank > 0 {
        return fleet::call(meet, &token, args.wait).with_context(|| format!("the first node, at {meet}"));
    }
    let port = meet.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let Some(port) = port else { return usage(format!("`{meet}` is no HOST:PORT")) };
    fleet::listen((own, port).into(), token, folder.to_owned())?;
    Ok(Board::Folder(folder.to_owned()))
}

/// A folder that is gone with this process, however that ends.
fn temporary(cleaner: &Cleaner) -> anyhow::Result<TempDir> {
    let folder =
        tempfile::Builder::new().prefix("hosepipe-fleet-").tempdir().context("a folder for the work")?;
    cleaner.announce(Announcement::Folder, folder.path());
    Ok(folder)
}

fn several(nodes: usize) -> anyhow::Result<()> {
    if nodes < 2 {
        return usage("a fleet has two nodes at least; one node is measured by `hosepipe bench`");
    }
    Ok(())
}

/// The folder, made where it is not there, in which there must be no such file yet.
fn new_folder(folder: &Path, file: &str) -> anyhow::Result<PathBuf> {
    let made = std::fs::create_dir_all(folder).and_then(|()| std::path::absolute(folder));
    let folder = match made {
        Ok(folder) => folder,
        Err(error) => {
            let why = model::describe_errno(&error);
            return usage(format!(
                "the nodes cannot meet in {}: {why}; --folder names another",
                folder.display()
            ));
        }
    };
    if [file, RECORD].iter().any(|file| folder.join(file).exists()) {
        return usage(format!("{} holds a fleet already: another --folder", folder.display()));
    }
    Ok(folder)
}

/// Where this node listens: where packets to the network asked for would leave, else where its own name leads, else where packets to the
/// rest of the world would leave. No packet is sent.
fn address(args: &FleetArgs) -> anyhow::Result<IpAddr> {
    let leaving = |to: IpAddr| -> std::io::Result<IpAddr> {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect((to, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    if let Some(toward) = args.toward {
        return leaving(toward).with_context(|| format!("there is no way toward {toward} from here"));
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let named = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0)).into_iter().flatten();
    let named = named.map(|address| address.ip()).find(|address| !address.is_loopback());
    // Of a block that is kept for documentation (RFC 5737): it is nobody's.
    let world = || leaving(IpAddr::from([192, 0, 2, 1])).ok();
    let Some(found) = args.address.or(named).or_else(world) else {
        return usage(format!(
            "{name} has no address that others reach: --toward ADDRESS names one in their network"
        ));
    };
    Ok(found)
}

fn record((nodes, meetings): Measured, started: SystemTime, began: Instant) -> FleetRecord {
    FleetRecord {
        schema: SCHEMA.to_owned(),
        tool: tool(),
        host: host::facts(),
        arguments: arguments(),
        started: rfc3339(started),
        wall_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        nodes,
        meetings,
    }
}

fn show(args: &FleetArgs, record: FleetRecord, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let failed = record.nodes.iter().any(|node| node.failure.is_some())
        || record.meetings.iter().any(|meeting| meeting.failure.is_some());
    let record = Loaded::new("this fleet", AnyRecord::Fleet(record));
    args.outputs.show(record, &terminal::style())?;
    Ok(stop.exit_code(failed))
}

fn start(args: &FleetArgs, engine: Engine, submit: bool) -> anyhow::Result<ExitCode> {
    let size = match (args.nodes, args.hosts.len()) {
        (None, 0) if engine == Engine::Ssh => return usage("which hosts? --hosts A,B"),
        (None, 0) => return usage("how many nodes? --nodes N"),
        (nodes, 0) => nodes.unwrap_or_default() as usize,
        (None, hosts) => hosts,
        (Some(nodes), hosts) if nodes as usize == hosts => hosts,
        (Some(nodes), hosts) => return usage(format!("--nodes says {nodes}, and --hosts names {hosts}")),
    };
    several(size)?;
    if let Some(option) = args.hosts.iter().find(|host| host.is_empty() || host.starts_with('-')) {
        return usage(format!("`{option}` is no host"));
    }
    let command = BenchArgs::augment_args(clap::Command::new("bench").no_binary_name(true));
    if let Err(problem) = command.try_get_matches_from(&args.bench) {
        return usage(format!(
            "bench {}: {}",
            args.bench.join(" "),
            problem.to_string().trim_start_matches("error: ").trim_end()
        ));
    }
    let given =
        [args.hosepipe.as_deref(), args.image.as_deref(), args.folder.as_deref().and_then(Path::to_str)];
    let words = given.into_iter().flatten().chain(args.bench.iter().map(String::as_str));
    if let Some(word) = words.into_iter().find(|word| word.contains(char::is_control)) {
        return usage(format!("`{}` holds a control character: no job is made of it", model::visible(word)));
    }
    let own_file = matches!(engine, Engine::Slurm | Engine::Mpi);
    let own = std::env::current_exe().context("this program's own file")?.display().to_string();
    let default = if own_file { own } else { "hosepipe".to_owned() };
    let folder = args.folder.clone().or_else(|| own_file.then(|| "hosepipe-fleet".into()));
    let folder = match folder {
        Some(folder) if submit => Some(new_folder(&folder, "node-0")?),
        folder => folder.map(std::path::absolute).transpose()?,
    };
    let mut options = vec![
        format!("--pair-time={}ms", args.pair_time.as_millis()),
        format!("--wait={}s", args.wait.as_secs()),
    ];
    options.extend((engine == Engine::Kubernetes).then(|| "--json=-".to_owned()));
    options.extend(args.toward.map(|toward| format!("--toward={toward}")));
    let job = Job {
        name: "hosepipe-fleet".to_owned(),
        nodes: size,
        hosepipe: args.hosepipe.clone().unwrap_or(default),
        folder: folder.clone().filter(|_| own_file),
        options,
        bench: args.bench.clone(),
    };
    let image = args.image.as_deref().unwrap_or_default();
    let lines = match engine {
        Engine::Mpi => vec![job.mpi(&args.hosts)],
        Engine::Ssh => job.ssh(&args.hosts),
        Engine::Slurm | Engine::Kubernetes => Vec::new(),
    };
    if !submit {
        terminal::print(&match engine {
            Engine::Slurm => job.slurm(),
            Engine::Kubernetes => job.kubernetes(image),
            Engine::Mpi | Engine::Ssh => {
                lines.iter().map(|words| fleet::quoted(words) + "\n").collect::<String>()
            }
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let cleaner = Cleaner::start().context("cannot start the process that cleans up after us")?;
    let temporary = temporary(&cleaner)?;
    let folder = folder.as_deref().unwrap_or(temporary.path());
    let stop = StopRequest::listen()?;
    let started = match engine {
        Engine::Slurm => Started::by_slurm(&job.slurm(), &job.log(), folder, &cleaner),
        Engine::Mpi => Started::here(&lines, None, &cleaner),
        Engine::Ssh => Started::here(&lines, Some(folder), &cleaner),
        Engine::Kubernetes => {
            let token = args.token_file.clone().unwrap_or_else(|| folder.join("token"));
            if args.token_file.is_none() {
                Board::Folder(folder.to_owned()).put("token", &peer::new_token()?)?;
            }
            Started::by_kubernetes(&job.name, &job.kubernetes(image), &token, folder, &cleaner)
        }
    };
    follow(args, started.map_err(UsageError)?, (folder, size), engine == Engine::Ssh, &stop)
}

/// Follows a job to its record. Where it ends without one, or is stopped, what there is so far is brought together here.
fn follow(
    args: &FleetArgs,
    mut job: Started<'_>,
    (folder, size): (&Path, usize),
    one_each: bool,
    stop: &StopRequest,
) -> anyhow::Result<ExitCode> {
    let (started, began) = (SystemTime::now(), Instant::now());
    let board = Board::Folder(folder.to_owned());
    let bar =
        Bar::new((fleet::steps(size) * size) as u64, " {pos}/{len} steps of all nodes {bar:20} {wide_msg}");
    let (mut gone, mut looked) = (vec![None; size], None::<Instant>);
    let record = loop {
        let goes_on = job.goes_on().context("waiting for the job")? && !stop.is_set();
        for (rank, why) in job.failed().into_iter().filter(|_| one_each) {
            let unknown = Status::of(args.hosts[rank].clone(), tool(), None);
            fleet::tell_gone(&board, rank, unknown, &why)?;
        }
        if let Some(record) = board.get::<FleetRecord>(RECORD)? {
            break record;
        }
        if goes_on && looked.is_some_and(|at| at.elapsed() < LOOK_AGAIN) {
            continue;
        }
        looked = Some(Instant::now());
        let known = fleet::known(&board, size)?;
        let done = known.iter().flatten().map(|status| status.step).sum::<usize>() as u64;
        let here = known.iter().flatten().count();
        bar.stand_at(done, &format!("{here} of {size} nodes are here"));
        if !goes_on {
            let failed = job.failed();
            if let (false, 0, [(_, why)]) = (one_each || stop.is_set(), here, &failed[..]) {
                return usage(why);
            }
            for (rank, gone) in gone.iter_mut().enumerate() {
                let own = known[rank].as_ref().and_then(|status| status.failure.clone());
                let said = failed.iter().find(|(at, _)| *at == rank || !one_each);
                let over = || if stop.is_set() { "was stopped" } else { "ended before its work was done" };
                *gone = own.or(said.map(|(_, why)| why.clone())).or_else(|| Some(over().to_owned()));
            }
            break record(fleet::merged(&board, &gone)?, started, began);
        }
    };
    bar.finish();
    if !stop.is_set() {
        job.settle().context("waiting for the job's end")?;
    }
    show(args, record, stop)
}
