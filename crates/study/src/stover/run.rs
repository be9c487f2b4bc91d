//! `stover`: a generator and a sink, six ways between them, and a table of what each mechanism is good for.
//!
//! Four of the ways are command lines of two filters, two are programs bound to their mechanism. All take turns:
//! the engine runs the two, and whenever it begins a round, the four are run first.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use engine::Plan;
use mechanism::Folder;
use model::{Amount, ByteSize, Case, DataLevel, Measure, Observer, PayloadKind, Sample, Tasks};
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{Carrier, Complaints, Start, trial};

use super::Stover;
use super::facts::mechanism_facts;
use crate::comp517::quoted;
use crate::run::{PartRun, fit, stream, with_remedy};

/// The columns that are programs of our own, bound to their mechanism: the column's name, and over what.
const BOUND: [(&str, &str); 2] = [("msgq", "sysv-msgq"), ("unix socket", "unix-stream")];

pub(super) fn columns(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = Stover::read();
    let (tests, warmup) = (run.repeat(study.workload.tests), study.choice.warmup);
    let (bytes, chunk_bytes) = (study.workload.bytes(run.job.scale), study.workload.chunk.value);
    run.set("bytes", format!("{} (512 MB is taken as 512 MiB)", ByteSize(bytes)));
    run.set("chunk", format!("{chunk_bytes} bytes"));
    run.set("clock", "from before connecting until both ends have gone and what they made is removed");
    run.set("check", "the sink checks every byte, except in the last two columns, which have none of ours");
    run.set("warm-up", format!("{warmup} untimed test of each column"));
    run.made.measures = study.workload.columns.iter().map(|name| Measure::new(name, "s")).collect();

    let place = Folder::private();
    let place = place.path().map_err(with_remedy)?;
    let filters = filter_columns(run.job.hosepipe, run.job.seed, chunk_bytes, bytes, &place);
    let cases = BOUND.map(|(_, spec)| bound_case(spec, bytes, chunk_bytes));
    let cases = cases.into_iter().collect::<Result<Vec<Case>, _>>()?;
    let rounds = warmup + tests;
    let plan = Plan::new(cases, rounds, run.job.seed, Some(run.left()));
    let mut turns = FilterRounds {
        rng: fastrand::Rng::with_seed(run.job.seed),
        shell: run.shell()?,
        over: Carrier::Link(LinkSpec::parse("pipe")?),
        filters,
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

    let part = &mut run.made;
    part.cases = outcome.cases;
    for (case, (column, _)) in part.cases.iter_mut().zip(BOUND) {
        case.samples.retain(|sample| sample.round >= warmup);
        named(&mut part.measures, column).error = case.error.as_ref().map(|error| error.message.clone());
    }
    if part.measures.iter().any(|one| one.error.is_none() && one.samples.len() < tests as usize) {
        run.note_time_over("before every test was made");
    }
    Ok(())
}

fn bound_case(spec: &str, bytes: u64, chunk_bytes: u64) -> anyhow::Result<Case> {
    fit(Case {
        tasks: Tasks::Processes,
        data: DataLevel::Verify,
        payload: PayloadKind::Printable,
        ..stream(spec, chunk_bytes, Amount::Bytes(bytes))?
    })
}

/// A column that is a command line: its name in the table, and its text.
type FilterColumn = (&'static str, String);

/// The column of a name. Its place in the table is the study file's.
fn named<'m>(measures: &'m mut [Measure], name: &str) -> &'m mut Measure {
    let found = measures.iter_mut().find(|measure| measure.name == name);
    found.unwrap_or_else(|| panic!("stover/study.toml has no column `{name}`"))
}

fn filter_columns(
    hosepipe: &Path,
    seed: u64,
    chunk_bytes: u64,
    bytes: u64,
    place: &Path,
) -> Vec<FilterColumn> {
    let hosepipe = quoted(hosepipe);
    let generator =
        format!("{hosepipe} gen --bytes {bytes} --block {chunk_bytes} --payload printable --seed {seed}");
    let sink = format!("{hosepipe} sink --verify --bytes {bytes} --payload printable --seed {seed}");
    let file = quoted(&place.join("between"));
    vec![
        ("tmp file", format!("{generator} > {file} && {sink} < {file}; s=$?; rm -f {file}; exit $s")),
        ("pipe", format!("{generator} | {sink}")),
        ("|cat >/dev/null", format!("{generator} | cat > /dev/null")),
        (">/dev/null", format!("{generator} > /dev/null")),
    ]
}

/// Takes the times of all columns, and sees to it that they take turns.
struct FilterRounds<'s, 'a> {
    run: &'s mut PartRun<'a>,
    shell: Shell,
    /// What carries the filters' pipelines.
    over: Carrier,
    filters: Vec<FilterColumn>,
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
        self.run.observer.progress(column, Some(done));
        let measure = named(&mut self.run.made.measures, column);
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
        self.run.progress(BOUND[index].1, Some(done.min(1.0)));
        self.began = Instant::now();
    }

    fn trial_finished(&mut self, index: usize, sample: &Sample) {
        let elapsed = self.began.elapsed();
        if sample.round >= self.warmup {
            named(&mut self.run.made.measures, BOUND[index].0).samples.push(elapsed.as_secs_f64());
        }
    }
}

pub(super) fn mechanisms(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    run.made.mechanisms = mechanism_facts();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: each column has the times of its own program, wherever study.toml puts it.
    /// Happened: programs were tied to the columns' numbers, so another order gave each the times of another.
    #[test]
    fn every_column_of_the_table_has_one_program_of_its_name() {
        let mut columns = Stover::read().workload.columns;
        let filters = filter_columns(Path::new("hosepipe"), 1, 1, 1, Path::new("/tmp"));
        let mut programs: Vec<&str> =
            BOUND.iter().map(|(name, _)| *name).chain(filters.iter().map(|(name, _)| *name)).collect();
        programs.sort_unstable();
        columns.sort_unstable();
        assert_eq!(programs, columns);
        let mut measures: Vec<Measure> = columns.iter().map(|name| Measure::new(name, "s")).collect();
        for name in programs {
            assert_eq!(named(&mut measures, name).name, name);
        }
    }
}
