//! What hosepipe adds to a user's own shell: functions, a mark in the prompt, a line after a pipeline; and the file that says how it
//! begins. The shell itself is the user's, and `pipeline` makes its pipes.

mod after;
mod begin;
mod config;
mod tell;

pub use after::line;
pub use begin::{begin, users_shell};
pub use config::Config;
pub use tell::tell;
