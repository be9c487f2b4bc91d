//! Real command lines over any link.
//!
//! A text becomes a [`syntax::Script`]; each of its pipelines is started program by program, with a link of the
//! user's choice between them, waited for and accounted for. Nothing of ours runs inside a pipeline, except the
//! relays that some links need, and those never touch the data.

mod accounts;
mod activity;
mod attention;
mod bottleneck;
mod builtins;
mod capture;
pub mod contest;
mod environment;
mod execute;
mod front;
mod fullness;
mod jobs;
mod keep;
mod launch;
mod learn;
mod ledger;
pub mod link;
mod lookup;
mod preload;
mod run;
mod serve;
mod session;
pub mod shell;
mod signals;
mod spawn;
mod summary;
mod supervise;
pub mod syntax;
mod trial;
mod watch;

pub use bottleneck::shortened;
pub use builtins::is_builtin;
pub use capture::Output;
pub use execute::RunError;
pub use front::{Cannot, Ran, Text, Watched, run as run_in_shell};
pub use jobs::{Event, Front, Groups, Jobs, State, Terminal, Waited};
pub use keep::{Keep, KeepProblem};
pub use lookup::program;
pub use run::{Finished, RunOptions, run};
pub use serve::{Glance, Picture};
pub use session::{NoShell, Session};
pub use signals::{NoSignals, end_by, remember_dispositions, was_ignored};
pub use spawn::Group;
pub use summary::Summary;
pub use supervise::Ending;
pub use trial::{Carrier, Complaints, Outcome, Start, Trial, trial};
pub use watch::{Seen, Show, Watch};
