//! The time of the next sample: soon if something has changed, later if nothing has. Each sampler may use a hundredth of one CPU.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A sampler uses at most 1/`CPU_PARTS` of one CPU's time, and 1/`IDLE_CPU_PARTS` while nothing changes.
const CPU_PARTS: u32 = 100;
const IDLE_CPU_PARTS: u32 = 200;
/// CPU time that may be used at once, so that a pipeline that runs for less than a second has samples, too.
const CREDIT: Duration = Duration::from_millis(3);

/// Decides when a sampler takes its next sample.
pub struct Pace {
    pause_min: Duration,
    pause_max: Duration,
    next: Instant,
    pause: Duration,
    /// CPU time that may still be used, as computed at the time `credited`.
    credit: Duration,
    credited: Instant,
    /// CPU time of all samples so far.
    spent: Duration,
}

impl Pace {
    /// The first sample is due after `first`, the others after pauses of `pause_min` to `pause_max`, or longer ones if samples are expensive.
    pub fn new(first: Duration, pause_min: Duration, pause_max: Duration) -> Self {
        let (now, spent) = (Instant::now(), Duration::ZERO);
        let (next, pause) = (now + first, pause_min);
        Self { pause_min, pause_max, next, pause, credit: CREDIT, credited: now, spent }
    }

    /// Time until the next sample is due.
    pub fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Calls `take` if a sample is due. It takes the sample, and returns whether something has changed, so that the next one is due soon.
    /// Returns the time until the next one.
    pub fn sample(&mut self, take: impl FnOnce() -> bool) -> Duration {
        if self.left().is_zero() {
            let began = cpu_time();
            let happens = take();
            self.account(cpu_time().saturating_sub(began), happens);
        }
        self.left()
    }

    /// Accounts for a sample that took this CPU time, and decides when the next one is due.
    fn account(&mut self, cost: Duration, happens: bool) {
        let now = Instant::now();
        self.spent += cost;
        let earned = self.credit + now.duration_since(self.credited) / CPU_PARTS;
        let debt = cost.saturating_sub(earned);
        self.credit = earned.saturating_sub(cost).min(CREDIT);
        // The next sample waits until the excess has been earned.
        self.credited = now + debt * CPU_PARTS;
        self.pause = if happens { self.pause_min } else { (self.pause * 2).min(self.pause_max) };
        let idles = !happens && self.pause == self.pause_max;
        let idle = if idles { cost * IDLE_CPU_PARTS } else { Duration::ZERO };
        self.next = now + self.pause.max(idle).max(debt * CPU_PARTS);
    }

    /// CPU time that the samples took so far.
    pub fn cost(&self) -> Duration {
        self.spent
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE_MIN: Duration = Duration::from_millis(4);
    const PAUSE_MAX: Duration = Duration::from_millis(32);

    #[test]
    fn nothing_to_see_is_sampled_less_and_less_and_a_full_pipe_soon() {
        let mut pace = Pace::new(PAUSE_MIN, PAUSE_MIN, PAUSE_MAX);
        for _ in 0..8 {
            pace.account(Duration::ZERO, false);
        }
        assert!(pace.left() > PAUSE_MAX / 2, "{:?}", pace.left());
        pace.credit = CREDIT;
        pace.account(Duration::ZERO, true);
        assert_eq!(pace.pause, PAUSE_MIN);
    }

    #[test]
    fn what_is_spent_is_waited_for() {
        let mut pace = Pace::new(Duration::ZERO, PAUSE_MIN, PAUSE_MAX);
        let left = pace.sample(|| {
            let began = cpu_time();
            while cpu_time() - began < Duration::from_millis(12) {}
            true
        });
        // 12 ms less 3 ms of credit, and what was earned meanwhile.
        assert!(left > Duration::from_millis(700), "{left:?}");
        assert!(pace.sample(|| unreachable!("it is not due")) > Duration::from_millis(600));
        assert_eq!(pace.credit, Duration::ZERO);
        assert!(pace.cost() >= Duration::from_millis(12));
    }
}
