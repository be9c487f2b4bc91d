//! `stover`: a generator and a sink, six ways between them, and a table of what each mechanism is good for.
//!
//! Four of the ways are command lines of two filters, two are programs bound to their mechanism. All take turns:
//! the engine runs the two, and whenever it begins a round, the four are run first.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::Context;
use engine::Plan;
use mechanism::Folder;
use model::{Amount, ByteSize, Case, DataLevel, Measure, Observer, PayloadKind, Sample, Tasks};
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{Carrier, Complaints, Start, trial};

use super::facts::mechanism_facts;
use super::{STUDY, Stover};
use crate::comp517::quoted;
use crate::run::{PartRun, WARM_UP_ROUNDS, fit, stream, with_remedy};
use crate::view::{fill, words};

pub(super) fn columns(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study: Stover = STUDY.parameters();
    let (tests, warmup) = (run.made.series, WARM_UP_ROUNDS);
    let block_bytes = study.workload.block.value;
    let bytes = run.job.scale.bytes(study.workload.bytes.value, block_bytes);
    run.set("bytes", format!("{} (512 MB is taken as 512 MiB)", ByteSize(bytes)));
    run.made.measures = study.ways.iter().map(|way| Measure::new(&way.name, "s")).collect();

    let place = Folder::private();
    let place = place.path().map_err(with_remedy)?;
    let mut known = words([
        ("hosepipe", Some(quoted(run.job.hosepipe))),
        ("bytes", Some(bytes.to_string())),
        ("block", Some(block_bytes.to_string())),
        ("seed", Some(run.job.seed.to_string())),
        ("file", Some(quoted(&place.join("between")))),
    ]);
    for (name, text) in study.filters {
        let text = fill(&text, &|name| known.get(name).cloned()).context("a filter of stover/study.toml")?;
        known.insert(name, text);
    }
    let (mut filters, mut bound, mut cases) = (Vec::new(), Vec::new(), Vec::new());
    for (column, way) in study.ways.iter().enumerate() {
        if let Some(spec) = &way.spec {
            bound.push(column);
            cases.push(bound_case(spec, bytes, block_bytes)?);
        }
        let text = way.text.as_ref().and_then(|text| fill(text, &|name| known.get(name).cloned()));
        filters.extend(text.map(|text| (column, text)));
    }
    let rounds = warmup + tests;
    let plan = Plan::new(cases, rounds, run.job.seed, Some(run.left()));
    let mut turns = FilterRounds {
        rng: fastrand::Rng::with_seed(run.job.seed),
        shell: run.shell()?,
        over: Carrier { via: Some(LinkSpec::parse("pipe")?), ..Carrier::default() },
        filters,
        bound,
        warmup,
        rounds,
        made: 0,
        seen: BTreeSet::new(),
        began: Instant::now(),
        run,
    };
    let job = turns.run.job;
    let outcome = engine::run(&plan, job.cpus, &mut turns, job.stop);
    turns.filters_until(rounds);

    let part = &mut turns.run.made;
    part.cases = outcome.cases;
    for (case, column) in part.cases.iter_mut().zip(turns.bound) {
        case.samples.retain(|sample| sample.round >= warmup);
        part.measures[column].error = case.error.as_ref().map(|error| error.message.clone());
    }
    if part.measures.iter().any(|one| one.error.is_none() && one.samples.len() < tests as usize) {
        run.note_time_over("before every test was made");
    }
    Ok(())
}

fn bound_case(spec: &str, bytes: u64, block_bytes: u64) -> anyhow::Result<Case> {
    fit(Case {
        tasks: Tasks::Processes,
        data: DataLevel::Verify,
        payload: PayloadKind::Printable,
        ..stream(spec, block_bytes, Amount::Bytes(bytes))?
    })
}

/// Takes the times of all columns, and sees to it that they take turns.
struct FilterRounds<'s, 'a> {
    run: &'s mut PartRun<'a>,
    shell: Shell,
    /// What carries the filters' pipelines.
    over: Carrier,
    /// Those ways, by their columns, and the columns of the engine's cases.
    filters: Vec<(usize, String)>,
    bound: Vec<usize>,
    rng: fastrand::Rng,
    warmup: u32,
    rounds: u32,
    /// Rounds of the filters that were made.
    made: u32,
    /// Cases of the engine that have run in this round.
    seen: BTreeSet<usize>,
    /// When the trial of the engine began.
    began: Instant,
}

impl FilterRounds<'_, '_> {
    /// Runs the filters' rounds up to this one, where there is time.
    fn filters_until(&mut self, round: u32) {
        while self.made < round.min(self.rounds) && !self.run.is_over() {
            self.rng.shuffle(&mut self.filters);
            for index in 0..self.filters.len() {
                if self.run.is_stopped() {
                    return;
                }
                self.run_filter(index);
            }
            self.made += 1;
        }
    }

    fn run_filter(&mut self, index: usize) {
        let (column, text) = &self.filters[index];
        let done = f64::from(self.made) / f64::from(self.rounds);
        let measure = &mut self.run.made.measures[*column];
        self.run.observer.progress(&measure.name, Some(done));
        if measure.error.is_some() {
            return;
        }
        let start = Start { hosepipe: self.run.job.hosepipe, shell: &self.shell };
        // `sink` says on standard error what it has read, each time.
        match trial(&start, text, &self.over, Complaints::Hidden) {
            Err(error) => measure.error = Some(error.to_string()),
            Ok(made) => match made.ended_by {
                Some(signal) => (self.run.job.note_signal)(signal),
                None if made.status != 0 => {
                    measure.error = Some(format!("`{text}` ended with status {}", made.status));
                }
                None if self.made >= self.warmup => measure.samples.push(made.wall.as_secs_f64()),
                None => {}
            },
        }
    }
}

impl Observer for FilterRounds<'_, '_> {
    fn trial_started(&mut self, index: usize) {
        if self.seen.is_empty() || self.seen.contains(&index) {
            self.seen.clear();
            self.filters_until(self.made + 1);
        }
        self.seen.insert(index);
        let done = f64::from(self.made) / f64::from(self.rounds);
        let name = &self.run.made.measures[self.bound[index]].name;
        self.run.observer.progress(name, Some(done.min(1.0)));
        self.began = Instant::now();
    }

    fn trial_finished(&mut self, index: usize, sample: &Sample) {
        let elapsed = self.began.elapsed();
        if sample.round >= self.warmup {
            self.run.made.measures[self.bound[index]].samples.push(elapsed.as_secs_f64());
        }
    }
}

pub(super) fn mechanisms(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    run.made.mechanisms = mechanism_facts();
    Ok(())
}
