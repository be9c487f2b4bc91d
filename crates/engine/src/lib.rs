//! From a plan to raw samples: placement, barrier, clock, trials.
//!
//! Every trial runs in fresh child processes under the supervision of this one, or of a process that is executed anew for each round, so
//! that an end that dies, hangs or is killed fails a row and not the run. This crate knows no mechanism by name, and neither summarises nor prints.

mod amount;
mod case_row;
mod control;
mod disturbance;
mod end;
mod machine;
mod plan;
mod prepare;
mod remote;
mod round;
mod sample;
mod session;
mod tiles;
mod trial;
mod watch;

pub use machine::measure_machine;
pub use mechanism::PacedClient;
pub use plan::{Outcome, Plan};
pub use remote::{EndRequest, FarEnd, FarMessage, check_confirmed, run_far_end};
pub use round::{OWN_PROGRAM, ROUND_COMMAND, serve_round};
pub use session::{run, run_beside};
