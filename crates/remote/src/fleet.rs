//! Many nodes, each started by what its users have (Slurm, MPI, ssh): every one benches itself, all pairs measure each other, and
//! the first that is still there merges what all have measured.
//!
//! Nothing here decides where a node runs: one program is started everywhere, asks its launcher for its [`Rank`], and meets the others at a
//! [`Rendezvous`].

mod job;
mod meet;
mod member;
mod node;
mod rank;
mod rendezvous;
mod schedule;

pub use job::FleetJob;
pub use meet::{call, listen};
pub use member::{Status, Trouble, known, publish_gone};
pub use node::{Measured, Node, RECORD, merged, steps};
pub use rank::{Rank, launched_rank};
pub use rendezvous::{Rendezvous, serve};
pub use schedule::{partner, rounds};
