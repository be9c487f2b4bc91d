//! What this machine is: its CPUs and where two ends may sit on them, the facts a record carries, and
//! what a doctor would say before a measurement. This room reads; it runs nothing and changes nothing.
//!
//! Whatever parses takes [`Roots`] or a text, so that every machine can be played by a folder of files.

mod cpuinfo;
mod cpulist;
mod doctor;
mod facts;
#[cfg(test)]
mod fake;
mod hypervisor;
mod placement;
mod roots;
mod topology;
mod vitals;

use cpulist::CpuList;
pub use doctor::{Finding, Severity, diagnose};
pub use facts::{available_memory_bytes, facts};
pub use placement::{PlacementError, resolve, resolve_pairs, resolve_senders};
use roots::Roots;
pub use topology::cpus;
