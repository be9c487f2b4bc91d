//! How often is looked: soon where a pipe was full, seldom where nothing happens, and for a hundredth of one CPU at the most.

use std::time::{Duration, Instant};

use nix::time::ClockId;

/// Between two looks: the least is short against what people wait for, the most lets an idle pipeline sleep.
const PAUSE_MIN: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(32);
/// Of the time, one part in so many may be spent; and where nothing was found for some looks, one in so many.
const COST: u32 = 100;
const IDLE_COST: u32 = 200;
/// What may be spent ahead of time, as at the start of a pipeline that takes no longer than a second.
const CREDIT: Duration = Duration::from_millis(3);

/// When to look next.
pub(super) struct Pace {
    next: Instant,
    pause: Duration,
    /// What may be spent still, as of `settled` and `spent`.
    credit: Duration,
    settled: Instant,
    spent: Duration,
    spent_at_start: Duration,
}

impl Pace {
    pub(super) fn new() -> Self {
        let (now, spent) = (Instant::now(), cpu_time());
        let next = now + PAUSE_MIN;
        Self { next, pause: PAUSE_MIN, credit: CREDIT, settled: now, spent, spent_at_start: spent }
    }

    /// For how long nothing is to be looked at.
    pub(super) fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// A look is over; after one that found something to watch closely, the next one comes soon.
    pub(super) fn looked(&mut self, closely: bool) {
        let (now, spent) = (Instant::now(), cpu_time());
        let earned = self.credit + now.duration_since(self.settled) / COST;
        let cost = spent.saturating_sub(self.spent);
        let debt = cost.saturating_sub(earned);
        self.credit = earned.saturating_sub(cost).min(CREDIT);
        // What is owed is earned by waiting.
        self.settled = now + debt * COST;
        self.spent = spent;
        self.pause = if closely { PAUSE_MIN } else { (self.pause * 2).min(PAUSE_MAX) };
        let idle = if self.pause == PAUSE_MAX { cost * IDLE_COST } else { Duration::ZERO };
        self.next = now + self.pause.max(idle).max(debt * COST);
    }

    /// CPU time of this process since the beginning.
    pub(super) fn cost(&self) -> Duration {
        cpu_time().saturating_sub(self.spent_at_start)
    }
}

fn cpu_time() -> Duration {
    // It fails only for clocks that are not there.
    ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_see_is_looked_at_less_and_less_and_a_full_pipe_soon() {
        let mut pace = Pace::new();
        for _ in 0..8 {
            pace.looked(false);
        }
        assert!(pace.left() > PAUSE_MAX / 2, "{:?}", pace.left());
        pace.credit = CREDIT;
        pace.looked(true);
        assert_eq!(pace.pause, PAUSE_MIN);
    }

    #[test]
    fn what_is_spent_is_waited_for() {
        let mut pace = Pace::new();
        let began = cpu_time();
        let spent = || cpu_time() - began;
        while spent() < Duration::from_millis(12) {}
        pace.looked(true);
        // 12 ms less 3 ms of credit, and what was earned meanwhile.
        assert!(pace.left() > Duration::from_millis(700), "{:?} after {:?}", pace.left(), spent());
        assert_eq!(pace.credit, Duration::ZERO);
        assert!(pace.cost() >= Duration::from_millis(12));
    }
}
