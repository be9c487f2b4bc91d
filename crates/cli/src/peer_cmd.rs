//! `hosepipe peer`: the other end of a benchmark, held for another host; and `bench --peer`, which reaches it.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use mechanism::Capabilities;
use model::{Case, PayloadKind, Placement, Tasks, Toward, Workload};
use process::Cleaner;
use remote::peer::{PeerClient, PeerServer};
use remote::{Listener, Token};

use crate::bench::{BenchArgs, PlaceArgument};
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};
use crate::{record, typed};

/// How long a far side that ssh has started waits for the next trial.
const IDLE_OVER_SSH: Duration = Duration::from_secs(120);

/// The heading of what says where the other end is.
const PEER: &str = "Another host";

/// Holds the other end of a benchmark for another host: one of them, with the same token, and then it ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  (umask 077; head -c 32 /dev/urandom | base64 > token)       a token, to be copied to both hosts
  hosepipe peer --listen 10.0.0.2:4711 --token-file token     on the one host
  hosepipe bench tcp udp --peer tcp://10.0.0.2:4711 --token-file token     on the other

Where there is ssh, nothing of this is needed: hosepipe bench tcp udp --peer HOST (docs/PEER.md).
Exit status: 0 it held ends, and its caller ended; 1 no caller came, or it was no hosepipe; 2 the command line is wrong.")]
pub(crate) struct PeerArgs {
    /// Listen there, and nowhere else; port 0 is any, and is printed
    #[arg(long, value_name = "ADDR:PORT", requires = "token_file", value_parser = place)]
    listen: Option<SocketAddr>,

    /// What both sides know: a file of 16 bytes or more that no other user may read
    #[arg(long, value_name = "F")]
    token_file: Option<PathBuf>,

    /// End when nobody comes, or nothing is asked, for so long
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = typed::positive_duration)]
    idle: Duration,

    /// What ssh starts
    #[arg(long, hide = true, conflicts_with = "listen")]
    stdio: bool,

    #[arg(long, hide = true, requires = "stdio")]
    address: Option<IpAddr>,
}

/// Where the other host is, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// What ssh(1) takes for a destination.
    Ssh(String),
    /// `tcp://ADDRESS:PORT`, at which a hosepipe listens.
    Tcp(String),
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let odd = text.chars().any(|letter| letter.is_whitespace() || letter.is_control());
        let shown = model::one_line(text);
        match text.strip_prefix("tcp://") {
            Some(rest)
                if !odd && rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) =>
            {
                Ok(Self::Tcp(rest.to_owned()))
            }
            Some(_) => Err(format!("`{shown}` is no address: tcp://ADDRESS:PORT, as in tcp://10.0.0.2:4711")),
            None if text.is_empty() || text.starts_with('-') || odd => Err(format!(
                "`{shown}` is no host: HOST or USER@HOST, as ssh takes it, or tcp://ADDRESS:PORT"
            )),
            None => Ok(Self::Ssh(text.to_owned())),
        }
    }
}

/// Where the other end of a benchmark is.
#[derive(Debug, Args)]
pub(crate) struct BenchPeerArgs {
    /// Measure to another host and back: HOST as ssh takes it, or tcp://ADDR:PORT, where `hosepipe peer` listens
    #[arg(id = "peer", long = "peer", value_name = "HOST", help_heading = PEER,
        conflicts_with_all = ["all", "tasks", "chain", "pairs", "senders", "receivers", "workers", "worker"])]
    pub(crate) target: Option<Target>,

    /// The token of `hosepipe peer`, for tcp://ADDR:PORT
    #[arg(long, value_name = "F", requires = "peer", help_heading = PEER)]
    token_file: Option<PathBuf>,

    /// With ssh: the address of that host at which ends meet [default: the one that ssh has reached]
    #[arg(long, value_name = "ADDR", requires = "peer", help_heading = PEER)]
    peer_address: Option<IpAddr>,

    /// With ssh: copy this program there, and remove it afterwards
    #[arg(long, requires = "peer", help_heading = PEER)]
    send_binary: bool,
}

fn place(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address and port: as in 10.0.0.2:4711, or [::1]:0"))
}

/// Says what a command has to say of strangers: they may come again and again.
pub(crate) fn remarks(who: &'static str) -> impl FnMut(&str) + Send {
    const MOST: usize = 20;
    let mut said = 0;
    move |text| {
        said += 1;
        match said {
            ..MOST => terminal::remark(&format!("hosepipe {who}: {text}")),
            MOST => terminal::remark(&format!("hosepipe {who}: {text} (and no more is said of others)")),
            _ => {}
        }
    }
}

pub(crate) fn token(file: &Path) -> Result<Token, UsageError> {
    Token::read(file).map_err(|problem| UsageError(problem.to_string()))
}

pub(crate) fn run(args: &PeerArgs) -> anyhow::Result<ExitCode> {
    let stop = StopRequest::listen()?;
    let (stops, cpus) = (|| stop.is_set(), host::cpus());
    let mut remark = remarks("peer");
    let (server, idle) = match (args.listen, &args.token_file) {
        (Some(address), Some(file)) => {
            let token = token(file)?;
            let listener = Listener::at(address)?;
            terminal::print(&format!("listening on {}\n", listener.address()?))?;
            let own = (record::tool(), host::facts());
            (PeerServer::await_caller(listener, &token, own, args.idle, &stops, &mut remark), args.idle)
        }
        _ if !args.stdio => {
            let what = "where to wait, and for whom: --listen ADDR:PORT --token-file F";
            return Err(UsageError(what.to_owned()).into());
        }
        _ => (PeerServer::over_ssh(args.address, record::tool(), host::facts()), IDLE_OVER_SSH),
    };
    let served = server.and_then(|server| server.serve(&cpus, idle, &stops, &mut remark));
    if let Some(status) = stop.exit_status() {
        return Ok(status.into());
    }
    served?;
    Ok(ExitCode::SUCCESS)
}

impl BenchPeerArgs {
    /// Refuses what has no meaning between two hosts.
    pub(crate) fn check(&self, args: &BenchArgs) -> Result<(), UsageError> {
        let Some(target) = &self.target else { return Ok(()) };
        let over_tcp = matches!(target, Target::Tcp(_));
        let crosses = |spec: &&model::Spec| {
            mechanism::resolve(spec)
                .is_ok_and(|(found, _)| found.capabilities.contains(Capabilities::CROSSES_HOSTS))
        };
        let problem = match args.specs.iter().find(|spec| !crosses(spec)) {
            Some(spec) => format!("`{spec}` does not leave this machine: with --peer take tcp or udp"),
            None if !matches!(args.place, None | Some(PlaceArgument::One(Placement::Any))) => {
                "the ends are on two hosts: --place any, or none".to_owned()
            }
            None if matches!(args.payload, PayloadKind::File(_)) => {
                "a file is not there on the other host: --payload random, printable, sequence or zero"
                    .to_owned()
            }
            None if over_tcp && self.token_file.is_none() => {
                "tcp://ADDR:PORT needs the token of `hosepipe peer` there: --token-file F".to_owned()
            }
            None if !over_tcp && self.token_file.is_some() => {
                "ssh needs no token: --token-file goes with tcp://ADDR:PORT".to_owned()
            }
            None if over_tcp && (self.send_binary || self.peer_address.is_some()) => {
                "--send-binary and --peer-address go with ssh, not with tcp://ADDR:PORT".to_owned()
            }
            None => return Ok(()),
        };
        Err(UsageError(problem))
    }

    /// The case as it is here; with another host a stream goes both ways, and round trips begin here.
    pub(crate) fn both_ways(&self, case: Case) -> Vec<Case> {
        let ways: &[Toward] = match (&self.target, case.workload) {
            (None, _) => return vec![case],
            (_, Workload::Stream) => Toward::ALL,
            (_, Workload::PingPong) => &[Toward::Peer],
        };
        let way = |way: &Toward| Case { toward: Some(*way), tasks: Tasks::Processes, ..case.clone() };
        ways.iter().map(way).collect()
    }

    /// Reaches the other host, where one was named.
    pub(crate) fn reach<'c>(&self, cleaner: &'c Cleaner) -> anyhow::Result<Option<PeerClient<'c>>> {
        let client = match (&self.target, &self.token_file) {
            (Some(Target::Tcp(address)), Some(file)) => PeerClient::over_tcp(address, &token(file)?),
            (Some(Target::Ssh(host)), _) => {
                PeerClient::over_ssh(host, self.peer_address, self.send_binary, cleaner)
            }
            _ => return Ok(None),
        };
        client.map(Some).context("--peer")
    }
}
