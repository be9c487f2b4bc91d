//! A run: every row warmed up and sized, then rounds of trials in a seeded random order.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use model::{
    CaseError, Cpu, ErrorKind, NoSample, Observer, Role, Round, RoundLimits, Rounds, Row, RunProgress,
    Sample, Speed, Turn,
};

use crate::amount::TRIAL_MIN;
use crate::case_row::{Lab, case_rows};
use crate::disturbance::DisturbanceCheck;
use crate::peer_endpoint::PeerConnection;
use crate::plan::{Outcome, Plan};

/// A trial is stopped when the run has taken more than this factor of the budget plus [`OVERTIME_MIN`].
const OVERTIME: f64 = 1.25;
const OVERTIME_MIN: Duration = Duration::from_secs(1);

/// One in this many rounds may be repeated.
const REPEATED_OF_ROUNDS: u32 = 4;

/// Trials are sized again if they miss their target by more than this factor.
const MISSED: f64 = 1.5;

/// How often a sizing trial is repeated that another program has disturbed.
const DISTURBED_TRIES: u32 = 3;

/// The part of the budget within which all rows are warmed up: on a busy machine each trial may take a second.
const WARM_UP_PART: f64 = 0.25;

/// Runs the cases of a plan on the given CPUs, and `others` in the same rounds, whose cases follow those of the plan. `far` is another host,
/// which runs one end of each case that has a direction. Returns the trials that were finished, even if the run was stopped.
///
/// Must be called from a process with one thread: trials are forked from it.
pub fn run<'r>(
    plan: &Plan,
    others: Vec<Row<'r>>,
    cpus: &[Cpu],
    far: Option<&'r mut (dyn PeerConnection + 'r)>,
    observer: &mut dyn Observer,
    stop: &dyn Fn() -> bool,
) -> Outcome {
    let far = far.map(|far| far as &mut dyn PeerConnection);
    let lab = RefCell::new(Lab::new(plan, far, stop));
    let rows = case_rows(plan, cpus, &lab).into_iter().chain(others);
    let rows = rows.map(SizedRow::new).collect();
    let (began, progress) = (Instant::now(), RunProgress::new(observer));
    let mut session = Session { plan, began, progress, stop, rows, repeated_rounds: 0 };
    let interrupted = session.calibrate().is_err() || session.run_rounds(cpus).is_err();
    if interrupted && !stop() {
        session.rows.iter_mut().for_each(|row| row.record_time_ran_out(plan.budget));
    }
    let repeated_rounds = session.repeated_rounds;
    let cases = session.rows.into_iter().map(|row| row.row.record).collect();
    Outcome { cases, interrupted, repeated_rounds }
}

/// A row during the run.
struct SizedRow<'r> {
    row: Row<'r>,
    /// What a trial moves, in the row's unit.
    amount: u64,
    /// The speed in the warm-up; `None` before it, and if it has failed.
    speed: Option<Speed>,
    /// Time of a trial in addition to its measured time: opening the channel, starting and ending tasks.
    overhead: Duration,
    /// Predicted measured time of a trial.
    expected: Duration,
    /// The measured time for which a trial was sized.
    target: Duration,
}

impl<'r> SizedRow<'r> {
    fn new(row: Row<'r>) -> Self {
        let zero = Duration::ZERO;
        Self { row, amount: 0, speed: None, overhead: zero, expected: zero, target: zero }
    }

    fn is_alive(&self) -> bool {
        self.row.record.error.is_none()
    }

    /// Records an error if the row has neither a sample nor an error: the time ran out before its first trial.
    fn record_time_ran_out(&mut self, budget: Option<Duration>) {
        let record = &mut self.row.record;
        let missed = record.error.is_none() && record.samples.is_empty();
        if let Some(budget) = budget.filter(|_| missed) {
            let spent_s = budget.as_secs_f64();
            let message = format!("the {spent_s} s of this run were spent before its first trial had ended");
            let remedy =
                "a larger --time, a smaller --block, --bytes or --count, or fewer mechanisms".to_owned();
            record.error = Some(CaseError::new(ErrorKind::Time, message).with_remedy(remedy));
        }
    }

    /// Decides how much a trial moves that takes `target`; one of paced messages takes `paced`.
    fn size(&mut self, target: Duration, paced: Duration) {
        let Some(speed) = &self.speed else { return };
        let rate_per_s = self.row.record.rate_per_s;
        self.target = if rate_per_s.is_some() { paced } else { target };
        self.amount = self.row.maker.amount(speed, self.target);
        let due_s = rate_per_s.map_or(0.0, |rate| self.amount as f64 / f64::from(rate));
        let takes = speed.slowest.mul_f64(self.amount as f64 / speed.amount.max(1) as f64);
        self.expected = takes.max(Duration::from_secs_f64(due_s));
    }

    /// Sizes trials again after the first one if they miss their target by [`MISSED`]: by the median of the times of the warm-up
    /// and of the first trial, as each alone may be that of a busy moment, or of ends that shared a CPU by chance.
    fn size_again(&mut self) {
        let Row { record, maker, .. } = &mut self.row;
        let (Some(speed), Some(first)) = (&self.speed, record.samples.first()) else { return };
        let first_took = Duration::from_nanos(first.elapsed_ns);
        // A paced one may have been sized by a busy moment, too: if it keeps up now, it gets all that are due.
        if record.rate_per_s.is_some() {
            let due = maker.amount(&Speed::new(self.amount, first_took), self.target);
            self.amount = self.amount.max(due);
            return;
        }
        let mut times_s = speed.times_s.clone();
        times_s.push(first_took.as_secs_f64() / self.amount as f64);
        times_s.sort_unstable_by(f64::total_cmp);
        let median = Duration::from_secs_f64(times_s[times_s.len() / 2] * self.amount as f64);
        let amount = maker.amount(&Speed::new(self.amount, median), self.target);
        let factor = amount as f64 / self.amount as f64;
        if !(1.0 / MISSED..=MISSED).contains(&factor) {
            self.amount = amount;
            self.expected = median.mul_f64(factor);
        }
    }
}

/// The user or the budget ended the run.
struct Interrupted;

/// A run in progress.
struct Session<'a> {
    plan: &'a Plan,
    began: Instant,
    progress: RunProgress<'a>,
    stop: &'a dyn Fn() -> bool,
    rows: Vec<SizedRow<'a>>,
    repeated_rounds: u32,
}

impl Session<'_> {
    /// Warms up every row and sizes its trials.
    fn calibrate(&mut self) -> Result<(), Interrupted> {
        for index in self.alive() {
            let what = format!("warming up {}", self.rows[index].row.name);
            self.progress.observer.progress(&what, Some(index as f64 / self.rows.len() as f64));
            self.warm_up(index)?;
        }
        let target = self.trial_target();
        self.size_trials(target, |role| role == Role::Ranked);
        // A trial of a floor or a ceiling takes no longer than the trials of the mechanisms that are compared with it.
        let ranked = self.rows.iter().filter(|row| row.row.record.role == Role::Ranked);
        let longest = ranked.map(|row| row.expected.clamp(TRIAL_MIN, target)).max().unwrap_or(target);
        self.size_trials(longest, |role| role != Role::Ranked);
        let alive = self.alive();
        let round: Duration =
            alive.iter().map(|index| self.rows[*index].expected + self.rows[*index].overhead).sum();
        let trials = u64::from(self.plan.trials) * alive.len() as u64;
        self.progress.planned(trials, Some(round * self.plan.trials));
        Ok(())
    }

    fn size_trials(&mut self, target: Duration, has_role: impl Fn(Role) -> bool) {
        for row in &mut self.rows {
            if has_role(row.row.record.role) {
                row.size(target, self.plan.trial_paced);
            }
        }
    }

    /// Runs unmeasured trials of a row, to fill caches, to find out whether it fails, and to find its speed.
    fn warm_up(&mut self, index: usize) -> Result<(), Interrupted> {
        let Some(sizing) = self.rows[index].row.maker.sizing(self.plan.trial_max) else { return Ok(()) };
        self.rows[index].speed = sizing.find(|amount| {
            let mut tries = 0;
            loop {
                let began = Instant::now();
                let Some(sample) = self.trial(index, amount, None)? else { return Ok(None) };
                let elapsed = Duration::from_nanos(sample.elapsed_ns);
                let row = &mut self.rows[index];
                row.overhead = began.elapsed().saturating_sub(elapsed);
                if tries == DISTURBED_TRIES || !row.row.maker.is_disturbed(amount, elapsed) {
                    return Ok(Some((elapsed, self.warm_up_is_late(index))));
                }
                tries += 1;
            }
        })?;
        Ok(())
    }

    /// Whether the rows up to this one have taken more than their share of the budget: then the next trial ends the warm-up.
    fn warm_up_is_late(&self, index: usize) -> bool {
        let part = WARM_UP_PART * (index + 1) as f64 / self.rows.len() as f64;
        self.plan.budget.is_some_and(|budget| self.began.elapsed() > budget.mul_f64(part))
    }

    /// The measured time of one trial with which all trials fit into the rest of the budget.
    fn trial_target(&self) -> Duration {
        let Plan { trial_min, trial_max, first_part, trials, .. } = *self.plan;
        let Some(budget) = self.plan.budget else { return trial_max };
        let left = budget.mul_f64(first_part).saturating_sub(self.began.elapsed());
        let alive = self.alive();
        let overhead: Duration = alive.iter().map(|index| self.rows[*index].overhead).sum();
        let round = (left / trials.max(1)).saturating_sub(overhead);
        (round / alive.len().max(1) as u32).clamp(trial_min, trial_max.max(trial_min))
    }

    fn run_rounds(&mut self, cpus: &[Cpu]) -> Result<(), Interrupted> {
        let Plan { seed, trials, rounds_max, budget, further_rounds_are_optional, .. } = *self.plan;
        let until = budget.and_then(|budget| self.began.checked_add(budget));
        let mut rounds = Rounds::new(seed, RoundLimits { most: rounds_max, least: 1, until, unshuffled: 0 });
        let mut disturbance = self.plan.repeats.then(|| DisturbanceCheck::new(cpus));
        // The rows of a round are chosen before it: otherwise its figures would influence which of them are compared.
        while let Some(Round { number, rows }) = rounds.next(self.wanted()) {
            if let Some(budget) = budget.filter(|_| further_rounds_are_optional && number >= trials) {
                self.progress.deciding(budget.saturating_sub(self.began.elapsed()));
            }
            self.run_round(number, &rows)?;
            if number == 0 {
                self.rows.iter_mut().for_each(SizedRow::size_again);
            }
            if let Some(disturbance) = &mut disturbance {
                while disturbance.disturbed() && self.may_repeat(number) {
                    self.set_aside(number);
                    self.run_round(number, &rows)?;
                }
            }
        }
        let is_optional = further_rounds_are_optional && rounds.made() >= trials;
        if rounds.is_late() && !is_optional { Err(Interrupted) } else { Ok(()) }
    }

    /// Runs a trial of each of these rows that has not failed.
    fn run_round(&mut self, round: u32, indices: &[usize]) -> Result<(), Interrupted> {
        for (place, &index) in (0..).zip(indices) {
            if !self.rows[index].is_alive() {
                continue;
            }
            self.progress.trial_started(index, &self.rows[index].row.name);
            let began_ns = Some(self.began.elapsed().as_nanos() as u64);
            match self.trial(index, self.rows[index].amount, Some(round))? {
                Some(sample) => {
                    let place = (indices.len() > 1).then_some(place);
                    let sample = Sample { round, began_ns, place, ..sample };
                    self.progress.trial_finished(index, &sample);
                    self.rows[index].row.record.samples.push(sample);
                }
                None => self.progress.observer.trial_failed(index),
            }
        }
        Ok(())
    }

    /// Limits repeated rounds to one in four, so that a machine that is never quiet is measured, too.
    fn may_repeat(&self, round: u32) -> bool {
        let is_over = self.plan.budget.is_some_and(|budget| self.began.elapsed() >= budget);
        self.repeated_rounds < round / REPEATED_OF_ROUNDS + 1 && !is_over
    }

    /// Marks the samples of a round as disturbed: they stay in the record, and are not summarised.
    fn set_aside(&mut self, round: u32) {
        self.repeated_rounds += 1;
        for record in self.rows.iter_mut().map(|row| &mut row.row.record) {
            if let Some(sample) = record.samples.pop_if(|sample| sample.round == round) {
                record.disturbed.push(Sample { disturbed: true, ..sample });
            }
        }
    }

    /// The rows that have not failed.
    fn alive(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|index| self.rows[*index].is_alive()).collect()
    }

    /// The rows that have not failed and need more trials.
    fn wanted(&mut self) -> Vec<usize> {
        let mut wanted = self.alive();
        let Self { rows, progress, .. } = self;
        wanted.retain(|index| !progress.observer.enough(*index, &rows[*index].row.record.samples));
        wanted
    }

    /// Runs one trial, of the warm-up if it has no round; a failed row keeps its error and is not run again.
    fn trial(
        &mut self,
        index: usize,
        amount: u64,
        round: Option<u32>,
    ) -> Result<Option<Sample>, Interrupted> {
        let (stop, began) = (self.stop, self.began);
        // A round may exceed the budget a little; a trial that exceeds it by much is stopped.
        let late = |budget: Duration| began.elapsed() > budget.mul_f64(OVERTIME) + OVERTIME_MIN;
        let budget = self.plan.budget.filter(|_| self.plan.stops_late_trials);
        let stop = &|| stop() || budget.is_some_and(late);
        // A short trial ends before it would look.
        if stop() {
            return Err(Interrupted);
        }
        let (Row { record, maker, .. }, progress) = (&mut self.rows[index].row, &mut self.progress);
        let progress = &mut |part| progress.trial_progress(part);
        match maker.trial(&mut Turn { amount, round, record, progress, stop }) {
            Ok(sample) => Ok(Some(sample)),
            Err(NoSample::Stopped) => Err(Interrupted),
            Err(NoSample::Failed(error)) => {
                record.error = Some(error);
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{CaseRecord, Silent, Sizing, Spec, TrialMaker};

    use super::*;

    /// Makes trials that take a time for each of the amount, and do nothing else.
    struct MockMaker {
        /// Nanoseconds for one, in the warm-up and in the rounds.
        ns: [u64; 2],
        fails_in: Option<u32>,
    }

    impl TrialMaker for MockMaker {
        fn sizing(&self, _trial_max: Duration) -> Option<Sizing> {
            let (enough, alone) = (TRIAL_MIN, Duration::MAX);
            Some(Sizing { first: 10, most: 1 << 40, growth_max: 64.0, enough, trials: 2, alone })
        }
        fn amount(&mut self, speed: &Speed, time: Duration) -> u64 {
            speed.amount_in(time) as u64
        }
        fn trial(&mut self, turn: &mut Turn<'_>) -> Result<Sample, NoSample> {
            if turn.round.is_some() && turn.round == self.fails_in {
                return Err(CaseError::new(ErrorKind::Died, "as planned").into());
            }
            let elapsed_ns = turn.amount * self.ns[usize::from(turn.round.is_some())];
            Ok(Sample { elapsed_ns, messages: turn.amount, ..Sample::default() })
        }
    }

    fn row(name: &str, ns: [u64; 2], fails_in: Option<u32>) -> Row<'static> {
        let record = CaseRecord::new(Spec::plain(name));
        Row { name: name.to_owned(), record, maker: Box::new(MockMaker { ns, fails_in }) }
    }

    #[test]
    fn rows_of_any_kind_take_turns_and_a_failed_one_leaves() {
        let plan = Plan::new(Vec::new(), 5, 3, None);
        let rows =
            vec![row("a", [100, 100], None), row("b", [100, 100], Some(2)), row("c", [100, 100], None)];
        let outcome = run(&plan, rows, &[], None, &mut Silent, &|| false);
        let rounds = |case: &CaseRecord| Vec::from_iter(case.samples.iter().map(|sample| sample.round));
        assert_eq!(
            Vec::from_iter(outcome.cases.iter().map(rounds)),
            [vec![0, 1, 2, 3, 4], vec![0, 1], vec![0, 1, 2, 3, 4]]
        );
        assert!(outcome.cases[1].error.as_ref().is_some_and(|error| error.message == "as planned"));
        let mut places: Vec<_> = outcome.cases.iter().map(|case| case.samples[0].place).collect();
        places.sort_unstable();
        assert_eq!((places, outcome.interrupted), (vec![Some(0), Some(1), Some(2)], false));
    }

    #[test]
    fn trials_last_as_planned_and_one_that_differs_from_the_warm_up_changes_nothing() {
        let plan = Plan::new(Vec::new(), 3, 1, None);
        let rows = vec![row("as in the warm-up", [1000, 1000], None), row("other", [1000, 10], None)];
        let outcome = run(&plan, rows, &[], None, &mut Silent, &|| false);
        let ms = |case: usize, round: usize| outcome.cases[case].samples[round].elapsed_ns / 1_000_000;
        assert_eq!([0, 1, 2].map(|round| ms(0, round)), [300, 300, 300]);
        // Of the warm-up's two times and the first trial's, the middle one counts: a single trial may be that of a busy moment.
        assert_eq!([0, 1, 2].map(|round| ms(1, round)), [3, 3, 3]);
    }

    #[test]
    fn without_time_the_first_round_is_made_and_the_run_counts_as_interrupted() {
        let budget = Some(Duration::ZERO);
        let plan = Plan { stops_late_trials: false, ..Plan::new(Vec::new(), 3, 1, budget) };
        let outcome = run(&plan, vec![row("a", [1, 1], None)], &[], None, &mut Silent, &|| false);
        assert_eq!((outcome.cases[0].samples.len(), outcome.interrupted), (1, true));
    }
}
