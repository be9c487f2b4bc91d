//! A pipeline over many files, or over one file that is cut at line ends: MAP is run for each partition, as many at a time as there are CPUs,
//! and REDUCE over the outputs, in the order of the inputs.
//!
//! Partitions are run by tasks, `hosepipe __part FOLDER`, one after the other. On this machine, on a host or on a cluster, a task reads the plan
//! from the folder, writes the output of each partition there, and a line of a file says how it ended.

mod blocks;
mod derive;
mod feed;
mod job;
mod merge;
mod partition;
mod queue;
mod submit;
mod work;

pub use crate::launcher::last_words;
pub use blocks::Blocks;
pub use derive::{Derived, derive};
pub use feed::{FeedProcess, feed};
pub use job::{NOT_RUN, SpreadJob, describe};
pub use merge::merged;
pub use partition::{InputFile, Range, cut, files, is_url, sample};
pub use queue::BEGUN;
pub use work::{PartResult, RESULTS, SpreadPlan, Work, attempt_name};
