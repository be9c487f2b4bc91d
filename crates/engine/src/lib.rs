//! From a plan to raw samples: placement, barrier, clock, trials.
//!
//! Every trial runs in fresh child processes under the supervision of this one, or of a process that is executed anew for each round, so
//! that an end that dies, hangs or is killed fails a row and not the run. This crate knows no mechanism by name, and neither summarises nor prints.

mod amount;
mod ask;
mod case_row;
mod channels;
mod control;
mod disturbance;
mod endpoint;
mod failure;
mod far_side;
mod machine;
mod peer_endpoint;
mod plan;
mod prepare;
mod round;
mod running;
mod sample;
mod session;
mod stall;
mod task;
mod tiles;
mod trial;

pub use ask::{Ask, AskedSpecs, ENDS_MAX, RATE_MAX, RELAYS_MAX, references};
pub use far_side::{check_confirmed, run_endpoint_for_peer};
pub use machine::measure_machine;
pub use mechanism::PacedClient;
pub use peer_endpoint::{EndpointRequest, PeerConnection, PeerMessage};
pub use plan::{Outcome, Plan};
pub use round::{OWN_PROGRAM, ROUND_COMMAND, serve_round};
pub use session::run;
