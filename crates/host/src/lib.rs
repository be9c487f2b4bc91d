//! This machine: its CPUs and the placement of two ends on them, the facts in a record, and the findings of `hosepipe doctor`.
//! This crate only reads files and makes system calls; it runs no programs, and changes one file: the speeds of copies that it keeps.
//!
//! Every parser takes [`Roots`] or a text, so that a folder of files can stand for any machine.

mod copy_costs;
mod cpuinfo;
mod cpulist;
mod doctor;
mod facts;
#[cfg(test)]
mod fake;
mod frequency;
mod hypervisor;
mod other_load;
mod placement;
mod roots;
mod topology;
mod vitals;

pub use copy_costs::{copy_costs, measure_copy_costs};
use cpulist::CpuList;
pub use doctor::{Finding, Severity, copy_finding, diagnose};
pub use facts::{available_memory_bytes, facts};
pub use other_load::LoadWatch;
pub use placement::{PlacementError, resolve, resolve_pairs, resolve_receivers, resolve_senders};
use roots::Roots;
pub use topology::cpus;
