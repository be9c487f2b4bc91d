//! Runs the parts of a study that its record lacks, one after another.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::Plan;
use model::{
    Amount, BenchRecord, ByteSize, Case, CompareResult, Cpu, DataLevel, Host, Measure, Observer, SCHEMA,
    Spec, StudyPart, StudyRecord, describe_errno, parse_size,
};
use pipeline::shell::Shell;

use crate::parameters::{PartText, StudyHead, StudyToml};
use crate::{Scale, Study};

/// The study to run, and its environment.
pub struct StudyRequest<'a> {
    /// The study.
    pub study: &'static Study,
    /// The scale of its amounts.
    pub scale: Scale,
    /// The seed of the order within rounds and of random payloads.
    pub seed: u64,
    /// The CPUs that this process may use.
    pub cpus: &'a [Cpu],
    /// The path of this program: pipelines use its `gen` and `sink`.
    pub hosepipe: &'a Path,
    /// The shell that runs pipelines.
    pub shell: &'a str,
    /// Whether the user has asked to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Called with a signal, such as SIGINT, that ended a measured program: this program should end, too.
    pub note_signal: &'a dyn Fn(i32),
}

/// Untimed rounds before the trials of programs; the settings in each `study.toml` name the number.
pub(crate) const WARM_UP_ROUNDS: u32 = 1;

/// Measures a part, and adds the results to [`PartRun::made`].
pub(crate) type RunPart = fn(&mut PartRun<'_>) -> anyhow::Result<()>;

/// A part that is being run.
pub struct PartRun<'a> {
    pub(crate) request: &'a StudyRequest<'a>,
    pub(crate) observer: &'a mut dyn Observer,
    /// Its record so far.
    pub(crate) made: StudyPart,
    pub(crate) part: &'a PartText,
    began: Instant,
}

/// Runs the parts that are incomplete in `record`, adds them to it, and calls the observer after each. If `only` is not empty, it
/// names the parts to run.
///
/// # Errors
/// A part could not be run, or the observer could not save the record; finished parts are in the record.
pub fn run(
    request: &StudyRequest<'_>,
    record: &mut StudyRecord,
    only: &[String],
    observer: &mut dyn Observer,
) -> anyhow::Result<()> {
    let file: StudyToml = request.study.parameters();
    let all = request.study.wanted(only);
    record.interrupted = false;
    for (index, part) in all.iter().enumerate() {
        if is_complete(record, part) {
            continue;
        }
        observer.part_started(&part.name, &part.title, index + 1, all.len());
        let mut running = PartRun {
            request,
            observer: &mut *observer,
            made: StudyPart {
                name: part.name.clone(),
                series: request.scale.trials(part.trials.unwrap_or(1)),
                settings: settings(&file.study, part, request.scale),
                ..StudyPart::default()
            },
            part,
            began: Instant::now(),
        };
        (request.study.run)(&mut running)?;
        running.made.elapsed_s = running.began.elapsed().as_secs_f64();
        running.made.complete = !running.is_stopped();
        insert(record, running.made, &file.parts);
        record.interrupted = (request.stop)();
        observer.part_ended(record).map_err(refused("the record"))?;
        if record.interrupted {
            break;
        }
    }
    Ok(())
}

impl Study {
    /// The parts of these names; all parts if there are no names.
    fn wanted(&self, only: &[String]) -> Vec<PartText> {
        let mut parts = self.parts();
        parts.retain(|part| only.is_empty() || only.contains(&part.name));
        parts
    }

    /// Whether any part of these names is incomplete in a record; any part at all if there are no names.
    pub fn is_missing_any(&self, only: &[String], record: &StudyRecord) -> bool {
        self.wanted(only).iter().any(|part| !is_complete(record, part))
    }
}

fn is_complete(record: &StudyRecord, part: &PartText) -> bool {
    record.parts.iter().any(|made| made.name == part.name && made.complete)
}

/// The settings that `study.toml` lists for a part, with amounts at a scale.
fn settings(study: &StudyHead, part: &PartText, scale: Scale) -> BTreeMap<String, String> {
    let amount = |text: &str| {
        let amount = scale.amount(parse_size(text).ok()?.0);
        Some(if text.ends_with('B') { ByteSize(amount).to_string() } else { amount.to_string() })
    };
    let all = study.settings.iter().chain(&part.settings);
    all.filter_map(|[name, text]| Some((name.clone(), model::filled_completely(text, amount)?))).collect()
}

/// Adds a part to the record, or replaces it, and sorts the parts in the study's order.
fn insert(record: &mut StudyRecord, part: StudyPart, parts: &[PartText]) {
    record.parts.retain(|other| other.name != part.name);
    record.parts.push(part);
    let index = |made: &StudyPart| parts.iter().position(|part| part.name == made.name);
    model::sort_by_key(&mut record.parts, |part| index(part).unwrap_or(usize::MAX));
}

impl PartRun<'_> {
    /// Adds a setting for the reader.
    pub(crate) fn set(&mut self, name: &str, text: impl Display) {
        self.made.settings.insert(name.to_owned(), text.to_string());
    }

    /// Adds a measured quantity.
    pub(crate) fn measured(&mut self, name: &str, unit: &str, samples: Vec<f64>) {
        self.made.measures.push(Measure { samples, ..Measure::new(name, unit) });
    }

    /// Whether the user has asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        (self.request.stop)()
    }

    /// The rest of the part's time limit.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_secs_f64(self.part.minutes * 60.0).saturating_sub(self.began.elapsed())
    }

    /// Whether no further round may begin.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || self.left().is_zero()
    }

    /// Adds a remark that the time limit was reached at the point that `when` names, unless the user asked to stop.
    pub(crate) fn note_time_over(&mut self, when: &str) {
        if !self.is_stopped() {
            let minutes = self.part.minutes;
            self.made.remarks.push(format!("The part's time of {minutes} min was over {when}."));
        }
    }

    /// The shell that runs pipelines.
    pub(crate) fn shell(&self) -> anyhow::Result<Shell> {
        Ok(Shell::find(self.request.shell.as_ref())?)
    }

    /// Runs the part's streams in interleaved rounds within its time limit.
    pub(crate) fn run_streams(&mut self) -> anyhow::Result<()> {
        let mut fitted: Vec<Case> = Vec::new();
        for case in self.part.cases(self.request.scale, self.request.cpus)? {
            let case = fit(case)?;
            if !fitted.contains(&case) {
                fitted.push(case);
            }
        }
        let plan = Plan {
            round_program: Some(engine::OWN_PROGRAM.into()),
            ..Plan::new(fitted, self.made.series, self.request.seed, Some(self.left()))
        };
        let outcome =
            engine::run(&plan, Vec::new(), self.request.cpus, None, self.observer, self.request.stop);
        if outcome.interrupted {
            self.note_time_over("before every trial was made");
        }
        self.made.cases = outcome.cases;
        Ok(())
    }
}

/// A stream of the bytes 0 to 255 between two tasks that the scheduler places.
pub(crate) fn stream(spec: &str, block_bytes: u64, amount: Amount) -> anyhow::Result<Case> {
    let spec = spec.parse().with_context(|| format!("`{spec}`"))?;
    Ok(Case { payload: model::PayloadKind::Sequence, block_bytes, amount, ..Case::stream(spec) })
}

/// Adapts a case to its mechanism: the mechanism's default way to wait, tasks that it supports, and the highest data level that it
/// supports up to the given one.
pub(crate) fn fit(asked: Case) -> anyhow::Result<Case> {
    let (mechanism, options) = mechanism::resolve(&asked.spec)?;
    let levels = mechanism.data(&options).iter().copied().filter(|level| *level <= asked.data);
    let tasks = mechanism.tasks.iter().find(|tasks| **tasks == asked.tasks).or(mechanism.tasks.first());
    Ok(Case {
        role: mechanism.role,
        tasks: tasks.copied().unwrap_or(asked.tasks),
        wait: mechanism.wait(&options),
        data: levels.max().unwrap_or(DataLevel::None),
        ..asked
    })
}

/// For `map_err`: an error of the system, with what was tried.
pub(crate) fn refused<E: Into<io::Error>>(what: &str) -> impl FnOnce(E) -> anyhow::Error {
    move |error| anyhow::anyhow!("{what}: {}", describe_errno(&error.into()))
}

/// For `map_err`: a mechanism that cannot be opened, with the remedy.
pub(crate) fn with_remedy(error: mechanism::OpenError) -> anyhow::Error {
    let remedy = error.remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
    anyhow::anyhow!("{error}{remedy}")
}

/// Whether a part has an unexpected error.
pub fn failed(part: &StudyPart) -> bool {
    let case = part.cases.iter().any(|case| case.error.as_ref().is_some_and(|error| !error.expected));
    // If the output over the first link differs between runs, outputs cannot be compared. A program whose input is a file may format
    // its output differently (docs/LINKS.md).
    let steady = part.results.first().is_some_and(|first| first.equal == Some(true));
    let differs = |result: &CompareResult| {
        steady && result.equal == Some(false) && !Spec::has_option(&result.via, "order", "sequential")
    };
    let result = part.results.iter().any(|result| result.error.is_some() || differs(result));
    let bound = part.cases.iter().any(|case| case.error.is_some());
    let measure = part.measures.iter().any(|measure| measure.error.is_some() && !bound);
    case || result || measure
}

/// Whether parts that measure were run, and none of their rows has a figure: the time of the parts was over before, or nothing could be
/// measured.
pub fn is_without_figures(record: &StudyRecord) -> bool {
    let parts = || record.parts.iter().filter(|part| part.host.is_none());
    let cases = parts().flat_map(|part| &part.cases).map(|case| case.samples.len());
    let results = parts().flat_map(|part| &part.results).map(|result| result.times_s.len());
    let measures = parts().flat_map(|part| &part.measures).map(|measure| measure.samples.len());
    let figures: Vec<usize> = cases.chain(results).chain(measures).collect();
    !figures.is_empty() && figures.iter().all(|figures| *figures == 0)
}

/// Checks that new figures can be added to the record. `host` is this machine; `None` if nothing will be run, and the record is only
/// shown again.
///
/// # Errors
/// A sentence that says what differs.
pub fn check_resume(
    record: &StudyRecord,
    study: &str,
    scale: Scale,
    host: Option<&Host>,
) -> Result<(), String> {
    if record.head.schema != SCHEMA {
        return Err(format!("its schema is `{}`, and this hosepipe knows `{SCHEMA}`", record.head.schema));
    }
    if record.study != study {
        return Err(format!("it is of the study `{}`, not of `{}`", record.study, study));
    }
    if record.scale != scale.share() {
        return Err(format!("it was made with --scale {}, not {}: give the same scale", record.scale, scale));
    }
    let Some(now) = host else { return Ok(()) };
    let then = &record.head.host;
    let facts = [
        ("kernel", then.kernel.clone(), now.kernel.clone()),
        ("CPU", then.cpu_model.clone(), now.cpu_model.clone()),
        ("number of CPUs", then.cpus.len().to_string(), now.cpus.len().to_string()),
    ];
    match facts.into_iter().find(|(_, then, now)| then != now) {
        Some((what, then, now)) => {
            Err(format!("it was made on another machine: the {what} was {then}, and is {now} here"))
        }
        None => Ok(()),
    }
}

/// The record of a `bench` on another machine, as a part of a study's record.
pub fn foreign_part(record: BenchRecord, file: &str) -> StudyPart {
    StudyPart {
        name: format!("elsewhere: {file}"),
        series: record.settings.trials,
        complete: true,
        settings: BTreeMap::from([
            ("file".to_owned(), file.to_owned()),
            ("started".to_owned(), record.head.started),
        ]),
        host: Some(Box::new(record.head.host)),
        cases: record.cases,
        ..StudyPart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::RecordHead;

    fn record() -> StudyRecord {
        StudyRecord {
            head: RecordHead {
                host: Host { kernel: "Linux 6.18.0".to_owned(), ..Host::default() },
                ..RecordHead::default()
            },
            study: "stover".to_owned(),
            scale: 0.5,
            seed: 1,
            interrupted: true,
            parts: Vec::new(),
        }
    }

    /// Expected: status 1. Happened: of `stover --scale 100` no test had ended within its time, and the status was 0.
    #[test]
    fn a_record_whose_rows_have_no_figure_is_known() {
        let part = |samples: Vec<f64>| StudyPart {
            measures: vec![Measure::new("one", "s"), Measure { samples, ..Measure::new("two", "s") }],
            ..StudyPart::default()
        };
        let of = |parts: Vec<StudyPart>| is_without_figures(&StudyRecord { parts, ..record() });
        assert!(of(vec![StudyPart::default(), part(Vec::new())]));
        assert!(!of(vec![part(Vec::new()), part(vec![1.0])]), "a row beside measured ones");
        assert!(!of(vec![StudyPart::default()]), "a list of facts measures nothing");
    }

    #[test]
    fn only_the_same_study_at_the_same_scale_on_the_same_machine_is_resumed() {
        let host = record().head.host;
        let half: Scale = "0.5".parse().expect("a scale");
        let check = |study, scale, host| check_resume(&record(), study, scale, host);
        assert_eq!(check("stover", half, Some(&host)), Ok(()));
        let other = Host { kernel: "Linux 6.17.0".to_owned(), ..Host::default() };
        for (now, problem) in [
            (check("comp517", half, Some(&host)), "`stover`, not of `comp517`"),
            (check("stover", Scale::FULL, Some(&host)), "--scale 0.5"),
            (check("stover", half, Some(&other)), "the kernel was Linux 6.18.0"),
        ] {
            assert!(now.as_ref().is_err_and(|text| text.contains(problem)), "{now:?}");
        }
        assert_eq!(check("stover", half, None), Ok(()), "nothing is run");
        let head = RecordHead { schema: "hosepipe/0".to_owned(), ..record().head };
        let old = StudyRecord { head, ..record() };
        assert!(
            check_resume(&old, "stover", half, Some(&host)).is_err_and(|text| text.contains("hosepipe/0"))
        );
    }
}
