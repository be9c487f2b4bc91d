//! The other end of a benchmark on another host: reached by ssh or at an address, trusted, asked for one trial after the other, and ended. What
//! a trial is the engine knows, on both hosts alike; here are the messages between them.

mod client;
mod server;
mod ssh;

use std::net::SocketAddr;

use engine::{FarNews, Order};
use model::{CaseError, Host, Tool};
use serde::{Deserialize, Serialize};

use crate::auth::Protocol;

pub use client::PeerClient;
pub use server::PeerServer;

/// The two ends of a benchmark.
const BENCH: Protocol = "bench 4";

/// What the server sends once each side trusts the other: where ends meet, and the machine.
#[derive(Serialize, Deserialize)]
struct Here {
    address: SocketAddr,
    tool: Tool,
    host: Host,
}

/// What the server sends of a trial, by the number of its order: how it goes, or why there is no report.
#[derive(Serialize, Deserialize)]
struct News {
    news: (u64, Result<FarNews, CaseError>),
}

/// What the client sends.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClientMessage {
    Order(u64, Order),
    Confirm { bytes: u64, checksum: Option<String> },
}
