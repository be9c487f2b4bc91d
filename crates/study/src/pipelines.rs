//! Pipelines over links, in turns: warm-ups, rounds in a seeded random order, equality of outputs.

use model::CompareResult;
use pipeline::contest::{judge, take};
use pipeline::link::LinkSpec;
use pipeline::shell::Shell;
use pipeline::{Carrier, Complaints, Start, Trial, trial};

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
}

/// One link, and what came of it so far.
struct Contender {
    carrier: Carrier,
    result: CompareResult,
}

/// Runs a text once, as a program of its own.
pub(crate) fn run_once(
    job: &Job<'_>,
    text: &str,
    carrier: &Carrier,
    complaints: Complaints,
) -> Result<Trial, String> {
    let shell = Shell::find(job.shell.as_ref()).map_err(|problem| problem.to_string())?;
    let start = Start { hosepipe: job.hosepipe, shell: &shell };
    trial(&start, text, carrier, complaints).map_err(|error| error.to_string())
}

/// Runs all rounds; fewer where the part's time is over or the user wants to stop. The summaries are not filled in.
pub(crate) fn run(
    stage: &mut Stage<'_>,
    contest: &Contest<'_>,
) -> Result<Vec<CompareResult>, ReproduceError> {
    let mut contenders = Vec::new();
    for via in &contest.vias {
        let result = CompareResult::new(contest.shown, via);
        contenders.push(Contender { carrier: Carrier::Link(LinkSpec::parse(via)?), result });
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
            let made = run_once(stage.job, contest.text, &contender.carrier, complaints(round));
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

/// Compares outputs and statuses with the first link's.
fn judged(contenders: Vec<Contender>) -> Vec<CompareResult> {
    let mut results: Vec<CompareResult> = contenders.into_iter().map(|contender| contender.result).collect();
    judge(&mut results);
    results
}
