//! `stover`: a generator and a sink, six ways between them, and a table of what each mechanism is good for.
//!
//! Four of the ways are command lines of two filters, two are programs bound to their mechanism. All take turns:
//! the engine runs the two, and whenever it begins a round, the four are run first.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use super::{Stover, stover};
use engine::Plan;
use mechanism::Folder;
use model::{
    Amount, ByteSize, Case, Check, DataLevel, Measure, Observer, PayloadKind, Placement, Sample, StudyPart,
    Tasks,
};
use pipeline::link::LinkSpec;
use pipeline::{Carrier, Complaints};

use super::facts::mechanism_facts;
use crate::part::{Part, ReproduceError, Stage};
use crate::pipelines::run_once;
use crate::streams::Stream;

pub(crate) fn parts() -> Vec<Part> {
    vec![
        Part {
            name: "columns",
            title: "six ways between a generator and a sink",
            minutes: stover().minutes(),
            run: columns,
        },
        Part { name: "mechanisms", title: "what each mechanism is good for", minutes: 0.5, run: mechanisms },
    ]
}

/// The columns that are programs of our own, bound to their mechanism: which column, and over what.
const BOUND: [(usize, &str); 2] = [(0, "sysv-msgq"), (2, "unix-stream")];

fn columns(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = stover();
    let mut part = stage.blank(stage.job.scale.trials(study.tests()));
    let bytes = stage.job.scale.bytes(study.bytes(), study.chunk_bytes());
    let place = Folder::private();
    let place = place.path()?;

    let rounds = study.warmup() + part.series;
    let filters = filter_columns(stage, &study, bytes, place);
    let cases = BOUND.map(|(_, spec)| bound_case(spec, bytes, study.chunk_bytes()));
    let cases = cases.into_iter().collect::<Result<Vec<Case>, _>>()?;
    let plan = Plan { cases, trials: rounds, seed: stage.job.seed, budget: Some(stage.budget()) };
    let (cpus, stop) = (stage.job.cpus, stage.job.stop);
    let mut turns = Turns::new(stage, &study, filters, rounds);
    let outcome = engine::run(&plan, cpus, &mut turns, stop);
    turns.filters_until(rounds);

    part.measures = turns.measures;
    part.cases = outcome.cases;
    for (case, (column, _)) in part.cases.iter_mut().zip(BOUND) {
        case.samples.retain(|sample| sample.round >= study.warmup());
        part.measures[column].error = case.error.as_ref().map(|error| error.message.clone());
    }
    part.complete = !stop();
    describe(&mut part, &study, bytes);
    if part.complete
        && part.measures.iter().any(|one| one.error.is_none() && one.samples.len() < part.series as usize)
    {
        part.remarks
            .push(format!("The part's time of {} min was over before every test was made.", study.minutes()));
    }
    Ok(part)
}

fn describe(part: &mut StudyPart, study: &Stover, bytes: u64) {
    let mut set = |name: &str, text: String| part.settings.insert(name.to_owned(), text);
    set("bytes", format!("{} (512 MB is taken as 512 MiB)", ByteSize(bytes)));
    set("chunk", format!("{} bytes", study.chunk_bytes()));
    set("clock", "from before connecting until both ends have gone and what they made is removed".to_owned());
    set(
        "check",
        "the sink checks every byte, except in the last two columns, which have none of ours".to_owned(),
    );
    set("warm-up", format!("{} untimed test of each column", study.warmup()));
}

fn bound_case(spec: &'static str, bytes: u64, chunk_bytes: u64) -> Result<Case, ReproduceError> {
    let stream = Stream {
        tasks: Tasks::Processes,
        placement: Placement::Any,
        data: DataLevel::Verify,
        check: Check::Xxh3,
        payload: PayloadKind::Printable,
        amount: Amount::Bytes(bytes),
        ..Stream::threads(spec, chunk_bytes, 1)
    };
    stream.case()
}

/// A column that is a command line.
struct FilterColumn {
    index: usize,
    text: String,
}

fn filter_columns(stage: &Stage<'_>, study: &Stover, bytes: u64, place: &Path) -> Vec<FilterColumn> {
    let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    let hosepipe = quoted(stage.job.hosepipe);
    let (chunk, seed) = (study.chunk_bytes(), stage.job.seed);
    let generator =
        format!("{hosepipe} gen --bytes {bytes} --block {chunk} --payload printable --seed {seed}");
    let sink = format!("{hosepipe} sink --verify --bytes {bytes} --payload printable --seed {seed}");
    let file = quoted(&place.join("between"));
    let texts = [
        (1, format!("{generator} > {file} && {sink} < {file}; s=$?; rm -f {file}; exit $s")),
        (3, format!("{generator} | {sink}")),
        (4, format!("{generator} | cat > /dev/null")),
        (5, format!("{generator} > /dev/null")),
    ];
    texts.into_iter().map(|(index, text)| FilterColumn { index, text }).collect()
}

/// Takes the times of all columns, and sees to it that they take turns.
struct Turns<'s, 'a> {
    stage: &'s mut Stage<'a>,
    filters: Vec<FilterColumn>,
    measures: Vec<Measure>,
    rng: fastrand::Rng,
    warmup: u32,
    rounds: u32,
    /// Rounds of the filters that were made.
    made: u32,
    /// Cases of the engine that have run in this round.
    seen: BTreeSet<usize>,
    began: Instant,
}

impl<'s, 'a> Turns<'s, 'a> {
    fn new(stage: &'s mut Stage<'a>, study: &Stover, filters: Vec<FilterColumn>, rounds: u32) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(stage.job.seed),
            stage,
            filters,
            measures: study.columns.iter().map(|column| Measure::new(&column.name, "s")).collect(),
            warmup: study.warmup(),
            rounds,
            made: 0,
            seen: BTreeSet::new(),
            began: Instant::now(),
        }
    }

    /// Runs the filters' rounds up to this one, where there is time.
    fn filters_until(&mut self, round: u32) {
        while self.made < round.min(self.rounds) && !self.stage.is_over() {
            self.rng.shuffle(&mut self.filters);
            for index in 0..self.filters.len() {
                if (self.stage.job.stop)() {
                    return;
                }
                self.run_filter(index);
            }
            self.made += 1;
        }
    }

    fn run_filter(&mut self, index: usize) {
        let column = &self.filters[index];
        let measure = &mut self.measures[column.index];
        let done = f64::from(self.made) / f64::from(self.rounds);
        self.stage.watcher.progress(&measure.name, Some(done));
        if measure.error.is_some() {
            return;
        }
        let job = self.stage.job;
        let via = match LinkSpec::parse("pipe") {
            Ok(link) => Carrier::Link(link),
            Err(problem) => {
                measure.error = Some(problem.to_string());
                return;
            }
        };
        // `sink` says on standard error what it has read, each time.
        let made = run_once(job, &column.text, &via, Complaints::Hidden);
        match made {
            Ok(made) => match made.ended_by {
                Some(signal) => (job.note_signal)(signal),
                None if made.status != 0 => {
                    measure.error = Some(format!("`{}` ended with status {}", column.text, made.status));
                }
                None if self.made >= self.warmup => measure.samples.push(made.wall.as_secs_f64()),
                None => {}
            },
            Err(error) => measure.error = Some(error),
        }
    }
}

impl Observer for Turns<'_, '_> {
    fn trial_started(&mut self, index: usize) {
        if self.seen.is_empty() || self.seen.contains(&index) {
            self.seen.clear();
            self.filters_until(self.made + 1);
        }
        self.seen.insert(index);
        let done = f64::from(self.made) / f64::from(self.rounds);
        self.stage.watcher.progress(BOUND[index].1, Some(done.min(1.0)));
        self.began = Instant::now();
    }

    fn trial_finished(&mut self, index: usize, sample: &Sample) {
        let elapsed = self.began.elapsed();
        if sample.round >= self.warmup {
            self.measures[BOUND[index].0].samples.push(elapsed.as_secs_f64());
        }
    }
}

fn mechanisms(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let mut part = stage.blank(1);
    part.mechanisms = mechanism_facts();
    part.complete = true;
    Ok(part)
}
