//! Many nodes, each started by what its users have (Slurm, MPI, ssh): every one benches itself, all pairs measure each other, and
//! the first that is still there brings together what all have measured.
//!
//! Nothing here decides where a node runs: one program is started everywhere, asks its launcher for its [`Seat`], and meets the others at a
//! [`Board`].

mod board;
mod engine;
mod job;
mod launcher;
mod meet;
mod member;
mod node;
mod schedule;

pub use board::{Board, serve};
pub use engine::Started;
pub use job::Job;
pub use launcher::{Seat, seat};
pub use meet::{call, listen};
pub use member::{Status, Trouble, known, tell_gone};
pub use node::{Measured, Node, RECORD, merged, steps};
pub use schedule::{partner, rounds};
