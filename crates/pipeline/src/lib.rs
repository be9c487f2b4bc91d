//! Real command lines over any link.
//!
//! The user's own shell runs the text. A library that is preloaded into that shell alone stands in for pipe(2) where the shell makes
//! a pipeline's pipe, and gets both ends of a link of the user's choice from a server of ours. Nothing of ours runs inside a
//! pipeline, except relays (for files, terminals, `--keep`, `--meter`), which pass bytes on unchanged.

mod align;
pub mod boost;
mod bottleneck;
mod capture;
mod command;
pub mod contest;
mod keep;
mod latency;
mod learn;
mod ledger;
mod line_buffered;
pub mod link;
mod preload;
mod program_file;
mod run;
mod serve;
pub mod shell;
mod socket;
mod stage_sampler;

mod trial;

pub use capture::Output;
pub use command::{Line, Prompt};
pub use keep::{Keep, KeepProblem};
pub use line_buffered::LineBuffered;
pub use link::wait_for_writers;
pub use observe::read_progress::ReadProgress;
pub use run::{Begin, Names, Ran, RunError, ShellUse, Summary, Text, Watched, run, text_arguments};
pub use serve::{StagePainter, StageSnapshot};
pub use socket::send_command;
pub use trial::{Carrier, Complaints, Start, Trial, tell_outcome, trial};
