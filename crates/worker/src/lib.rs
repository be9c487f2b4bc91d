//! Programs in other languages: the registry, builds, and measured runs. The contract of a worker is docs/WORKERS.md.

mod build;
mod ceiling;
mod command;
mod end_sampler;
mod environment;
mod launcher;
mod pair;
mod parallel;
mod program;
mod registry;
mod result_line;
mod row;
mod run_check;
mod select;
mod sources;
mod toolchain;
mod trial_size;

pub use build::{BuildCache, Built, Unbuilt};
pub use launcher::{Launch, Launcher, Run};
pub use pair::WorkerPair;
pub use program::{Program, Worker};
pub use registry::{Language, PEERS, Receiver, Registry, RegistryError, Variant};
pub use result_line::{RecvLine, ResultLines, SendLine};
pub use row::{WorkerAmount, worker_rows};
pub use select::{LanguageVariant, SelectError};
pub use sources::WORKERS_VARIABLE;
pub use trial_size::TrialSize;
