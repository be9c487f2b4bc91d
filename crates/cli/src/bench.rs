//! `hosepipe bench`: the command line becomes a plan, the plan a run, the run a record, the record a table.

mod args;
mod decision;
mod plan;
mod plan_text;
mod progress;
mod suite;
mod workers;
mod workers_args;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
pub(crate) use args::{BenchArgs, PlaceArgument};
use decision::Decision;
use model::{BenchRecord, Settings};
use progress::Until;
use report::Style;
use report::read::Loaded;
use stats::Demand;

use crate::signals::StopRequest;
use crate::{record, terminal};

pub(crate) fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    if args.workers.are_asked_for() {
        return workers::run(&args);
    }
    workers::check(&args)?;
    if args.dry_run {
        let cpus = host::cpus();
        let (plan, suite) = plan::make(&args, &cpus)?;
        terminal::print(&plan_text::render(&plan, suite.as_ref(), &cpus))?;
        return Ok(ExitCode::SUCCESS);
    }
    args.outputs.check()?;
    let (record, stop) = measure(&args, Demand::default())?;
    show(&args, record, &stop)
}

/// Measures mechanisms as the command line says, until it is known which one meets the demand best.
pub(crate) fn measure(args: &BenchArgs, demand: Demand) -> anyhow::Result<(BenchRecord, StopRequest)> {
    let cpus = host::cpus();
    let (plan, suite) = plan::make(args, &cpus)?;

    // The facts are read before the run: afterwards the load would be our own.
    let host = host::facts();
    let started = std::time::SystemTime::now();
    // Both before anything is made: what is left behind is theirs.
    let cleaner = mechanism::start_cleaner().context("cannot start the process that cleans up after us")?;
    // Until the other host is reached there is nothing to be saved: a signal ends this at once.
    let mut near = args.peer.reach(&cleaner)?;
    let stop = StopRequest::listen()?;
    let until = match args.precision {
        Some(percent) => Until::Precise(percent),
        None if plan.further_rounds_are_optional => Until::Decided(Decision::new(&plan.cases, demand)),
        None => Until::Planned,
    };
    let mut progress = progress::BenchProgress::new(until);
    let watch = host::LoadWatch::start();
    let began = Instant::now();
    let far = near.as_mut().map(|near| near as &mut dyn engine::FarEnd);
    let outcome = engine::run_with(&plan, &cpus, far, &mut progress, &|| stop.is_set());
    let took = began.elapsed();
    progress.finish();
    let other_load = watch.finish();
    let peer = near.as_ref().map(|near| Box::new(near.record.clone()));
    // Its ssh ends before who would end it otherwise.
    drop(near);
    drop(cleaner);

    let settings = Settings {
        seed: plan.seed,
        // Where the budget decides how often, as many as the case with the most has.
        trials: match plan.rounds_max > plan.trials
            && !(outcome.interrupted && plan.further_rounds_are_optional)
        {
            true => outcome.cases.iter().map(|case| case.samples.len() as u32).max().unwrap_or(0),
            false => plan.trials,
        },
        interrupted: outcome.interrupted,
        precision_percent: args.precision,
        suite,
        took_s: Some(took.as_secs_f64()),
        repeated_rounds: args.precision.map(|_| outcome.repeated_rounds),
    };
    let mut record = record::bench(settings, outcome.cases, host, started)?;
    record.head.other_load = other_load;
    Ok((BenchRecord { peer, ..record }, stop))
}

/// Writes the record and prints its tables.
fn show(args: &BenchArgs, record: BenchRecord, stop: &StopRequest) -> anyhow::Result<ExitCode> {
    let failed = record.cases.iter().any(|case| case.error.as_ref().is_some_and(|error| !error.expected));
    let style = Style { explain: args.explain, ..terminal::style() };
    args.outputs.show(Loaded::new("this run", record), &style)?;
    Ok(stop.exit_code(failed))
}
