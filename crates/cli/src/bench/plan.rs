//! From what was typed to what is run: the matrix of cases, with a floor and a ceiling beside it.

use std::time::Duration;

use engine::Plan;
use mechanism::{Mechanism, Options};
use model::{
    Alignment, Amount, Case, Cpu, DataLevel, Load, Placement, Role, Spec, Suite, Tasks, Wait, Workload,
};
use payload::{Period, Tile};

use super::args::{BenchArgs, PlaceArgument};
use super::suite;
use crate::terminal::{self, UsageError};

/// Bytes in a block of a stream when `--block` is not given.
const STREAM_BLOCK_BYTES: u64 = 64 << 10;

/// Bytes in a message of a round trip when `--block` is not given: what is asked is how fast the other end
/// answers.
const PINGPONG_BLOCK_BYTES: u64 = 1;

/// Trials of each case when nothing else is said: enough for an order-statistics interval of the median.
pub(super) const TRIALS: u32 = 9;

/// Trials that are planned with when `--precision` decides.
const TRIALS_FOR_PRECISION: u32 = 400;

/// Rounds at the most when `--precision` and the time decide: what cases that are precise enough leave over is the others'.
const ROUNDS_FOR_PRECISION: u32 = 100_000;

/// Rounds at the most of what may be the best, when the answer and the time decide.
const ROUNDS_TO_DECIDE: u32 = 10_000;

/// The part of the time that the trials of all cases are planned to take; the rest is for what may be the best.
const FIRST_PART: f64 = 0.5;

/// What a trial may measure when the answer decides: many short trials tell sooner which is the best than few long ones.
const TRIAL_TO_DECIDE: Duration = Duration::from_millis(50);

/// What a run may take when neither `--time` nor fixed amounts say otherwise.
const BUDGET: Duration = Duration::from_secs(45);

/// Makes the plan.
///
/// # Errors
/// A request that has no meaning on this machine: a CPU it does not have, a payload that cannot be read; a suite that is none.
pub(crate) fn make(args: &BenchArgs, cpus: &[Cpu]) -> anyhow::Result<(Plan, Option<Suite>)> {
    let suite = args.suite.as_deref().map(suite::read).transpose()?;
    let (cases, trials, budget) = match &suite {
        Some(suite) => (suite.cases.clone(), suite.trials, suite.budget),
        None => {
            let mut cases = cells(args, &placements(args, cpus)?)?;
            // Nothing of this machine alone stands beside the way to another.
            if args.peer.target.is_none() {
                cases.extend(references(args.workload, &cases));
            }
            let fixed = args.bytes.is_some() || args.count.is_some() || args.trials.is_some();
            (cases, TRIALS, (!fixed).then_some(BUDGET))
        }
    };
    let trials = if args.precision.is_some() { TRIALS_FOR_PRECISION } else { trials };
    let mut plan = Plan::new(cases, args.trials.unwrap_or(trials), args.seed, args.time.or(budget));
    let is_fixed = suite.is_some() || args.trials.is_some() || args.bytes.is_some() || args.count.is_some();
    if !is_fixed && args.precision.is_none() && args.peer.target.is_none() && plan.budget.is_some() {
        plan.rounds_max = ROUNDS_TO_DECIDE;
        plan.further_rounds_are_optional = true;
        (plan.first_part, plan.trial_max) = (FIRST_PART, TRIAL_TO_DECIDE);
    }
    if args.precision.is_some() {
        plan.repeats = true;
        if args.trials.is_none() && plan.budget.is_some() {
            plan.rounds_max = ROUNDS_FOR_PRECISION;
        }
    }
    Ok((plan, suite.map(|suite| suite.suite)))
}

/// The cases that were asked for, at these placements.
///
/// # Errors
/// A payload that cannot be read, an amount or a load that has no meaning.
pub(super) fn cells(args: &BenchArgs, placements: &[Placement]) -> Result<Vec<Case>, UsageError> {
    Tile::make(&args.payload, args.seed, Period::Bench).map_err(|error| UsageError(error.to_string()))?;
    check_load(args)?;
    args.peer.check(args)?;
    let mut levels: Vec<Option<DataLevel>> = args.data.iter().copied().map(Some).collect();
    levels.sort_unstable();
    if levels.is_empty() {
        levels.push(None);
    }
    let mut cases = Vec::new();
    for spec in specs(args) {
        // One end alone has no other to be near to.
        let alone = mechanism::resolve(&spec).is_ok_and(|(found, _)| found.tasks == [Tasks::Single]);
        for placement in if alone { &placements[..1] } else { placements } {
            for workload in [Workload::Stream, Workload::PingPong] {
                for block_bytes in blocks(args, workload) {
                    let case = |level: &_| case(args, &spec, *placement, workload, block_bytes, *level);
                    let mut cells: Vec<Case> = levels.iter().filter_map(case).collect();
                    // What is typed twice, or is not to be had, is measured once.
                    cells.dedup();
                    let cells = cells.into_iter().flat_map(|cell| args.peer.both_ways(cell));
                    cases.extend(
                        cells.flat_map(|cell| loads(args, &cell)).flat_map(|cell| aligned(args, cell)),
                    );
                }
            }
        }
    }
    check_amounts(&cases)?;
    Ok(cases)
}

/// More bytes than this in a trial take longer than anybody lives, and must not overflow on the way.
const TRIAL_BYTES_MAX: u64 = 1 << 60;

fn check_amounts(cases: &[Case]) -> Result<(), UsageError> {
    let too_much = |case: &&Case| match case.amount {
        Amount::Adaptive => false,
        Amount::Bytes(bytes) => bytes > TRIAL_BYTES_MAX,
        Amount::Blocks(blocks) => {
            blocks.checked_mul(case.block_bytes).is_none_or(|bytes| bytes > TRIAL_BYTES_MAX)
        }
    };
    let problem = "a trial of more than 1 EiB would never end: a smaller --bytes or --count";
    cases.iter().find(too_much).map_or(Ok(()), |_| Err(UsageError(problem.to_owned())))
}

/// Refuses a load that no workload has.
fn check_load(args: &BenchArgs) -> Result<(), UsageError> {
    let problem = match args.workload {
        Some(Workload::Stream) if !args.rate.is_empty() => {
            "--rate counts round trips in a second: --workload pingpong"
        }
        Some(Workload::PingPong) if !args.senders.is_empty() => {
            "many senders send a stream to one receiver: --workload stream"
        }
        Some(Workload::PingPong) if !args.receivers.is_empty() => {
            "many receivers take a stream from one sender: --workload stream"
        }
        _ => return Ok(()),
    };
    Err(UsageError(problem.to_owned()))
}

fn specs(args: &BenchArgs) -> Vec<Spec> {
    match (args.all, args.specs.is_empty()) {
        (_, true) if args.peer.target.is_some() => ["tcp", "udp"].map(Spec::plain).into(),
        (true, _) => mechanism::all_specs(),
        (_, true) => mechanism::default_specs(),
        _ => args.specs.clone(),
    }
}

/// The block sizes of a workload.
fn blocks(args: &BenchArgs, workload: Workload) -> Vec<u64> {
    match (args.sweep, args.block.is_empty(), workload) {
        (true, ..) => (0..=20).map(|power| 1 << power).collect(),
        (_, false, _) => args.block.iter().map(|size| size.0).collect(),
        (_, _, Workload::Stream) => vec![STREAM_BLOCK_BYTES],
        (_, _, Workload::PingPong) => vec![PINGPONG_BLOCK_BYTES],
    }
}

/// The placements asked for. One that was asked for by name must be there; of `all`, those that are. Where nobody asked: the
/// scheduler's choice, which is what programs get, beside ends pinned apart, which is what repeats.
pub(super) fn placements(args: &BenchArgs, cpus: &[Cpu]) -> anyhow::Result<Vec<Placement>> {
    let there = |placement: Placement| host::resolve(placement, cpus);
    match args.place {
        // One task has no other end to be near to: it sits still.
        None if args.tasks == Some(Tasks::Single) => Ok(vec![Placement::Same]),
        None if args.peer.target.is_some() => Ok(vec![Placement::Any]),
        None => match [Placement::Cross, Placement::Smt]
            .into_iter()
            .find(|placement| there(*placement).is_ok())
        {
            Some(apart) => Ok(vec![Placement::Any, apart]),
            None => {
                terminal::remark("hosepipe: this process may use one CPU: both ends share it (--place same)");
                Ok(vec![Placement::Same])
            }
        },
        Some(PlaceArgument::One(placement)) => {
            there(placement).map_err(|problem| UsageError(problem.to_string()))?;
            Ok(vec![placement])
        }
        Some(PlaceArgument::All) => {
            let (found, missing): (Vec<_>, Vec<_>) = Placement::NAMED
                .iter()
                .map(|placement| (*placement, there(*placement)))
                .partition(|(_, r)| r.is_ok());
            for (placement, problem) in missing {
                if let Err(problem) = problem {
                    terminal::remark(&format!("hosepipe: no rows for --place {placement}: {problem}"));
                }
            }
            Ok(found.into_iter().map(|(placement, _)| placement).collect())
        }
    }
}

/// The case of a cell; `None` where nobody asked for a workload that the mechanism does not run.
fn case(
    args: &BenchArgs,
    spec: &Spec,
    placement: Placement,
    workload: Workload,
    block_bytes: u64,
    level: Option<DataLevel>,
) -> Option<Case> {
    let (mechanism, options) = mechanism::resolve(spec).ok()?;
    match args.workload {
        Some(asked) if asked != workload => return None,
        // Who names a mechanism that does not run the workload is told so by its row.
        _ if !mechanism.workloads.contains(&workload)
            && (args.workload.is_none() || args.specs.is_empty()) =>
        {
            return None;
        }
        // A chain has no way back.
        None if args.chain > 0 && workload == Workload::PingPong => return None,
        // Many senders or receivers have none either, and only what comes back has a rate of its own.
        None if !(args.senders.is_empty() && args.receivers.is_empty()) && workload == Workload::PingPong => {
            return None;
        }
        None if !args.rate.is_empty() && workload == Workload::Stream => return None,
        _ => {}
    }
    Some(Case {
        spec: spec.clone(),
        role: mechanism.role,
        workload,
        tasks: tasks(args, mechanism),
        placement,
        wait: wait(args, mechanism, &options),
        data: data(level, mechanism, &options),
        check: args.check,
        payload: args.payload.clone(),
        block_bytes,
        align: Alignment::default(),
        relays: if mechanism.role == Role::Ranked { args.chain } else { 0 },
        toward: None,
        load: Load::default(),
        amount: amount(args, workload),
    })
}

/// The case once for each place of its buffers.
fn aligned(args: &BenchArgs, case: Case) -> Vec<Case> {
    let places = args.align.as_ref().map_or_else(|| vec![case.align], |asked| asked.0.clone());
    places.into_iter().map(|align| Case { align, ..case.clone() }).collect()
}

/// The case once for each load that was asked for; rows that are no transport once, as they are.
fn loads(args: &BenchArgs, case: &Case) -> Vec<Case> {
    if case.role != Role::Ranked {
        return vec![case.clone()];
    }
    let choices = |asked: &[u32]| -> Vec<Option<u32>> {
        if asked.is_empty() { vec![None] } else { asked.iter().copied().map(Some).collect() }
    };
    let mut cases = Vec::new();
    for pairs in choices(&args.pairs) {
        for senders in choices(&args.senders) {
            for receivers in choices(&args.receivers) {
                for rate_per_s in choices(&args.rate) {
                    let load = Load { pairs, senders, receivers, rate_per_s };
                    let case = Case { load, ..case.clone() };
                    // What is typed twice is measured once.
                    if !cases.contains(&case) {
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

/// As asked. Bytes are asked for where bytes flow: the gigabytes of a stream, one by one, would be days of round trips.
fn amount(args: &BenchArgs, workload: Workload) -> Amount {
    let meant = workload == Workload::Stream || args.workload == Some(Workload::PingPong);
    match (args.bytes, args.count) {
        (Some(bytes), _) if meant => Amount::Bytes(bytes.0),
        (_, Some(blocks)) => Amount::Blocks(blocks),
        _ => Amount::Adaptive,
    }
}

/// As asked. Where nobody asked, and for rows that are no transport, those the mechanism has.
fn tasks(args: &BenchArgs, has: &Mechanism) -> Tasks {
    let asked = args.tasks.unwrap_or(Tasks::Processes);
    let must = has.role == Role::Ranked && args.tasks.is_some();
    if must || has.tasks.contains(&asked) { asked } else { has.tasks.first().copied().unwrap_or(asked) }
}

/// The spec's own word first, then `--wait`, then what the mechanism does by itself.
fn wait(args: &BenchArgs, mechanism: &Mechanism, options: &Options) -> Wait {
    let own = mechanism.wait(options);
    if options.word("wait").is_some() || mechanism.role != Role::Ranked {
        own
    } else {
        args.wait.unwrap_or(own)
    }
}

/// As asked. Where nobody asked, and for rows that are no transport, as much of it as can be had: the table
/// keeps the levels apart.
fn data(level: Option<DataLevel>, mechanism: &Mechanism, options: &Options) -> DataLevel {
    let role = mechanism.role;
    let asked = match (role, level) {
        // The ceiling is plain copying, unless somebody wants to see it check.
        (Role::Ceiling, None) => DataLevel::None,
        (_, asked) => asked.unwrap_or(DataLevel::Verify),
    };
    if role == Role::Ranked && level.is_some() {
        return asked;
    }
    let possible = mechanism.data(options).iter().copied().filter(|level| *level <= asked);
    possible.max().unwrap_or(DataLevel::None)
}

/// A floor and a ceiling for each block size, where the user did not ask for them already.
pub(super) fn references(workload: Option<Workload>, cases: &[Case]) -> Vec<Case> {
    let mut references: Vec<Case> = Vec::new();
    for mechanism in mechanism::all() {
        let is_reference = matches!(mechanism.role, Role::Floor | Role::Ceiling);
        if !is_reference || cases.iter().any(|case| case.spec.mechanism == mechanism.name) {
            continue;
        }
        for measured in cases.iter().filter(|case| case.role == Role::Ranked) {
            let reference = Case {
                spec: Spec::plain(mechanism.name),
                role: mechanism.role,
                tasks: mechanism.tasks.first().copied().unwrap_or(Tasks::Single),
                wait: mechanism.waits.first().copied().unwrap_or(Wait::Block),
                data: DataLevel::None,
                relays: 0,
                align: Alignment::default(),
                load: Load::default(),
                amount: Amount::Adaptive,
                ..measured.clone()
            };
            // One task sits where it likes: it need not be measured for each placement.
            let alone = reference.tasks == Tasks::Single;
            let reference =
                Case { placement: if alone { cases[0].placement } else { reference.placement }, ..reference };
            // Two tasks that spin must be on two CPUs (on one they measure the scheduler's clock tick), and are no floor under
            // one task.
            let may_share = matches!(reference.placement, Placement::Same | Placement::Any);
            let takes_turns =
                mechanism.waits == [Wait::Spin] && may_share || measured.tasks == Tasks::Single && !alone;
            let wanted = workload.is_none_or(|asked| asked == measured.workload) && !takes_turns;
            if wanted && mechanism.workloads.contains(&measured.workload) && !references.contains(&reference)
            {
                references.push(reference);
            }
        }
    }
    references
}
