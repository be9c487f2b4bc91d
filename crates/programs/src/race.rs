//! Runs the programs of the best mechanisms in rounds, and ranks them by the rule of `stats/choice.rs`: the recommendation must hold
//! for the program, not only for the loops of `bench`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use model::{CaseRecord, DataLevel, ProgramFigures, RoundLimits, Rounds, Sample, Spec, describe_errno};
use stats::choice::effort;
use stats::estimate::median;
use stats::{Choice, Demand, Estimate, Excluded, RankedCase, choose};

use crate::program::programs;
use crate::question::Question;
use crate::runs::{CompiledProgram, ProgramRunner};

/// Most programs that are run.
const PROGRAMS_MAX: usize = 6;
/// A program is run if its loop of `bench` costs at most this many times as much as the cheapest one.
const NEAR_TIMES: f64 = 4.0;
/// The same factor for languages whose own cost per call is larger than the differences between mechanisms.
const NEAR_TIMES_SLOW: f64 = 20.0;
/// A run takes `--time` divided by this, within the limits below: seven rounds of six programs then take a sixth of the time.
const RUNS_IN_TIME: u32 = 240;
const RUN_MIN: Duration = Duration::from_millis(20);
const RUN_MAX: Duration = Duration::from_millis(150);
/// The same at a rate, where a run has few messages, and starting a program costs as much CPU time as a hundred of them.
const PACED_RUNS_IN_TIME: u32 = 75;
const PACED_RUN_MIN: Duration = Duration::from_millis(100);
const PACED_RUN_MAX: Duration = Duration::from_secs(1);
/// Rounds of each program, even after the time is over.
const ROUNDS_MIN: u32 = 3;
/// Fewer rounds exclude no program (`stats/race.rs`).
const ROUNDS_TO_EXCLUDE: usize = 7;

/// Median time and CPU time per message of a program, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgramCost {
    pub time_ns: f64,
    pub cpu_ns: f64,
}

impl ProgramCost {
    /// `None` without runs, or if its messages take too little CPU time beside what its start takes.
    pub fn new(figures: &ProgramFigures) -> Option<Self> {
        is_resolved(figures).then_some(())?;
        Some(Self { time_ns: median(&figures.time_ns)?, cpu_ns: median(&figures.cpu_ns)? })
    }
}

/// Whether the CPU time of a program's messages is known: what its start takes varies, and is subtracted.
fn is_resolved(figures: &ProgramFigures) -> bool {
    Estimate::of(&figures.cpu_ns).is_some_and(|cpu_ns| cpu_ns.low > 0.0)
}

/// What the programs are run for, and how long.
pub struct ProgramRaceRequest<'a> {
    pub question: &'a Question,
    /// The loops of `bench`, a row for each mechanism.
    pub rows: &'a [&'a CaseRecord],
    /// The ranking of these rows.
    pub choice: &'a Choice,
    /// The time of the whole answer, of which each run takes a part.
    pub time: Duration,
    /// When the last round begins.
    pub until: Instant,
    /// Seed of the order in a round.
    pub seed: u64,
    /// Whether the user wants to stop.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Runs the programs of [`entrants`] in rounds, each once in a round, until the best one and its lead are known or the time is over. A program that
/// is beaten is not run again. After a stop, the programs that were already timed have figures.
///
/// # Errors
/// There is no temporary folder, or no process to clean up.
pub fn run(request: &ProgramRaceRequest<'_>) -> anyhow::Result<Vec<ProgramFigures>> {
    let &ProgramRaceRequest { question, rows, time, until, is_stopped, .. } = request;
    // Both come before any file is made, because they remove the files.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    let folder = cleaner.make_folder().context("cannot make a folder for the programs")?;
    let runner = ProgramRunner {
        cleaner: &cleaner,
        folder: folder.path(),
        cpus: rows.first().map_or(&[], |case| &case.cpus),
        is_stopped,
        question,
    };
    // Of two programs each end is started, which costs as much CPU time as many messages.
    let run_time = if question.rate_per_s.is_some() || question.is_of_pair() {
        (time / PACED_RUNS_IN_TIME).clamp(PACED_RUN_MIN, PACED_RUN_MAX)
    } else {
        (time / RUNS_IN_TIME).clamp(RUN_MIN, RUN_MAX)
    };
    let (mut timed, mut compiled) = (Vec::new(), Vec::new());
    for (number, spec) in entrants(request).into_iter().enumerate() {
        let Some(sources) = programs(spec, question) else { continue };
        // Two programs to compare are worth more than the time; more are not.
        if timed.len() > 1 && Instant::now() > until {
            break;
        }
        let ready = runner
            .compile(number, spec, &sources)
            .and_then(|program| Ok((program.messages_for(run_time)?.max(2), program)));
        if is_stopped() {
            break;
        }
        timed.push(ProgramFigures {
            spec: spec.clone(),
            messages: ready.as_ref().map_or(0, |(messages, _)| *messages),
            time_ns: Vec::new(),
            cpu_ns: Vec::new(),
            failure: ready.as_ref().err().map(describe_errno),
        });
        compiled.push(ready.ok());
    }
    let limits = RoundLimits { most: u32::MAX, least: ROUNDS_MIN, until: Some(until), unshuffled: 0 };
    let mut rounds = Rounds::new(request.seed, limits);
    loop {
        let mut wanted = Vec::from_iter(0..timed.len());
        if rounds.made() >= ROUNDS_MIN {
            let race = ProgramRace::new(timed.clone(), rows, &question.demand);
            wanted.retain(|at| race.needs_runs_of(&timed[*at].spec));
        }
        let Some(round) = rounds.next(wanted) else { break };
        for at in round.rows {
            add_run(&mut timed[at], &mut compiled[at]);
            if is_stopped() {
                return Ok(timed);
            }
        }
    }
    Ok(timed)
}

/// Runs a program once, and adds its times unless the user wants to stop. A program that fails has no figures, and is not run again.
fn add_run(figures: &mut ProgramFigures, ready: &mut Option<(u64, CompiledProgram<'_>)>) {
    let Some((messages, program)) = ready else { return };
    // Beside each run one with a single message: what a start takes changes with the load.
    let run = program.run(*messages).and_then(|run| Ok((run, program.run(1)?)));
    match run {
        _ if program.is_stopped() => {}
        Ok((run, single)) => {
            figures.time_ns.push(run.time_ns);
            let more_ns = run.cpu_ns as f64 - single.cpu_ns as f64;
            figures.cpu_ns.push(more_ns / run.messages.saturating_sub(single.messages).max(1) as f64);
        }
        Err(error) => {
            (figures.time_ns, figures.cpu_ns) = (Vec::new(), Vec::new());
            figures.failure = Some(describe_errno(&error));
            *ready = None;
        }
    }
}

/// The mechanisms whose programs are run: the one that `bench` would take, the simplest, and those that cost nearly as little as the
/// best. If no loop of `bench` is fast enough, a program may be: then the fastest of those that are too slow.
fn entrants<'a>(request: &ProgramRaceRequest<'a>) -> Vec<&'a Spec> {
    let &ProgramRaceRequest { question, rows: cases, choice, .. } = request;
    let spec = |at: &usize| &cases[*at].spec;
    let rows = || choice.ranked.iter().filter(|row| row.excluded.is_none());
    let mut entrants: Vec<usize> = match choice.taken {
        Some(taken) => {
            let near = if question.is_of_pair() {
                f64::INFINITY // loops of one sender and one receiver say little of pairs
            } else if question.code.is_slow() {
                NEAR_TIMES_SLOW
            } else {
                NEAR_TIMES
            };
            let cost = |row: &RankedCase| row.cost.map_or(f64::INFINITY, |cost| cost.ranking_ns.median);
            let least = rows().next().map_or(0.0, cost);
            let simplest = rows().map(|row| row.at).min_by_key(|at| effort(spec(at)));
            let nearly = rows().filter(|row| cost(row) <= near * least).map(|row| row.at);
            std::iter::once(taken).chain(simplest).chain(nearly).collect()
        }
        None => {
            let slow = choice.ranked.iter().filter(|row| row.excluded == Some(Excluded::TooSlow));
            let mut slow: Vec<_> =
                slow.filter_map(|row| Some((row.cost?.elapsed_ns.median, row.at))).collect();
            model::sort_by(&mut slow, |one, other| one.0.total_cmp(&other.0));
            slow.into_iter().map(|(_, at)| at).collect()
        }
    };
    let mut seen = BTreeSet::new();
    entrants.retain(|at| seen.insert(*at));
    entrants.truncate(PROGRAMS_MAX);
    entrants.iter().map(spec).collect()
}

/// The programs that were run, ranked as the rows of a table are: each run is a trial.
pub struct ProgramRace {
    pub programs: Vec<ProgramFigures>,
    pub cases: Vec<CaseRecord>,
    pub choice: Choice,
    /// Whether one of them does all that is asked. If not, `choice` ranks them as if nothing were asked.
    pub does_all: bool,
}

impl ProgramRace {
    pub fn new(programs: Vec<ProgramFigures>, rows: &[&CaseRecord], demand: &Demand) -> Self {
        let case = |program: &ProgramFigures| {
            let row = rows.iter().find(|case| case.spec == program.spec)?;
            is_resolved(program).then(|| program_case(program, row))
        };
        let cases: Vec<CaseRecord> = programs.iter().filter_map(case).collect();
        let choice = choose(&cases.iter().collect::<Vec<_>>(), demand);
        let does_all = choice.taken.is_some();
        let choice = if does_all { choice } else { as_if_nothing_were_asked(&cases) };
        Self { programs, cases, choice, does_all }
    }

    /// The mechanism whose program to take; `None` if no program has figures.
    pub fn taken(&self) -> Option<&Spec> {
        self.choice.taken.map(|at| &self.cases[at].spec)
    }

    /// The place of a mechanism's program; `None` if it has no figures.
    pub fn row(&self, spec: &Spec) -> Option<&RankedCase> {
        self.choice.ranked.iter().find(|one| self.cases[one.at].spec == *spec)
    }

    /// Whether another run of a program may change which one is taken, or by how much it leads.
    fn needs_runs_of(&self, spec: &Spec) -> bool {
        let Some(at) = self.cases.iter().position(|case| case.spec == *spec) else {
            return self.programs.iter().any(|one| one.spec == *spec && one.failure.is_none());
        };
        let is_excluded = self.choice.case(at).is_some_and(|one| one.excluded.is_some());
        let has_few_runs = self.cases[at].samples.len() < ROUNDS_TO_EXCLUDE;
        self.choice.standing.may_decide_lead(at) || is_excluded && has_few_runs
    }
}

/// The programs ranked by time and CPU time, whatever the rate.
fn as_if_nothing_were_asked(cases: &[CaseRecord]) -> Choice {
    let cases: Vec<CaseRecord> =
        cases.iter().map(|case| CaseRecord { rate_per_s: None, ..case.clone() }).collect();
    choose(&cases.iter().collect::<Vec<_>>(), &Demand::default())
}

/// A program as a case with the properties of its row.
fn program_case(program: &ProgramFigures, row: &CaseRecord) -> CaseRecord {
    // A run may have taken less than the start beside it; a hundredth of the median is below all others, and is no quotient's zero.
    let least_ns = median(&program.cpu_ns).unwrap_or_default() / 100.0;
    let whole_ns = |each_ns: f64| ((each_ns.max(least_ns) * program.messages as f64) as u64).max(1);
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
        rate_per_s: row.rate_per_s,
        // The sender writes a number into each message, and the receiver compares every byte.
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

    fn race(programs: &[ProgramFigures], demand: &Demand) -> ProgramRace {
        let rate_per_s = demand.messages_per_s.map(|rate| rate as u32);
        let case = |spec: &str| CaseRecord { rate_per_s, ..CaseRecord::new(spec.parse().expect("a spec")) };
        let cases: Vec<CaseRecord> = ["shm-ring:wait=futex", "fifo", "tcp"].map(case).into();
        ProgramRace::new(programs.to_vec(), &cases.iter().collect::<Vec<_>>(), demand)
    }

    /// Expected: the recommended program is the fastest one. Happened: a ring whose loop was fast was printed as a slow program.
    #[test]
    fn the_programs_decide_and_of_nearly_equal_ones_the_simplest() {
        let choose = |ring: f64, fifo: f64, demand: &Demand| {
            let programs = [
                figures("shm-ring:wait=futex", ring, 2.0 * ring, 3),
                figures("fifo", fifo, fifo, 3),
                figures("tcp", 5000.0, 1.0, 3),
            ];
            race(&programs, demand).taken().map(Spec::to_string)
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
        assert!(race(&[], &plain).taken().is_none());
        let rate = Demand { messages_per_s: Some(1e9), cpus_max: None };
        assert_eq!(choose(100.0, 900.0, &rate), ring, "none reaches it: the best there is");
    }

    /// Expected: what cannot be measured beside the start of a program decides nothing. Happened: 0 ns of CPU for a message in Python, and the
    /// next program cost 1,924,000 times as much.
    #[test]
    fn cpu_time_that_is_lost_in_that_of_starts_decides_nothing() {
        let mut lost = figures("fifo", 2e6, 0.0, 9);
        lost.cpu_ns = vec![-9e4, 4e4, 5e4, -2e4, 3e4, 6e4, -1e4, 2e4, 4e4];
        let known = figures("tcp", 2e6, 3e4, 9);
        let rate = Demand { messages_per_s: Some(500.0), cpus_max: None };
        let both = race(&[lost.clone(), known.clone()], &rate);
        assert_eq!(both.taken().map(Spec::to_string).as_deref(), Some("tcp"));
        assert!(both.needs_runs_of(&lost.spec), "more rounds may show it");
        assert_eq!((ProgramCost::new(&lost), race(&[lost], &rate).taken()), (None, None));
        assert!(ProgramCost::new(&known).is_some());
    }

    #[test]
    fn a_beaten_program_is_not_run_again_and_none_is_once_the_best_is_known() {
        let wanted = |ring: f64, runs: usize| {
            let programs =
                [figures("shm-ring:wait=futex", ring, ring, runs), figures("fifo", 900.0, 900.0, runs)];
            let race = race(&programs, &Demand::default());
            [0, 1].map(|at: usize| race.needs_runs_of(&programs[at].spec))
        };
        assert_eq!(wanted(100.0, 3), [true, true], "three rounds exclude nothing");
        assert_eq!(wanted(100.0, 9), [false, false]);
        assert_eq!(wanted(899.0, 9), [false, false], "too small a difference to choose by");
    }
}
