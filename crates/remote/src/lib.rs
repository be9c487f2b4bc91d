//! Programs on other hosts, started by what is there already (ssh, Slurm, mpirun, Spark): the other end of a benchmark (`peer`), many nodes
//! that measure each other (`fleet`), and a pipeline over data in many partitions (`spread`).

pub mod fleet;
pub mod peer;
pub mod spread;
