//! Programs that use a mechanism as a question asks: this crate writes them from templates, compiles them, runs them in rounds and ranks
//! them. It does not choose what to run (it is given the ranking of loops that were measured), and prints nothing.
//!
//! - [`programs`]: one program that starts both ends (`program.rs`), or a sender and a receiver (`ends.rs`)
//! - [`folder`]: how two programs are started together
//! - [`Promises`]: what the two programs of each mechanism do
//! - [`race`]: the programs are run, and the best of them found

mod ends;
pub mod folder;
mod languages;
mod program;
mod promises;
mod question;
pub mod race;
mod runs;
mod template;

pub use ends::missing_in;
pub use languages::{Code, CodeLanguage, LanguageFacts};
pub use program::{Library, Program, Role, programs};
pub use promises::{MustText, Promises, Sharing};
pub use question::{Between, Must, Pattern, Question, Share};
