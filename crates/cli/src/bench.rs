//! `hosepipe bench`: arguments → plan → run → record → tables, in this direction.

mod args;
mod cells;
mod decision;
mod like;
mod peer_args;
mod plan;
mod plan_text;
mod progress;
mod suite;
mod workers;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
pub(crate) use args::{BenchArgs, PlaceArgument};
use decision::{Decision, Goal};
use engine::{Ask, Plan};
use model::{BenchRecord, RecordHead, Settings, Suite};
use peer_args::FarEndArgs;
use progress::Until;
use report::Style;
use report::read::Loaded;
use stats::Demand;

use crate::record;
use crate::signals::StopRequest;
use crate::terminal::{self, usage};

pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let measured = if args.workers.are_asked_for() { workers::run(&args)? } else { run_mechanisms(&args)? };
    // A dry run measures nothing.
    let Some((record, stop)) = measured else { return Ok(ExitCode::SUCCESS) };
    let failed = record.cases.iter().any(|case| case.error.as_ref().is_some_and(|error| !error.expected));
    let is_empty = record.is_without_samples(&args.specs);
    let style = Style { explain: args.explain, ..terminal::style() };
    args.outputs.show(Loaded::new("this run", record), &style)?;
    Ok(stop.exit_code_of(is_empty, failed))
}

fn run_mechanisms(args: &BenchArgs) -> anyhow::Result<Option<(BenchRecord, StopRequest)>> {
    if args.workers.matrix {
        return usage("--matrix needs programs to pair: --workers all --matrix");
    }
    let cpus = host::cpus();
    let (plan, suite) = plan::make(args, &cpus)?;
    plan::check_time(args, &plan)?;
    if args.dry_run {
        terminal::print(&plan_text::render(&plan, suite.as_ref(), &cpus))?;
        return Ok(None);
    }
    args.outputs.check()?;
    let until = match args.precision {
        Some(percent) => Until::Precise(percent),
        None if plan.further_rounds_are_optional => {
            Until::Decided(Decision::new(&plan.cases, Demand::default(), Goal::Lead))
        }
        None => Until::Planned,
    };
    measure_plan(&plan, suite, until, Some(&args.peer)).map(Some)
}

/// Measures what is asked for, at a place, until it is known which mechanism meets the demand best.
pub(crate) fn measure(
    ask: &Ask,
    place: Option<PlaceArgument>,
    demand: Demand,
) -> anyhow::Result<(BenchRecord, StopRequest)> {
    let plan = plan::of_question(ask, place)?;
    let until = Until::Decided(Decision::new(&plan.cases, demand, Goal::Winner));
    measure_plan(&plan, None, until, None)
}

fn measure_plan(
    plan: &Plan,
    suite: Option<Suite>,
    until: Until,
    peer: Option<&FarEndArgs>,
) -> anyhow::Result<(BenchRecord, StopRequest)> {
    let cpus = host::cpus();
    let head = record::begin(true);
    // Started first: it removes what the run leaves behind.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    // While the other host is being reached, a signal ends this program at once: there is nothing to save yet.
    let mut reached = peer.map(|peer| peer.reach(&cleaner)).transpose()?.flatten();
    let stop = StopRequest::listen()?;
    let precision_percent = match &until {
        Until::Precise(percent) => Some(*percent),
        Until::Decided(_) | Until::Planned => None,
    };
    let mut progress = progress::BenchProgress::new(until);
    let watch = host::LoadWatch::start();
    let began = Instant::now();
    let far = reached.as_mut().map(|peer| peer as &mut dyn engine::PeerConnection);
    let outcome = engine::run(plan, Vec::new(), &cpus, far, &mut progress, &|| stop.is_set());
    let took_s = began.elapsed().as_secs_f64();
    drop(progress);
    let other_load = watch.finish();
    let peer_record = reached.as_ref().map(|peer| Box::new(peer.record.clone()));
    // The peer's ssh must end before the cleaner, which would kill it.
    drop(reached);
    drop(cleaner);

    let further_rounds_were_cut = outcome.interrupted && plan.further_rounds_are_optional;
    let trials = if plan.rounds_max > plan.trials && !further_rounds_were_cut {
        outcome.cases.iter().map(|case| case.samples.len() as u32).max().unwrap_or(0)
    } else {
        plan.trials
    };
    let settings = Settings {
        seed: plan.seed,
        trials,
        interrupted: outcome.interrupted,
        stopped_by: outcome.interrupted.then(|| stop.reason()),
        precision_percent,
        suite,
        took_s: Some(took_s),
        repeated_rounds: precision_percent.map(|_| outcome.repeated_rounds),
    };
    let record = record::bench(RecordHead { other_load, ..head }, settings, outcome.cases)?;
    Ok((BenchRecord { peer: peer_record, ..record }, stop))
}
