//! Real command lines over any link.
//!
//! A text becomes a [`syntax::Script`]; each of its pipelines is started program by program, with a link of the
//! user's choice between them, waited for and accounted for. Nothing of ours runs inside a pipeline, except the
//! relays that some links need, and those never touch the data.

mod accounts;
mod bottleneck;
mod builtins;
mod capture;
mod command;
pub mod contest;
mod environment;
mod execute;
mod front;
mod jobs;
mod keep;
mod launch;
mod learn;
mod ledger;
pub mod link;
mod lookup;
mod mirror;
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
mod tell;
mod trial;
mod watch;

pub use bottleneck::{judge, shortened};
pub use builtins::is_builtin;
pub use capture::Output;
pub use command::{Line, Shown};
pub use execute::RunError;
pub use front::{AtPrompt, Begin, Cannot, Names, Text, run as run_in_shell, run_at_prompt};
pub use jobs::{Event, Front, Groups, Jobs, State, Terminal, Waited};
pub use keep::{Keep, KeepProblem};
pub use lookup::program;
pub use run::{Finished, RunOptions, run};
pub use session::{NoShell, Session};
pub use signals::{NoSignals, end_by, remember_dispositions, was_ignored};
pub use spawn::Group;
pub use supervise::Ending;
pub use tell::tell;
pub use trial::{Carrier, Complaints, Outcome, Start, Trial, trial};
pub use watch::{Seen, Show, Watch};
