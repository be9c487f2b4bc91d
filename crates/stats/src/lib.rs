//! Pure functions over samples: no process, no file, no printing. Everything here can be recomputed
//! from the raw samples of a record, and gives the same answer whatever order they come in.

pub mod bootstrap;
pub mod bound;
pub mod converged;
pub mod cost;
pub mod estimate;
pub mod figure;
pub mod load;
pub mod paired;
pub mod seats;
pub mod spread;
pub mod summary;
pub mod times;

#[cfg(test)]
mod mock;

pub use bound::{Bound, bound_of};
pub use converged::precise_enough;
pub use cost::{CostModel, Swept};
pub use estimate::{Estimate, Looks};
pub use paired::{paired_ratio, paired_ratios, ratio_of};
pub use seats::{SeatGroup, Seats, is_mixed, round_trip_seats, seats, shared_cpu};
pub use summary::summarise;
pub use times::summarise_times;
