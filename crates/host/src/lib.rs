//! This machine: its CPUs and the placement of two ends on them, the facts in a record, and the findings of `hosepipe doctor`.
//! This crate reads files and makes system calls. It runs no programs, and writes only one file, which keeps the speeds of copies.
//!
//! Every parser takes [`Roots`] or a text, so that tests can describe any machine by a folder of files.

mod cgroup;
mod copy_costs;
mod cpuinfo;
mod cpulist;
mod doctor;
mod facts;
#[cfg(test)]
mod fake;
mod frequency;
mod hypervisor;
mod names;
mod other_load;
mod placement;
mod roots;
mod topology;
mod vitals;

pub use cgroup::{Memory, memory};
pub use copy_costs::{copy_costs, measure_copy_costs};
use cpulist::CpuList;
pub use doctor::{Finding, Severity, copy_finding, diagnose};
pub use facts::facts;
pub use other_load::LoadWatch;
pub use placement::{PlacementError, resolve, resolve_pairs, resolve_receivers, resolve_senders};
use roots::Roots;
pub use topology::cpus;
