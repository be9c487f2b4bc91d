//! Programs on other hosts, started by ssh, Slurm, mpirun or Spark: the other end of a benchmark (`peer`), many nodes that measure each other
//! (`fleet`), and a pipeline over data in many partitions (`spread`).

mod auth;
pub mod fleet;
mod handshake;
pub mod launcher;
pub mod peer;
pub mod spread;

pub use auth::Token;
pub use handshake::Listener;
