//! What hosepipe adds to the prompt of the user's own shell.

mod config;

pub use config::Config;
