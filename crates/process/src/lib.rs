//! Processes: started, waited for, ended with all they have started, and cleaned up after. What they do is others' affair.
//!
//! Every wait here is for a pidfd (pidfd_open(2)): no thread's signal mask can make it last for ever.

mod captured;
mod child;
mod cleaner;
mod cpu;
mod marked;
mod own_file;
pub mod proc;
mod reap;
mod remove;
pub mod signals;
mod spawn;
mod supervise;
mod temporary;
mod wait;

pub use captured::Captured;
pub use child::{Capture, Child, Ended, leave};
pub use cleaner::{Announcer, Cleaner, LeftCleaner, Mark};
pub use cpu::{Pinned, pin};
pub use marked::VARIABLE;
pub use own_file::{create_at, make_own_folder, open_own, write_anew};
pub use reap::{describe_ending, end_usage, reap, shown_status};
pub use spawn::{Environment, become_program, end_with_parent, spawn};
pub use supervise::{Reach, Supervisor};
pub use temporary::TemporaryPath;
pub use wait::{LOOK_UP, attend, end_all, ready_within, run, sleep_on, wait_for_all};
