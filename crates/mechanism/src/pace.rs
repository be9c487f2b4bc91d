//! The pace of round trips that begin at a fixed rate.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::thread::{ClockId, NanosleepRelativeResult, clock_nanosleep_relative, sched_yield};

/// Sleep ends this long before a round trip is due, and the rest is spent spinning: a timer may be late by its slack (50 µs, prctl(2),
/// PR_SET_TIMERSLACK) and by the time of a wake-up.
const AWAKE_BEFORE: Duration = Duration::from_micros(200);

/// Readings of the clock between two calls of sched_yield(2), which lets other tasks use the CPU.
const CLOCK_READS_BEFORE_YIELD: u32 = 32;

/// When each round trip is due, and how long each took from when it really began.
pub struct Pace {
    rate_per_s: u32,
    /// Times from the real beginning of each round trip to its end, in nanoseconds.
    pub service_ns: Histogram<u64>,
}

impl Pace {
    /// A pace of `rate_per_s` round trips per second (at least 1). `service_ns` is an empty histogram.
    pub fn new(rate_per_s: u32, service_ns: Histogram<u64>) -> Self {
        Self { rate_per_s: rate_per_s.max(1), service_ns }
    }

    /// When round trip number `round` is due, counted from 0, if the first one is due at `began`.
    pub(crate) fn due(&self, began: Instant, round: u64) -> Instant {
        let ns = u128::from(round) * 1_000_000_000 / u128::from(self.rate_per_s);
        began + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Waits until `due`; does not wait if that has passed. Returns the time at the end of the wait.
    pub(crate) fn wait_until(&self, due: Instant) -> Instant {
        let mut clock_reads = 0u32;
        loop {
            let now = Instant::now();
            let left = due.saturating_duration_since(now);
            if left.is_zero() {
                return now;
            }
            if left > AWAKE_BEFORE {
                sleep(left - AWAKE_BEFORE);
            }
            clock_reads = clock_reads.wrapping_add(1);
            if clock_reads.is_multiple_of(CLOCK_READS_BEFORE_YIELD) {
                sched_yield()
            } else {
                std::hint::spin_loop()
            }
        }
    }
}

/// Sleeps; a signal may end the sleep early, so the caller reads the clock again.
fn sleep(time: Duration) {
    if let Ok(time) = time.try_into() {
        let _: NanosleepRelativeResult = clock_nanosleep_relative(ClockId::Monotonic, &time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_due_at_a_fixed_rate_and_late_ones_begin_at_once() {
        let pace = Pace::new(1000, Histogram::new(1).expect("a histogram"));
        let began = Instant::now();
        let due = pace.due(began, 20);
        assert_eq!(due - began, Duration::from_millis(20));
        let waited = pace.wait_until(due);
        assert!(waited >= due);
        assert!(pace.wait_until(began) >= waited, "20 ms late: no wait");
        assert!(pace.due(began, u64::MAX) > due, "no overflow");
    }
}
