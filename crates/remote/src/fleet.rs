//! Many nodes, started by Slurm, MPI or ssh: each runs its own bench, all pairs measure each other, and the node with the lowest rank that is
//! still there merges all results.
//!
//! The launcher decides where a node runs. The same program is started everywhere, gets its [`Rank`] from the launcher, and exchanges values
//! with the others through a [`Rendezvous`].

mod job;
mod meet;
mod member;
mod node;
mod rank;
mod rendezvous;
mod schedule;

pub use job::FleetJob;
pub use meet::{call, listen};
pub use member::{Node, NodeError, Status, known, publish_gone};
pub use node::{Measured, RECORD, merged, steps};
pub use rank::{Rank, launched_rank};
pub use rendezvous::{Rendezvous, serve};
pub use schedule::{partner, rounds};
