//! Which program to print: the rule of `stats/choice.rs`, for the figures of the programs themselves, and the same race.

use std::time::{Duration, Instant};

use model::{CaseRecord, DataLevel, ProgramFigures, Sample, Spec};
use stats::choice::effort;
use stats::estimate::median;
use stats::{Demand, Excluded, Weighed, Weighing, choose};

use super::figures::Figures;
use super::program::{CodeLanguage, Program};
use super::question::Question;
use super::timing::{self, Schedule};

/// Most programs that are run beside each other.
const PROGRAMS_MAX: usize = 6;
/// One that costs this many times as much in the loops of `bench` is not run.
const NEAR_TIMES: f64 = 4.0;
/// The same for Python, whose own cost for each call is larger than what mechanisms differ by.
const NEAR_TIMES_PYTHON: f64 = 20.0;
/// The part of `--time` that a run takes, the least and the most: where each of six programs loses all of seven rounds to the same
/// one, that is known after a sixth of the time.
const RUNS_OF_TIME: u32 = 240;
const RUN_MIN: Duration = Duration::from_millis(20);
const RUN_MAX: Duration = Duration::from_millis(150);
/// Fewer rounds put no program out (`stats/race.rs`).
const ROUNDS_TO_TELL: usize = 7;

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
}

/// What to measure, and how long.
pub(super) struct Plan<'a> {
    pub(super) question: &'a Question,
    pub(super) language: CodeLanguage,
    /// All the time that the answer may take, and when it is over.
    pub(super) time: Duration,
    pub(super) until: Instant,
    pub(super) seed: u64,
}

/// Runs the programs of what is nearly the best, and of the simplest that can be chosen, until it is known which one is the best. Where
/// no loop of `bench` is fast enough, a program may be: then those of the rows that are out for that, the fastest first.
pub(super) fn run(
    plan: &Plan<'_>,
    figures: &Figures<'_>,
    weighing: &Weighing,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<ProgramFigures>> {
    let spec = |at: usize| &figures.cases[at].spec;
    let free: Vec<_> = weighing.weighed.iter().filter(|one| may_run(weighing, one)).collect();
    let cost = |at: usize| {
        weighing.of(at).and_then(|one| one.cost).map_or(f64::INFINITY, |cost| cost.decisive_ns.median)
    };
    let mut contenders: Vec<usize> = match weighing.taken {
        Some(taken) => {
            let near = if plan.language == CodeLanguage::Python { NEAR_TIMES_PYTHON } else { NEAR_TIMES };
            let least = free.first().map_or(0.0, |one| cost(one.at));
            let simplest = free.iter().map(|one| one.at).min_by_key(|at| effort(spec(*at)));
            let nearly = free.iter().map(|one| one.at).filter(|at| cost(*at) <= near * least);
            std::iter::once(taken).chain(simplest).chain(nearly).collect()
        }
        None => {
            let mut slow: Vec<_> =
                free.iter().filter_map(|one| Some((one.cost?.time_ns.median, one.at))).collect();
            slow.sort_by(|one, other| one.0.total_cmp(&other.0));
            slow.into_iter().map(|(_, at)| at).collect()
        }
    };
    let mut seen = std::collections::BTreeSet::new();
    contenders.retain(|at| seen.insert(*at));
    contenders.truncate(PROGRAMS_MAX);
    let with_program =
        |at: usize| Some((spec(at).clone(), Program::new(spec(at), plan.language, plan.question)?));
    let programs: Vec<(Spec, Program)> = contenders.into_iter().filter_map(with_program).collect();
    let wanted = |so_far: &[ProgramFigures]| {
        let contest = Contest::new(so_far, figures, &plan.question.demand);
        so_far.iter().map(|program| contest.wants(&program.spec)).collect()
    };
    let run_time = (plan.time / RUNS_OF_TIME).clamp(RUN_MIN, RUN_MAX);
    let cpus = figures.cases.first().map_or(&[][..], |case| &case.cpus);
    let schedule = Schedule { run_time, cpus, until: plan.until, seed: plan.seed, wanted: &wanted, stop };
    timing::time(&programs, &schedule)
}

/// Whether the program of a row may be what to take.
fn may_run(weighing: &Weighing, row: &Weighed) -> bool {
    match row.excluded {
        None => true,
        Some(Excluded::TooSlow) => weighing.taken.is_none(),
        Some(_) => false,
    }
}

/// The programs that were run, as rows of a table are: each run is a trial.
pub(super) struct Contest {
    pub(super) cases: Vec<CaseRecord>,
    pub(super) weighing: Weighing,
    /// Whether one of them does all that is asked.
    pub(super) does_all: bool,
}

impl Contest {
    pub(super) fn new(programs: &[ProgramFigures], figures: &Figures<'_>, demand: &Demand) -> Self {
        let case = |program: &ProgramFigures| {
            let row = figures.cases.iter().find(|case| case.spec == program.spec)?;
            (!program.time_ns.is_empty()).then(|| case_of(program, row))
        };
        let cases: Vec<CaseRecord> = programs.iter().filter_map(case).collect();
        let rows: Vec<&CaseRecord> = cases.iter().collect();
        let weighing = choose(&rows, demand);
        let does_all = weighing.taken.is_some();
        // Where none does what is asked, the best of them is still the best program.
        let weighing = if does_all { weighing } else { choose(&rows, &Demand::default()) };
        Self { cases, weighing, does_all }
    }

    /// The mechanism whose program to take; `None` where no program has figures.
    pub(super) fn taken(&self) -> Option<&Spec> {
        self.weighing.taken.map(|at| &self.cases[at].spec)
    }

    /// Whether another run of a program may change what is taken.
    fn wants(&self, spec: &Spec) -> bool {
        let standing = &self.weighing.standing;
        let Some(at) = self.cases.iter().position(|case| case.spec == *spec) else { return false };
        let may_be_first = standing.first.iter().any(|(one, _)| *one == at);
        let is_out = self.weighing.of(at).is_some_and(|one| one.excluded.is_some());
        let few = self.cases[at].samples.len() < ROUNDS_TO_TELL;
        may_be_first && !standing.is_decided() || is_out && few
    }
}

/// The figures of a program in the shape of its row.
fn case_of(program: &ProgramFigures, row: &CaseRecord) -> CaseRecord {
    let whole_ns = |each_ns: f64| ((each_ns * program.messages as f64) as u64).max(1);
    let sample = |(round, (time_ns, cpu_ns)): (u32, (&f64, &f64))| Sample {
        round,
        messages: program.messages,
        elapsed_ns: whole_ns(*time_ns),
        system_ns: whole_ns(*cpu_ns),
        ..Sample::default()
    };
    CaseRecord {
        wait: row.wait,
        tasks: row.tasks,
        workload: row.workload,
        placement: row.placement,
        block_bytes: row.block_bytes,
        // Each message is written, and compared byte for byte.
        data: DataLevel::Verify,
        samples: (0..).zip(program.time_ns.iter().zip(&program.cpu_ns)).map(sample).collect(),
        ..CaseRecord::new(program.spec.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(spec: &str, time_ns: f64, cpu_ns: f64, runs: usize) -> ProgramFigures {
        let spec = spec.parse().expect("a spec");
        let (time_ns, cpu_ns) = (vec![time_ns; runs], vec![cpu_ns; runs]);
        ProgramFigures { spec, messages: 1_000_000, time_ns, cpu_ns, failure: None }
    }

    fn contest(programs: &[ProgramFigures], demand: &Demand) -> Contest {
        let cases: Vec<CaseRecord> = ["shm-ring:wait=futex", "fifo", "tcp"]
            .map(|spec| CaseRecord::new(spec.parse().expect("a spec")))
            .into();
        let of = Figures { cases: cases.iter().collect(), pinned: Vec::new(), block_bytes: 200 };
        Contest::new(programs, &of, demand)
    }

    /// Expected: who follows the advice gets what is fastest. Happened: a ring whose loop was fast was printed as a slow program.
    #[test]
    fn the_programs_decide_and_of_nearly_equal_ones_the_simplest() {
        let choose = |ring: f64, fifo: f64, demand: &Demand| {
            let programs = [
                figures("shm-ring:wait=futex", ring, 2.0 * ring, 3),
                figures("fifo", fifo, fifo, 3),
                figures("tcp", 5000.0, 1.0, 3),
            ];
            contest(&programs, demand).taken().map(Spec::to_string)
        };
        let (ring, fifo) = (Some("shm-ring:wait=futex".to_owned()), Some("fifo".to_owned()));
        let plain = Demand::default();
        assert_eq!(choose(1300.0, 900.0, &plain), fifo);
        assert_eq!(choose(100.0, 900.0, &plain), ring);
        assert_eq!(choose(550.0, 900.0, &plain), fifo, "nearly as good, and simpler");
        let rate = Demand { messages_per_s: Some(1e6), cpus_max: None };
        assert_eq!(choose(1300.0, 900.0, &rate), fifo, "tcp has the least CPU, and is too slow");
        let budget = Demand { messages_per_s: None, cpus_max: Some(1.0) };
        assert_eq!(choose(100.0, 900.0, &budget), fifo);
        assert!(contest(&[], &plain).taken().is_none());
        let rate = Demand { messages_per_s: Some(1e9), cpus_max: None };
        assert_eq!(choose(100.0, 900.0, &rate), ring, "none reaches it: the best there is");
    }

    #[test]
    fn what_is_surely_beaten_is_not_run_again_and_nothing_is_once_the_best_is_known() {
        let wanted = |ring: f64, runs: usize| {
            let programs =
                [figures("shm-ring:wait=futex", ring, ring, runs), figures("fifo", 900.0, 900.0, runs)];
            let contest = contest(&programs, &Demand::default());
            [0, 1].map(|at: usize| contest.wants(&programs[at].spec))
        };
        assert_eq!(wanted(100.0, 3), [true, true], "three rounds put nothing out");
        assert_eq!(wanted(100.0, 9), [false, false]);
        assert_eq!(wanted(899.0, 9), [false, false], "nobody would choose by so little");
    }
}
