//! Which of several measured mechanisms to take: the one rule, for the advice under a table and for `hosepipe recommend`
//! (docs/RECOMMEND.md says it in words).
//!
//! 1. Only figures of one data level count, the highest that any case has, and never those of untouched data.
//! 2. A mechanism whose ends spin is out, unless a CPU budget is given and it keeps it: its ends use CPUs between two messages,
//!    too, which no figure per message shows. One CPU is counted for each end, even if both ran on the same one.
//! 3. With a rate, a mechanism whose interval does not lie above it is out. With a CPU budget, one whose interval reaches above it.
//! 4. Of the rest the cost decides, in the median: time per message + CPU time of both ends per message, a second of waiting for a
//!    second of one CPU. With a rate the time is no cost any more, and the CPU time alone decides.
//! 5. The rest race ([`crate::race`]): whatever is surely beaten within rounds is out of the first place, unless it surely costs nearly
//!    the same. Whatever is not, and costs at most a quarter more than the leader in the median round ([`LEVEL_TIMES`]), is as good; of those the simplest is taken
//!    ([`effort`]), and of equally simple ones the cheapest. That too few rounds were made is no reason to take what costs three
//!    times as much; and a lead of at most 3 % in the median round ([`LEAD_TIMES_MIN`]), however certain, is none to take what is
//!    less simple.

use std::cmp::Ordering;

use model::{CaseRecord, DataLevel, Sample, Spec, Tasks, Wait};

use crate::Estimate;
use crate::estimate::ENOUGH_FOR_95_PERCENT;
use crate::figure::{cpu_per_block_ns, elapsed_per_block_ns, round_trip_p50_ns};
use crate::race::{Factor, RoundCosts, Standing, race};
use crate::seats::sat_on_one_cpu;

/// What can be recommended: what a standard library, or a few lines, can set up, from the simplest to what asks most of a program:
/// inherited descriptors, a name, an address, a header of its own, shared memory. Others come after these.
pub const SIMPLEST_FIRST: [&str; 13] = [
    "pipe",
    "pipe:size=1MiB",
    "socketpair",
    "fifo",
    "unix-stream",
    "unix-seqpacket",
    "unix-dgram",
    "tcp",
    "file",
    "posix-mq",
    "sysv-msgq",
    "shm-ring:wait=futex",
    "shm-ring:wait=spin",
];

/// A simpler mechanism may cost this many times as much as the leader, if it is not surely beaten.
pub const LEVEL_TIMES: f64 = 1.25;

/// And this many times if it is: nobody would take what is less simple for so little.
pub const LEAD_TIMES_MIN: f64 = 1.03;

/// Options that only set a size or a mode; every other option is another way of moving bytes, with code of its own.
const SETTINGS: [&str; 5] = ["size", "sndbuf", "rcvbuf", "nodelay", "wait"];

/// What a mechanism asks of a program, the less the simpler: options that are ways of their own (`send=vmsplice`), then its place in
/// [`SIMPLEST_FIRST`], then all of its options.
pub fn effort(spec: &Spec) -> (usize, usize, usize) {
    let ways = spec.options.keys().filter(|name| !SETTINGS.contains(&name.as_str())).count();
    let place = SIMPLEST_FIRST.iter().position(|text| text.split(':').next() == Some(&spec.mechanism));
    (ways, place.unwrap_or(SIMPLEST_FIRST.len()), spec.options.len())
}

/// Requirements on a mechanism: a rate, and a CPU budget.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Demand {
    /// Messages, or round trips, that must be made in a second.
    pub messages_per_s: Option<f64>,
    /// CPUs that both ends together may keep busy: 0.5 is half of one.
    pub cpus_max: Option<f64>,
}

/// What a mechanism costs, each figure in the median of the trials with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageCost {
    /// Wall time per message, or median round trip, in nanoseconds.
    pub time_ns: Estimate,
    /// CPU time of both ends per message, in nanoseconds.
    pub cpu_ns: Estimate,
    /// CPUs kept busy: at the rate that is asked for, else at full speed.
    pub cpus: Estimate,
    /// The cost that ranks mechanisms, in nanoseconds: rule 4 of the module.
    pub decisive_ns: Estimate,
}

impl MessageCost {
    /// Whether the trials are too few for intervals, so that no difference from another is sure.
    pub fn has_few_trials(&self) -> bool {
        self.decisive_ns.count < ENOUGH_FOR_95_PERCENT
    }
}

/// Why a mechanism is no choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excluded {
    /// It has failed, or has no figures, or none of CPU time.
    NoFigures,
    /// Its data were not touched, or were checked less than those of another case.
    LessData,
    /// Its ends are busy while they wait.
    Spins,
    /// Its ends are busy while they wait, and the scheduler put both on one CPU in some trials.
    SpinsOnOneCpu,
    /// It does not surely reach the rate.
    TooSlow,
    /// It may take more CPU than there is to spend.
    TooMuchCpu,
}

/// A mechanism's cost, and whether it can be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighed {
    /// Its index among the cases.
    pub at: usize,
    /// What it costs; `None` where it has no figures.
    pub cost: Option<MessageCost>,
    /// Why it is no choice; `None` where it is one.
    pub excluded: Option<Excluded>,
    /// How many times as much it costs as the leader, in each round; `None` where it is no choice.
    pub factor: Option<Factor>,
    /// Whether it counts as good as the leader: rule 5 of the module.
    pub level: bool,
}

/// The result of [`choose`].
#[derive(Debug, Clone, PartialEq)]
pub struct Weighing {
    /// The index of the recommended case; `None` if all are excluded.
    pub taken: Option<usize>,
    /// All cases: first those that can be chosen, cheapest first, then the excluded ones.
    pub weighed: Vec<Weighed>,
    /// How those that can be chosen stand to each other, by their places among the cases.
    pub standing: Standing,
}

impl Weighing {
    /// A mechanism by its place among the cases.
    pub fn of(&self, at: usize) -> Option<&Weighed> {
        self.weighed.iter().find(|weighed| weighed.at == at)
    }

    /// Those that count as good as the leader, with the recommended one.
    pub fn level(&self) -> impl Iterator<Item = &Weighed> {
        self.weighed.iter().filter(|weighed| weighed.level)
    }
}

/// Weighs cases of one workload and one block against each other.
pub fn choose(cases: &[&CaseRecord], demand: &Demand) -> Weighing {
    let data = cases.iter().filter(|case| !case.samples.is_empty()).map(|case| case.data).max();
    let weigh = |(at, case): (usize, &&CaseRecord)| {
        let cost = cost(case, demand);
        let excluded = match &cost {
            _ if case.error.is_some() => Some(Excluded::NoFigures),
            None => Some(Excluded::NoFigures),
            Some(_) if case.data == DataLevel::None || Some(case.data) != data => Some(Excluded::LessData),
            Some(cost) => out(case, cost, demand),
        };
        Weighed { at, cost, excluded, factor: None, level: false }
    };
    let mut weighed: Vec<Weighed> = cases.iter().enumerate().map(weigh).collect();
    let entrants = weighed.iter().map(|one| match one.excluded {
        None => round_costs(cases[one.at], demand),
        Some(_) => RoundCosts::new(),
    });
    let standing = race(&entrants.collect::<Vec<_>>());
    for (at, factor) in standing.first.iter().chain(&standing.beaten) {
        weighed[*at].factor = Some(*factor);
        weighed[*at].level = factor.is_same() || factor.median <= LEAD_TIMES_MIN;
    }
    for (at, factor) in &standing.first {
        // Without a common round nothing is known of the factor.
        weighed[*at].level |= factor.median.is_nan() || factor.median <= LEVEL_TIMES;
    }
    weighed.sort_by(by_cost);
    // They are sorted by cost, and `min_by_key` returns the first: of equally simple ones the cheapest.
    let taken = weighed.iter().filter(|one| one.level).min_by_key(|one| effort(&cases[one.at].spec));
    Weighing { taken: taken.map(|one| one.at), weighed, standing }
}

/// Cases that can be chosen before excluded ones, each group by cost; a case without a cost last.
fn by_cost(one: &Weighed, other: &Weighed) -> Ordering {
    let decisive = |weighed: &Weighed| weighed.cost.map_or(f64::INFINITY, |cost| cost.decisive_ns.median);
    let out = one.excluded.is_some().cmp(&other.excluded.is_some());
    out.then(decisive(one).total_cmp(&decisive(other))).then(one.at.cmp(&other.at))
}

fn out(case: &CaseRecord, cost: &MessageCost, demand: &Demand) -> Option<Excluded> {
    let affordable = demand.cpus_max.map(|most| cost.cpus.high <= most);
    match demand.messages_per_s {
        _ if case.wait == Wait::Spin && affordable != Some(true) => Some(Excluded::Spins),
        _ if case.wait == Wait::Spin && sat_on_one_cpu(case) => Some(Excluded::SpinsOnOneCpu),
        Some(rate) if cost.time_ns.high * rate > 1e9 => Some(Excluded::TooSlow),
        _ if affordable == Some(false) => Some(Excluded::TooMuchCpu),
        _ => None,
    }
}

/// The decisive cost of each round.
fn round_costs(case: &CaseRecord, demand: &Demand) -> RoundCosts {
    let of_sample =
        |sample: &Sample| Some((sample.round, decisive_cost_ns(case.wait, case.tasks, sample, demand)?));
    case.samples.iter().filter_map(of_sample).collect()
}

/// The cost that ranks mechanisms, of one trial; `None` where it lacks a figure, or CPU time.
pub fn decisive_cost_ns(wait: Wait, tasks: Tasks, sample: &Sample, demand: &Demand) -> Option<f64> {
    costs(wait, tasks, sample, demand).map(|[.., decisive_ns]| decisive_ns)
}

/// What a message costs; `None` without samples, or where they lack CPU time.
fn cost(case: &CaseRecord, demand: &Demand) -> Option<MessageCost> {
    let of_sample = |sample: &Sample| costs(case.wait, case.tasks, sample, demand);
    let figures: Vec<[f64; 4]> = case.samples.iter().filter_map(of_sample).collect();
    let estimate = |at: usize| Estimate::of(&figures.iter().map(|all| all[at]).collect::<Vec<f64>>());
    Some(MessageCost {
        time_ns: estimate(0)?,
        cpu_ns: estimate(1)?,
        cpus: estimate(2)?,
        decisive_ns: estimate(3)?,
    })
}

/// The figures of [`MessageCost`] of one trial, in its order.
fn costs(wait: Wait, tasks: Tasks, sample: &Sample, demand: &Demand) -> Option<[f64; 4]> {
    let time_ns = match sample.latency_histogram {
        Some(_) => round_trip_p50_ns(sample),
        None => elapsed_per_block_ns(sample),
    }?;
    let (whole_ns, cpu_ns) = (elapsed_per_block_ns(sample)?, cpu_per_block_ns(sample)?);
    let share = match demand.messages_per_s {
        // Ends that spin use their CPUs between messages, too; two ends on one CPU only take turns. Whole CPUs: two ends cannot use
        // more than two, and the CPU time of a trial is some per cent more than what its clock sees.
        _ if wait == Wait::Spin => {
            (cpu_ns / whole_ns).round().max(if tasks == Tasks::Single { 1.0 } else { 2.0 })
        }
        Some(rate) => cpu_ns * rate / 1e9,
        None => cpu_ns / whole_ns,
    };
    let decisive_ns = if demand.messages_per_s.is_some() { cpu_ns } else { time_ns + cpu_ns };
    let all = [time_ns, cpu_ns, share, decisive_ns];
    all.iter().all(|figure| figure.is_finite() && *figure > 0.0).then_some(all)
}

#[cfg(test)]
mod tests;
