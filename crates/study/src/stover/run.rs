//! `stover`: runs a generator and a sink over six ways between them, and lists what each mechanism can do.
//!
//! Four of the ways are command lines of two filters, which a shell runs. Two are a mechanism with forked ends, which the engine runs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use engine::Plan;
use mechanism::Folder;
use model::{
    Amount, ByteSize, Case, CaseError, CaseRecord, DataLevel, ErrorKind, Measure, NoSample, Observer,
    PayloadKind, Row, Sample, Spec, Tasks, TrialMaker, Turn,
};
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{Start, Trial, TrialOptions, TrialStderr, trial};
use rustix::fs::{MemfdFlags, memfd_create};

use super::facts::mechanism_facts;
use super::{STUDY, Stover};
use crate::comp517::quoted;
use crate::run::{PartRun, StudyRequest, WARM_UP_ROUNDS, fit, stream, with_remedy};
use crate::start::start_of;
use crate::view::{Texts, texts};

/// Bytes at most of a failed pipeline's standard error that become part of the error.
const MESSAGE_BYTES: usize = 1000;

pub(super) fn columns(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study: Stover = STUDY.parameters();
    let (request, tests) = (run.request, run.made.series);
    let block_bytes = study.workload.block.value;
    let bytes = request.scale.bytes(study.workload.bytes.value, block_bytes);
    run.set("bytes", format!("{} (512 MB is taken as 512 MiB)", ByteSize(bytes)));
    let folder = Folder::private();
    let folder = folder.path().map_err(with_remedy)?;
    let shell = run.shell()?;
    let (mut columns, mut filters, mut cases) = (Vec::new(), Vec::<Row<'_>>::new(), Vec::new());
    // Each way also sends a single block, which takes as long as its start. The rows of mechanisms are the first ones.
    let mechanisms = 2 * study.ways.iter().filter(|way| way.spec.is_some()).count();
    for (bytes, is_start) in [(bytes, false), (block_bytes, true)] {
        let known = known_texts(run, &study, bytes, &folder)?;
        for way in &study.ways {
            let name = if is_start { start_of(&way.name) } else { way.name.clone() };
            if let Some(spec) = &way.spec {
                columns.push((name, cases.len()));
                cases.push(mechanism_case(spec, bytes, block_bytes)?);
            } else if let Some(text) = way
                .text
                .as_ref()
                .and_then(|text| model::filled_completely(text, |name| known.get(name).cloned()))
            {
                columns.push((name.clone(), mechanisms + filters.len()));
                let (record, shell) = (CaseRecord::new(Spec::plain("pipe")), &shell);
                filters.push(Row { name, record, maker: Box::new(FilterTrials { text, request, shell }) });
            }
        }
    }
    let plan = Plan {
        round_program: Some(engine::OWN_PROGRAM.into()),
        ..Plan::new(cases, WARM_UP_ROUNDS + tests, request.seed, Some(run.left()))
    };
    let mut timer = TrialTimer {
        observer: &mut *run.observer,
        mechanisms,
        began: Instant::now(),
        times_s: vec![Vec::new(); columns.len()],
    };
    let mut made = engine::run(&plan, filters, request.cpus, None, &mut timer, request.stop).cases;
    let mut times_s = timer.times_s;
    for (name, row) in columns {
        let error = made[row].error.as_ref().map(|error| error.message.clone());
        let samples = std::mem::take(&mut times_s[row]);
        run.made.measures.push(Measure { samples, error, ..Measure::new(&name, "s") });
    }
    // Those of the whole amount: the second half are the starts.
    made.truncate(mechanisms / 2);
    made.iter_mut().for_each(|case| case.samples.retain(|sample| sample.round >= WARM_UP_ROUNDS));
    run.made.cases = made;
    if run.made.measures.iter().any(|one| one.error.is_none() && one.samples.len() < tests as usize) {
        run.note_time_over("before every test was made");
    }
    Ok(())
}

/// Times the tests after the warm-up: the filters from the start of their shell to its end, a mechanism with its processes.
struct TrialTimer<'o> {
    observer: &'o mut dyn Observer,
    /// Rows of mechanisms; those of filters follow them.
    mechanisms: usize,
    began: Instant,
    /// Seconds of each row's tests.
    times_s: Vec<Vec<f64>>,
}

impl Observer for TrialTimer<'_> {
    fn progress(&mut self, what: &str, done: Option<f64>) {
        self.observer.progress(what, done);
    }

    fn trial_started(&mut self, _index: usize) {
        self.began = Instant::now();
    }

    fn trial_finished(&mut self, index: usize, sample: &Sample) {
        let with_processes = self.began.elapsed();
        let took =
            if index < self.mechanisms { with_processes } else { Duration::from_nanos(sample.elapsed_ns) };
        if sample.round >= WARM_UP_ROUNDS {
            self.times_s[index].push(took.as_secs_f64());
        }
    }
}

/// What the command lines of the ways name, and the filters, for this many bytes.
fn known_texts(run: &PartRun<'_>, study: &Stover, bytes: u64, folder: &Path) -> anyhow::Result<Texts> {
    let mut known = texts([
        ("hosepipe", Some(quoted(run.request.hosepipe))),
        ("bytes", Some(bytes.to_string())),
        ("block", Some(study.workload.block.value.to_string())),
        ("seed", Some(run.request.seed.to_string())),
        ("file", Some(quoted(&folder.join("between")))),
    ]);
    for (name, text) in &study.filters {
        let text = model::filled_completely(text, |name| known.get(name).cloned())
            .context("a filter of stover/study.toml")?;
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

/// Runs a command line of filters in the shell.
struct FilterTrials<'j> {
    text: String,
    request: &'j StudyRequest<'j>,
    shell: &'j Shell,
}

impl TrialMaker for FilterTrials<'_> {
    fn trial(&mut self, _turn: &mut Turn<'_>) -> Result<Sample, NoSample> {
        match self.run() {
            Ok(Some(wall)) => Ok(Sample { elapsed_ns: wall.as_nanos() as u64, ..Sample::default() }),
            Ok(None) => Err(NoSample::Stopped),
            Err(error) => Err(CaseError::new(ErrorKind::Failed, format!("{error:#}")).into()),
        }
    }
}

impl FilterTrials<'_> {
    /// Runs the command line once, and returns its time; `None` if a signal ended it.
    fn run(&self) -> anyhow::Result<Option<Duration>> {
        let start = Start { hosepipe: self.request.hosepipe, shell: self.shell };
        let over = TrialOptions { via: Some(LinkSpec::parse("pipe")?), ..TrialOptions::default() };
        // Of a pipeline that does not fail it is not shown: `sink` reports there how much it has read, in each trial.
        let stderr = File::from(memfd_create("stderr", MemfdFlags::CLOEXEC)?);
        let error = match trial(&start, &self.text, &over, TrialStderr::To(stderr.as_fd())) {
            Ok(Trial { ended_by: Some(signal), .. }) => {
                (self.request.note_signal)(signal);
                return Ok(None);
            }
            Ok(made) if made.status == 0 => return Ok(Some(made.wall)),
            Ok(made) => format!("`{}` ended with status {}", self.text, made.status),
            Err(error) => error.to_string(),
        };
        anyhow::bail!(with_messages(error, &stderr)?)
    }
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
