//! What hosepipe adds to a user's own shell: functions, a mark in the prompt, a line after a pipeline, and their settings.
//! The crate `pipeline` makes the shell's pipes.

mod after;
mod begin;
mod config;
mod prompt_command;

pub use after::line;
pub use begin::{begin, users_shell};
pub use config::Config;
pub use prompt_command::run_prompt_command;
