//! The interactive front of `pipeline`: a prompt whose `|` is of the user's choice. Nothing is parsed or run here that
//! `pipeline` does not parse and run; what comes in is a session, a link, and lines.

mod after;
mod builtins;
mod complete;
mod config;
mod cut;
mod expand;
mod front;
mod hangup;
mod highlight;
mod history;
mod interactive;
mod jobs;
mod options;
mod ours;
mod presets;
mod prompt;
mod say;
mod scratch;
mod text;
mod tokens;
mod words;

pub use config::Config;
pub use front::Shell;
pub use interactive::interactive;

use front::Onward;
use pipeline::syntax::Script;

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Left(i32),
    /// By this signal.
    By(i32),
}

/// Runs a text without a prompt, to its end; `asked_to_end` gives the signal that ends it between two pipelines.
pub fn script(
    mut shell: Shell,
    script: &Script,
    text: &str,
    asked_to_end: &dyn Fn() -> Option<i32>,
) -> Ended {
    match shell.take(script, text, asked_to_end) {
        Onward::Yes => Ended::Left(shell.session.status()),
        Onward::Leave(status) => Ended::Left(status),
        Onward::EndedBy(signal) => Ended::By(signal),
    }
}

/// Reads a text as [`script`] takes it.
///
/// # Errors
/// It is no command line: what is wrong with it, and where, for people.
pub fn read(text: &str, shell: &str) -> Result<Script, String> {
    text::read(text, shell).map_err(|error| text::pointed_out(text, &error))
}
