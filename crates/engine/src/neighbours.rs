//! Whether other programs used the CPUs: a short loop of fixed work on each of them, timed between rounds. It does not see what the
//! rounds measured, so that no figures are selected by their value.

use std::hint::black_box;

use model::{Cpu, monotonic_ns};
use process::Pinned;

/// Steps of the work: about half a millisecond.
const STEPS: u64 = 400_000;
/// The most CPUs that are timed: 2 ms in all.
const CPUS_MAX: usize = 4;
/// The work was disturbed where it took this many times its running median.
const OFF_FROM: f64 = 1.5;
/// Times that the median is taken of, at most and at least.
const LOOKS_MAX: usize = 31;
const LOOKS_MIN: usize = 5;

/// The last times of each CPU.
pub(crate) struct Neighbours {
    cpus: Vec<(u32, RecentTimes)>,
    /// Whether the last look found another program at work.
    busy: bool,
}

impl Neighbours {
    /// Takes the first times, to know what is usual.
    pub(crate) fn new(cpus: &[Cpu]) -> Self {
        let cpus = cpus.iter().take(CPUS_MAX).map(|cpu| (cpu.id, RecentTimes::default())).collect();
        let mut neighbours = Self { cpus, busy: false };
        for _ in 0..LOOKS_MIN {
            neighbours.busy = neighbours.look();
        }
        neighbours
    }

    /// Whether another program used a CPU just before or just after what was done since the last call.
    pub(crate) fn disturbed(&mut self) -> bool {
        let now = self.look();
        std::mem::replace(&mut self.busy, now) || now
    }

    fn look(&mut self) -> bool {
        let mut busy = false;
        for (cpu, looks) in &mut self.cpus {
            // Timed from before the move: another program on the CPU costs most by the wait for it. A CPU that this process may
            // no longer use is left out.
            let began = monotonic_ns();
            if let Ok(_pinned) = Pinned::to(*cpu) {
                work();
                busy |= looks.is_off(monotonic_ns() - began);
            }
        }
        busy
    }
}

/// What the work took at the last looks at one CPU.
#[derive(Default)]
struct RecentTimes(Vec<u64>);

impl RecentTimes {
    /// Whether this time is off the median of the earlier ones. Afterwards it is one of them: a change that lasts becomes usual.
    fn is_off(&mut self, took_ns: u64) -> bool {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
        let off = self.0.len() >= LOOKS_MIN && took_ns as f64 > OFF_FROM * median as f64;
        if self.0.len() == LOOKS_MAX {
            self.0.remove(0);
        }
        self.0.push(took_ns);
        off
    }
}

/// Fixed work in registers, each step of which needs the one before.
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
    fn a_slow_look_is_off_and_what_lasts_becomes_usual() {
        let mut looks = RecentTimes::default();
        assert!((0..LOOKS_MIN).all(|_| !looks.is_off(1000)), "too few to judge by");
        assert!(!looks.is_off(1499) && looks.is_off(1501), "one and a half times the median");
        let off = (0..2 * LOOKS_MAX).filter(|_| looks.is_off(3000)).count();
        assert!((LOOKS_MIN..=LOOKS_MAX).contains(&off), "{off}: slower for good is no neighbour");
        assert!(!looks.is_off(1000), "faster is no disturbance");
    }
}
