//! The page that all tasks of a trial share: a barrier, the progress of each end, and its CPU.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use mechanism::{SharedMemory, TaskCpu};

/// Polls of the barrier before the first sched_yield(2): both ends arrive within microseconds, unless they share a CPU.
const POLLS_BEFORE_YIELD: u32 = 2_000;

/// The counters of one task, on two cache lines of its own (adjacent lines are prefetched together).
#[repr(C, align(128))]
struct TaskCounters {
    moved: AtomicU64,
    /// The progress when the first of several pairs, senders or receivers was done.
    moved_while_all_ran: AtomicU64,
    cpu: TaskCpu,
}

/// The most tasks of a trial: each is a process or a thread, with counters in the shared memory.
pub(crate) const TASKS_MAX: usize = 1024;

/// What all tasks share; the counters of each follow it.
#[repr(C, align(128))]
struct PageHead {
    arrived: AtomicU32,
    done: AtomicU32,
    all_ran_until_ns: AtomicU64,
}

/// The shared page.
pub(crate) struct TrialPage {
    memory: SharedMemory,
    tasks: usize,
}

impl TrialPage {
    /// A page of zeros: no task has arrived, nothing was moved.
    pub(crate) fn new(tasks: usize) -> io::Result<Self> {
        Ok(Self {
            memory: SharedMemory::new(size_of::<PageHead>() + tasks * size_of::<TaskCounters>())?,
            tasks,
        })
    }

    fn head(&self) -> &PageHead {
        // SAFETY: the mapping is page-aligned, longer than a PageHead, zeroed (a valid PageHead), and all fields are
        // atomics, so that shared references from several tasks are sound.
        unsafe { &*self.memory.as_ptr().cast::<PageHead>() }
    }

    fn counters(&self) -> &[TaskCounters] {
        // SAFETY: as above; after the head, whose size is a multiple of their alignment, there are counters for every task.
        unsafe {
            std::slice::from_raw_parts(self.memory.as_ptr().add(size_of::<PageHead>()).cast(), self.tasks)
        }
    }

    /// Waits until all tasks have called it. If one never does, the supervisor ends the others.
    pub(crate) fn barrier(&self) {
        let (arrived, tasks) = (&self.head().arrived, self.tasks as u32);
        arrived.fetch_add(1, AcqRel);
        let mut polls = 0;
        while arrived.load(Acquire) < tasks {
            polls += 1;
            if polls < POLLS_BEFORE_YIELD { std::hint::spin_loop() } else { rustix::thread::sched_yield() }
        }
    }

    /// The progress of a task.
    pub(crate) fn moved(&self, task: usize) -> &AtomicU64 {
        &self.counters()[task].moved
    }

    /// Records that a task of one of several pairs, senders or receivers is done. The first one records the progress of all.
    pub(crate) fn record_done(&self, task: usize, moved: Option<u64>, now_ns: u64) {
        if let Some(moved) = moved {
            self.moved(task).store(moved, Relaxed);
        }
        if self.head().done.swap(1, AcqRel) == 0 {
            self.head().all_ran_until_ns.store(now_ns, Relaxed);
            for task in self.counters() {
                task.moved_while_all_ran.store(task.moved.load(Relaxed), Relaxed);
            }
        }
    }

    /// The progress of a task when the first one was done.
    pub(crate) fn moved_while_all_ran(&self, task: usize) -> u64 {
        self.counters()[task].moved_while_all_ran.load(Relaxed)
    }

    /// When the first task was done (CLOCK_MONOTONIC).
    pub(crate) fn all_ran_until_ns(&self) -> u64 {
        self.head().all_ran_until_ns.load(Relaxed)
    }

    /// The CPU of a task, which the task writes.
    pub(crate) fn cpu(&self, task: usize) -> &TaskCpu {
        &self.counters()[task].cpu
    }

    /// The progress of the slowest task, and the sum of all, which grows with any progress.
    pub(crate) fn slowest_and_sum(&self) -> (u64, u64) {
        let values = || self.counters().iter().map(|task| task.moved.load(Relaxed));
        (values().min().unwrap_or(0), values().sum())
    }
}
