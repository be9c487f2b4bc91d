//! How much a trial moves. Languages differ a hundredfold, and what is enough for one is an hour for another.

use std::time::Duration;

use crate::job::Job;

/// What the first look at a worker moves, in bytes, after a warm-up of as many: little, for it may be slow.
const FIRST_LOOK_BYTES: u64 = 1 << 20;
/// Each further look moves up to this many times as much: a just-in-time compiler is slow at first, and its first word says
/// nothing of what it can do.
const LOOK_GROWTH: u64 = 8;
/// No look moves more than this, and none is wanted after one that did.
const LOOK_BYTES_MAX: u64 = 256 << 20;
/// A look that moved so large a part of a trial is believed, unless the look before it foresaw much less.
const LOOK_PART: u64 = 4;
const FORESEEN_PART: u64 = 2;
/// The least and the most that a trial moves, in bytes.
const TRIAL_BYTES_MIN: u64 = 1 << 20;
const TRIAL_BYTES_MAX: u64 = 64 << 30;
/// The warm-up is no longer than this part of a trial.
const WARMUP_PART: u64 = 2;

/// How much each trial moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialSize {
    /// The same for every row.
    Fixed {
        /// Bytes of the timed stream.
        bytes: u64,
        /// Bytes before the clock.
        warmup_bytes: u64,
    },
    /// For every row as much as lasts so long.
    Lasting {
        /// The time of a trial's timed stream.
        trial: Duration,
        /// Bytes before the clock, at the most; a slow row has half of its trial's.
        warmup_bytes_max: u64,
    },
}

impl TrialSize {
    /// The job of the first launch.
    pub(crate) fn first_look(&self, block_bytes: u64) -> Job {
        match *self {
            Self::Fixed { bytes, warmup_bytes } => Job { bytes, block_bytes, warmup_bytes },
            Self::Lasting { .. } => {
                Job { bytes: FIRST_LOOK_BYTES, block_bytes, warmup_bytes: FIRST_LOOK_BYTES }
            }
        }
    }

    /// The job of the next launch, where this one has not said enough: `trial` is the trial that it foresees, `before` the
    /// one that the look before it foresaw.
    pub(crate) fn next_look(&self, look: &Job, trial: &Job, before: Option<&Job>) -> Option<Job> {
        let Self::Lasting { .. } = self else { return None };
        let large = look.bytes.saturating_mul(LOOK_PART) >= trial.bytes;
        let steady = before.is_some_and(|before| before.bytes.saturating_mul(FORESEEN_PART) >= trial.bytes);
        let bytes = trial.bytes.min(look.bytes * LOOK_GROWTH).min(LOOK_BYTES_MAX);
        let enough = large && steady || look.bytes >= LOOK_BYTES_MAX;
        (!enough).then_some(Job { bytes, warmup_bytes: bytes, ..*look })
    }

    /// The job of a row whose last look moved and lasted so much.
    pub(crate) fn job(&self, look: &Job, elapsed: Duration) -> Job {
        let Self::Lasting { trial, warmup_bytes_max } = *self else { return *look };
        let rate = look.bytes as f64 / elapsed.as_secs_f64().max(1e-9);
        let bytes = ((rate * trial.as_secs_f64()) as u64).clamp(TRIAL_BYTES_MIN, TRIAL_BYTES_MAX);
        // Whole MiB read better, and are whole blocks of any usual size.
        let bytes = bytes.next_multiple_of(TRIAL_BYTES_MIN);
        Job { bytes, block_bytes: look.block_bytes, warmup_bytes: warmup_bytes_max.min(bytes / WARMUP_PART) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_worker_is_given_less() {
        let amount = TrialSize::Lasting { trial: Duration::from_secs(1), warmup_bytes_max: 64 << 20 };
        let look = amount.first_look(4096);
        let fast = amount.job(&look, Duration::from_micros(500));
        let slow = amount.job(&look, Duration::from_secs(4));
        assert_eq!((fast.bytes >> 20, fast.warmup_bytes >> 20, fast.block_bytes), (2000, 64, 4096));
        assert_eq!((slow.bytes, slow.warmup_bytes), (TRIAL_BYTES_MIN, TRIAL_BYTES_MIN / 2));
    }

    /// What every launch moves, the looks' and then the trial's, of a worker that takes so long for a job.
    fn launches(amount: TrialSize, takes: impl Fn(&Job) -> Duration) -> (Vec<Job>, Job) {
        let (mut looks, mut before) = (vec![amount.first_look(4096)], None);
        loop {
            let look = looks[looks.len() - 1];
            let trial = amount.job(&look, takes(&look));
            match amount.next_look(&look, &trial, before.as_ref()) {
                Some(next) => looks.push(next),
                None => return (looks, trial),
            }
            before = Some(trial);
        }
    }

    #[test]
    fn looks_grow_until_one_is_large_and_no_surprise() {
        let amount = TrialSize::Lasting { trial: Duration::from_secs(1), warmup_bytes_max: 64 << 20 };
        let looked = |bytes_per_s: u64| -> Vec<u64> {
            let takes = |job: &Job| Duration::from_secs_f64(job.bytes as f64 / bytes_per_s as f64);
            launches(amount, takes).0.iter().map(|job| job.bytes >> 20).collect()
        };
        assert_eq!(looked(4 << 30), [1, 8, 64, 256]);
        assert_eq!(looked(100 << 20), [1, 8, 64]);
        assert_eq!(looked(500 << 10), [1, 1]);
    }

    #[test]
    fn a_slow_starter_is_given_as_much_as_it_can_move_once_it_is_warm() {
        // A byte costs a hundred times as much until `cold_bytes` have gone, as in a Java beside other programs.
        let amount = TrialSize::Lasting { trial: Duration::from_millis(500), warmup_bytes_max: 512 << 20 };
        for cold_bytes in [1 << 20, 4 << 20, 40 << 20] {
            let takes = |job: &Job| {
                let cold = job.total_bytes().min(cold_bytes).saturating_sub(job.warmup_bytes);
                Duration::from_secs_f64(cold as f64 * 50e-9 + (job.bytes - cold) as f64 * 0.5e-9)
            };
            let (_, trial) = launches(amount, takes);
            let lasts = takes(&trial);
            assert!(lasts > Duration::from_millis(250), "{cold_bytes}: {lasts:?} for {trial:?}");
        }
    }

    #[test]
    fn what_is_fixed_stays() {
        let amount = TrialSize::Fixed { bytes: 10, warmup_bytes: 3 };
        let look = amount.first_look(7);
        assert_eq!(look, Job { bytes: 10, block_bytes: 7, warmup_bytes: 3 });
        assert_eq!(amount.next_look(&look, &look, None), None);
        assert_eq!(amount.job(&look, Duration::ZERO), look);
    }
}
