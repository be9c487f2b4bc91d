//! `hosepipe peer`: runs the other end of the benchmarks of another host.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use remote::peer::PeerServer;
use remote::{Listener, Token};

use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, usage};
use crate::{record, typed};

/// How long a peer that ssh has started waits for the next trial.
const IDLE_OVER_SSH: Duration = Duration::from_secs(120);

/// Run the other end of a benchmark for another host
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/peer.txt"))]
pub(crate) struct PeerArgs {
    /// Listen at this address only; for port 0 the system chooses one, which is printed
    #[arg(long, value_name = "ADDR:PORT", requires = "token_file", value_parser = address)]
    listen: Option<SocketAddr>,

    /// The secret of both hosts: a file of 16 bytes or more that no other user may read
    #[arg(long, value_name = "F")]
    token_file: Option<PathBuf>,

    /// End after this time without a caller, or without a request
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = typed::positive_duration)]
    idle: Duration,

    /// Serve the caller on standard input and output, for ssh
    #[arg(long, hide = true, conflicts_with = "listen")]
    stdio: bool,

    #[arg(long, hide = true, requires = "stdio")]
    address: Option<IpAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not an address with a port, as in 10.0.0.2:4711, or [::1]:0"))
}

pub(crate) fn run(args: &PeerArgs) -> anyhow::Result<ExitCode> {
    let stop = StopRequest::listen()?;
    let (stops, cpus) = (|| stop.is_set(), host::cpus());
    let mut remark = terminal::remarks_of("peer");
    let (server, idle) = match (args.listen, &args.token_file) {
        (Some(address), Some(file)) => {
            let token = Token::read(file).map_err(UsageError::new)?;
            let listener = Listener::at(address)?;
            terminal::print(&format!("listening on {}\n", listener.address()?))?;
            let own = (record::tool(), host::facts());
            (PeerServer::await_caller(listener, &token, own, args.idle, &stops, &mut remark), args.idle)
        }
        _ if !args.stdio => {
            return usage(
                "an address to listen at and the secret of the caller are needed: --listen ADDR:PORT --token-file F",
            );
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
