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
    /// Blocks of the whole trial, those so far, and those at the next look.
    all_blocks: u64,
    blocks: u64,
    next_look: u64,
    comparisons: u64,
    /// Comparisons that found both ends on one CPU.
    equal: u64,
    sixteenths_ns: Vec<u64>,
}

impl<'a> Progress<'a> {
    /// The progress of a task that moves this many blocks. `cpus` are its own and the other end's, if there are two ends.
    pub fn new(moved: &'a AtomicU64, cpus: Option<(&'a TaskCpu, &'a TaskCpu)>, all_blocks: u64) -> Self {
        let mut progress = Self {
            moved,
            cpus,
            all_blocks,
            blocks: 0,
            next_look: 0,
            comparisons: 0,
            equal: 0,
            sixteenths_ns: Vec::with_capacity(SIXTEENTHS),
        };
        progress.next_look = progress.between_looks();
        progress
    }

    fn between_looks(&self) -> u64 {
        (self.all_blocks / LOOKS).max(1)
    }

    /// Reports the total that was moved. `blocks` is the number of blocks or pieces since the last report.
    #[inline]
    pub fn report(&mut self, moved: u64, blocks: u64) {
        self.moved.store(moved, Relaxed);
        self.blocks += blocks;
        if self.blocks >= self.next_look {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        self.next_look = self.blocks + self.between_looks();
        let marked = self.sixteenths_ns.len();
        // A look may be several sixteenths after the last one only if there are few blocks.
        if marked < SIXTEENTHS && self.blocks >= self.all_blocks / 16 * (marked as u64 + 1) {
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
    /// [`LOOKS`] blocks, or if they came in large pieces.
    pub fn sixteenths_ns(&mut self) -> Vec<u64> {
        let found = std::mem::take(&mut self.sixteenths_ns);
        if self.all_blocks >= LOOKS && found.len() == SIXTEENTHS { found } else { Vec::new() }
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
        assert!(comparisons >= LOOKS && equal <= comparisons, "{comparisons} comparisons");
        progress.report(7, 1000);
        assert_eq!(progress.cpu_comparisons().0, comparisons + 1, "many blocks at once are one comparison");
    }

    #[test]
    fn each_sixteenth_has_its_time() {
        let moved = AtomicU64::new(0);
        let mut progress = Progress::new(&moved, None, 1000);
        let mut after = Vec::new();
        for block in 1..=1000 {
            progress.report(block, 1);
            if progress.sixteenths_ns.len() > after.len() {
                after.push(block);
            }
        }
        let late = after.iter().zip(1..).map(|(block, sixteenth)| block - sixteenth * 62);
        assert!(late.clone().all(|late| late < 8) && late.count() == SIXTEENTHS, "{after:?}");
        let times = progress.sixteenths_ns();
        assert!(times.len() == SIXTEENTHS && times.is_sorted(), "{times:?}");
        let mut few = Progress::new(&moved, None, LOOKS - 1);
        (1..LOOKS).for_each(|block| few.report(block, 1));
        assert!(few.sixteenths_ns().is_empty());
    }
}
