//! `--peer`: the other host of a benchmark, and how it is reached.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use process::Cleaner;
use remote::Token;
use remote::peer::PeerClient;

use crate::terminal::UsageError;
use crate::typed;

/// The heading of these options in the help.
const PEER: &str = "Another host";

/// The other host, as typed.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// A destination of ssh(1).
    Ssh(String),
    /// `tcp://ADDRESS:PORT`, at which a hosepipe listens.
    Tcp(String),
}

fn target(text: &str) -> Result<Target, String> {
    let odd = text.chars().any(|letter| letter.is_whitespace() || letter.is_control());
    let shown = model::one_line(text);
    let has_port =
        |address: &str| address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match text.strip_prefix("tcp://") {
        Some(address) if !odd && has_port(address) => Ok(Target::Tcp(address.to_owned())),
        Some(_) => Err(format!("`{shown}` is not an address: tcp://ADDRESS:PORT (tcp://10.0.0.2:4711)")),
        None if odd || typed::host(text).is_err() => {
            Err(format!("`{shown}` is not a host: HOST or USER@HOST, as ssh takes it, or tcp://ADDRESS:PORT"))
        }
        None => Ok(Target::Ssh(text.to_owned())),
    }
}

/// The host of the other end.
#[derive(Debug, Args)]
pub(crate) struct FarEndArgs {
    /// Measure to another host and back: HOST as ssh takes it, or tcp://ADDR:PORT, where `hosepipe peer` listens
    #[arg(id = "peer", long = "peer", value_name = "HOST", help_heading = PEER, value_parser = target,
        conflicts_with_all = ["all", "tasks", "chain", "pairs", "senders", "receivers", "workers", "worker"])]
    pub(crate) target: Option<Target>,

    /// The token of `hosepipe peer`, for tcp://ADDR:PORT
    #[arg(long, value_name = "F", requires = "peer", help_heading = PEER)]
    pub(super) token_file: Option<PathBuf>,

    /// With ssh: the address of that host to which the measured connections go [default: the one that ssh has reached]
    #[arg(long, value_name = "ADDR", requires = "peer", help_heading = PEER)]
    pub(super) peer_address: Option<IpAddr>,

    /// With ssh: copy this program there, and remove it afterwards
    #[arg(long, requires = "peer", help_heading = PEER)]
    pub(super) send_binary: bool,
}

impl FarEndArgs {
    /// Connects to the other host, if one was named.
    pub(crate) fn reach<'c>(&self, cleaner: &'c Cleaner) -> anyhow::Result<Option<PeerClient<'c>>> {
        let client = match (&self.target, &self.token_file) {
            (Some(Target::Tcp(address)), Some(file)) => {
                PeerClient::over_tcp(address, &Token::read(file).map_err(UsageError::new)?)
            }
            (Some(Target::Ssh(host)), _) => {
                PeerClient::over_ssh(host, self.peer_address, self.send_binary, cleaner)
            }
            _ => return Ok(None),
        };
        client.map(Some).context("--peer")
    }
}
