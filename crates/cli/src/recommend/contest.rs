//! Which program to print: the rule of `stats/choice.rs`, for the figures of the programs themselves.

use std::time::Duration;

use model::{ProgramFigures, Spec, Wait};
use stats::choice::{LEVEL_TIMES, effort};
use stats::estimate::median;
use stats::{Demand, Weighing};

use super::figures::Figures;
use super::program::{CodeLanguage, Program};
use super::question::Question;
use super::timing;

/// Most programs that are run beside each other.
const PROGRAMS_MAX: usize = 5;
/// One that costs this many times as much in the loops of `bench` is not run.
const NEAR_TIMES: f64 = 2.0;
/// The same for Python, whose own cost for each call is larger than what mechanisms differ by.
const NEAR_TIMES_PYTHON: f64 = 20.0;
/// The part of `--time` that a run takes, and the most.
const RUNS_OF_TIME: u32 = 120;
const RUN_MAX: Duration = Duration::from_millis(250);

/// Time and CPU time per message of a program, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProgramCost {
    pub(super) time_ns: f64,
    pub(super) cpu_ns: f64,
}

impl ProgramCost {
    /// In the median of the runs; `None` where there are none.
    pub(super) fn new(figures: &ProgramFigures) -> Option<Self> {
        Some(Self { time_ns: median(&figures.time_ns)?, cpu_ns: median(&figures.cpu_ns)? })
    }

    fn decisive_ns(&self, demand: &Demand) -> f64 {
        if demand.messages_per_s.is_some() { self.cpu_ns } else { self.time_ns + self.cpu_ns }
    }

    fn keeps(&self, demand: &Demand, spins: bool) -> bool {
        let share = demand.messages_per_s.map_or(self.cpu_ns / self.time_ns, |rate| self.cpu_ns * rate / 1e9);
        demand.messages_per_s.is_none_or(|rate| self.time_ns * rate <= 1e9)
            && (spins || demand.cpus_max.is_none_or(|most| share <= most))
    }
}

/// Runs the programs of what is nearly the best, and of the simplest that can be chosen.
pub(super) fn run(
    question: &Question,
    figures: &Figures<'_>,
    weighing: &Weighing,
    language: CodeLanguage,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<ProgramFigures>> {
    let spec = |at: usize| &figures.cases[at].spec;
    let free: Vec<_> = weighing.weighed.iter().filter(|one| one.excluded.is_none()).collect();
    let cost = |at: usize| {
        weighing.of(at).and_then(|one| one.cost).map_or(f64::INFINITY, |cost| cost.decisive_ns.median)
    };
    let near = if language == CodeLanguage::Python { NEAR_TIMES_PYTHON } else { NEAR_TIMES };
    let least = free.first().map_or(0.0, |one| cost(one.at));
    let simplest = free.iter().map(|one| one.at).min_by_key(|at| effort(spec(*at)));
    let mut contenders: Vec<usize> = weighing.taken.into_iter().chain(simplest).collect();
    contenders.extend(free.iter().map(|one| one.at).filter(|at| cost(*at) <= near * least));
    let mut seen = std::collections::BTreeSet::new();
    contenders.retain(|at| seen.insert(*at));
    contenders.truncate(PROGRAMS_MAX);
    let with_program = |at: usize| Some((spec(at).clone(), Program::new(spec(at), language, question)?));
    let programs: Vec<(Spec, Program)> = contenders.into_iter().filter_map(with_program).collect();
    timing::time(&programs, (time / RUNS_OF_TIME).min(RUN_MAX), stop)
}

/// The mechanism whose program to take: of those that keep what is asked for and cost nearly the least the simplest. `None` where no
/// program has figures.
pub(super) fn choose(programs: &[ProgramFigures], figures: &Figures<'_>, demand: &Demand) -> Option<usize> {
    let contender = |program: &ProgramFigures| {
        let at = figures.cases.iter().position(|case| case.spec == program.spec)?;
        Some((at, ProgramCost::new(program)?))
    };
    let mut costs: Vec<(usize, ProgramCost)> = programs.iter().filter_map(contender).collect();
    let keeps = |(at, cost): &(usize, ProgramCost)| cost.keeps(demand, figures.cases[*at].wait == Wait::Spin);
    if costs.iter().any(keeps) {
        costs.retain(keeps);
    }
    let least = costs.iter().map(|(_, cost)| cost.decisive_ns(demand)).min_by(f64::total_cmp)?;
    let level = costs.iter().filter(|(_, cost)| cost.decisive_ns(demand) <= LEVEL_TIMES * least);
    level.map(|(at, _)| *at).min_by_key(|at| effort(&figures.cases[*at].spec))
}

#[cfg(test)]
mod tests {
    use model::CaseRecord;

    use super::*;

    fn figures(spec: &str, time_ns: f64, cpu_ns: f64) -> ProgramFigures {
        let spec = spec.parse().expect("a spec");
        ProgramFigures {
            spec,
            messages: 1,
            time_ns: vec![time_ns; 3],
            cpu_ns: vec![cpu_ns; 3],
            failure: None,
        }
    }

    /// Expected: who follows the advice gets what is fastest. Happened: a ring whose loop was fast was printed as a slow program.
    #[test]
    fn the_programs_decide_and_of_nearly_equal_ones_the_simplest() {
        let cases: Vec<CaseRecord> = ["shm-ring:wait=futex", "fifo", "tcp"]
            .map(|spec| CaseRecord::new(spec.parse().expect("a spec")))
            .into();
        let of = Figures { cases: cases.iter().collect(), pinned: Vec::new(), block_bytes: 200 };
        let choose = |ring: f64, fifo: f64, demand: &Demand| {
            let programs = [
                figures("shm-ring:wait=futex", ring, 2.0 * ring),
                figures("fifo", fifo, fifo),
                figures("tcp", 5000.0, 1.0),
            ];
            choose(&programs, &of, demand)
        };
        let plain = Demand::default();
        assert_eq!(choose(1300.0, 900.0, &plain), Some(1));
        assert_eq!(choose(100.0, 900.0, &plain), Some(0));
        assert_eq!(choose(550.0, 900.0, &plain), Some(1), "nearly as good, and simpler");
        let rate = Demand { messages_per_s: Some(1e6), cpus_max: None };
        assert_eq!(choose(1300.0, 900.0, &rate), Some(1), "tcp has the least CPU, and is too slow");
        let budget = Demand { messages_per_s: None, cpus_max: Some(1.0) };
        assert_eq!(choose(100.0, 900.0, &budget), Some(1));
        assert_eq!(super::choose(&[], &of, &plain), None);
    }
}
