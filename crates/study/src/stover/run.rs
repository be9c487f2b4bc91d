//! `stover`: runs a generator and a sink over six ways between them, and lists what each mechanism can do.
//!
//! Four of the ways are command lines of two filters, which a shell runs. Two are a mechanism with forked ends, which the engine runs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use engine::{Plan, Session};
use mechanism::Folder;
use model::{Amount, ByteSize, Case, DataLevel, Measure, PayloadKind, Silent, Tasks};
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{Start, TrialOptions, TrialStderr, trial};
use rustix::fs::{MemfdFlags, memfd_create};

use super::facts::mechanism_facts;
use super::{STUDY, Stover};
use crate::comp517::quoted;
use crate::run::{PartRun, WARM_UP_ROUNDS, fit, stream, with_remedy};
use crate::view::{Texts, fill, start_of, texts};

/// Bytes at most of a failed pipeline's standard error that become part of the error.
const MESSAGE_BYTES: usize = 1000;

/// What runs one way.
enum Runner {
    /// The shell, with this command line.
    Shell(String),
    /// The engine, with the case of this index in its plan.
    Engine(usize),
}

pub(super) fn columns(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study: Stover = STUDY.parameters();
    let (job, tests) = (run.job, run.made.series);
    let block_bytes = study.workload.block.value;
    let bytes = job.scale.bytes(study.workload.bytes.value, block_bytes);
    run.set("bytes", format!("{} (512 MB is taken as 512 MiB)", ByteSize(bytes)));
    let folder = Folder::private();
    let folder = folder.path().map_err(with_remedy)?;
    let (mut runners, mut cases) = (Vec::new(), Vec::new());
    // Each way also sends a single block, which takes as long as its start.
    for (bytes, is_start) in [(bytes, false), (block_bytes, true)] {
        let known = known_texts(run, &study, bytes, &folder)?;
        for way in &study.ways {
            let column = run.made.measures.len();
            let name = if is_start { start_of(&way.name) } else { way.name.clone() };
            run.made.measures.push(Measure::new(&name, "s"));
            let text = way.text.as_ref().and_then(|text| fill(text, &|name| known.get(name).cloned()));
            runners.extend(text.map(|text| (column, Runner::Shell(text))));
            if let Some(spec) = &way.spec {
                runners.push((column, Runner::Engine(cases.len())));
                cases.push(mechanism_case(spec, bytes, block_bytes)?);
            }
        }
    }
    let mechanisms = cases.len() / 2;

    let shell = run.shell()?;
    let rounds = WARM_UP_ROUNDS + tests;
    let plan = Plan {
        round_program: Some(engine::OWN_PROGRAM.into()),
        ..Plan::new(cases, rounds, job.seed, Some(run.left()))
    };
    let (mut order, mut silent) = (fastrand::Rng::with_seed(job.seed), Silent);
    let mut session = Session::start(&plan, job.cpus, &mut silent, job.stop);
    for round in 0..rounds {
        if run.is_over() {
            break;
        }
        order.shuffle(&mut runners);
        for (column, runner) in &runners {
            let name = run.made.measures[*column].name.clone();
            run.observer.progress(&name, Some(f64::from(round) / f64::from(rounds)));
            let took_s = match runner {
                _ if run.is_stopped() => break,
                Runner::Shell(text) => run_filters(run, &shell, text, *column)?,
                Runner::Engine(index) => {
                    let began = Instant::now();
                    session.run_trial(*index, round);
                    Some(began.elapsed().as_secs_f64())
                }
            };
            let timed = took_s.filter(|_| round >= WARM_UP_ROUNDS);
            run.made.measures[*column].samples.extend(timed);
        }
    }

    let mut cases = session.into_cases();
    for (column, runner) in &runners {
        let Runner::Engine(index) = runner else { continue };
        let (case, measure) = (&mut cases[*index], &mut run.made.measures[*column]);
        case.samples.retain(|sample| sample.round >= WARM_UP_ROUNDS);
        // A trial that failed or was stopped has no sample, and no trial of its case follows.
        measure.samples.truncate(case.samples.len());
        measure.error = case.error.as_ref().map(|error| error.message.clone());
    }
    cases.truncate(mechanisms);
    run.made.cases = cases;
    if run.made.measures.iter().any(|one| one.error.is_none() && one.samples.len() < tests as usize) {
        run.note_time_over("before every test was made");
    }
    Ok(())
}

/// What the command lines of the ways name, and the filters, for this many bytes.
fn known_texts(run: &PartRun<'_>, study: &Stover, bytes: u64, folder: &Path) -> anyhow::Result<Texts> {
    let mut known = texts([
        ("hosepipe", Some(quoted(run.job.hosepipe))),
        ("bytes", Some(bytes.to_string())),
        ("block", Some(study.workload.block.value.to_string())),
        ("seed", Some(run.job.seed.to_string())),
        ("file", Some(quoted(&folder.join("between")))),
    ]);
    for (name, text) in &study.filters {
        let text = fill(text, &|name| known.get(name).cloned()).context("a filter of stover/study.toml")?;
        known.insert(name.clone(), text);
    }
    Ok(known)
}

fn mechanism_case(spec: &str, bytes: u64, block_bytes: u64) -> anyhow::Result<Case> {
    fit(Case {
        tasks: Tasks::Processes,
        data: DataLevel::Verify,
        payload: PayloadKind::Printable,
        ..stream(spec, block_bytes, Amount::Bytes(bytes))?
    })
}

/// Runs a command line once, unless it has failed before, and returns its time in seconds. A failure becomes the column's error.
fn run_filters(
    run: &mut PartRun<'_>,
    shell: &Shell,
    text: &str,
    column: usize,
) -> anyhow::Result<Option<f64>> {
    if run.made.measures[column].error.is_some() {
        return Ok(None);
    }
    let start = Start { hosepipe: run.job.hosepipe, shell };
    let over = TrialOptions { via: Some(LinkSpec::parse("pipe")?), ..TrialOptions::default() };
    // Of a pipeline that does not fail it is not shown: `sink` reports there how much it has read, in each trial.
    let stderr = File::from(memfd_create("stderr", MemfdFlags::CLOEXEC)?);
    let error = match trial(&start, text, &over, TrialStderr::To(stderr.as_fd())) {
        Ok(made) => match made.ended_by {
            Some(signal) => {
                (run.job.note_signal)(signal);
                return Ok(None);
            }
            None if made.status == 0 => return Ok(Some(made.wall.as_secs_f64())),
            None => format!("`{text}` ended with status {}", made.status),
        },
        Err(error) => error.to_string(),
    };
    run.made.measures[column].error = Some(with_messages(error, &stderr)?);
    Ok(None)
}

/// The error, and the first lines that the pipeline wrote to its standard error.
fn with_messages(mut error: String, stderr: &File) -> io::Result<String> {
    let mut start = vec![0; MESSAGE_BYTES];
    let length = stderr.read_at(&mut start, 0)?;
    let messages = String::from_utf8_lossy(&start[..length]);
    for line in messages.lines().filter(|line| !line.trim().is_empty()) {
        error.push_str("; ");
        error.push_str(line.trim());
    }
    Ok(error)
}

pub(super) fn mechanisms(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    run.made.mechanisms = mechanism_facts();
    Ok(())
}
