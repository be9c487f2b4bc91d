//! A pipeline over data that lies in many files, or in one that is cut at line ends: MAP is run once for each partition, as many at a
//! time as there are CPUs, and REDUCE over what came out, in the order of the inputs.
//!
//! Partitions are run by tasks, `hosepipe __part FOLDER`, one after the other: a task reads in the folder what to do, leaves there what
//! comes out of each partition, and a line of a file says how it ended, whether this machine, a host or an engine has run it.

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
pub use feed::{Fed, feed};
pub use job::{NOT_RUN, SpreadJob, describe};
pub use merge::merged;
pub use partition::{InputFile, Range, cut, files, is_url, sample};
pub use queue::BEGUN;
pub use work::{PartResult, RESULTS, SpreadPlan, Work, attempt_name};
