//! Programs in other languages: which there are, how they are built, what they did. Knows no mechanism but the
//! pipe between them. The contract of a worker is docs/WORKERS.md.

mod build;
mod build_cache;
mod ceiling;
mod command;
mod job;
mod judge;
mod launcher;
mod measure;
mod program;
mod registry;
mod result_line;
mod select;
mod sources;
mod toolchain;
mod trial_size;
mod whereabouts;

pub use build::{Built, Unbuilt};
pub use build_cache::BuildCache;
pub use job::Job;
pub use launcher::{Launch, Launcher, Run};
pub use measure::{Measured, WorkerPair, WorkerPlan, measure};
pub use program::{Program, Worker};
pub use registry::{Language, Registry, RegistryError, Variant};
pub use result_line::{RecvLine, ResultLines, SendLine};
pub use select::{LanguageVariant, SelectError};
pub use sources::WORKERS_VARIABLE;
pub use toolchain::Missing;
pub use trial_size::TrialSize;
