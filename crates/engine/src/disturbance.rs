//! Detects other programs on the CPUs: a short loop of fixed work on each CPU is timed between rounds. It does not depend on the
//! measured figures, so that no figures are selected by their value.

use std::hint::black_box;

use model::{Cpu, monotonic_ns};
use process::Pinned;

/// Steps of the work: about half a millisecond.
const STEPS: u64 = 400_000;
/// The most CPUs that are timed: 2 ms in all.
const CPUS_MAX: usize = 4;
/// The work was disturbed if it took at least this multiple of its running median.
const DISTURBED_FROM: f64 = 1.5;
/// Most and fewest durations from which the median is computed.
const TIMES_MAX: usize = 31;
const TIMES_MIN: usize = 5;

/// The last durations of the work on each CPU.
pub(crate) struct DisturbanceCheck {
    cpus: Vec<(u32, RecentTimes)>,
    /// Whether the last check found another program.
    busy: bool,
}

impl DisturbanceCheck {
    /// Measures the first durations on each CPU.
    pub(crate) fn new(cpus: &[Cpu]) -> Self {
        let cpus = cpus.iter().take(CPUS_MAX).map(|cpu| (cpu.id, RecentTimes::default())).collect();
        let mut checks = Self { cpus, busy: false };
        for _ in 0..TIMES_MIN {
            checks.busy = checks.check();
        }
        checks
    }

    /// Whether another program used a CPU now or at the last call: just before or just after the work between the calls.
    pub(crate) fn disturbed(&mut self) -> bool {
        let now = self.check();
        std::mem::replace(&mut self.busy, now) || now
    }

    fn check(&mut self) -> bool {
        let mut busy = false;
        for (cpu, times) in &mut self.cpus {
            // The time includes the move to the CPU: most of another program's cost is waiting for the CPU. A CPU that this process may
            // no longer use is skipped.
            let began = monotonic_ns();
            if let Ok(_pinned) = Pinned::to(*cpu) {
                work();
                busy |= times.is_disturbed(monotonic_ns() - began);
            }
        }
        busy
    }
}

/// The last durations of the work on one CPU, in nanoseconds.
#[derive(Default)]
struct RecentTimes(Vec<u64>);

impl RecentTimes {
    /// Whether this duration is disturbed: much longer than the median of the earlier ones. It is then added to them, so that a lasting
    /// change becomes the median.
    fn is_disturbed(&mut self, took_ns: u64) -> bool {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let disturbed = self.0.len() >= TIMES_MIN && took_ns as f64 > DISTURBED_FROM * median as f64;
        if self.0.len() == TIMES_MAX {
            self.0.remove(0);
        }
        self.0.push(took_ns);
        disturbed
    }
}

/// Fixed work in registers; each step depends on the one before.
fn work() {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_time_is_disturbed_until_it_lasts() {
        let mut times = RecentTimes::default();
        assert!((0..TIMES_MIN).all(|_| !times.is_disturbed(1000)), "too few times for a median");
        assert!(!times.is_disturbed(1499) && times.is_disturbed(1501), "one and a half times the median");
        let disturbed = (0..2 * TIMES_MAX).filter(|_| times.is_disturbed(3000)).count();
        assert!(
            (TIMES_MIN..=TIMES_MAX).contains(&disturbed),
            "{disturbed}: a lasting slowdown becomes the median"
        );
        assert!(!times.is_disturbed(1000), "faster is not a disturbance");
    }
}
