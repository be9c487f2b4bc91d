//! Runs a published study with its own parameters, part by part, into one record that can be resumed.
//!
//! A study is a list of parts ([`parts`]); each is a function from a [`Stage`] to a `StudyPart` and knows one
//! question of the study. [`conduct`] runs those that a record does not have yet, and hands the record out after
//! each. Nothing here prints, and no published figure is known here: parameters come from `experiment`.

mod bradford;
mod comp517;
mod conduct;
mod facts;
mod kernel_pipe;
mod needs;
mod part;
mod pipelines;
mod scale;
mod stover;
mod streams;

pub use conduct::{Resume, check_resume, conduct, foreign_part};
pub use needs::{Have, Lack, Needs, needs};
pub use part::{Job, Part, ReproduceError, Stage, Watcher, parts};
pub use scale::Scale;
