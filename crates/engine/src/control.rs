//! The page that all tasks of a trial share: a barrier, how far each end has come, and on which CPU it runs.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use mechanism::{SharedMemory, TaskCpu};

/// Looks at the barrier this often before it lets others run: both ends are there within microseconds,
/// unless they share a CPU.
const LOOKS_BEFORE_YIELD: u32 = 2_000;

/// What one task writes, on a cache line (and prefetch neighbour) of its own.
#[repr(C, align(128))]
struct Told {
    moved: AtomicU64,
    cpu: TaskCpu,
}

/// Two ends and the longest chain of relays between them.
pub(crate) const TASKS_MAX: usize = 66;

#[repr(C, align(128))]
struct Page {
    arrived: AtomicU32,
    told: [Told; TASKS_MAX],
}

/// The shared page.
pub(crate) struct Control {
    memory: SharedMemory,
}

impl Control {
    /// A page of zeros: nobody has arrived, nothing was moved.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { memory: SharedMemory::new(size_of::<Page>())? })
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping is page-aligned, as long as a Page, zeroed (a valid Page), and all fields are
        // atomics, so that shared references from several tasks are sound.
        unsafe { &*self.memory.as_ptr().cast::<Page>() }
    }

    /// Waits until all `tasks` have come here. Whoever never comes is the supervisor's business: it ends the
    /// others.
    pub(crate) fn barrier(&self, tasks: u32) {
        let arrived = &self.page().arrived;
        arrived.fetch_add(1, AcqRel);
        let mut looks = 0;
        while arrived.load(Acquire) < tasks {
            looks += 1;
            if looks < LOOKS_BEFORE_YIELD { std::hint::spin_loop() } else { rustix::thread::sched_yield() }
        }
    }

    /// How much one task has moved.
    pub(crate) fn moved(&self, task: usize) -> &AtomicU64 {
        &self.page().told[task].moved
    }

    /// Where one task says on which CPU it is.
    pub(crate) fn cpu(&self, task: usize) -> &TaskCpu {
        &self.page().told[task].cpu
    }

    /// How far the task that is furthest behind has come, and the sum of all, which grows with any progress.
    pub(crate) fn slowest_and_sum(&self, tasks: usize) -> (u64, u64) {
        let values = || (0..tasks).map(|task| self.moved(task).load(Relaxed));
        (values().min().unwrap_or(0), values().sum())
    }
}
