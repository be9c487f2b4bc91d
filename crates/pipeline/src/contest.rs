//! Pipelines that take turns, each over a link: a warm-up, rounds in a seeded random order, their times, and whether their
//! outputs are equal.

use std::time::Instant;

use model::{CompareResult, Round, RoundLimits, Rounds};
use thiserror::Error;

use crate::link::{LinkProblem, LinkSpec};
use crate::shell::Shell;
use crate::shell_run::RunError;
use crate::trial::{Start, Trial, TrialOptions, TrialStderr, run_text, trial};

/// The name, among links, of the shell's own pipes.
pub const SHELL: &str = "shell";

/// The error of a pipeline with fewer than two links.
const NO_LATENCY: &str = "nothing went through two links, between which lines take their time (`| cat` behind a last stage adds one)";

/// How often contenders run.
pub struct Contest<'a> {
    /// How every trial starts.
    pub start: Start<'a>,
    /// Untimed rounds before the timed ones.
    pub warmup: u32,
    /// Most timed rounds.
    pub trials: u32,
    /// No round begins later, but one timed round is always made.
    pub until: Option<Instant>,
    /// Whether this many timed rounds with these results are enough.
    pub is_enough: &'a dyn Fn(u32, &[&CompareResult]) -> bool,
    /// Seed of the order within timed rounds.
    pub seed: u64,
    /// Whether a status other than 0 is an error: a pipeline that fails at once would be the fastest.
    pub must_succeed: bool,
    /// Whether what the first run of each says on standard error is shown.
    pub shows_messages: bool,
}

/// A pipeline over one link, and its result so far.
pub struct Contender {
    text: String,
    /// How its runs are carried out.
    pub options: TrialOptions,
    /// What the shell runs before each run, untimed.
    pub prepare: Option<String>,
    /// What the shell runs after each run, untimed.
    pub conclude: Option<String>,
    /// Its result so far.
    pub result: CompareResult,
}

impl Contender {
    /// `text` over the link `via`, or by the shell alone if that is [`SHELL`] or the shell's name. `shown` is the pipeline's name in
    /// the record.
    ///
    /// # Errors
    /// There is no such link.
    pub fn new(text: &str, shown: &str, via: &str, shell: &Shell) -> Result<Self, LinkProblem> {
        let own = shell.kind.word();
        let is_shell = via == SHELL || via == own;
        let link = if is_shell { None } else { Some(LinkSpec::parse(via)?) };
        Ok(Self {
            text: text.to_owned(),
            options: TrialOptions { via: link, ..TrialOptions::default() },
            prepare: None,
            conclude: None,
            result: CompareResult::new(shown, if is_shell { own } else { via }),
        })
    }

    /// Makes a trial between its preparation and its conclusion.
    fn run(
        &self,
        start: &Start<'_>,
        stderr: TrialStderr<'_>,
    ) -> Result<Result<Trial, RunError>, NotPrepared> {
        let beside = |option, text: &Option<String>| {
            text.as_ref().map_or(Ok(()), |text| run_beside(start.shell, option, text))
        };
        beside("--prepare", &self.prepare)?;
        let made = trial(start, &self.text, &self.options, stderr);
        beside("--conclude", &self.conclude).map(|()| made)
    }
}

/// Follows the progress of a contest, and can end it.
pub trait Follower {
    /// Whether the contest must end now.
    fn stops(&self) -> bool;

    /// Called for each turn: `next` is the contender's result so far, `done` the finished share of all turns, 0 to 1. `make` makes the
    /// trial.
    fn turn(&mut self, next: &CompareResult, done: f64, make: &mut dyn FnMut());
}

/// Why a contest was given up.
#[derive(Debug, Error)]
pub enum NotPrepared {
    /// A command that runs beside the trials failed.
    #[error("{0}")]
    Failed(String),
    /// This signal requested the end while it ran.
    #[error("ended by {}", model::signal_name(*.0))]
    Stopped(i32),
}

/// Runs the command line of an option beside the trials, without input; its output is discarded.
///
/// # Errors
/// It failed, or a signal requested the end.
pub fn run_beside(shell: &Shell, option: &str, text: &str) -> Result<(), NotPrepared> {
    let problem = match run_text(shell, text) {
        Ok((_, Some(signal))) => return Err(NotPrepared::Stopped(signal)),
        Ok((status, None)) if status.success() => return Ok(()),
        Ok((status, None)) => format!("ended with {status}"),
        Err(error) => error.to_string(),
    };
    Err(NotPrepared::Failed(format!("`{option} {text}` {problem}")))
}

/// The times of the shell alone for a text that does nothing, in seconds; fewer than `runs` if one failed.
pub fn shell_starts_s(start: &Start<'_>, runs: u32) -> Vec<f64> {
    let one = || trial(start, ":", &TrialOptions::default(), TrialStderr::Hidden).ok();
    (0..runs).map_while(|_| Some(one()?.wall.as_secs_f64())).collect()
}

impl Contest<'_> {
    /// Makes all trials, or fewer if the follower, the time or a signal ends it. A contender that failed is left out from then on.
    /// Returns the results, without summaries, and the signal that ended a trial and requests the end of this program, too.
    ///
    /// # Errors
    /// A command before or after a trial failed.
    pub fn run(
        &self,
        mut contenders: Vec<Contender>,
        follower: &mut dyn Follower,
    ) -> Result<(Vec<CompareResult>, Option<i32>), NotPrepared> {
        let signal = self.take_turns(&mut contenders, follower)?;
        let mut results: Vec<CompareResult> =
            contenders.into_iter().map(|contender| contender.result).collect();
        check_equal(&mut results);
        Ok((results, signal))
    }

    fn take_turns(
        &self,
        contenders: &mut [Contender],
        follower: &mut dyn Follower,
    ) -> Result<Option<i32>, NotPrepared> {
        let (most, least) = (self.warmup + self.trials, self.warmup + 1);
        let limits = RoundLimits { most, least, until: self.until, unshuffled: self.warmup };
        let mut rounds = Rounds::new(self.seed, limits);
        let (mut turn, turns) = (0.0, f64::from(most) * contenders.len() as f64);
        while let Some(Round { number, rows }) = rounds.next(self.wanted(&rounds, contenders)) {
            let is_timed = number >= self.warmup;
            for index in rows {
                if follower.stops() {
                    return Ok(None);
                }
                let contender = &mut contenders[index];
                let is_shown = number == 0 && self.shows_messages;
                let stderr = if is_shown { TrialStderr::Shown } else { TrialStderr::Hidden };
                let mut made = None;
                follower.turn(&contender.result, turn / turns, &mut || {
                    let fails = contender.result.error.is_some();
                    made = (!fails).then(|| contender.run(&self.start, stderr));
                });
                turn += 1.0;
                match made.transpose() {
                    Err(NotPrepared::Stopped(signal)) => return Ok(Some(signal)),
                    Err(problem) => return Err(problem),
                    Ok(Some(Ok(Trial { ended_by: Some(signal), why, .. }))) => {
                        contender.result.why = why;
                        return Ok(Some(signal));
                    }
                    Ok(Some(made)) => self.take(contender, made, is_timed),
                    Ok(None) => {}
                }
            }
        }
        Ok(None)
    }

    /// The contenders of the next round: all, or none if the timed rounds so far are enough.
    fn wanted(&self, rounds: &Rounds, contenders: &[Contender]) -> Vec<usize> {
        let so_far: Vec<&CompareResult> = contenders.iter().map(|contender| &contender.result).collect();
        let timed = rounds.made().saturating_sub(self.warmup);
        let are_wanted = timed == 0 || !(self.is_enough)(timed, &so_far);
        (0..contenders.len()).filter(|_| are_wanted).collect()
    }

    /// Adds a trial to the result of its contender.
    fn take(&self, contender: &mut Contender, made: Result<Trial, RunError>, is_timed: bool) {
        let result = &mut contender.result;
        match made {
            Ok(Trial { status, .. }) if status != 0 && self.must_succeed => {
                result.status = Some(status);
                let problem =
                    format!("ended with status {status} (if that is intended, write `(…) || true`)");
                result.error = Some(problem);
            }
            Ok(made) => add(result, made, is_timed, contender.options.latency),
            Err(error) => result.error = Some(error.to_string()),
        }
    }
}

/// Adds a trial to a result. Outputs or statuses that differ between trials of one link make it unequal.
fn add(result: &mut CompareResult, made: Trial, is_timed: bool, by_latency: bool) {
    let time = if by_latency { made.latency } else { Some(made.wall) };
    if is_timed {
        result.times_s.extend(time.map(|time| time.as_secs_f64()));
        result.user_times_s.extend(time.map(|_| made.used.user_ns as f64 / 1e9));
        result.system_times_s.extend(time.map(|_| made.used.system_ns as f64 / 1e9));
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
    result.max_rss_bytes = result.max_rss_bytes.max(Some(made.used.max_rss_bytes));
    result.error = made.trouble.or(result.error.take());
}

/// Compares each output with that of the reference: the shell alone, or else the first link with an output. `equal` stays `None`
/// without another output.
fn check_equal(results: &mut [CompareResult]) {
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

/// Whether a pipeline's output equals that of the first pipeline over the same link; `None` if one of them changes from run to run.
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
            add(&mut result, Trial { wall, output, ..Trial::default() }, true, false);
        }
        result
    }

    fn judged(mut results: Vec<CompareResult>) -> Vec<Option<bool>> {
        check_equal(&mut results);
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
                Contender { prepare: prepare.map(str::to_owned), ..contender }
            };
            let is_enough = &|rounds: u32, _: &[&CompareResult]| rounds == 2;
            let (start, until) = (start(), None);
            let contest = Contest {
                start,
                warmup: 1,
                trials: 9,
                until,
                is_enough,
                seed: 1,
                must_succeed,
                shows_messages: true,
            };
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
            check_equal(&mut results);
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
