//! Round trips at instants that were fixed beforehand.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::thread::{ClockId, NanosleepRelativeResult, clock_nanosleep_relative, sched_yield};

/// So long before a question is due its asker is awake: a timer may be late by its slack (50 µs, prctl(2), PR_SET_TIMERSLACK) and
/// by what it takes to wake up.
const AWAKE_BEFORE: Duration = Duration::from_micros(200);

/// Looks at the clock between two chances for other tasks that want the CPU.
const LOOKS_BEFORE_YIELD: u32 = 32;

/// When the questions of an asker are due, and how long each took from when it was really asked.
pub struct Pace {
    rate_per_s: u32,
    /// Times from the real question to the answer, in nanoseconds.
    pub service_ns: Histogram<u64>,
}

impl Pace {
    /// Questions a second (at least 1); `service_ns` is empty.
    pub fn new(rate_per_s: u32, service_ns: Histogram<u64>) -> Self {
        Self { rate_per_s: rate_per_s.max(1), service_ns }
    }

    /// When a question is due, of those that began at `began`; they are counted from 0.
    pub(crate) fn due(&self, began: Instant, question: u64) -> Instant {
        let ns = u128::from(question) * 1_000_000_000 / u128::from(self.rate_per_s);
        began + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Waits until then, and says when it is. A question that is late already is asked at once.
    pub(crate) fn wait_until(&self, due: Instant) -> Instant {
        let mut looks = 0u32;
        loop {
            let now = Instant::now();
            let left = due.saturating_duration_since(now);
            if left.is_zero() {
                return now;
            }
            if left > AWAKE_BEFORE {
                sleep(left - AWAKE_BEFORE);
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_BEFORE_YIELD) { sched_yield() } else { std::hint::spin_loop() }
        }
    }
}

/// An interruption ends it early, and the clock is looked at again.
fn sleep(time: Duration) {
    if let Ok(time) = time.try_into() {
        let _: NanosleepRelativeResult = clock_nanosleep_relative(ClockId::Monotonic, &time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_due_at_their_instants_and_late_ones_at_once() {
        let pace = Pace::new(1000, Histogram::new(1).expect("a histogram"));
        let began = Instant::now();
        let due = pace.due(began, 20);
        assert_eq!(due - began, Duration::from_millis(20));
        let asked = pace.wait_until(due);
        assert!(asked >= due);
        assert!(pace.wait_until(began) >= asked, "20 ms late, and not waited for");
        assert!(pace.due(began, u64::MAX) > due, "no overflow");
    }
}
