//! What a task reports during a trial: how much it has moved and, 128 times in a trial, on which CPU it runs, and when it had moved each
//! sixteenth.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use model::{SIXTEENTHS, monotonic_ns};
use rustix::thread::sched_getcpu;

/// Looks at the CPUs of both ends and at the clock in a trial: enough for a share, and too few to slow down blocks of a nanosecond.
const LOOKS: u64 = 128;

/// The number of the CPU that a task runs on, written by the task, in memory that several processes share.
#[derive(Debug, Default)]
pub struct TaskCpu(AtomicU32);

impl TaskCpu {
    /// Stores and returns the number of the CPU plus 1; 0, as in fresh memory, means that the task has not started yet.
    fn update(&self) -> u32 {
        let cpu = sched_getcpu() as u32 + 1;
        // Written only if it has changed, so that the other end's copy of the cache line stays valid.
        if self.0.load(Relaxed) != cpu {
            self.0.store(cpu, Relaxed);
        }
        cpu
    }
}

/// What a task reports to its supervisor.
pub struct Progress<'a> {
    moved: &'a AtomicU64,
    cpus: Option<(&'a TaskCpu, &'a TaskCpu)>,
    /// What the task moves in the whole trial, and what it has moved at the next look, in the unit of the reports. The pieces that arrive
    /// say nothing: a block of 64 KiB may come in one piece or in 16.
    goal: u64,
    next_look: u64,
    looks: u64,
    comparisons: u64,
    /// Comparisons that found both ends on one CPU.
    equal: u64,
    sixteenths_ns: Vec<u64>,
    /// Number of small blocks, or round trips of them, between two reports.
    pub(crate) small_blocks_between_reports: u64,
}

/// How many blocks or round trips are reported together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportUnit {
    /// Many, if they are small.
    ManyIfSmall,
    /// Each: several may take long, or each counts.
    Each,
}

impl<'a> Progress<'a> {
    /// The progress of a task that moves `goal` bytes of a stream, or makes that number of round trips. `cpus` are its own and the other
    /// end's, if there are two ends.
    pub fn new(
        moved: &'a AtomicU64,
        cpus: Option<(&'a TaskCpu, &'a TaskCpu)>,
        goal: u64,
        unit: ReportUnit,
    ) -> Self {
        let mut progress = Self {
            small_blocks_between_reports: if unit == ReportUnit::ManyIfSmall { 64 } else { 1 },
            moved,
            cpus,
            goal,
            next_look: 0,
            looks: 0,
            comparisons: 0,
            equal: 0,
            sixteenths_ns: Vec::with_capacity(SIXTEENTHS),
        };
        progress.next_look = progress.between_looks();
        progress
    }

    fn between_looks(&self) -> u64 {
        (self.goal / LOOKS).max(1)
    }

    /// Reports the total that was moved.
    #[inline]
    pub fn report(&mut self, moved: u64) {
        self.moved.store(moved, Relaxed);
        if moved >= self.next_look {
            self.look(moved);
        }
    }

    #[cold]
    fn look(&mut self, moved: u64) {
        self.next_look = moved + self.between_looks();
        self.looks += 1;
        let marked = self.sixteenths_ns.len();
        // A look may be several sixteenths after the last one only if there are few blocks.
        if marked < SIXTEENTHS && moved >= self.goal / 16 * (marked as u64 + 1) {
            self.sixteenths_ns.push(monotonic_ns());
        }
        let Some((own, other)) = self.cpus else { return };
        let (own, other) = (own.update(), other.0.load(Relaxed));
        if other != 0 {
            self.comparisons += 1;
            self.equal += u64::from(own == other);
        }
    }

    /// How often it compared the CPUs of both ends, and how often they were the same.
    pub fn cpu_comparisons(&self) -> (u64, u64) {
        (self.comparisons, self.equal)
    }

    /// When it had moved each sixteenth but the last one (CLOCK_MONOTONIC, at the first look after it); empty if there were fewer than
    /// half of [`LOOKS`], because the blocks were few or came in large pieces.
    pub fn sixteenths_ns(&mut self) -> Vec<u64> {
        let found = std::mem::take(&mut self.sixteenths_ns);
        if self.looks >= LOOKS / 2 && found.len() == SIXTEENTHS { found } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_on_one_cpu_or_apart() {
        let (moved, own, other) = (AtomicU64::new(0), TaskCpu::default(), TaskCpu::default());
        let mut progress = Progress::new(&moved, Some((&own, &other)), 1000, ReportUnit::Each);
        progress.report(1);
        assert_eq!((moved.load(Relaxed), progress.cpu_comparisons()), (1, (0, 0)));
        (1..=1000).for_each(|done| progress.report(done));
        assert_eq!(progress.cpu_comparisons(), (0, 0), "the other end has not started yet");
        other.0.store(own.0.load(Relaxed).wrapping_add(1), Relaxed);
        (1001..=2000).for_each(|done| progress.report(done));
        let (comparisons, equal) = progress.cpu_comparisons();
        assert!(comparisons >= LOOKS && equal <= comparisons, "{comparisons} comparisons");
        progress.report(3000);
        assert_eq!(progress.cpu_comparisons().0, comparisons + 1, "many blocks at once are one comparison");
    }

    /// Also if each block comes in many pieces: then the receiver of a ring had marks for the first quarter of a trial alone.
    #[test]
    fn each_sixteenth_has_its_time() {
        let (moved, goal) = (AtomicU64::new(0), 1000 << 16);
        for piece in [1 << 16, 1 << 12] {
            let mut progress = Progress::new(&moved, None, goal, ReportUnit::Each);
            let mut after = Vec::new();
            for done in (1..=goal / piece).map(|pieces| pieces * piece) {
                progress.report(done);
                if progress.sixteenths_ns.len() > after.len() {
                    after.push(done);
                }
            }
            let late = after.iter().zip(1..).map(|(done, sixteenth)| done - sixteenth * (goal / 16));
            assert!(late.clone().all(|late| late < goal / 100) && late.count() == SIXTEENTHS, "{after:?}");
            let times = progress.sixteenths_ns();
            assert!(times.len() == SIXTEENTHS && times.is_sorted(), "{times:?}");
        }
        let mut few = Progress::new(&moved, None, goal, ReportUnit::Each);
        (1..=20).for_each(|done| few.report(done * goal / 20));
        assert!(few.sixteenths_ns().is_empty());
    }
}
