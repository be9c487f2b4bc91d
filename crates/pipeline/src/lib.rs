//! Real command lines over any link.
//!
//! A text becomes a [`syntax::Script`]; each of its pipelines is started program by program, with a link of the
//! user's choice between them, waited for and accounted for. Nothing of ours runs inside a pipeline, except the
//! relays that some links need, and those never touch the data.

mod accounts;
mod bottleneck;
mod builtins;
mod environment;
mod execute;
mod launch;
pub mod link;
mod lookup;
mod run;
mod session;
mod signals;
mod spawn;
mod supervise;
pub mod syntax;
mod watch;

pub use bottleneck::judge;
pub use execute::RunError;
pub use run::{Finished, RunOptions, run};
pub use session::{NoShell, Session};
pub use signals::{end_by, remember_dispositions};
pub use spawn::Group;
pub use supervise::Ending;
pub use watch::{Seen, Show, Watch};
