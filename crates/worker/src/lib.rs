//! Programs in other languages: which there are, how they are built, what they did. Knows no mechanism but the
//! pipe between them. The contract of a worker is docs/WORKERS.md.

mod amount;
mod build;
mod calls;
mod captured;
mod ceiling;
mod command;
mod failure;
mod guard;
mod job;
mod judge;
mod launcher;
mod marked;
mod measure;
mod private;
mod process;
mod program;
mod registry;
mod remove;
mod result_line;
mod seats;
mod select;
mod sources;
mod supervise;
mod toolchain;
mod trace;
mod usage;
mod whereabouts;
mod workshop;

pub use amount::Amount;
pub use build::{BuildError, Built};
pub use calls::count_calls;
pub use failure::{Failure, NoRun};
pub use guard::Guard;
pub use job::Job;
pub use launcher::{Launch, Launcher, Run};
pub use measure::{Outcome, Plan, Row, measure};
pub use program::{Program, Worker};
pub use registry::{Language, Registry, RegistryError, Variant};
pub use result_line::{RecvLine, ResultLines, SendLine, WrongLine};
pub use select::{Choice, SelectError};
pub use sources::WORKERS_VARIABLE;
pub use toolchain::Missing;
pub use workshop::{State, Unbuilt, Workshop};
