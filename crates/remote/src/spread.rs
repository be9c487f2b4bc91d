//! A pipeline over data that lies in many files, or in one that is cut at line ends: MAP is run once for each partition, as many at a
//! time as there are CPUs, and REDUCE over what came out, in the order of the inputs.
//!
//! A partition is run by a program of its own, `hosepipe __part FOLDER NUMBER`, which reads in the folder what to do and leaves there what
//! came of it: a finished partition is known by its file, whether this machine, a host or an engine has run it.

mod derive;
mod feed;
mod job;
mod merge;
mod partition;
mod queue;
mod submit;
mod work;

pub use derive::{Derived, derive};
pub use feed::{Fed, feed};
pub use job::{NOT_RUN, SpreadJob};
pub use merge::merged;
pub use partition::{InputFile, Range, cut, files, is_url, sample};
pub use queue::BEGUN;
pub use work::{SpreadPlan, Work};
