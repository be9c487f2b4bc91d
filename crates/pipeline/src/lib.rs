//! Real command lines over any link.
//!
//! The user's own shell runs the text. A library that is preloaded into that shell alone replaces pipe(2) where the shell makes a
//! pipeline's pipe, and gets both ends of a link of the user's choice from a server. Nothing of hosepipe runs inside a pipeline, except
//! relays (for files, terminals, `--keep`, `--meter`), which pass bytes on unchanged.

mod align;
pub mod boost;
mod bottleneck;
mod capture;
pub mod contest;
mod history;
mod keep;
mod latency;
mod learn;
mod ledger;
mod line_buffered;
pub mod link;
mod preload;
mod program_file;
mod prompt_pipes;
mod requests;
mod run;
mod serve;
pub mod shell;
mod shell_run;
pub mod stuck;
#[cfg(test)]
mod testing;
mod tips;
mod trial;
pub mod tune;

pub use capture::Output;
pub use keep::{Keep, KeepProblem};
pub use line_buffered::LineBuffered;
pub use link::wait_for_writers;
pub use observe::read_progress::ReadProgress;
pub use requests::send_command;
pub use run::run;
pub use shell_run::{
    Prompt, PromptLine, Ran, RunError, ServerNames, ShellRun, ShellStartup, ShellUse, StagePainter,
    StageSnapshot, Summary, Watched, text_arguments,
};
pub use trial::{Start, Trial, TrialOptions, TrialStderr, trial, write_outcome};
