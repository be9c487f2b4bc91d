//! One node of a fleet: its rank and address, where it meets the other nodes, and the record that it shows in the end.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use model::{FleetRecord, Record};
use process::Cleaner;
use remote::Token;
use remote::fleet::{self, Node, NodeError, RECORD, Rank, Rendezvous, Status};

use super::{FleetArgs, check_size, new_folder, recorder, show};
use crate::record::tool;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};

/// How long the first node stays reachable after the last measurement.
const LINGER: Duration = Duration::from_secs(2);

pub(super) fn run(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    let to_record = recorder();
    let Launched { rank, size, node: launched_name } = launched(args)?;
    let cleaner = Cleaner::start().context("cannot start the process that cleans up after us")?;
    let stop = StopRequest::listen()?;
    let own_address = address(args)?;
    let temporary = cleaner.make_folder().context("a folder for the work")?;
    let rendezvous = match (&args.folder, &args.meet) {
        _ if args.stdio => Rendezvous::over(process::Wire::over_stdio("the launcher")?),
        (Some(folder), _) => Rendezvous::Folder(new_folder(folder, &format!("node-{rank}"))?),
        (None, Some(meet)) => meeting(args, meet, (rank, own_address), temporary.path())?,
        (None, None) => {
            return usage("where do the nodes meet? --folder DIR names a folder that all of them see");
        }
    };
    let own_name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = args.name.clone().or(launched_name).unwrap_or_else(own_name);
    let node = Node {
        rank,
        size,
        rendezvous: &rendezvous,
        status: Status::new(name.clone(), size, tool(), Some(own_address)),
        hosepipe: std::env::current_exe().context("cannot find the file of this program")?,
        folder: temporary.path(),
        bench: args.bench.iter().map(Into::into).collect(),
        pair_time: args.pair_time,
        token_file: args.token_file.clone(),
        patience: args.wait,
        cleaner: &cleaner,
        stop: &|| stop.is_set(),
    };
    // `hosepipe report FOLDER` reads it by its kind.
    let publish = |record: &FleetRecord| rendezvous.put(RECORD, &Record::from(record.clone()));
    // The last record of the whole fleet, on the node that merges the results.
    let mut merged = None;
    let outcome = node.run(&mut |measured| publish(merged.insert(to_record(measured))));
    let show_own = |record| if args.stdio { Ok(stop.exit_code(false)) } else { show(args, record, &stop) };
    match outcome {
        Ok(()) => {
            // The other nodes still read the end of the fleet from this node.
            if args.meet.is_some() {
                stop.wait(LINGER);
            }
            merged.map_or_else(|| Ok(stop.exit_code(false)), show_own)
        }
        Err(NodeError::Stopped) => {
            let statuses = fleet::known(&rendezvous, size)?;
            let is_lowest_rank = statuses.iter().position(Option::is_some) == Some(rank);
            // With --stdio the launcher merges; else the lowest rank of those that have joined does.
            if args.stdio || !is_lowest_rank {
                return Ok(stop.exit_code(true));
            }
            let reasons: Vec<_> = statuses.iter().map(reason_when_stopped).collect();
            let record = to_record(fleet::merged(&rendezvous, &reasons)?);
            publish(&record)?;
            show(args, record, &stop)
        }
        Err(error) => {
            let own = own_results(temporary.path(), rank, size, &error)?;
            if let Some(record) = merged.or(own.map(to_record)) {
                show_own(record)?;
            }
            Err(anyhow::Error::new(error).context(format!("this node, {name}")))
        }
    }
}

/// Why a node is gone after the fleet was stopped: its own failure, if it has reported one.
fn reason_when_stopped(status: &Option<Status>) -> Option<String> {
    let failure = status.as_ref().and_then(|status| status.failure.clone());
    Some(failure.unwrap_or_else(|| "was stopped".to_owned()))
}

/// The results of this node alone, after an `error`; `None` if it has measured nothing. They are in its temporary folder, also if the
/// rendezvous or the other nodes are lost.
fn own_results(
    temporary: &Path,
    rank: usize,
    size: usize,
    error: &NodeError,
) -> anyhow::Result<Option<fleet::Measured>> {
    let mut reasons = vec![Some("was not reachable any more".to_owned()); size];
    reasons[rank] = Some(error.to_string());
    let (nodes, meetings) = fleet::merged(&Rendezvous::Folder(temporary.to_owned()), &reasons)?;
    let has_own = nodes[rank].bench.is_some();
    Ok(has_own.then_some((nodes, meetings)))
}

/// A node among all nodes.
struct Launched {
    rank: usize,
    size: usize,
    node: Option<String>,
}

/// The node that the options name, or else the launcher.
fn launched(args: &FleetArgs) -> anyhow::Result<Launched> {
    let found = match args.rank {
        Some(rank) => Some(Rank { rank: rank as usize, size: None, node: None }),
        None => fleet::launched_rank(&|name| std::env::var(name).ok()).map_err(UsageError)?,
    };
    let Some(Rank { rank, size, node }) = found else {
        return usage(
            "no launcher has started this as a node: --on slurm, mpi or ssh prints the job that starts all nodes, and \
             --hosts A,B starts them by ssh",
        );
    };
    let Some(size) = args.nodes.map(|nodes| nodes as usize).or(size) else {
        return usage("the launcher does not say how many nodes there are: --nodes N");
    };
    check_size(size)?;
    if rank >= size {
        return usage(format!("node {rank} of {size} cannot be: they are counted from 0"));
    }
    Ok(Launched { rank, size, node })
}

/// The rendezvous of nodes without a common folder: the first node serves it.
fn meeting(
    args: &FleetArgs,
    meet: &str,
    (rank, own): (usize, IpAddr),
    folder: &Path,
) -> anyhow::Result<Rendezvous> {
    let file = args.token_file.as_deref().unwrap_or(Path::new(""));
    let token = Token::read(file).map_err(UsageError::new)?;
    let port = match meet.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>())) {
        Some((host, Ok(port))) if !host.is_empty() && port > 0 => port,
        _ => return usage(format!("`{meet}` is not HOST:PORT, as in 10.0.0.2:4711")),
    };
    if rank > 0 {
        return fleet::call(meet, &token, args.wait).with_context(|| format!("the first node, at {meet}"));
    }
    // The name may lead to an address in front of this machine (NAT): then this node listens at its own address.
    let called = meet.to_socket_addrs().into_iter().flatten().find(|address| is_ours(address.ip()));
    let address = called.unwrap_or(SocketAddr::new(own, port));
    fleet::listen(address, token, folder.to_owned(), terminal::remarks_of("fleet"))?;
    Ok(Rendezvous::Folder(folder.to_owned()))
}

fn is_ours(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The address at which this node listens. With --toward, the one from which packets to that address would leave; else --address, else the
/// address of this host's name, else the one from which packets to other networks would leave. No packet is sent.
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
    let named = (name.as_str(), 0).to_socket_addrs().into_iter().flatten();
    let named = named.map(|address| address.ip()).find(|address| !address.is_loopback());
    // An address from a block that is reserved for documentation (RFC 5737).
    let world = || leaving(IpAddr::from([192, 0, 2, 1])).ok();
    let Some(found) = args.address.or(named).or_else(world) else {
        return usage(format!(
            "{name} has no address that others reach: --toward ADDRESS names one in their network"
        ));
    };
    Ok(found)
}
