//! Processes: started, waited for, ended with all they have started, and cleaned up after.
//!
//! Every wait here is for a pidfd (pidfd_open(2)): no thread's signal mask can make it last for ever.

mod announce;
mod child;
mod cleaner;
mod cpu;
mod marked;
mod parent_death;
mod pipe;
mod poll;
mod private;
pub mod proc;
mod queue;
mod reap;
mod refused;
mod regular;
mod remove;
mod retry;
mod shells;
pub mod signals;
mod spawn;
mod supervise;
mod temporary;
mod wait;
mod wire;

pub use announce::Announcer;
pub use child::{Capture, Captured, Child, Ended};
pub use cleaner::{Cleaner, DetachedCleaner, Mark};
pub use cpu::{Pinned, pin};
pub use marked::VARIABLE;
pub use parent_death::finish_with_parent;
pub use pipe::grow_pipe;
pub use poll::{ready_within, sleep_on};
pub use private::{
    close_to_others, create_at, is_open_to_others, make_own_folder, make_private_folder, open_own,
    why_open_to_others, write_anew,
};
pub use queue::{QueueName, TemporaryQueue, semaphore_changed_by, semaphore_value};
pub use reap::{describe_ending, end_usage, reap, shown_status};
pub use refused::{Refused, spawn_refusing};
pub use regular::open_regular;
pub use retry::{Retries, retry_rare};
pub use shells::is_shell;
pub use signals::{leave, spawn_thread};
pub use spawn::{Environment, become_program, command, spawn, ssh_words};
pub use supervise::{Reach, Supervisor, Used, adopt_orphans, kill_children_except, reap_children_except};
pub use temporary::TemporaryPath;
pub use wait::{POLL_INTERVAL, attend, attend_and_read, finish_all, output, run, wait_for_all};
pub use wire::{Wire, WireError, message_line, read_message};
