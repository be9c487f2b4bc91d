//! Which of several measured mechanisms to take: one rule for the advice under a table of `bench` and for `hosepipe recommend`
//! (docs/RECOMMEND.md explains it).
//!
//! 1. Only figures of one data level count, the highest that any case has, and never those of untouched data. Where several senders or
//!    receivers share an end, a mechanism whose blocks did not all arrive in one piece is excluded.
//! 2. A mechanism whose ends spin is excluded unless it stays within a CPU budget: its ends use CPUs between two messages,
//!    too, which no figure per message shows. One CPU is counted for each end, even if both ran on the same one.
//! 3. At a rate only trials at that rate count: CPU time per message at full speed says nothing of 1,000 messages a second, where each
//!    message wakes its receiver. A mechanism is excluded if it does not reach the rate in the median trial
//!    ([`crate::load::keeps_up`]); with a CPU budget, if the interval of its CPUs reaches above it.
//! 4. The others are compared by their cost, in the median: time per message (of round trips the mean of a trial) + CPU time of both ends per
//!    message (a second of waiting counts as much as a second of one CPU). At a rate the time between messages is given: only the CPU time counts. Of round trips that
//!    `bench` paces it is the response time + CPU time of the server: its client is a generator of load.
//! 5. The race ([`crate::race`]) compares costs within rounds. These may be taken: what surely costs nearly the same as the leader,
//!    which alone shares the first place with it; what costs at most 3 % more in the median round ([`LEAD_TIMES_MIN`]); and what is not
//!    surely beaten and costs at most a quarter more in the median round ([`OPEN_TIMES_MAX`]). Of these the simplest is taken
//!    ([`effort`]), and of equally simple ones the cheapest.

use std::cmp::Ordering;

use model::{CaseRecord, DataLevel, Sample, Spec, Tasks, Wait, Workload};

use crate::Estimate;
use crate::changes::ERRORS;
use crate::cpu_sharing::ever_shared_cpu;
use crate::estimate::ENOUGH_FOR_95_PERCENT;
use crate::figure::{cpu_per_block_ns, interval_ns, round_trip_mean_ns, server_cpu_per_trip_ns};
use crate::load::{keeps_up, offered_per_s, torn_share};
use crate::race::{Against, RoundCosts, Standing, race};

/// What can be recommended: mechanisms that a standard library, or a few lines, can set up. The simplest are first: inherited
/// descriptors, then names, addresses, a header of its own, shared memory.
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

/// Largest cost, as a multiple of the leader's, of a mechanism that may be taken because it is not surely beaten.
pub const OPEN_TIMES_MAX: f64 = 1.25;

/// The same of a mechanism that is surely beaten: a smaller lead does not outweigh simplicity.
pub const LEAD_TIMES_MIN: f64 = 1.03;

/// Options that only set a size or a mode; every other option is a different way of moving bytes, with its own code.
const SETTINGS: [&str; 5] = ["size", "sndbuf", "rcvbuf", "nodelay", "wait"];

/// How complicated a program for a mechanism is, smaller is simpler: the number of options that need their own code
/// (`send=vmsplice`), then its place in [`SIMPLEST_FIRST`], then the number of all options.
pub fn effort(spec: &Spec) -> (usize, usize, usize) {
    let coded = spec.options.keys().filter(|name| !SETTINGS.contains(&name.as_str())).count();
    let place = SIMPLEST_FIRST.iter().position(|text| text.split(':').next() == Some(&spec.mechanism));
    (coded, place.unwrap_or(SIMPLEST_FIRST.len()), spec.options.len())
}

/// Requirements on a mechanism: a rate, and a CPU budget.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Demand {
    /// Messages, or round trips, that must be made in a second: only cases that were measured at a rate have figures then.
    pub messages_per_s: Option<f64>,
    /// CPUs that both ends together may keep busy: 0.5 is half of one.
    pub cpus_max: Option<f64>,
}

/// What a message costs: medians of the trials, with intervals; as `MessageCost<f64>` in one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageCost<T = Estimate> {
    /// Wall time per message, or mean round trip, in nanoseconds.
    pub time_ns: T,
    /// CPU time per message in nanoseconds: of both ends, or of the server where rule 4 of the module says so.
    pub cpu_ns: T,
    /// Number of busy CPUs: at the given rate, else at full speed.
    pub cpus: T,
    /// Wall time from one message, or round trip, to the next, in nanoseconds.
    pub elapsed_ns: T,
    /// The cost that ranks mechanisms, in nanoseconds: rule 4 of the module.
    pub ranking_ns: T,
}

impl MessageCost {
    /// Whether there are too few trials for a 95 % interval: then no difference is certain.
    pub fn has_few_trials(&self) -> bool {
        self.ranking_ns.count < ENOUGH_FOR_95_PERCENT
    }
}

/// Why a mechanism cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excluded {
    /// It failed, or has no figures, or no CPU time.
    NoFigures,
    /// Its data were not touched, or checked less than those of another case.
    LessData,
    /// Blocks of several senders were mixed, or blocks were divided among several receivers.
    TornBlocks,
    /// Its ends are busy while they wait.
    Spins,
    /// Its ends are busy while they wait, and the scheduler put both on one CPU in some trials.
    SpinsOnOneCpu,
    /// It does not reach the rate.
    TooSlow,
    /// It may take more CPU than the budget.
    TooMuchCpu,
}

/// The cost of one case, and its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedCase {
    /// Its index among the cases.
    pub at: usize,
    /// `None` without figures.
    pub cost: Option<MessageCost>,
    /// Why it cannot be taken; `None` if it can.
    pub excluded: Option<Excluded>,
    /// Rule 5 of the module.
    pub may_be_taken: bool,
}

/// The result of [`choose`].
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The index of the recommended case; `None` if all are excluded.
    pub taken: Option<usize>,
    /// All cases: those that are not excluded, cheapest first, then the excluded ones.
    pub ranked: Vec<RankedCase>,
    /// The race of those that are not excluded, by their indices among the cases.
    pub standing: Standing,
}

impl Choice {
    /// A case by its index.
    pub fn case(&self, at: usize) -> Option<&RankedCase> {
        self.ranked.iter().find(|ranked| ranked.at == at)
    }

    /// Whether a case leads, or surely costs the same as the leader.
    pub fn shares_first_place(&self, at: usize) -> bool {
        self.standing.against(at).is_some_and(Against::is_same)
    }
}

/// Ranks cases of one workload and one block, and chooses the one to take.
pub fn choose(cases: &[&CaseRecord], demand: &Demand) -> Choice {
    choose_with(cases, demand, ERRORS)
}

/// Chooses for each of several groups of cases whose choices stand in one sentence, such as those of all sizes of a sweep.
///
/// Of many sizes at which all cost the same, one would have a winner by chance. So the errors are divided: if `n` groups have a winner, each of
/// them has one with `n` times the error of [`errors_of_each`]. Of the winners at most 5 % are then wrong on
/// average (Benjamini and Hochberg, *Journal of the Royal Statistical Society B* 57, 1995), and if all cost the same, there is any
/// winner with a chance of at most 5 %.
pub fn choose_each(groups: &[Vec<&CaseRecord>], demand: &Demand) -> Vec<Choice> {
    let mut certain = groups.len();
    loop {
        let errors = errors_of_each(groups.len()) * certain as f64;
        let choices: Vec<Choice> = groups.iter().map(|cases| choose_with(cases, demand, errors)).collect();
        let found = choices.iter().filter(|choice| choice.standing.first.len() == 1).count();
        if found >= certain || certain <= 1 {
            return choices;
        }
        certain = found.max(1);
    }
}

/// The errors of each of several choices if all of them together may have 5 %; of two cases that cost the same either may win.
pub fn errors_of_each(choices: usize) -> f64 {
    ERRORS / 2.0 / choices as f64
}

fn choose_with(cases: &[&CaseRecord], demand: &Demand, errors: f64) -> Choice {
    let data = cases.iter().filter(|case| !case.samples.is_empty()).map(|case| case.data).max();
    let rank = |(at, case): (usize, &&CaseRecord)| {
        let cost = cost(case, demand);
        let excluded = match &cost {
            _ if case.error.is_some() => Some(Excluded::NoFigures),
            None => Some(Excluded::NoFigures),
            Some(_) if case.data == DataLevel::None || Some(case.data) != data => Some(Excluded::LessData),
            Some(_) if torn_share(case).is_some_and(|share| share > 0.0) => Some(Excluded::TornBlocks),
            Some(cost) => exclusion(case, cost, demand),
        };
        RankedCase { at, cost, excluded, may_be_taken: false }
    };
    let mut ranked: Vec<RankedCase> = cases.iter().enumerate().map(rank).collect();
    let entrants = ranked.iter().map(|one| match one.excluded {
        None => round_costs(cases[one.at], demand),
        Some(_) => RoundCosts::new(),
    });
    let standing = race(&entrants.collect::<Vec<_>>(), errors);
    for one in standing.first.iter().chain(&standing.beaten) {
        ranked[one.at].may_be_taken = one.is_same() || one.factor.median <= LEAD_TIMES_MIN;
    }
    for one in &standing.first {
        // Without a common round the factor is unknown (NaN).
        ranked[one.at].may_be_taken |= one.factor.median.is_nan() || one.factor.median <= OPEN_TIMES_MAX;
    }
    model::sort_by(&mut ranked, by_cost);
    // They are sorted by cost, and `min_by_key` returns the first: of equally simple ones the cheapest.
    let taken = ranked.iter().filter(|one| one.may_be_taken).min_by_key(|one| effort(&cases[one.at].spec));
    Choice { taken: taken.map(|one| one.at), ranked, standing }
}

/// Excluded cases last, each group by cost; a case without a cost is the last of its group.
fn by_cost(one: &RankedCase, other: &RankedCase) -> Ordering {
    let ranking = |one: &RankedCase| one.cost.map_or(f64::INFINITY, |cost| cost.ranking_ns.median);
    let excluded = one.excluded.is_some().cmp(&other.excluded.is_some());
    excluded.then(ranking(one).total_cmp(&ranking(other))).then(one.at.cmp(&other.at))
}

/// Rules 2 and 3.
fn exclusion(case: &CaseRecord, cost: &MessageCost, demand: &Demand) -> Option<Excluded> {
    let is_affordable = demand.cpus_max.map(|most| cost.cpus.high <= most);
    match demand.messages_per_s.or(offered_per_s(case)) {
        _ if case.wait == Wait::Spin && is_affordable != Some(true) => Some(Excluded::Spins),
        _ if case.wait == Wait::Spin && ever_shared_cpu(case) => Some(Excluded::SpinsOnOneCpu),
        Some(rate) if !keeps_up(1e9 / cost.elapsed_ns.median, rate) => Some(Excluded::TooSlow),
        _ if is_affordable == Some(false) => Some(Excluded::TooMuchCpu),
        _ => None,
    }
}

/// The ranking cost of each round; a trial that took no CPU time that could be counted has one, too.
fn round_costs(case: &CaseRecord, demand: &Demand) -> RoundCosts {
    let of_sample = |sample: &Sample| Some((sample.round, ranking_cost_ns(case, sample, demand)?));
    case.samples.iter().filter_map(of_sample).collect()
}

/// The cost that ranks mechanisms, of one trial of a case; `None` where it lacks a figure.
pub fn ranking_cost_ns(case: &CaseRecord, sample: &Sample, demand: &Demand) -> Option<f64> {
    trial_cost(case, sample, demand).map(|cost| cost.ranking_ns)
}

/// What a message costs; `None` without samples, or where none of them has CPU time.
fn cost(case: &CaseRecord, demand: &Demand) -> Option<MessageCost> {
    if !case.samples.iter().any(|sample| sample.user_ns + sample.system_ns > 0) {
        return None;
    }
    let of_sample = |sample: &Sample| trial_cost(case, sample, demand);
    let trials: Vec<MessageCost<f64>> = case.samples.iter().filter_map(of_sample).collect();
    let estimate =
        |figure: fn(&MessageCost<f64>) -> f64| Estimate::of(&trials.iter().map(figure).collect::<Vec<f64>>());
    Some(MessageCost {
        time_ns: estimate(|trial| trial.time_ns)?,
        cpu_ns: estimate(|trial| trial.cpu_ns)?,
        cpus: estimate(|trial| trial.cpus)?,
        elapsed_ns: estimate(|trial| trial.elapsed_ns)?,
        ranking_ns: estimate(|trial| trial.ranking_ns)?,
    })
}

/// The CPU time that counts as the cost of a case, of one trial, per message in nanoseconds.
pub fn costly_cpu_ns(case: &CaseRecord, sample: &Sample, demand: &Demand) -> Option<f64> {
    let has_generator = counts_server_only(case) && demand.messages_per_s.is_none();
    let server_ns = server_cpu_per_trip_ns(sample).filter(|_| has_generator);
    server_ns.or_else(|| cpu_per_block_ns(sample))
}

/// Whether only the server's CPU time counts in `bench`: the client generates a load at a rate.
pub fn counts_server_only(case: &CaseRecord) -> bool {
    case.workload == Workload::PingPong && case.rate_per_s.is_some()
}

/// The cost in one trial; `None` where the trial lacks one of its figures.
fn trial_cost(case: &CaseRecord, sample: &Sample, demand: &Demand) -> Option<MessageCost<f64>> {
    if demand.messages_per_s.is_some() && case.rate_per_s.is_none() {
        return None;
    }
    let time_ns = match sample.latency_histogram {
        Some(_) => round_trip_mean_ns(sample),
        None => interval_ns(case, sample),
    }?;
    let (elapsed_ns, both_ns) = (interval_ns(case, sample)?, cpu_per_block_ns(sample)?);
    let share = both_ns / elapsed_ns;
    let cpus = match (case.wait, case.rate_per_s) {
        // Ends that spin use their CPUs between messages, too. Rounded to whole CPUs: the CPU time of a trial is some per cent more
        // than its elapsed time, and two ends cannot use more than two CPUs. At a rate the sender sleeps in between.
        (Wait::Spin, None) => share.round().max(if case.tasks == Tasks::Single { 1.0 } else { 2.0 }),
        _ => share,
    };
    let cpu_ns = costly_cpu_ns(case, sample, demand)?;
    let ranking_ns = match (case.rate_per_s, case.workload) {
        (Some(_), Workload::Stream) => cpu_ns,
        (Some(_), Workload::PingPong) if demand.messages_per_s.is_some() => cpu_ns,
        _ => time_ns + cpu_ns,
    };
    let are_finite = [time_ns, cpu_ns, cpus, elapsed_ns, ranking_ns].iter().all(|figure| figure.is_finite());
    (time_ns > 0.0 && are_finite).then_some(MessageCost { time_ns, cpu_ns, cpus, elapsed_ns, ranking_ns })
}

#[cfg(test)]
mod tests;
