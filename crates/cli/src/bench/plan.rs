//! The plan of a run: its cases, how many trials each gets, and within which time.

use std::time::Duration;

use engine::{Ask, PacedClient, Plan, references};
use model::{Amount, Case, Cpu, Role, Suite};
use report::words;

use super::args::{BenchArgs, PlaceArgument};
use super::cells::{cells, placements, placements_of};
use super::decision::TRIALS;
use super::like::{self, LikePlan};
use super::suite::{self, SuitePlan};
use crate::terminal::{self, usage};

/// Planned trials with `--precision`, which decides how many are made.
const TRIALS_FOR_PRECISION: u32 = 400;

/// Most rounds when `--precision` and the time decide: the time that precise cases do not need goes to the others.
const ROUNDS_FOR_PRECISION: u32 = 100_000;

/// Most rounds of the cases that may be the best, when the answer and the time decide.
const ROUNDS_TO_DECIDE: u32 = 10_000;

/// The part of the time that is planned for the trials of all cases; the rest is for the cases that may be the best.
const FIRST_PART: f64 = 0.5;

/// Longest trial when the answer decides: many short trials show sooner which case is the best than few long ones.
const TRIAL_TO_DECIDE: Duration = Duration::from_millis(50);

/// The time of a run without `--time` and without a fixed number or size of trials. Paced messages take longer: each of their trials has a
/// length of its own.
const BUDGET: Duration = Duration::from_secs(45);

/// The planned part of the time of a run with paced messages.
const PACED_PART: f64 = 0.9;

/// Makes the plan.
///
/// # Errors
/// This machine cannot run it: it does not have the CPU, or the payload or the suite cannot be read.
pub(crate) fn make(args: &BenchArgs, cpus: &[Cpu]) -> anyhow::Result<(Plan, Option<Suite>)> {
    let ask = args.ask();
    let (cases, trials, budget, suite) = match (&args.suite, &args.like) {
        (None, Some(record)) => {
            let LikePlan { suite, cases, trials } = like::read(record, args.place)?;
            (cases, trials, None, suite)
        }
        (Some(named), _) => {
            let SuitePlan { suite, cases, trials, budget } = suite::read(named)?;
            (cases, trials, budget, Some(suite))
        }
        (None, None) => {
            let mut cases = cells(args, &placements(args, cpus)?)?;
            // Floors and ceilings of this machine say nothing about the way to another host.
            if args.peer.target.is_none() {
                cases.extend(references(args.workload, &cases));
            }
            (cases, TRIALS, (!is_fixed(&ask)).then_some(BUDGET), None)
        }
    };
    Ok((plan_of(&ask, cases, trials, budget, suite.is_some()), suite))
}

/// The plan of a question for ends on this host, which the answer ends.
///
/// # Errors
/// This machine does not have the placement.
pub(crate) fn of_question(ask: &Ask, place: Option<PlaceArgument>) -> anyhow::Result<Plan> {
    let placements = placements_of(place, ask.tasks, &host::cpus())?;
    let mut cases = Ask { placements, ..ask.clone() }.cases();
    cases.extend(references(ask.workload, &cases));
    let mut plan = plan_of(ask, cases, TRIALS, Some(BUDGET), false);
    if !ask.rates_per_s.is_empty() {
        pace_as_programs(&mut plan);
    }
    Ok(plan)
}

/// Whether the number or the size of trials is given.
fn is_fixed(ask: &Ask) -> bool {
    ask.bytes.is_some() || ask.count.is_some() || ask.trials.is_some()
}

fn plan_of(ask: &Ask, cases: Vec<Case>, trials: u32, budget: Option<Duration>, is_suite: bool) -> Plan {
    let trials = if ask.precision.is_some() { TRIALS_FOR_PRECISION } else { trials };
    let mut plan = Plan::new(cases, ask.trials.unwrap_or(trials), ask.seed, ask.time.or(budget));
    plan.round_program = Some(engine::OWN_PROGRAM.into());
    let may_decide = !is_fixed(ask) && !is_suite && ask.precision.is_none() && !ask.is_between_hosts;
    if may_decide && plan.budget.is_some() {
        plan.rounds_max = ROUNDS_TO_DECIDE;
        plan.further_rounds_are_optional = true;
        (plan.first_part, plan.trial_max) = (FIRST_PART, TRIAL_TO_DECIDE);
    }
    if ask.time.is_none() {
        let paced = time_of(&plan, plan.trials).div_f64(PACED_PART);
        plan.budget = plan.budget.map(|budget| if has_paced(&plan) { budget.max(paced) } else { budget });
    }
    if ask.precision.is_some() {
        plan.repeats = true;
        if ask.trials.is_none() && plan.budget.is_some() {
            plan.rounds_max = ROUNDS_FOR_PRECISION;
        }
    }
    plan
}

/// The time until a case has its first sample: a trial to size it, and the shortest trial (10 ms), each with processes of its own.
const FIRST_SAMPLE: Duration = Duration::from_millis(20);

/// The time of a further sample.
const NEXT_SAMPLE: Duration = Duration::from_millis(12);

/// Shortest trial of paced messages: its ends have been asleep, and their first messages cost more.
const PACED_MIN: Duration = Duration::from_millis(100);

/// Fewest paced messages of a trial that is shortened.
const MESSAGES_MIN: f64 = 5.0;

/// A run goes on beyond its time, to finish the first round, but not to more than about this multiple.
const OVERTIME: u32 = 2;

/// Whether the length of a case's trials follows from a rate.
fn is_paced(case: &Case) -> bool {
    case.load.rate_per_s.is_some() && case.amount == Amount::Adaptive
}

fn has_paced(plan: &Plan) -> bool {
    plan.cases.iter().any(is_paced)
}

/// The cases whose trials hosepipe sizes. The length of other trials is not known beforehand, or follows from these.
fn sized(plan: &Plan) -> impl Iterator<Item = &Case> {
    plan.cases.iter().filter(|case| case.role == Role::Ranked && case.amount == Amount::Adaptive)
}

/// The shortest time of this number of trials, at least one, of each of these cases.
fn time_of(plan: &Plan, trials: u32) -> Duration {
    let of_case = |case: &Case| {
        let paced = if is_paced(case) { plan.trial_paced } else { Duration::ZERO };
        FIRST_SAMPLE + NEXT_SAMPLE * (trials - 1) + paced * trials
    };
    sized(plan).map(of_case).sum()
}

/// The plan of a question with a rate: clients sleep, as those of programs do. Trials are as long as the time allows, at most as long as
/// others, and with [`MESSAGES_MIN`] messages: their CPU time needs no tail, and many of them show sooner which case is the best.
fn pace_as_programs(plan: &mut Plan) {
    plan.paced_client = PacedClient::Sleeps;
    let Some(budget) = plan.budget else { return };
    let trials = plan.trials * plan.cases.iter().filter(|case| is_paced(case)).count().max(1) as u32;
    let rate = plan.cases.iter().filter_map(|case| case.load.rate_per_s).min().unwrap_or(u32::MAX);
    let least = Duration::from_secs_f64(MESSAGES_MIN / f64::from(rate)).max(PACED_MIN);
    let longest = plan.trial_paced;
    plan.trial_paced = (budget.mul_f64(plan.first_part) / trials).max(least).min(longest);
}

/// Checks before the run whether `--time` is long enough for the cases; if some would get few trials, a remark says so.
///
/// # Errors
/// A [`UsageError`](terminal::UsageError): not every case would get a sample.
pub(super) fn check_time(args: &BenchArgs, plan: &Plan) -> anyhow::Result<()> {
    let (cases, trials) = (sized(plan).count(), plan.trials.min(TRIALS));
    let time_for_all = time_of(plan, trials);
    let needed = humantime::format_duration(Duration::from_secs(time_for_all.as_secs() + 1));
    let paced = if has_paced(plan) {
        format!(" of {} at the given rate", model::shown_duration(plan.trial_paced))
    } else {
        String::new()
    };
    let cases_and_trials = format!(
        "{} with {}{paced} each",
        words::count(cases, "case"),
        words::count(trials as usize, "trial")
    );
    let takes = if cases == 1 { "takes" } else { "take" };
    let Some(time) = args.time else {
        if has_paced(plan) && time_for_all > BUDGET {
            terminal::remark(&format!("hosepipe: {cases_and_trials} {takes} {needed} or more."));
        }
        return Ok(());
    };
    let shown = model::shown_duration(time);
    if time_of(plan, 1) > time * OVERTIME {
        return usage(format!(
            "--time {shown} is too short: {cases_and_trials} {takes} {needed} or more. Give a longer --time, or fewer cases: \
             some mechanisms, one --workload, one --place, some --block sizes"
        ));
    }
    if time_for_all > time {
        terminal::remark(&format!(
            "hosepipe: --time {shown} is short: {cases_and_trials} {takes} {needed} or more. Some get fewer trials, and no interval."
        ));
    }
    Ok(())
}
