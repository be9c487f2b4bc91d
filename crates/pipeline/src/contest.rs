//! Pipelines that take turns, each over a link: a warm-up, rounds in a seeded random order, their times, and whether their
//! outputs are the same.

use std::collections::BTreeMap;

use model::CompareResult;
use process::Refused;
use thiserror::Error;

use crate::link::{LinkProblem, LinkSpec};
use crate::shell::Shell;
use crate::trial::{Carrier, Complaints, Start, Trial, beside, trial};

/// What stands for the shell by itself among the links that are typed; so does its own name.
pub const SHELL: &str = "shell";

/// What a pipeline lacks that has no time from its first link to its last.
const NO_LATENCY: &str = "nothing went through two links, between which lines take their time (`| cat` behind a last stage adds one)";

/// How often contenders run, and what counts as a run.
pub struct Contest<'a> {
    /// How every trial begins.
    pub start: Start<'a>,
    /// Untimed rounds, before the timed ones.
    pub warmup: u32,
    /// Timed rounds, at the most.
    pub trials: u32,
    /// Whether no more are needed than these, by what came of them.
    pub is_enough: &'a dyn Fn(u32, &[&CompareResult]) -> bool,
    /// Decides the order within timed rounds.
    pub seed: u64,
    /// Whether a run that ends with another status than 0 has failed: who does nothing is soon done.
    pub must_succeed: bool,
}

/// A pipeline over one link, and what came of it so far.
pub struct Contender {
    text: String,
    carrier: Carrier,
    /// What the shell runs before each run and after it, untimed.
    prepare: Option<String>,
    conclude: Option<String>,
    result: CompareResult,
}

impl Contender {
    /// `text` over the link `via`, or in the shell by itself where that is [`SHELL`] or the shell's name; records call it `shown`.
    ///
    /// # Errors
    /// There is no such link.
    pub fn new(text: &str, shown: &str, via: &str, shell: &Shell) -> Result<Self, LinkProblem> {
        let own = shell.kind.word();
        let (via, link) = match via {
            SHELL => (own, None),
            via if via == own => (own, None),
            via => (via, Some(LinkSpec::parse(via)?)),
        };
        let result = CompareResult::new(shown, via);
        let carrier = Carrier { via: link, ..Carrier::default() };
        Ok(Self { text: text.to_owned(), carrier, prepare: None, conclude: None, result })
    }

    /// The same with what the shell runs before each run and after it.
    #[must_use]
    pub fn between(self, prepare: Option<String>, conclude: Option<String>) -> Self {
        Self { prepare, conclude, ..self }
    }

    /// The same with these calls refused, or with buffers aligned, and ranked by how long lines take where that is asked for.
    #[must_use]
    pub fn measured(mut self, without: Option<Refused>, align_buffers: bool, latency: bool) -> Self {
        let via = self.carrier.via;
        self.carrier = Carrier { via, without, align_buffers, latency };
        self
    }

    /// What came of it so far.
    pub fn result(&self) -> &CompareResult {
        &self.result
    }

    /// The same with the parameters that it was made with.
    #[must_use]
    pub fn with(mut self, parameters: BTreeMap<String, String>) -> Self {
        self.result.parameters = parameters;
        self
    }
}

/// Who follows a contest, and may end it.
pub trait Follower {
    /// Whether no further trial is to be made.
    fn stops(&self) -> bool;

    /// Whether no further round is to begin.
    fn is_over(&self) -> bool {
        self.stops()
    }

    /// It is this contender's turn, after `done` of the whole, 0 to 1. `make` makes the trial, unless the contender has failed before.
    fn turn(&mut self, next: &CompareResult, done: f64, make: &mut dyn FnMut());
}

/// Why a contest was given up.
#[derive(Debug, Error)]
pub enum NotPrepared {
    /// What is to run beside the trials failed.
    #[error("{0}")]
    Failed(String),
    /// Meanwhile this signal asked us to end.
    #[error("ended by {}", model::signal_name(*.0))]
    Stopped(i32),
}

/// Runs what an option asks for beside the trials, without input, its output thrown away.
///
/// # Errors
/// It failed, or a signal asked us to end.
pub fn run_beside(shell: &Shell, option: &str, text: &str) -> Result<(), NotPrepared> {
    let problem = match beside(shell, text) {
        Ok((_, Some(signal))) => return Err(NotPrepared::Stopped(signal)),
        Ok((status, None)) if status.success() => return Ok(()),
        Ok((status, None)) => format!("ended with {status}"),
        Err(error) => error.to_string(),
    };
    Err(NotPrepared::Failed(format!("`{option} {text}` {problem}")))
}

/// The times that the shell alone takes for a text that does nothing, in seconds; fewer than asked for where one could not be run.
pub fn shell_starts_s(start: &Start<'_>, runs: u32) -> Vec<f64> {
    let one = || trial(start, ":", &Carrier::default(), Complaints::Hidden).ok();
    (0..runs).map_while(|_| Some(one()?.wall.as_secs_f64())).collect()
}

impl Contest<'_> {
    /// Makes all trials, or fewer where the follower or a signal ends it. A contender that could not be run is left out from then on.
    /// Gives the results, without summaries, and the signal that ended a trial and asks this program to end, too.
    ///
    /// # Errors
    /// What is to run before or after each trial failed.
    pub fn run(
        &self,
        mut contenders: Vec<Contender>,
        follower: &mut dyn Follower,
    ) -> Result<(Vec<CompareResult>, Option<i32>), NotPrepared> {
        let signal = self.take_turns(&mut contenders, follower)?;
        let mut results: Vec<CompareResult> =
            contenders.into_iter().map(|contender| contender.result).collect();
        judge(&mut results);
        Ok((results, signal))
    }

    fn take_turns(
        &self,
        contenders: &mut [Contender],
        follower: &mut dyn Follower,
    ) -> Result<Option<i32>, NotPrepared> {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        let rounds = self.warmup + self.trials;
        let (mut taken, turns) = (0.0, f64::from(rounds) * order.len() as f64);
        for round in 0..rounds {
            if follower.is_over() {
                break;
            }
            let timed = round >= self.warmup;
            if timed {
                rng.shuffle(&mut order);
            }
            for index in &order {
                if follower.stops() {
                    return Ok(None);
                }
                let Contender { text, carrier, prepare, conclude, result } = &mut contenders[*index];
                let complaints = if round == 0 { Complaints::Shown } else { Complaints::Hidden };
                let run = |option, text: &Option<String>| {
                    text.as_ref().map_or(Ok(()), |text| run_beside(self.start.shell, option, text))
                };
                let mut made = None;
                follower.turn(result, taken / turns, &mut || {
                    let make = || {
                        run("--prepare", prepare)?;
                        let made = trial(&self.start, text, carrier, complaints);
                        run("--conclude", conclude).map(|()| made)
                    };
                    made = result.error.is_none().then(make);
                });
                match made.transpose() {
                    Err(NotPrepared::Stopped(signal)) => return Ok(Some(signal)),
                    Err(problem) => return Err(problem),
                    Ok(Some(Ok(Trial { ended_by: Some(signal), .. }))) => return Ok(Some(signal)),
                    Ok(Some(Ok(Trial { status, .. }))) if status != 0 && self.must_succeed => {
                        result.status = Some(status);
                        result.error = Some(format!(
                            "ended with status {status} (if that is intended, write `(…) || true`)"
                        ));
                    }
                    Ok(Some(Ok(made))) => take(result, made, timed, carrier.latency),
                    Ok(Some(Err(error))) => result.error = Some(error.to_string()),
                    Ok(None) => {}
                }
                taken += 1.0;
            }
            let so_far: Vec<&CompareResult> = contenders.iter().map(|contender| &contender.result).collect();
            if timed && (self.is_enough)(round + 1 - self.warmup, &so_far) {
                break;
            }
        }
        Ok(None)
    }
}

/// Takes a trial into its result; outputs or statuses that differ between trials of one link are noted at once.
fn take(result: &mut CompareResult, made: Trial, timed: bool, by_latency: bool) {
    let time = if by_latency { made.latency } else { Some(made.wall) };
    if timed {
        result.times_s.extend(time.map(|time| time.as_secs_f64()));
    }
    if time.is_none() {
        result.error = Some(NO_LATENCY.to_owned());
    }
    let before = (result.output_hash.replace(made.output.hash), result.status.replace(made.status));
    if let (Some(hash), status) = before {
        let steady = Some(hash) == result.output_hash && status == result.status;
        result.equal = Some(steady && result.equal != Some(false));
    }
    result.output_bytes = made.output.bytes;
    result.stored_bytes = made.stored_bytes;
    result.max_rss_bytes = result.max_rss_bytes.max(Some(made.max_rss_bytes));
    result.error = made.trouble.or(result.error.take());
}

/// Compares every output with that of the reference: the shell's own, or else the first link of which there is one. What could
/// not be compared with anything stays unjudged.
fn judge(results: &mut [CompareResult]) {
    let ran = |result: &&CompareResult| result.output_hash.is_some();
    let outcome = |result: &CompareResult| (result.output_hash.clone(), result.status);
    for index in 0..results.len() {
        let (pipeline, own) = (&results[index].pipeline, outcome(&results[index]));
        let same: Vec<&CompareResult> =
            results.iter().filter(|other| other.pipeline == *pipeline).filter(ran).collect();
        let reference = same.iter().find(|result| result.is_shell_alone()).or(same.first());
        let Some(reference) = reference.filter(|_| own.0.is_some() && same.len() > 1) else { continue };
        let equal = results[index].equal != Some(false) && outcome(reference) == own;
        results[index].equal = Some(equal);
    }
    for index in 0..results.len() {
        results[index].same_output = same_output(results, &results[index]);
    }
}

/// Whether a pipeline's output is that of the first one over the same link: neither may change from run to run.
fn same_output(results: &[CompareResult], result: &CompareResult) -> Option<bool> {
    let output = |result: &CompareResult| {
        let steady = result.error.is_none() && result.equal != Some(false);
        result.output_hash.clone().filter(|_| steady)
    };
    let over_it = results.iter().filter(|other| other.via == result.via);
    let mut outputs = over_it.filter_map(output);
    let (first, _) = (outputs.next()?, outputs.next()?);
    Some(output(result)? == first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Output;
    use std::time::Duration;

    fn result(via: &str, outputs: &[&str]) -> CompareResult {
        let mut result = CompareResult::new("a | b", via);
        for hash in outputs {
            let output = Output { bytes: 1, hash: (*hash).to_owned() };
            let wall = Duration::from_secs(1);
            let made = Trial {
                wall,
                status: 0,
                output,
                stored_bytes: None,
                latency: None,
                trouble: None,
                max_rss_bytes: 0,
                ended_by: None,
            };
            take(&mut result, made, true, false);
        }
        result
    }

    fn judged(mut results: Vec<CompareResult>) -> Vec<Option<bool>> {
        judge(&mut results);
        results.iter().map(|result| result.equal).collect()
    }

    struct TurnsTaken(Vec<(String, f64)>, usize);

    impl Follower for TurnsTaken {
        fn stops(&self) -> bool {
            self.0.len() >= self.1
        }
        fn turn(&mut self, next: &CompareResult, done: f64, make: &mut dyn FnMut()) {
            self.0.push((next.pipeline.clone(), done));
            make();
        }
    }

    #[test]
    fn contenders_take_turns_until_they_are_stopped() {
        let shell = crate::shell::Shell::find("bash".as_ref()).expect("bash");
        let start = || Start { hosepipe: std::path::Path::new("/nonexistent"), shell: &shell };
        let held = |prepare: Option<&str>, must_succeed, most| {
            let texts = ["echo x", "echo y", "exit 3"];
            let contender = |text| {
                let contender = Contender::new(text, text, SHELL, &shell).expect("the shell");
                contender.between(prepare.map(str::to_owned), None)
            };
            let is_enough = &|rounds: u32, _: &[&CompareResult]| rounds == 2;
            let contest = Contest { start: start(), warmup: 1, trials: 9, is_enough, seed: 1, must_succeed };
            let mut turns = TurnsTaken(Vec::new(), most);
            (contest.run(texts.map(contender).into(), &mut turns), turns.0)
        };
        let (made, turns) = held(Some("true"), false, 100);
        let (results, signal) = made.expect("prepared");
        assert_eq!((signal, turns.len(), &turns[0]), (None, 9, &("echo x".to_owned(), 0.0)));
        for (result, status) in results.iter().zip([0, 0, 3]) {
            assert_eq!((result.times_s.len(), result.status, &result.error), (2, Some(status), &None));
        }
        let (made, turns) = held(None, false, 4);
        let timed: usize = made.expect("made").0.iter().map(|result| result.times_s.len()).sum();
        assert_eq!((timed, turns.len()), (1, 4));
        let problem = held(Some("exit 3"), false, 100).0.expect_err("not prepared").to_string();
        assert_eq!(problem, "`--prepare exit 3` ended with exit status: 3");
        let results = held(None, true, 100).0.expect("made").0;
        let failed: Vec<bool> = results.iter().map(|result| result.error.is_some()).collect();
        assert_eq!((failed, results[2].times_s.len()), (vec![false, false, true], 0));
    }

    #[test]
    fn outputs_of_several_pipelines_are_those_of_the_first_or_not() {
        let named = |name: &str, outputs: &[&str]| CompareResult {
            pipeline: name.to_owned(),
            ..result("bash", outputs)
        };
        let same = |mut results: Vec<CompareResult>| {
            judge(&mut results);
            results.iter().map(|result| result.same_output).collect::<Vec<_>>()
        };
        let (some, other) = (Some(true), Some(false));
        let all = [named("a", &["x", "x"]), named("b", &["x"]), named("c", &["y"])];
        assert_eq!(same(all.into()), [some, some, other]);
        assert_eq!(same(vec![named("a", &["x", "y"]), named("b", &["x"])]), [None, None], "it varies");
        assert_eq!(same(vec![named("a", &["x"]), named("b", &[])]), [None, None]);
        let failed = CompareResult { error: Some("no".to_owned()), ..named("a", &["x"]) };
        assert_eq!(same(vec![failed, named("b", &["y"]), named("c", &["y"])]), [None, some, some]);
    }

    /// Expected: of an output that was compared with no other nothing is said.
    /// Happened: "same", where a comparison was interrupted.
    #[test]
    fn what_was_never_compared_is_not_the_same() {
        let (some, other) = (Some(true), Some(false));
        assert_eq!(judged(vec![result("pipe", &["x"]), result("bash", &[])]), [None, None]);
        assert_eq!(judged(vec![result("pipe", &["x", "x"]), result("bash", &[])]), [some, None]);
        assert_eq!(judged(vec![result("pipe", &["x", "y"]), result("bash", &[])]), [other, None]);
    }

    #[test]
    fn the_reference_is_bash_or_else_the_first_that_ran() {
        let (some, other) = (Some(true), Some(false));
        let (pipe, file) = (result("pipe", &["x"]), result("file", &["y"]));
        assert_eq!(judged(vec![pipe.clone(), file.clone()]), [some, other]);
        assert_eq!(judged(vec![pipe.clone(), file.clone(), result("bash", &["y"])]), [other, some, some]);
        assert_eq!(judged(vec![result("tcp", &[]), pipe, file]), [None, some, other]);
        let unsteady = vec![result("pipe", &["x", "y"]), result("bash", &["y"])];
        assert_eq!(judged(unsteady), [other, some]);
        let another = CompareResult { pipeline: "c | d".to_owned(), ..result("bash", &["y"]) };
        assert_eq!(judged(vec![result("pipe", &["x"]), another]), [None, None], "pipelines are apart");
    }
}
