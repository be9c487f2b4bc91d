//! The pace of messages, or of round trips, that are due at a fixed rate.

use hdrhistogram::Histogram;
use model::{monotonic_ns, thread_cpu_ns};
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute, sched_yield};
use serde::{Deserialize, Serialize};

/// The client of round trips sleeps until this long before one is due, in nanoseconds, and polls the clock for the rest: a timer may be
/// late by its slack (50 µs, prctl(2), PR_SET_TIMERSLACK) and by the time of a wake-up, which is not the mechanism's time.
const AWAKE_BEFORE_NS: u64 = 200_000;

/// Readings of the clock between two calls of sched_yield(2), which lets other tasks use the CPU.
const CLOCK_READS_BEFORE_YIELD: u32 = 32;

/// How the client of paced round trips waits until one is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PacedClient {
    /// It polls the clock at the end of each wait, and each response is timed from when its request was due.
    Polls,
    /// It sleeps, as a program does. A late timer is not the mechanism's time: a response is timed from when its request was due only if
    /// the last one came later than that.
    Sleeps,
}

/// When each message is due, counted from the first one.
pub struct Pace {
    rate_per_s: u32,
    client: PacedClient,
    /// Of round trips: times from the real beginning of each to its end, in nanoseconds.
    pub service_ns: Option<Histogram<u64>>,
    /// CPU time that was spent on polling the clock, in nanoseconds: it is no work of an end.
    pub polled_cpu_ns: u64,
}

impl Pace {
    /// A pace of `rate_per_s` messages per second (at least 1). `service_ns` is an empty histogram, for round trips.
    pub fn new(rate_per_s: u32, client: PacedClient, service_ns: Option<Histogram<u64>>) -> Self {
        Self { rate_per_s: rate_per_s.max(1), client, service_ns, polled_cpu_ns: 0 }
    }

    /// Waits until a round trip is due. Returns when it begins, and from when its response is timed.
    pub(crate) fn begin_trip(&mut self, due_ns: u64) -> (u64, u64) {
        if self.client == PacedClient::Polls || monotonic_ns() >= due_ns {
            return (self.poll_until(due_ns), due_ns);
        }
        Self::sleep_until(due_ns);
        let began_ns = monotonic_ns();
        (began_ns, began_ns)
    }

    /// When message `number`, counted from 0, is due (CLOCK_MONOTONIC), if the first one is due at `began_ns`.
    pub(crate) fn due_ns(&self, began_ns: u64, number: u64) -> u64 {
        let ns = u128::from(number) * 1_000_000_000 / u128::from(self.rate_per_s);
        began_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Sleeps until `due_ns`; does nothing if that has passed. A program that sends at a rate does the same: what its wake-ups cost is
    /// part of its CPU time, and a late timer makes a message late.
    pub(crate) fn sleep_until(due_ns: u64) {
        let at =
            |ns: u64| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
        // A signal may end the sleep early.
        while monotonic_ns() < due_ns {
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at(due_ns));
        }
    }

    /// Waits until `due_ns`, the last part without sleeping; does not wait if that has passed. Returns the time at the end of the wait.
    fn poll_until(&mut self, due_ns: u64) -> u64 {
        let mut now_ns = monotonic_ns();
        if now_ns >= due_ns {
            return now_ns;
        }
        Self::sleep_until(due_ns.saturating_sub(AWAKE_BEFORE_NS));
        let (before_ns, mut clock_reads) = (thread_cpu_ns(), 0u32);
        while now_ns < due_ns {
            clock_reads = clock_reads.wrapping_add(1);
            if clock_reads.is_multiple_of(CLOCK_READS_BEFORE_YIELD) {
                sched_yield()
            } else {
                std::hint::spin_loop()
            }
            now_ns = monotonic_ns();
        }
        self.polled_cpu_ns += thread_cpu_ns().saturating_sub(before_ns);
        now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn messages_are_due_at_a_fixed_rate_and_late_ones_begin_at_once() {
        let mut pace = Pace::new(1000, PacedClient::Polls, None);
        let began_ns = monotonic_ns();
        let due_ns = pace.due_ns(began_ns, 20);
        assert_eq!(due_ns - began_ns, 20 * MS);
        let waited_ns = pace.poll_until(due_ns);
        assert!(waited_ns >= due_ns);
        assert!(pace.poll_until(began_ns) >= waited_ns, "20 ms late: no wait");
        let mut sleeper = Pace::new(1000, PacedClient::Sleeps, None);
        let (begun_ns, from_ns) = sleeper.begin_trip(monotonic_ns() + 2 * MS);
        assert_eq!((begun_ns, sleeper.polled_cpu_ns), (from_ns, 0), "a late timer is not the mechanism's");
        assert_eq!(sleeper.begin_trip(due_ns).1, due_ns, "a late answer is");
        assert_eq!(pace.begin_trip(due_ns + MS).1, due_ns + MS);
        Pace::sleep_until(due_ns + 5 * MS);
        assert!(monotonic_ns() >= due_ns + 5 * MS);
        assert!(pace.due_ns(began_ns, u64::MAX) > due_ns, "no overflow");
    }

    /// Expected: what a client spends on polling the clock is known, and a sleep spends nearly nothing.
    /// Happened: 160 µs of polling counted as CPU time of each round trip, of which the server took 8.
    #[test]
    fn polling_is_counted_apart_and_a_sleep_polls_nothing() {
        let mut pace = Pace::new(100, PacedClient::Polls, None);
        let (began_ns, before_ns) = (monotonic_ns(), thread_cpu_ns());
        for number in 1..=5 {
            Pace::sleep_until(pace.due_ns(began_ns, number));
        }
        let slept_ns = thread_cpu_ns() - before_ns;
        assert!(pace.polled_cpu_ns == 0 && slept_ns < 25 * MS, "{slept_ns} ns of CPU time in 50 ms");
        let before_ns = thread_cpu_ns();
        for number in 6..=10 {
            pace.poll_until(pace.due_ns(began_ns, number));
        }
        let used_ns = thread_cpu_ns() - before_ns;
        assert!((1..=used_ns).contains(&pace.polled_cpu_ns), "{} of {used_ns} ns", pace.polled_cpu_ns);
    }
}
