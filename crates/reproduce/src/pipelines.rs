//! Pipelines over links, in turns: warm-ups, rounds in a seeded random order, equality of outputs.

use std::path::{Path, PathBuf};

use model::CompareResult;
use pipeline::link::{Folder, LinkSpec};
use pipeline::syntax::{Script, parse};
use pipeline::{Carrier, Complaints, Session, Trial, trial};

use crate::part::{Job, ReproduceError, Stage};

/// Pipelines that take turns.
pub(crate) struct Contest<'a> {
    /// The text that is run.
    pub(crate) text: &'a str,
    /// What records call it.
    pub(crate) shown: &'a str,
    /// The links, first the one that others are compared with.
    pub(crate) vias: Vec<String>,
    /// Timed rounds.
    pub(crate) trials: u32,
    /// Untimed rounds before them.
    pub(crate) warmup: u32,
    /// A folder that is the contest's own.
    pub(crate) folder: &'a Path,
}

/// One link, and what came of it so far.
struct Contender {
    carrier: Carrier,
    folder: PathBuf,
    result: CompareResult,
}

/// Reads a pipeline's text.
pub(crate) fn read(text: &str) -> Result<Script, ReproduceError> {
    let problem = |error: pipeline::syntax::SyntaxError| ReproduceError::Pipeline {
        text: text.to_owned(),
        problem: error.to_string(),
    };
    parse(text).map_err(problem)
}

/// Runs a text once, in a session of its own.
pub(crate) fn run_once(
    job: &Job<'_>,
    (script, text): (&Script, &str),
    carrier: &Carrier,
    folder: &Folder,
    complaints: Complaints,
) -> Result<Trial, String> {
    let session = Session::new(job.shell).map_err(|problem| problem.to_string())?;
    trial(script, text, session, carrier, folder, complaints).map_err(|error| error.to_string())
}

/// Runs all rounds; fewer where the part's time is over or the user wants to stop. The summaries are not filled in.
pub(crate) fn run(
    stage: &mut Stage<'_>,
    contest: &Contest<'_>,
) -> Result<Vec<CompareResult>, ReproduceError> {
    let script = read(contest.text)?;
    let mut contenders = Vec::new();
    for (index, via) in contest.vias.iter().enumerate() {
        let folder = contest.folder.join(index.to_string());
        std::fs::create_dir(&folder).map_err(ReproduceError::system("a folder for the links"))?;
        let result = CompareResult::new(contest.shown, via);
        contenders.push(Contender { carrier: Carrier::Link(LinkSpec::parse(via)?), folder, result });
    }
    let mut rng = fastrand::Rng::with_seed(stage.job.seed);
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let rounds = contest.warmup + contest.trials;
    for round in 0..rounds {
        if stage.is_over() {
            break;
        }
        let timed = round >= contest.warmup;
        if timed {
            rng.shuffle(&mut order);
        }
        for (turn, &index) in order.iter().enumerate() {
            let contender = &mut contenders[index];
            let done = f64::from(round) + turn as f64 / order.len() as f64;
            let what = format!("{} over {}", contest.shown, contender.result.via);
            stage.watcher.progress(&what, Some(done / f64::from(rounds)));
            if contender.result.error.is_some() {
                continue;
            }
            let made = run_once(
                stage.job,
                (&script, contest.text),
                &contender.carrier,
                &Folder::at(&contender.folder),
                complaints(round),
            );
            match made {
                Ok(Trial { ended_by: Some(signal), .. }) => (stage.job.note_signal)(signal),
                Ok(made) => take(&mut contender.result, made, timed),
                Err(error) => contender.result.error = Some(error),
            }
            if (stage.job.stop)() {
                return Ok(judged(contenders));
            }
        }
    }
    Ok(judged(contenders))
}

fn complaints(round: u32) -> Complaints {
    if round == 0 { Complaints::Shown } else { Complaints::Hidden }
}

/// Takes a trial into the result. Outputs that differ between trials of one link are noted at once.
fn take(result: &mut CompareResult, made: Trial, timed: bool) {
    if timed {
        result.times_s.push(made.wall.as_secs_f64());
    }
    let before = result.output_hash.replace(made.output.hash.clone());
    let status_before = result.status.replace(made.status);
    result.equal &= before.is_none_or(|hash| hash == made.output.hash)
        && status_before.is_none_or(|status| status == made.status);
    result.output_bytes = made.output.bytes;
    result.stored_bytes = made.stored_bytes;
    if made.trouble.is_some() {
        result.error = made.trouble;
    }
}

/// Compares outputs and statuses with the first link's.
fn judged(contenders: Vec<Contender>) -> Vec<CompareResult> {
    let mut results: Vec<CompareResult> = contenders.into_iter().map(|contender| contender.result).collect();
    let reference = results.first().map(|first| (first.output_hash.clone(), first.status));
    for result in &mut results {
        result.equal &= reference == Some((result.output_hash.clone(), result.status));
    }
    results
}
