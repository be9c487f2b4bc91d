//! The other end of a benchmark on another host, reached by ssh or at an address. The engine runs the trials on both hosts; here are the
//! messages between them.

mod client;
mod server;
mod ssh;

use std::net::SocketAddr;

use engine::{EndpointRequest, PeerMessage};
use model::{CaseError, Host, Tool};
use serde::{Deserialize, Serialize};

use crate::auth::Protocol;

pub use client::PeerClient;
pub use server::PeerServer;

/// The protocol of the two ends of a benchmark.
const BENCH: Protocol = "bench 5";

/// What the server sends after the authentication: the address for connections of a trial, and the machine.
#[derive(Serialize, Deserialize)]
struct ServerFacts {
    address: SocketAddr,
    tool: Tool,
    host: Host,
}

/// What the server sends about a trial, with the number of its order: its progress, its report, or why there is none.
#[derive(Serialize, Deserialize)]
struct TrialUpdate {
    news: (u64, Result<PeerMessage, CaseError>),
}

/// What the client sends.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClientMessage {
    Order(u64, EndpointRequest),
    Confirm { bytes: u64, checksum: Option<String> },
}
