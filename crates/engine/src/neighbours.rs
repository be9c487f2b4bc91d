//! Whether something else used the CPUs: a short loop of fixed work on each of them, timed between rounds. It knows nothing of what the
//! rounds measured, and so its verdict picks no figures.

use std::hint::black_box;

use model::{Cpu, monotonic_ns};
use process::Pinned;

/// Steps of the work: about half a millisecond.
const STEPS: u64 = 400_000;
/// CPUs that are looked at: 2 ms in all.
const CPUS_MAX: usize = 4;
/// So many times its running median, and the work was disturbed.
const OFF_FROM: f64 = 1.5;
/// Looks that the median is made of; fewer than the least judge nothing.
const LOOKS_MAX: usize = 31;
const LOOKS_MIN: usize = 5;

/// The last looks at each CPU.
pub(crate) struct Neighbours {
    cpus: Vec<(u32, Looks)>,
    /// Whether the last look found somebody.
    busy: bool,
}

impl Neighbours {
    /// Looks as often as it takes to know what is usual.
    pub(crate) fn new(cpus: &[Cpu]) -> Self {
        let cpus = cpus.iter().take(CPUS_MAX).map(|cpu| (cpu.id, Looks::default())).collect();
        let mut neighbours = Self { cpus, busy: false };
        for _ in 0..LOOKS_MIN {
            neighbours.busy = neighbours.look();
        }
        neighbours
    }

    /// Whether somebody used a CPU before or after what was done since the last call.
    pub(crate) fn disturbed(&mut self) -> bool {
        let now = self.look();
        std::mem::replace(&mut self.busy, now) || now
    }

    fn look(&mut self) -> bool {
        let mut busy = false;
        for (cpu, looks) in &mut self.cpus {
            // Waiting for the CPU is what somebody on it costs most. One that was taken from us since is not looked at.
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
struct Looks(Vec<u64>);

impl Looks {
    /// Whether this time is off the median of those before it. It belongs to them from now on: what lasts becomes usual.
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
        let mut looks = Looks::default();
        assert!((0..LOOKS_MIN).all(|_| !looks.is_off(1000)), "too few to judge by");
        assert!(!looks.is_off(1499) && looks.is_off(1501), "one and a half times the median");
        let off = (0..2 * LOOKS_MAX).filter(|_| looks.is_off(3000)).count();
        assert!((LOOKS_MIN..=LOOKS_MAX).contains(&off), "{off}: slower for good is no neighbour");
        assert!(!looks.is_off(1000), "faster is no disturbance");
    }
}
