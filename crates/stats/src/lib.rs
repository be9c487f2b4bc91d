//! Pure functions of samples: no processes, files or printing. All results can be recomputed from the raw samples of a record and
//! do not depend on their order.

pub mod bootstrap;
pub mod bound;
pub mod changes;
pub mod choice;
pub mod converged;
pub mod cost;
pub mod differences;
pub mod estimate;
pub mod figure;
pub mod fleet;
pub mod load;
pub mod measured;
mod normal;
pub mod paired;
pub mod race;
mod rank_test;
pub mod seats;
mod shift;
pub mod spread;
pub mod summary;
pub mod times;

#[cfg(test)]
mod mock;

pub use bound::{Bound, bound_of};
pub use changes::{BothSides, Shift, figures_needed, looks_for, shifts};
pub use choice::{Demand, Excluded, MessageCost, Weighed, Weighing, choose, decisive_cost_ns};
pub use converged::precise_enough;
pub use cost::{CostModel, Swept};
pub use differences::{differences, is_settled};
pub use estimate::{Estimate, Looks};
pub use measured::CaseFigures;
pub use paired::{paired_ratio, paired_ratios, ratio_of};
pub use race::{Factor, RoundCosts, Standing, race};
pub use seats::{SeatGroup, Seats, is_mixed, round_trip_seats, sat_on_one_cpu, seats, shared_cpu};
pub use summary::summarise;
pub use times::{
    are_times_precise, is_order_certain, pairs_to_order, summarise_precise_times, summarise_times,
};
