//! What a task reports during a trial: how much it has moved and, 128 times in a trial, on which CPU it runs.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::thread::sched_getcpu;

/// Comparisons of both ends' CPUs in a trial: enough for a share, and too few to slow down blocks of a nanosecond.
const COMPARISONS: u64 = 128;

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
    blocks_between_comparisons: u64,
    blocks_until_comparison: u64,
    comparisons: u64,
    /// Comparisons that found both ends on one CPU.
    equal: u64,
}

impl<'a> Progress<'a> {
    /// The progress of a task that moves this many blocks. `cpus` are its own and the other end's, if there are two ends.
    pub fn new(moved: &'a AtomicU64, cpus: Option<(&'a TaskCpu, &'a TaskCpu)>, blocks: u64) -> Self {
        let blocks_between_comparisons = (blocks / COMPARISONS).max(1);
        let blocks_until_comparison = if cpus.is_some() { blocks_between_comparisons } else { u64::MAX };
        Self { moved, cpus, blocks_between_comparisons, blocks_until_comparison, comparisons: 0, equal: 0 }
    }

    /// Reports the total that was moved. `blocks` is the number of blocks or pieces since the last report.
    #[inline]
    pub fn report(&mut self, moved: u64, blocks: u64) {
        self.moved.store(moved, Relaxed);
        if self.blocks_until_comparison > blocks {
            self.blocks_until_comparison -= blocks;
        } else {
            self.compare_cpus();
        }
    }

    #[cold]
    fn compare_cpus(&mut self) {
        self.blocks_until_comparison = self.blocks_between_comparisons;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_on_one_cpu_or_apart() {
        let (moved, own, other) = (AtomicU64::new(0), TaskCpu::default(), TaskCpu::default());
        let mut progress = Progress::new(&moved, Some((&own, &other)), 1000);
        progress.report(7, 1);
        assert_eq!((moved.load(Relaxed), progress.cpu_comparisons()), (7, (0, 0)));
        (1..1000).for_each(|_| progress.report(7, 1));
        assert_eq!(progress.cpu_comparisons(), (0, 0), "the other end has not started yet");
        other.0.store(own.0.load(Relaxed).wrapping_add(1), Relaxed);
        (0..1000).for_each(|_| progress.report(7, 1));
        let (comparisons, equal) = progress.cpu_comparisons();
        assert!(comparisons >= COMPARISONS && equal <= comparisons, "{comparisons} comparisons");
        progress.report(7, 1000);
        assert_eq!(progress.cpu_comparisons().0, comparisons + 1, "many blocks at once are one comparison");
    }
}
