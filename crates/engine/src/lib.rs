//! From a plan to raw samples: placement, barrier, clock, trials.
//!
//! Every trial runs in fresh child processes under the supervision of this one, so that an end that dies,
//! hangs or is killed costs a row and not the run. No mechanism is known here by name; nothing is
//! summarised or printed here.

mod amount;
mod control;
mod end;
mod machine;
mod neighbours;
mod plan;
mod prepare;
mod remote;
mod sample;
mod session;
mod trial;
mod watch;

pub use machine::measure_machine;
pub use plan::{Outcome, Plan};
pub use remote::{FarEnd, FarNews, Order, check_confirmed, hold_far_end};
pub use session::{run, run_with};
