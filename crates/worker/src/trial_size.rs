//! Decides how many bytes a trial moves. Languages differ by a factor of a hundred: bytes for one second of a fast language take
//! minutes in a slow one.

use std::time::Duration;

use crate::job::Job;

/// Limits of a worker's first launch and of its warm-up, in bytes and in blocks. Both are small, because the worker may be slow.
const SIZING_BYTES_FIRST: u64 = 1 << 20;
const SIZING_BLOCKS_FIRST: u64 = 1 << 12;
/// Largest factor between a sizing launch and the next one: a program with a just-in-time compiler is slow at first.
const SIZING_GROWTH: u64 = 8;
/// Most bytes of a sizing launch; a launch of this size is the last one.
const SIZING_BYTES_MAX: u64 = 256 << 20;
/// Sizing ends when a launch has moved at least 1/4 of the trial that it predicts, and the launch before it has predicted at
/// least 1/2 of that trial.
const SIZING_PART: u64 = 4;
const PREDICTED_PART: u64 = 2;
/// Most bytes of a trial. A trial has at least the bytes of the first launch.
const TRIAL_BYTES_MAX: u64 = 64 << 30;
/// The warm-up has at most 1/2 of a trial's bytes.
const WARMUP_PART: u64 = 2;

/// The amount of each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialSize {
    /// The same for every row.
    Fixed {
        /// Bytes of the timed stream.
        bytes: u64,
        /// Bytes before the clock starts.
        warmup_bytes: u64,
    },
    /// For every row the bytes that it moves in a given time.
    Lasting {
        /// The time of a trial's timed stream.
        trial: Duration,
        /// Most bytes before the clock starts; for a slow row half of its trial's bytes.
        warmup_bytes_max: u64,
    },
}

impl TrialSize {
    /// The job of the first launch.
    pub(crate) fn first_sizing_job(&self, block_bytes: u64) -> Job {
        match *self {
            Self::Fixed { bytes, warmup_bytes } => Job { bytes, block_bytes, warmup_bytes },
            Self::Lasting { .. } => {
                let bytes = first_bytes(block_bytes);
                Job { bytes, block_bytes, warmup_bytes: bytes }
            }
        }
    }

    /// The job of the next sizing launch, if another is needed. `trial` is the trial that this launch predicts, `before` the trial
    /// that the previous launch predicted.
    pub(crate) fn next_sizing_job(&self, launched: &Job, trial: &Job, before: Option<&Job>) -> Option<Job> {
        let Self::Lasting { .. } = self else { return None };
        let large = launched.bytes.saturating_mul(SIZING_PART) >= trial.bytes;
        let steady = before.is_some_and(|before| before.bytes.saturating_mul(PREDICTED_PART) >= trial.bytes);
        let bytes = trial.bytes.min(launched.bytes * SIZING_GROWTH).min(SIZING_BYTES_MAX);
        let enough = large && steady || launched.bytes >= SIZING_BYTES_MAX;
        (!enough).then_some(Job { bytes, warmup_bytes: bytes, ..*launched })
    }

    /// The job of a row's trials, predicted by a sizing launch that took `elapsed`.
    pub(crate) fn job(&self, launched: &Job, elapsed: Duration) -> Job {
        let Self::Lasting { trial, warmup_bytes_max } = *self else { return *launched };
        let least = first_bytes(launched.block_bytes);
        let rate = launched.bytes as f64 / elapsed.as_secs_f64().max(1e-9);
        let bytes = ((rate * trial.as_secs_f64()) as u64).clamp(least, TRIAL_BYTES_MAX);
        // Whole MiB (less for blocks below 256 bytes) are easy to read, and are whole blocks of all common sizes.
        let bytes = bytes.next_multiple_of(least);
        Job {
            bytes,
            block_bytes: launched.block_bytes,
            warmup_bytes: warmup_bytes_max.min(bytes / WARMUP_PART),
        }
    }
}

fn first_bytes(block_bytes: u64) -> u64 {
    SIZING_BYTES_FIRST.min(block_bytes.saturating_mul(SIZING_BLOCKS_FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_worker_moves_fewer_bytes() {
        let amount = TrialSize::Lasting { trial: Duration::from_secs(1), warmup_bytes_max: 64 << 20 };
        let launched = amount.first_sizing_job(4096);
        let fast = amount.job(&launched, Duration::from_micros(500));
        let slow = amount.job(&launched, Duration::from_secs(4));
        assert_eq!((fast.bytes >> 20, fast.warmup_bytes >> 20, fast.block_bytes), (2000, 64, 4096));
        assert_eq!((slow.bytes, slow.warmup_bytes), (SIZING_BYTES_FIRST, SIZING_BYTES_FIRST / 2));
    }

    /// The sizing launches and the trial of a worker that needs `takes` for a job.
    fn launches(amount: TrialSize, takes: impl Fn(&Job) -> Duration) -> (Vec<Job>, Job) {
        let (mut launches, mut before) = (vec![amount.first_sizing_job(4096)], None);
        loop {
            let launched = launches[launches.len() - 1];
            let trial = amount.job(&launched, takes(&launched));
            match amount.next_sizing_job(&launched, &trial, before.as_ref()) {
                Some(next) => launches.push(next),
                None => return (launches, trial),
            }
            before = Some(trial);
        }
    }

    #[test]
    fn sizing_launches_grow_until_one_is_large_and_agrees_with_the_one_before() {
        let amount = TrialSize::Lasting { trial: Duration::from_secs(1), warmup_bytes_max: 64 << 20 };
        let sizing_mib = |bytes_per_s: u64| -> Vec<u64> {
            let takes = |job: &Job| Duration::from_secs_f64(job.bytes as f64 / bytes_per_s as f64);
            launches(amount, takes).0.iter().map(|job| job.bytes >> 20).collect()
        };
        assert_eq!(sizing_mib(4 << 30), [1, 8, 64, 256]);
        assert_eq!(sizing_mib(100 << 20), [1, 8, 64]);
        assert_eq!(sizing_mib(500 << 10), [1, 1]);
    }

    #[test]
    fn a_worker_that_starts_slowly_is_sized_by_its_warm_speed() {
        // The first `cold_bytes` cost a hundred times as much each, as in Java on a busy machine.
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
    fn a_fixed_size_does_not_change() {
        let amount = TrialSize::Fixed { bytes: 10, warmup_bytes: 3 };
        let launched = amount.first_sizing_job(7);
        assert_eq!(launched, Job { bytes: 10, block_bytes: 7, warmup_bytes: 3 });
        assert_eq!(amount.next_sizing_job(&launched, &launched, None), None);
        assert_eq!(amount.job(&launched, Duration::ZERO), launched);
    }
}
