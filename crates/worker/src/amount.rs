//! How much a trial moves. Languages differ a hundredfold, and what is enough for one is an hour for another.

use std::time::Duration;

use crate::job::Job;

/// What the first look at a worker moves, in bytes, and what a second one moves where the first was over too soon.
const LOOKS_BYTES: [u64; 2] = [4 << 20, 64 << 20];
/// A look that lasted less says little: start-up of the pipe, a just-in-time compiler at work.
const LOOK_MIN: Duration = Duration::from_millis(20);
/// The least and the most that a trial moves, in bytes.
const TRIAL_BYTES_MIN: u64 = 1 << 20;
const TRIAL_BYTES_MAX: u64 = 64 << 30;
/// The warm-up is no longer than this part of a trial.
const WARMUP_PART: u64 = 4;

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
        /// Bytes before the clock, at the most; a slow row has a quarter of its trial's.
        warmup_bytes_max: u64,
    },
}

impl Amount {
    /// The jobs by which a row is looked at before its trials, in turn, until one lasted long enough.
    pub(crate) fn looks(&self, block_bytes: u64) -> Vec<Job> {
        match *self {
            Self::Fixed { bytes, warmup_bytes } => vec![Job { bytes, block_bytes, warmup_bytes }],
            Self::Lasting { .. } => {
                LOOKS_BYTES.iter().map(|bytes| Job { bytes: *bytes, block_bytes, warmup_bytes: 0 }).collect()
            }
        }
    }

    /// Whether a look that lasted so long says enough.
    pub(crate) fn says_enough(elapsed: Duration) -> bool {
        elapsed >= LOOK_MIN
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
        let look = amount.looks(4096)[0];
        let fast = amount.job(&look, Duration::from_millis(2));
        let slow = amount.job(&look, Duration::from_secs(4));
        assert_eq!((fast.bytes >> 20, fast.warmup_bytes >> 20, fast.block_bytes), (2000, 64, 4096));
        assert_eq!((slow.bytes, slow.warmup_bytes), (TRIAL_BYTES_MIN, TRIAL_BYTES_MIN / 4));
    }

    #[test]
    fn what_is_fixed_stays() {
        let amount = Amount::Fixed { bytes: 10, warmup_bytes: 3 };
        let looks = amount.looks(7);
        assert_eq!(looks, [Job { bytes: 10, block_bytes: 7, warmup_bytes: 3 }]);
        assert_eq!(amount.job(&looks[0], Duration::ZERO), looks[0]);
    }
}
