//! Pure functions of samples: no processes, files or printing. All results can be recomputed from the raw samples of a record and
//! do not depend on their order.

pub mod bootstrap;
pub mod bound;
mod carry_over;
pub mod changes;
pub mod choice;
pub mod converged;
pub mod cpu_sharing;
mod crossing;
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
mod runs;
mod shift;
pub mod spread;
mod steady;
mod student;
pub mod summary;
pub mod tail;
pub mod times;

#[cfg(test)]
mod mock;

pub use bound::{Bound, bound_of};
pub use carry_over::{CarryOver, carry_over};
pub use changes::{BothSides, Shift, analyses_at_end, analyses_for, figures_needed, shifts};
pub use choice::{Choice, Demand, Excluded, MessageCost, RankedCase, choose, choose_each, ranking_cost_ns};
pub use converged::precise_enough;
pub use cpu_sharing::{
    TrialGroup, TrialsByCpus, ever_shared_cpu, is_mixed, round_trips_by_cpus, shared_cpu, trials_by_cpus,
};
pub use crossing::{Crossing, SizeSweep, crossing, rounds_to_cross};
pub use differences::{differences, differences_of_runs, is_settled, total_change};
pub use estimate::{Analyses, Estimate};
pub use measured::CaseFigures;
pub use paired::{paired_ratios, ratio_of};
pub use race::{Against, RoundCosts, Standing, race};
pub use runs::spread_between_runs;
pub use steady::{states, unlike_halves};
pub use summary::summarise;
pub use times::{
    are_baselines_settled, are_times_precise, baselines, is_order_certain, pairs_to_order, rounds_to_order,
    summarise_baselines, summarise_times, total_times,
};
