//! When a run may end: cases that are certainly not the best get no further trials, and once the best is known no case does.

use model::{Case, CaseRecord, DataLevel, Role, Sample, Spec, Wait};
use stats::{Demand, RoundCosts, Standing, choose, decisive_cost_ns, precise_enough, race};

/// Trials of each case by default: enough for an interval of the median from order statistics.
pub(super) const TRIALS: u32 = 9;

/// Largest half width of the interval of a case without competitors, in percent of the median, at which it needs no more trials.
const ALONE_PERCENT: f64 = 10.0;
/// Most trials of such a case. If its interval is still wide, it is a mixture of several speeds, and more trials do not narrow it.
const ALONE_TRIALS_MAX: usize = 60;

/// What is known of all cases after the trials so far.
pub(crate) struct Decision {
    demand: Demand,
    records: Vec<CaseRecord>,
    races: Vec<Race>,
}

/// Cases that differ in their mechanism only.
struct Race {
    /// Their indices among all cases.
    rows: Vec<usize>,
    costs: Vec<RoundCosts>,
    /// The result after the last trial, without the cases that the demand excludes; `None` while it is not computed.
    standing: Option<Standing>,
}

impl Decision {
    pub(crate) fn new(cases: &[Case], demand: Demand) -> Self {
        let mut kinds: Vec<(Case, Vec<usize>)> = Vec::new();
        let is_compared = |case: &Case| case.role == Role::Ranked && case.data != DataLevel::None;
        for (at, case) in cases.iter().enumerate().filter(|(_, case)| is_compared(case)) {
            let kind = Case { spec: Spec::plain("any"), wait: Wait::Block, ..case.clone() };
            match kinds.iter_mut().find(|(one, _)| *one == kind) {
                Some((_, rows)) => rows.push(at),
                None => kinds.push((kind, vec![at])),
            }
        }
        let raced = kinds.into_iter().map(|(_, rows)| rows).filter(|rows| rows.len() > 1);
        let races =
            raced.map(|rows| Race { costs: vec![RoundCosts::new(); rows.len()], standing: None, rows });
        Self {
            races: races.collect(),
            records: cases.iter().cloned().map(CaseRecord::from).collect(),
            demand,
        }
    }

    /// Adds the sample of a trial.
    pub(crate) fn add(&mut self, row: usize, sample: &Sample) {
        let record = &mut self.records[row];
        let cost = decisive_cost_ns(record, sample, &self.demand);
        record.samples.push(sample.clone());
        for race in &mut self.races {
            let Some(at) = race.rows.iter().position(|one| *one == row) else { continue };
            race.costs[at].extend(cost.map(|cost| (sample.round, cost)));
            race.standing = None;
        }
    }

    /// Excludes a case that has failed, with the costs of its earlier trials.
    pub(crate) fn exclude(&mut self, row: usize) {
        self.records[row].samples.clear();
        for race in &mut self.races {
            if let Some(at) = race.rows.iter().position(|one| *one == row) {
                race.costs[at].clear();
                race.standing = None;
            }
        }
    }

    /// Whether a case needs no more samples than these.
    pub(crate) fn is_enough(&mut self, row: usize, samples: &[Sample]) -> bool {
        if samples.len() < TRIALS as usize {
            return false;
        }
        let is_alone = self.races.is_empty() && self.records[row].role == Role::Ranked;
        match self.races.iter_mut().find(|race| race.rows.contains(&row)) {
            Some(race) => race.is_settled(row, &self.records, &self.demand),
            None if is_alone => samples.len() >= ALONE_TRIALS_MAX || precise_enough(samples, ALONE_PERCENT),
            None => true,
        }
    }
}

impl Race {
    /// Whether further trials of a case cannot change which one is the best.
    fn is_settled(&mut self, row: usize, records: &[CaseRecord], demand: &Demand) -> bool {
        if self.standing.is_none() {
            // Which cases the demand excludes is decided once, after the planned trials.
            let first = self.costs.iter().all(|costs| costs.len() <= TRIALS as usize);
            if first {
                let cases: Vec<&CaseRecord> = self.rows.iter().map(|row| &records[*row]).collect();
                let choice = choose(&cases, demand);
                let out = choice.ranked.iter().filter(|one| one.excluded.is_some());
                out.for_each(|one| self.costs[one.at].clear());
            }
            self.standing = Some(race(&self.costs));
        }
        self.standing.as_ref().is_some_and(|standing| {
            standing.is_decided() || standing.first.iter().all(|(at, _)| self.rows[*at] != row)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(specs: &[&str]) -> Vec<Case> {
        let case = |spec: &&str| {
            let spec: Spec = spec.parse().expect("a spec");
            let wait = if spec.to_string().contains("spin") { Wait::Spin } else { Wait::Block };
            Case { wait, ..Case::stream(spec) }
        };
        specs.iter().map(case).collect()
    }

    /// Makes rounds until no case needs another sample, at most `most`; returns the number of samples of each case.
    fn trials(specs: &[&str], cost: impl Fn(usize, u32) -> u64, most: u32) -> Vec<usize> {
        let cases = cases(specs);
        let mut decision = Decision::new(&cases, Demand::default());
        let mut samples = vec![Vec::new(); cases.len()];
        for round in 0..most {
            let wanted: Vec<usize> =
                (0..cases.len()).filter(|row| !decision.is_enough(*row, &samples[*row])).collect();
            for row in wanted {
                let elapsed_ns = cost(row, round) * 1_000_000;
                let sample = Sample {
                    round,
                    elapsed_ns,
                    system_ns: elapsed_ns,
                    messages: 1000,
                    bytes: 1 << 30,
                    ..Sample::default()
                };
                decision.add(row, &sample);
                samples[row].push(sample);
            }
        }
        samples.iter().map(Vec::len).collect()
    }

    #[test]
    fn a_clear_winner_needs_the_planned_trials() {
        let made = trials(
            &["pipe", "fifo", "shm-ring"],
            |row, round| (30 - 10 * row as u64) * 10 + u64::from(round % 3),
            50,
        );
        assert_eq!(made, [9, 9, 9]);
    }

    #[test]
    fn cases_that_may_be_the_best_continue_and_spinning_ones_do_not() {
        let noisy = |row: usize, round: u32| match row {
            0 | 1 => 100 + u64::from((round * 7 + row as u32 * 3) % 11) * 5,
            2 => 900,
            _ => 10,
        };
        let made = trials(&["pipe", "fifo", "tcp", "shm-ring:wait=spin"], noisy, 30);
        assert_eq!(made, [30, 30, 9, 9]);
    }

    /// Expected: a case that fails during the run is no longer compared.
    /// Happened: it remained among those that may be the best, and the others were measured until the end of the time.
    #[test]
    fn a_case_that_fails_delays_no_other() {
        let cases = cases(&["pipe", "fifo"]);
        let mut decision = Decision::new(&cases, Demand::default());
        let sample = |round, cost: u64| Sample {
            round,
            elapsed_ns: cost * 1_000_000,
            system_ns: cost * 1_000_000,
            messages: 1000,
            ..Sample::default()
        };
        let mut samples = Vec::new();
        for round in 0..TRIALS {
            if round < 5 {
                decision.add(1, &sample(round, if round % 2 == 0 { 90 } else { 110 }));
            }
            samples.push(sample(round, 100));
            decision.add(0, samples.last().expect("a sample"));
        }
        assert!(!decision.is_enough(0, &samples), "either may be the best");
        decision.exclude(1);
        assert!(decision.is_enough(0, &samples), "one is left");
    }

    #[test]
    fn a_single_case_ends_when_its_figure_is_precise() {
        assert_eq!(trials(&["pipe"], |_, round| 100 + u64::from(round % 2), 100), [10]);
        assert_eq!(trials(&["pipe"], |_, round| 100 + 100 * u64::from(round % 2), 100), [ALONE_TRIALS_MAX]);
    }
}
