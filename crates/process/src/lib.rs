//! Processes: started, waited for, ended with all they have started, and cleaned up after.
//!
//! Every wait here is for a pidfd (pidfd_open(2)): no thread's signal mask can make it last for ever.

mod announce;
mod captured;
mod child;
mod cleaner;
mod cpu;
mod marked;
mod own_file;
mod poll;
mod private;
pub mod proc;
mod reap;
mod remove;
pub mod signals;
mod spawn;
mod ssh;
mod supervise;
mod temporary;
mod thread;
mod wait;

pub use announce::Announcer;
pub use captured::Captured;
pub use child::{Capture, Child, Ended};
pub use cleaner::{Cleaner, LeftCleaner, Mark};
pub use cpu::{Pinned, pin};
pub use marked::VARIABLE;
pub use own_file::{create_at, open_own, write_anew};
pub use poll::{ready_within, sleep_on};
pub use private::{
    close_to_others, is_open_to_others, make_own_folder, make_private_folder, who_else_writes,
};
pub use reap::{describe_ending, end_usage, reap, shown_status};
pub use signals::leave;
pub use spawn::{Environment, become_program, end_with_parent, spawn};
pub use ssh::{command, ssh_words};
pub use supervise::{Reach, Supervisor};
pub use temporary::TemporaryPath;
pub use thread::spawn_thread;
pub use wait::{LOOK_UP, attend, end_all, run, wait_for_all};
