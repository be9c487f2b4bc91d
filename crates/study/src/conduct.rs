//! The run of a study: the parts that a record does not have yet, one after another.

use std::collections::BTreeMap;
use std::time::Instant;

use model::{BenchRecord, Host, Observer, SCHEMA, StudyPart, StudyRecord};

use crate::part::{Job, Part, ReproduceError, Stage, parts};

/// Runs the parts that `record` does not have in full, into the record, and hands it to the watcher after each.
/// With `only`, parts of other names are left out.
///
/// # Errors
/// A part could not be run, or the record not be saved; what was finished is in the record.
pub fn conduct(
    job: &Job<'_>,
    record: &mut StudyRecord,
    only: &[String],
    watcher: &mut dyn Observer,
) -> Result<(), ReproduceError> {
    let wanted = |part: &Part| only.is_empty() || only.iter().any(|name| name == part.name);
    let all: Vec<Part> = parts(job.study).into_iter().filter(wanted).collect();
    record.interrupted = false;
    for (index, part) in all.iter().enumerate() {
        if record.parts.iter().any(|made| made.name == part.name && made.complete) {
            continue;
        }
        watcher.part_started(part.name, part.title, index + 1, all.len());
        let began = Instant::now();
        let mut stage = Stage { job, watcher: &mut *watcher, part, began };
        let mut made = (part.run)(&mut stage)?;
        made.elapsed_s = began.elapsed().as_secs_f64();
        put(record, made, job);
        record.interrupted = (job.stop)();
        watcher.part_ended(record).map_err(ReproduceError::system("the record"))?;
        if record.interrupted {
            break;
        }
    }
    Ok(())
}

/// Puts a part into the record, in the place that it has among the study's parts.
fn put(record: &mut StudyRecord, part: StudyPart, job: &Job<'_>) {
    record.parts.retain(|other| other.name != part.name);
    record.parts.push(part);
    let order: Vec<&str> = parts(job.study).iter().map(|part| part.name).collect();
    record.parts.sort_by_key(|part| order.iter().position(|name| *name == part.name).unwrap_or(usize::MAX));
}

/// What a record is to be resumed with.
#[derive(Debug, Clone, Copy)]
pub struct Resume<'a> {
    /// The study.
    pub study: &'a str,
    /// How much of it.
    pub scale: f64,
    /// This machine; `None` where nothing is to be run, and the record is only shown again.
    pub host: Option<&'a Host>,
}

/// Whether figures made now may stand beside those of the record.
///
/// # Errors
/// What differs, in a sentence.
pub fn check_resume(record: &StudyRecord, now: &Resume<'_>) -> Result<(), String> {
    if record.schema != SCHEMA {
        return Err(format!("its schema is `{}`, and this hosepipe knows `{SCHEMA}`", record.schema));
    }
    if record.study != now.study {
        return Err(format!("it is of the study `{}`, not of `{}`", record.study, now.study));
    }
    if record.scale != now.scale {
        return Err(format!(
            "it was made with --scale {}, not {}: give the same scale",
            record.scale, now.scale
        ));
    }
    let Some(now) = now.host else { return Ok(()) };
    let then = &record.host;
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

/// A record of a bench made elsewhere as a part of a study: its figures stand beside ours.
pub fn foreign_part(record: BenchRecord, file: &str) -> StudyPart {
    StudyPart {
        name: format!("elsewhere: {file}"),
        series: record.settings.trials,
        complete: true,
        settings: BTreeMap::from([
            ("file".to_owned(), file.to_owned()),
            ("started".to_owned(), record.started),
        ]),
        host: Some(Box::new(record.host)),
        cases: record.cases,
        ..StudyPart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Tool;

    fn record() -> StudyRecord {
        StudyRecord {
            schema: SCHEMA.to_owned(),
            tool: Tool { version: "0".to_owned(), revision: None },
            host: Host { kernel: "Linux 6.18.0".to_owned(), ..Host::default() },
            arguments: Vec::new(),
            started: String::new(),
            study: "stover".to_owned(),
            scale: 0.5,
            seed: 1,
            interrupted: true,
            parts: Vec::new(),
        }
    }

    #[test]
    fn only_the_same_study_at_the_same_scale_on_the_same_machine_is_resumed() {
        let host = record().host;
        let same = Resume { study: "stover", scale: 0.5, host: Some(&host) };
        assert_eq!(check_resume(&record(), &same), Ok(()));
        let problem = |now: Resume<'_>| check_resume(&record(), &now).expect_err("another one");
        assert!(problem(Resume { study: "comp517", ..same }).contains("`stover`, not of `comp517`"));
        assert!(problem(Resume { scale: 1.0, ..same }).contains("--scale 0.5"));
        let other = Host { kernel: "Linux 6.17.0".to_owned(), ..Host::default() };
        assert!(problem(Resume { host: Some(&other), ..same }).contains("the kernel was Linux 6.18.0"));
        assert_eq!(check_resume(&record(), &Resume { host: None, ..same }), Ok(()), "nothing is run");
        let old = StudyRecord { schema: "hosepipe/0".to_owned(), ..record() };
        assert!(check_resume(&old, &same).is_err_and(|text| text.contains("hosepipe/0")));
    }
}
