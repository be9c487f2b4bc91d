//! The other end of a benchmark on another host: found by ssh or at an address, trusted, asked for one trial after the other, and
//! ended. What a trial is the engine knows, on both hosts alike; here is how they talk.

mod auth;
mod far;
mod near;
mod ssh;
mod wire;

pub use auth::{Token, new_token};
pub use far::{Far, Listening};
pub use near::{Near, meet, reach};
pub use wire::{PeerError, Protocol, Wire};
