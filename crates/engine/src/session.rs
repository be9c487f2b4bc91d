//! A run: every case prepared, warmed up and sized, then rounds of trials in a seeded random order.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use mechanism::Folder;
use model::{
    Amount, Case, CaseError, CaseRecord, Check, Cpu, DataLevel, ErrorKind, NoSample, Observer, PayloadKind,
    Role, RunProgress, Sample,
};
use payload::expected_checksum;

use crate::amount::{
    TRIAL_MIN, blocks_with_nonzero_sum, first_blocks, fixed_blocks, is_far_behind, paced_blocks,
    scaled_blocks, sizing_blocks_max,
};
use crate::disturbance::DisturbanceCheck;
use crate::plan::{Outcome, Plan};
use crate::prepare::{Ready, prepare};
use crate::remote::{FarEnd, run_remote_trial};
use crate::round::RoundProcess;
use crate::tiles::{Tiles, tile};
use crate::trial::{TrialSetup, run_trial};

/// A trial is stopped when the run has taken more than this factor of the budget plus [`OVERTIME_MIN`].
const OVERTIME: f64 = 1.25;
const OVERTIME_MIN: Duration = Duration::from_secs(1);

/// One in this many rounds may be repeated.
const REPEATED_OF_ROUNDS: u32 = 4;

/// A case during the run.
struct Runner {
    case: Case,
    record: CaseRecord,
    ready: Option<Ready>,
    blocks: u64,
    /// Time of a trial in addition to its measured time: opening the channel, starting and ending tasks.
    overhead: Duration,
    /// Predicted measured time of a trial.
    expected: Duration,
    /// The measured time for which a trial was sized.
    target: Duration,
    /// The shortest measured time of a warm-up trial with its last number of blocks.
    fastest: Duration,
    /// Seconds for each block in the warm-up trials that were long enough.
    block_times_s: Vec<f64>,
}

/// Runs a plan on the given CPUs; `far` is another host, which runs one end of each case that has a `toward`. Returns the trials that
/// were finished, even if the run was stopped.
///
/// Must be called from a process with one thread: trials are forked from it.
pub fn run<'f>(
    plan: &Plan,
    cpus: &[Cpu],
    far: Option<&'f mut (dyn FarEnd + 'f)>,
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
) -> Outcome {
    let mut session = Session::new(plan, cpus, far, observer, stop);
    let interrupted = session.calibrate().is_err() || session.run_rounds(cpus).is_err();
    if interrupted && !stop() {
        session.runners.iter_mut().for_each(|runner| runner.record_time_ran_out(plan.budget));
    }
    let repeated_rounds = session.repeated_rounds;
    Outcome { cases: session.into_cases(), interrupted, repeated_rounds }
}

impl Runner {
    fn prepare(case: &Case, cpus: &[Cpu]) -> Self {
        let mut record = CaseRecord::from(case.clone());
        let ready = prepare(case, cpus).map_err(|error| record.error = Some(error)).ok();
        if let Some(ready) = &ready {
            record.cpus.clone_from(&ready.cpus);
            record.zero_copy = (ready.mechanism.zero_copy)(&ready.options);
        }
        Self {
            case: case.clone(),
            record,
            ready,
            blocks: 0,
            overhead: Duration::ZERO,
            expected: Duration::ZERO,
            target: Duration::ZERO,
            fastest: Duration::MAX,
            block_times_s: Vec::new(),
        }
    }

    /// Its name in progress messages.
    fn name(&self) -> String {
        format!("{} ({})", self.case.spec, self.case.workload)
    }

    /// Records an error if the case has neither a sample nor an error: the time ran out before its first trial.
    fn record_time_ran_out(&mut self, budget: Option<Duration>) {
        let missed = self.record.error.is_none() && self.record.samples.is_empty();
        if let Some(budget) = budget.filter(|_| missed) {
            let spent_s = budget.as_secs_f64();
            let message = format!("the {spent_s} s of this run were spent before its first trial had ended");
            let remedy =
                "a larger --time, a smaller --block, --bytes or --count, or fewer mechanisms".to_owned();
            self.record.error = Some(CaseError::new(ErrorKind::Time, message).with_remedy(remedy));
        }
    }

    /// Decides how many blocks a trial moves: of paced messages, as many as take `paced`. `speed` has the blocks and the time of an earlier
    /// trial.
    fn size_trial(&mut self, speed: Option<(u64, Duration)>, target: Duration, paced: Duration) {
        let (Some(ready), Some((blocks, elapsed))) = (&self.ready, speed) else { return };
        let case = &self.case;
        let stores = ready.stores_data();
        let scaled = |elapsed, target| scaled_blocks(case, stores, blocks, elapsed, target);
        self.blocks = fixed_blocks(case)
            .or_else(|| paced_blocks(case, stores, blocks, self.fastest, paced))
            .unwrap_or_else(|| scaled(elapsed, target).max(scaled(self.fastest, TRIAL_MIN)));
        let due_s = case.load.rate_per_s.map_or(0.0, |rate| self.blocks as f64 / f64::from(rate));
        self.expected =
            elapsed.mul_f64(self.blocks as f64 / blocks.max(1) as f64).max(Duration::from_secs_f64(due_s));
        self.target = if case.load.rate_per_s.is_some() { paced } else { target };
    }

    /// Sizes trials again after the first one if they miss their target by [`MISSED`]: by the middle one of the times of the warm-up
    /// and of the first trial, as each alone may be that of a busy moment, or of ends that shared a CPU by chance.
    fn size_trial_again(&mut self) {
        let (Some(ready), Some(first)) = (&self.ready, self.record.samples.first()) else { return };
        if fixed_blocks(&self.case).is_some() || self.blocks == 0 {
            return;
        }
        let (stores, first_elapsed) = (ready.stores_data(), Duration::from_nanos(first.elapsed_ns));
        // A paced one may have been sized by a busy moment, too: if it keeps up now, it gets all that are due.
        if let Some(due) = paced_blocks(&self.case, stores, self.blocks, first_elapsed, self.target) {
            self.blocks = self.blocks.max(due);
            return;
        }
        let mut times_s = self.block_times_s.clone();
        times_s.push(first_elapsed.as_secs_f64() / self.blocks as f64);
        times_s.sort_unstable_by(f64::total_cmp);
        let elapsed = Duration::from_secs_f64(times_s[times_s.len() / 2] * self.blocks as f64);
        let blocks = scaled_blocks(&self.case, stores, self.blocks, elapsed, self.target);
        let factor = blocks as f64 / self.blocks as f64;
        if !(1.0 / MISSED..=MISSED).contains(&factor) {
            self.blocks = blocks;
            self.expected = elapsed.mul_f64(factor);
        }
    }
}

/// A warm-up trial that takes at least this multiple of [`TRIAL_MIN`] is long enough, even if another program had the CPU for a part of
/// it.
const LONG_ENOUGH: u32 = 10;

/// Trials are sized again if they miss their target by more than this factor.
const MISSED: f64 = 1.5;

/// How often a paced sizing trial is repeated that is far behind its rate.
const PACED_TRIES: u32 = 3;

/// The part of the budget within which all cases are warmed up: on a busy machine each trial may take a second.
const WARM_UP_PART: f64 = 0.25;

/// The user or the budget ended the run.
struct Interrupted;

/// A run in progress. [`run`] runs all its rounds; [`Session::start`] is for a caller that runs each trial itself, in turn with trials
/// of another kind.
pub struct Session<'a, 'f> {
    plan: &'a Plan,
    far: Option<&'f mut (dyn FarEnd + 'f)>,
    began: Instant,
    progress: RunProgress<'a>,
    stop: &'a dyn Fn() -> bool,
    folder: Folder,
    tiles: Tiles,
    checksums: HashMap<(PayloadKind, model::Check, u64), String>,
    runners: Vec<Runner>,
    repeated_rounds: u32,
    process: Option<RoundProcess>,
}

impl<'a> Session<'a, '_> {
    /// Prepares, warms up and sizes every case. As [`run`], from a process with one thread.
    pub fn start(
        plan: &'a Plan,
        cpus: &[Cpu],
        observer: &'a mut dyn Observer,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        let mut session = Self::new(plan, cpus, None, observer, stop);
        // If the user has ended the run, the caller notices it at its next trial.
        let _ = session.calibrate();
        session
    }

    /// Runs one trial of the case at `index`, unless the case has failed.
    pub fn run_trial(&mut self, index: usize, round: u32) {
        let _ = self.run_round(round, &[index]);
    }

    /// One record for each case of the plan: raw samples without summaries.
    pub fn into_cases(self) -> Vec<CaseRecord> {
        self.runners.into_iter().map(|runner| runner.record).collect()
    }
}

impl<'a, 'f> Session<'a, 'f> {
    fn new(
        plan: &'a Plan,
        cpus: &[Cpu],
        far: Option<&'f mut (dyn FarEnd + 'f)>,
        observer: &'a mut dyn Observer,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            plan,
            far,
            began: Instant::now(),
            progress: RunProgress::new(observer),
            stop,
            folder: Folder::private(),
            tiles: HashMap::new(),
            checksums: HashMap::new(),
            runners: plan.cases.iter().map(|case| Runner::prepare(case, cpus)).collect(),
            repeated_rounds: 0,
            process: None,
        }
    }

    /// Warms up every case and sizes its trials.
    fn calibrate(&mut self) -> Result<(), Interrupted> {
        let mut speeds = vec![None; self.runners.len()];
        for (index, speed) in speeds.iter_mut().enumerate() {
            if self.runners[index].ready.is_some() {
                let what = format!("warming up {}", self.runners[index].name());
                self.progress.observer.progress(&what, Some(index as f64 / self.runners.len() as f64));
                *speed = self.warm_up(index)?;
            }
        }
        let target = self.trial_target();
        self.size_trials(&speeds, target, |role| role == Role::Ranked);
        // A trial of a floor or a ceiling takes no longer than the trials of the mechanisms that are compared with it.
        let ranked = self.runners.iter().filter(|runner| runner.case.role == Role::Ranked);
        let target = ranked.map(|runner| runner.expected.clamp(TRIAL_MIN, target)).max().unwrap_or(target);
        self.size_trials(&speeds, target, |role| role != Role::Ranked);
        self.avoid_zero_sums();
        let round: Duration = self.alive().map(|(_, runner)| runner.expected + runner.overhead).sum();
        let trials = u64::from(self.plan.trials) * self.alive().count() as u64;
        self.progress.planned(trials, Some(round * self.plan.trials));
        Ok(())
    }

    fn size_trials(
        &mut self,
        speeds: &[Option<(u64, Duration)>],
        target: Duration,
        has_role: impl Fn(Role) -> bool,
    ) {
        for (runner, speed) in self.runners.iter_mut().zip(speeds) {
            if has_role(runner.case.role) {
                runner.size_trial(*speed, target, self.plan.trial_paced);
            }
        }
    }

    /// Chooses amounts whose XOR is not 0 if the amount is adaptive: zeros have the XOR 0, too.
    fn avoid_zero_sums(&mut self) {
        for runner in &mut self.runners {
            let case = &runner.case;
            if (case.data, case.check, case.amount) != (DataLevel::Verify, Check::Xor, Amount::Adaptive) {
                continue;
            }
            // The trials of the case report a payload that cannot be made.
            let Ok(tile) = tile(&mut self.tiles, case, self.plan.seed) else { continue };
            let sum = |bytes| expected_checksum(&tile, case.check, bytes, self.stop);
            runner.blocks = blocks_with_nonzero_sum(case, runner.blocks, sum);
        }
    }

    /// Runs unmeasured trials of a case until two of the same size are long enough to compute its speed: a single one may have been long
    /// because another program had the CPU. Returns the blocks and the time of the longer one.
    fn warm_up(&mut self, index: usize) -> Result<Option<(u64, Duration)>, Interrupted> {
        let most = sizing_blocks_max(&self.runners[index].case);
        let mut blocks = first_blocks(&self.runners[index].case);
        let mut long: Option<(u64, Duration)> = None;
        // A short paced trial is far behind where another program had the CPU, too.
        let mut tries = PACED_TRIES;
        loop {
            blocks = most.map_or(blocks, |most| blocks.min(most));
            let began = Instant::now();
            let Some(sample) = self.trial(index, blocks, None)? else { return Ok(None) };
            let elapsed = Duration::from_nanos(sample.elapsed_ns);
            self.runners[index].overhead = began.elapsed().saturating_sub(elapsed);
            if elapsed >= TRIAL_MIN {
                self.runners[index].block_times_s.push(elapsed.as_secs_f64() / blocks as f64);
            }
            let is_long = elapsed >= TRIAL_MIN * LONG_ENOUGH || self.warm_up_is_late(index);
            if Some(blocks) == most && is_far_behind(&self.runners[index].case, blocks, elapsed) && tries > 0
            {
                tries -= 1;
                continue;
            }
            if Some(blocks) == most || blocks > 1 << 40 || is_long {
                self.runners[index].fastest = elapsed;
                return Ok(Some((blocks, elapsed)));
            }
            if elapsed >= TRIAL_MIN {
                if let Some((_, before)) = long.filter(|(size, _)| *size == blocks) {
                    self.runners[index].fastest = elapsed.min(before);
                    return Ok(Some((blocks, elapsed.max(before))));
                }
                long = Some((blocks, elapsed));
                continue;
            }
            let factor = TRIAL_MIN.as_secs_f64() * 1.5 / elapsed.as_secs_f64().max(1e-9);
            blocks = (blocks as f64 * factor.clamp(1.5, 64.0)).ceil() as u64;
        }
    }

    /// Whether the cases up to this one have taken more than their share of the budget: then the next trial ends the warm-up.
    fn warm_up_is_late(&self, index: usize) -> bool {
        let part = WARM_UP_PART * (index + 1) as f64 / self.runners.len() as f64;
        self.plan.budget.is_some_and(|budget| self.began.elapsed() > budget.mul_f64(part))
    }

    /// The measured time of one trial with which all trials fit into the rest of the budget.
    fn trial_target(&self) -> Duration {
        let Some(budget) = self.plan.budget else { return self.plan.trial_max };
        let left = budget.mul_f64(self.plan.first_part).saturating_sub(self.began.elapsed());
        let overhead: Duration = self.alive().map(|(_, runner)| runner.overhead).sum();
        let round = (left / self.plan.trials.max(1)).saturating_sub(overhead);
        let cases = self.alive().count().max(1) as u32;
        (round / cases).clamp(TRIAL_MIN, self.plan.trial_max.max(TRIAL_MIN))
    }

    fn run_rounds(&mut self, cpus: &[Cpu]) -> Result<(), Interrupted> {
        let mut order = fastrand::Rng::with_seed(self.plan.seed);
        let mut disturbance = self.plan.repeats.then(|| DisturbanceCheck::new(cpus));
        for round in 0..self.plan.rounds_max {
            // The cases of a round are chosen before it: otherwise its figures would influence which of them are compared.
            let mut indices: Vec<usize> = self.alive().map(|(index, _)| index).collect();
            indices
                .retain(|index| !self.progress.observer.enough(*index, &self.runners[*index].record.samples));
            order.shuffle(&mut indices);
            if indices.is_empty() {
                return Ok(());
            }
            let is_optional = self.plan.further_rounds_are_optional && round >= self.plan.trials;
            if round > 0 && self.budget_spent() {
                return if is_optional { Ok(()) } else { Err(Interrupted) };
            }
            if let Some(budget) = self.plan.budget.filter(|_| is_optional) {
                self.progress.deciding(budget.saturating_sub(self.began.elapsed()));
            }
            self.run_round(round, &indices)?;
            if round == 0 {
                self.runners.iter_mut().for_each(Runner::size_trial_again);
                self.avoid_zero_sums();
            }
            if let Some(disturbance) = &mut disturbance {
                while disturbance.disturbed() && self.may_repeat(round) {
                    self.set_aside(round);
                    self.run_round(round, &indices)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a trial of each of these cases that has not failed.
    fn run_round(&mut self, round: u32, indices: &[usize]) -> Result<(), Interrupted> {
        for (place, &index) in (0..).zip(indices) {
            if self.runners[index].record.error.is_some() {
                continue;
            }
            self.progress.trial_started(index, &self.runners[index].name());
            let began_ns = Some(self.began.elapsed().as_nanos() as u64);
            match self.trial(index, self.runners[index].blocks, Some(round))? {
                Some(sample) => {
                    // A caller of single trials has an order of its own.
                    let place = (indices.len() > 1).then_some(place);
                    let sample = Sample { began_ns, place, ..sample };
                    self.progress.trial_finished(index, &sample);
                    self.runners[index].record.samples.push(sample);
                }
                None => self.progress.observer.trial_failed(index),
            }
        }
        Ok(())
    }

    /// Limits repeated rounds to one in four, so that a machine that is never quiet is measured, too.
    fn may_repeat(&self, round: u32) -> bool {
        self.repeated_rounds < round / REPEATED_OF_ROUNDS + 1 && !self.budget_spent()
    }

    /// Marks the samples of a round as disturbed: they stay in the record, and are not summarised.
    fn set_aside(&mut self, round: u32) {
        self.repeated_rounds += 1;
        for CaseRecord { samples, disturbed, .. } in self.runners.iter_mut().map(|runner| &mut runner.record)
        {
            if let Some(sample) = samples.pop_if(|sample| sample.round == round) {
                disturbed.push(Sample { disturbed: true, ..sample });
            }
        }
    }

    fn budget_spent(&self) -> bool {
        self.plan.budget.is_some_and(|budget| self.began.elapsed() >= budget)
    }

    /// The cases that can be run and have not failed.
    fn alive(&self) -> impl Iterator<Item = (usize, &Runner)> {
        self.runners.iter().enumerate().filter(|(_, runner)| runner.record.error.is_none())
    }

    /// Runs one trial, of the warm-up if it has no round; a failed case keeps its error and is not run again.
    fn trial(
        &mut self,
        index: usize,
        blocks: u64,
        round: Option<u32>,
    ) -> Result<Option<Sample>, Interrupted> {
        let runner = &mut self.runners[index];
        let Some(ready) = &runner.ready else { return Ok(None) };
        let case = &runner.case;
        let tile = match tile(&mut self.tiles, case, self.plan.seed) {
            Ok(tile) => tile,
            Err(error) => {
                runner.record.error = Some(error);
                return Ok(None);
            }
        };
        let checksums = &mut self.checksums;
        let (stop, began, budget) = (self.stop, self.began, self.plan.budget);
        // A round may exceed the budget a little; a trial that exceeds it by much is stopped.
        let late = |budget: Duration| began.elapsed() > budget.mul_f64(OVERTIME) + OVERTIME_MIN;
        let stop = &|| stop() || budget.is_some_and(late);
        let mut expected = |bytes: u64| {
            let key = (case.payload.clone(), case.check, bytes);
            if let Some(known) = checksums.get(&key) {
                return Some(known.clone());
            }
            let computed = expected_checksum(&tile, case.check, bytes, stop)?;
            checksums.insert(key, computed.clone());
            Some(computed)
        };
        let (folder, seed) = (&self.folder, self.plan.seed);
        let (round_number, paced_client) = (round.unwrap_or(0), self.plan.paced_client);
        let setup =
            TrialSetup { case, ready, tile: &tile, folder, blocks, round: round_number, paced_client };
        let progress = &mut |part| self.progress.trial_progress(part);
        let made = match (self.far.as_deref_mut(), &self.plan.round_program) {
            (Some(far), _) if case.toward.is_some() => {
                run_remote_trial(&setup, far, seed, &mut expected, progress, stop)
            }
            (_, Some(program)) => of_round(&mut self.process, program, round)
                .and_then(|process| process.run_trial(&setup, seed, &mut expected, progress, stop)),
            _ => run_trial(&setup, &mut expected, progress, stop),
        };
        match made {
            Ok(trial) => {
                runner.record.granted = trial.granted;
                runner.record.congestion_control = trial.congestion_control;
                Ok(Some(trial.sample))
            }
            Err(NoSample::Stopped) => Err(Interrupted),
            Err(NoSample::Failed(error)) => {
                runner.record.error = Some(error);
                Ok(None)
            }
        }
    }
}

/// The process of this round; started if there is none, or one of another round.
fn of_round<'p>(
    process: &'p mut Option<RoundProcess>,
    program: &Path,
    round: Option<u32>,
) -> Result<&'p mut RoundProcess, NoSample> {
    // The process of another round ends before the next one is started.
    if process.as_ref().is_some_and(|process| process.round != round || !process.is_usable()) {
        *process = None;
    }
    match process {
        Some(process) => Ok(process),
        none => Ok(none.insert(RoundProcess::start(program, round)?)),
    }
}
