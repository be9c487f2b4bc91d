//! How much a trial moves. Languages differ a hundredfold, and what is enough for one is an hour for another.

use std::time::Duration;

use crate::job::Job;

/// What the first look at a worker moves, in bytes: little, for it may be slow.
const FIRST_LOOK_BYTES: u64 = 4 << 20;
/// Each further look moves so many times as much, after half of that as a warm-up, until it lasted for so large a part
/// of a trial: a just-in-time compiler is slow at first, and its first word says nothing of what it can do.
const LOOK_GROWTH: u64 = 4;
const LOOK_PART: u32 = 4;
/// The last look moves at most this.
const LOOK_BYTES_MAX: u64 = 256 << 20;
/// The least and the most that a trial moves, in bytes.
const TRIAL_BYTES_MIN: u64 = 1 << 20;
const TRIAL_BYTES_MAX: u64 = 64 << 30;
/// The warm-up is no longer than this part of a trial.
const WARMUP_PART: u64 = 2;

/// How much each trial moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
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

impl Amount {
    /// The job of the first launch.
    pub(crate) fn first_look(&self, block_bytes: u64) -> Job {
        match *self {
            Self::Fixed { bytes, warmup_bytes } => Job { bytes, block_bytes, warmup_bytes },
            Self::Lasting { .. } => Job { bytes: FIRST_LOOK_BYTES, block_bytes, warmup_bytes: 0 },
        }
    }

    /// The job of the next launch, where this one has not said enough.
    pub(crate) fn next_look(&self, look: &Job, elapsed: Duration) -> Option<Job> {
        let Self::Lasting { trial, .. } = self else { return None };
        let bytes = look.bytes * LOOK_GROWTH;
        (bytes <= LOOK_BYTES_MAX && elapsed < *trial / LOOK_PART).then_some(Job {
            bytes,
            warmup_bytes: bytes / 2,
            ..*look
        })
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
        let amount = Amount::Lasting { trial: Duration::from_secs(1), warmup_bytes_max: 64 << 20 };
        let look = amount.first_look(4096);
        let fast = amount.job(&look, Duration::from_millis(2));
        let slow = amount.job(&look, Duration::from_secs(4));
        assert_eq!((fast.bytes >> 20, fast.warmup_bytes >> 20, fast.block_bytes), (2000, 64, 4096));
        assert_eq!((slow.bytes, slow.warmup_bytes), (TRIAL_BYTES_MIN, TRIAL_BYTES_MIN / 2));
    }

    #[test]
    fn looks_grow_until_one_lasts() {
        let amount = Amount::Lasting { trial: Duration::from_secs(1), warmup_bytes_max: 64 << 20 };
        let mut look = Some(amount.first_look(4096));
        let mut bytes = Vec::new();
        while let Some(job) = look {
            bytes.push(job.bytes >> 20);
            look = amount.next_look(&job, Duration::from_millis(3 * (job.bytes >> 20)));
        }
        assert_eq!(bytes, [4, 16, 64, 256]);
        assert_eq!(amount.next_look(&amount.first_look(4096), Duration::from_millis(251)), None);
    }

    #[test]
    fn what_is_fixed_stays() {
        let amount = Amount::Fixed { bytes: 10, warmup_bytes: 3 };
        let look = amount.first_look(7);
        assert_eq!(look, Job { bytes: 10, block_bytes: 7, warmup_bytes: 3 });
        assert_eq!(amount.next_look(&look, Duration::ZERO), None);
        assert_eq!(amount.job(&look, Duration::ZERO), look);
    }
}
