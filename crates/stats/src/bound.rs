//! What limits a stream: a verdict by rules from the CPU times, calls and switches of its samples. If they do not decide it, there
//! is no verdict.
//!
//! All figures are sums over the samples. *Busy* is the CPU time of the busiest end as a share of wall time
//! (of both ends together where they share a CPU). In this order:
//! 1. No end is busy ([`BUSY`]): the stream waits. The end that stores the bytes sleeps while it writes them: **storage**. The ends
//!    are preempted more often than they sleep: **scheduling**. They sleep at least every [`WAKE_EVERY_BLOCKS`] blocks, for less than
//!    [`WAKE_NS_MAX`] each time: **wake-ups**. Longer sleeps have another cause (a throttled machine): no verdict.
//! 2. Two ends are busy on the same CPU: **one CPU**; they cannot overlap. No verdict if the scheduler used one CPU in some trials
//!    and two in others.
//! 3. Both ends are always busy and never call or sleep: they copy or spin, no verdict. The same for a case that waits by spinning.
//! 4. The busiest end passes fewer than [`CALL_BYTES`] per system call and spends most of its time in the
//!    kernel: **system calls**.
//! 5. It spends most of its time in user mode although it moves every block by a system call: **data**, that is producing and
//!    checking the bytes. With fewer calls the bytes are also copied in user mode, and the samples do not separate the two: no verdict.
//! 6. Else **copies**; but no verdict if the data level is `none`: pages may have been copied or passed by reference, and the user
//!    time is that of the harness's own loop.

use model::{CaseRecord, DataLevel, EndUsage, Tasks, Wait, Workload};

use crate::cpu_sharing::shared_cpu;

/// Smallest share of wall time of an end that is busy: CPU times are not exact.
const BUSY: f64 = 0.80;
/// Smallest share of wall time of an end that is always busy.
const ALWAYS_BUSY: f64 = 0.97;
/// Most blocks per switch of a stream that waits for wake-ups.
const WAKE_EVERY_BLOCKS: f64 = 50.0;
/// Longest wake-up, also from a deep idle state on a virtual machine.
const WAKE_NS_MAX: f64 = 1e6;
/// A call that moves fewer bytes costs more than their copy: copying a page takes about 0.3 µs, as does a call.
const CALL_BYTES: f64 = 4096.0;
/// Fewest calls per block if the kernel moves the bytes.
const CALLS_PER_BLOCK: f64 = 1.0;
/// Bytes in the unit of `ru_oublock` (getrusage(2)).
const STORED_BLOCK_BYTES: f64 = 512.0;

model::words! {
    /// What limits a stream, with the word in tables.
    pub enum Bound {
        /// The ends sleep and wait to be woken.
        WakeUps = "wake-ups",
        /// The end that stores the bytes waits for the device.
        Storage = "storage",
        /// The ends are preempted.
        Scheduling = "scheduling",
        /// Both ends run on one CPU, one at a time.
        SharedCpu = "one CPU",
        /// System calls cost more than the copies that they make.
        SystemCalls = "system calls",
        /// Producing and checking the bytes costs more than moving them.
        Data = "data",
        /// Moving the bytes.
        Copies = "copies",
    }
}

/// Sums over all samples of a case.
struct Evidence {
    elapsed_ns: f64,
    blocks: f64,
    bytes: f64,
    voluntary: f64,
    involuntary: f64,
    ends: Vec<EndUsage>,
}

/// What limits a stream; `None` for ping-pong, if the samples do not decide it, and of workers, whose CPU time includes their start.
pub fn bound_of(case: &CaseRecord) -> Option<Bound> {
    let evidence = Evidence::from_case(case).filter(|_| case.worker.is_none())?;
    let busiest = evidence.ends.iter().max_by_key(|end| cpu_ns(end))?;
    // A single task waits for no other. If the scheduler used one CPU in some trials and two in others, the sums mix both.
    let shared = if case.tasks == Tasks::Single { false } else { shared_cpu(case)? };
    let busy = if shared {
        evidence.ends.iter().map(|end| evidence.busy(end)).sum()
    } else {
        evidence.busy(busiest)
    };
    if busy < BUSY {
        return evidence.waiting(busy);
    }
    if shared {
        return Some(Bound::SharedCpu);
    }
    let calls = busiest.syscalls.map(|calls| calls as f64);
    let in_kernel = calls.is_none_or(|calls| calls / evidence.blocks >= CALLS_PER_BLOCK);
    if case.wait == Wait::Spin || (!in_kernel && evidence.may_spin()) {
        return None;
    }
    let mostly_kernel = busiest.system_ns >= busiest.user_ns;
    if mostly_kernel && calls.is_some_and(|calls| evidence.bytes / calls.max(1.0) < CALL_BYTES) {
        return Some(Bound::SystemCalls);
    }
    let bound = if mostly_kernel { Some(Bound::Copies) } else { in_kernel.then_some(Bound::Data) };
    bound.filter(|_| case.data != DataLevel::None)
}

impl Evidence {
    fn from_case(case: &CaseRecord) -> Option<Self> {
        let ends = case.samples.iter().map(|sample| sample.ends.len()).min().unwrap_or(0);
        if case.workload != Workload::Stream {
            return None;
        }
        let sum = |figure: fn(&model::Sample) -> u64| {
            case.samples.iter().map(|sample| figure(sample) as f64).sum::<f64>()
        };
        let usage = |end: usize| EndUsage::sum(case.samples.iter().filter_map(|sample| sample.ends.get(end)));
        let evidence = Self {
            elapsed_ns: sum(|sample| sample.elapsed_ns),
            blocks: sum(|sample| sample.messages),
            bytes: sum(|sample| sample.bytes),
            voluntary: sum(|sample| sample.voluntary_switches),
            involuntary: sum(|sample| sample.involuntary_switches),
            ends: (0..ends).map(usage).collect(),
        };
        (evidence.elapsed_ns > 0.0 && evidence.blocks > 0.0).then_some(evidence)
    }

    fn busy(&self, end: &EndUsage) -> f64 {
        cpu_ns(end) as f64 / self.elapsed_ns
    }

    /// What a stream waits for if its busiest end is busy for this share of the time.
    fn waiting(&self, busy: f64) -> Option<Bound> {
        let stores = |end: &&EndUsage| end.blocks_stored as f64 * STORED_BLOCK_BYTES >= self.bytes / 2.0;
        let slept = |end: &EndUsage| end.voluntary_switches as f64 * WAKE_EVERY_BLOCKS >= self.blocks;
        if self.ends.iter().find(stores).is_some_and(slept) {
            return Some(Bound::Storage);
        }
        if self.involuntary > self.voluntary && self.involuntary * WAKE_EVERY_BLOCKS >= self.blocks {
            return Some(Bound::Scheduling);
        }
        let asleep_ns = (1.0 - busy) * self.elapsed_ns / self.voluntary.max(1.0);
        let often = self.voluntary * WAKE_EVERY_BLOCKS >= self.blocks;
        (often && asleep_ns <= WAKE_NS_MAX).then_some(Bound::WakeUps)
    }

    /// Whether every end was always busy and never slept, as when it polls memory.
    fn may_spin(&self) -> bool {
        let slept = self.voluntary * WAKE_EVERY_BLOCKS >= self.blocks;
        self.ends.len() > 1 && !slept && self.ends.iter().all(|end| self.busy(end) >= ALWAYS_BUSY)
    }
}

fn cpu_ns(end: &EndUsage) -> u64 {
    end.user_ns.saturating_add(end.system_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;

    const BLOCKS: u64 = 10_000;

    /// One end over a second: its shares of user and system time, its calls and sleeps per block.
    fn end(user: f64, system: f64, calls: f64, sleeps: f64) -> EndUsage {
        EndUsage {
            syscalls: Some((calls * BLOCKS as f64) as u64),
            voluntary_switches: (sleeps * BLOCKS as f64) as u64,
            user_ns: (user * 1e9) as u64,
            system_ns: (system * 1e9) as u64,
            ..EndUsage::default()
        }
    }

    fn case(block_bytes: u64, ends: &[EndUsage]) -> CaseRecord {
        let sample = model::Sample {
            elapsed_ns: 1_000_000_000,
            bytes: BLOCKS * block_bytes,
            messages: BLOCKS,
            ..model::Sample::of_ends(ends.to_vec())
        };
        let mut case = mock::case(Workload::Stream, vec![sample]);
        case.block_bytes = block_bytes;
        case
    }

    #[test]
    fn what_the_ends_cost_decides() {
        let (half, copying) = (end(0.1, 0.4, 1.0, 1.0), end(0.1, 0.85, 1.0, 0.1));
        let (idle, checking) = (end(0.2, 0.4, 1.0, 0.1), end(0.7, 0.25, 1.0, 0.1));
        let spinning = end(1.0, 0.0, 0.0, 0.0);
        for (what, block_bytes, ends, expected) in [
            ("a default pipe", 65536, [half, end(0.2, 0.3, 1.0, 1.0)], Some(Bound::WakeUps)),
            ("4 ms a sleep", 65536, [end(0.1, 0.1, 1.0, 0.02), end(0.1, 0.1, 1.0, 0.0)], None),
            ("busy in the kernel", 65536, [copying.clone(), idle.clone()], Some(Bound::Copies)),
            ("busy in the kernel with little", 64, [copying, idle], Some(Bound::SystemCalls)),
            ("busy in user mode", 65536, [end(0.3, 0.2, 1.0, 0.1), checking], Some(Bound::Data)),
            ("spinning hides what it waits for", 65536, [spinning.clone(), spinning], None),
            // It either copies or checks.
            (
                "a ring that sleeps now and then",
                65536,
                [end(0.9, 0.05, 0.02, 0.02), end(0.5, 0.1, 0.02, 0.02)],
                None,
            ),
        ] {
            assert_eq!(bound_of(&case(block_bytes, &ends)), expected, "{what}");
        }
    }

    #[test]
    fn the_options_of_the_case_can_prevent_a_verdict() {
        type Change = fn(&mut CaseRecord);
        let copies = [end(0.1, 0.85, 1.0, 0.1), end(0.2, 0.4, 1.0, 0.1)];
        let data = [end(0.3, 0.2, 1.0, 0.1), end(0.7, 0.25, 1.0, 0.1)];
        let long_sleeps = [end(0.1, 0.1, 1.0, 0.02), end(0.1, 0.1, 1.0, 0.0)];
        let half = [end(0.1, 0.4, 1.0, 1.0), end(0.2, 0.3, 1.0, 1.0)];
        let cases: [(&str, _, Change, _); 5] = [
            ("pages may have passed by reference", copies.clone(), |case| case.data = DataLevel::None, None),
            ("the user's time is the harness's", data, |case| case.data = DataLevel::None, None),
            ("it waits by spinning", copies, |case| case.wait = Wait::Spin, None),
            (
                "preempted for every block",
                long_sleeps,
                |case| case.samples[0].involuntary_switches = BLOCKS,
                Some(Bound::Scheduling),
            ),
            ("one CPU for both", half, |case| case.cpus = vec![1, 1], Some(Bound::SharedCpu)),
        ];
        for (what, ends, change, expected) in cases {
            let mut case = case(65536, &ends);
            change(&mut case);
            assert_eq!(bound_of(&case), expected, "{what}");
        }
    }

    #[test]
    fn a_writer_that_sleeps_as_it_stores_waits_for_the_device() {
        let stored = |sleeps| EndUsage { blocks_stored: BLOCKS * 128, ..end(0.01, 0.1, 1.0, sleeps) };
        let reader = end(0.01, 0.05, 2.0, 1.0);
        assert_eq!(bound_of(&case(65536, &[stored(3.0), reader.clone()])), Some(Bound::Storage));
        let only_the_reader_slept = case(65536, &[stored(0.0), reader]);
        assert_eq!(bound_of(&only_the_reader_slept), Some(Bound::WakeUps));
    }

    #[test]
    fn without_evidence_there_is_no_verdict() {
        type Change = fn(&mut CaseRecord);
        assert_eq!(bound_of(&case(65536, &[])), None);
        assert_eq!(bound_of(&mock::case(Workload::Stream, Vec::new())), None);
        assert_eq!(bound_of(&mock::case(Workload::PingPong, vec![mock::round_trips(0, &[1])])), None);
        let busy = [end(0.1, 0.85, 1.0, 0.1), end(0.2, 0.4, 1.0, 0.1)];
        let changes: [(&str, Change); 3] = [
            ("round trips", |case| case.workload = Workload::PingPong),
            ("no blocks", |case| case.samples[0].messages = 0),
            ("no time", |case| case.samples[0].elapsed_ns = 0),
        ];
        for (what, change) in changes {
            let mut case = case(65536, &busy);
            assert_eq!(bound_of(&case), Some(Bound::Copies));
            change(&mut case);
            assert_eq!(bound_of(&case), None, "{what}");
        }
    }

    /// A stream of blocks of 64 KiB that took `elapsed_ns`.
    fn lasting(elapsed_ns: u64, ends: &[EndUsage]) -> CaseRecord {
        let mut case = case(65536, ends);
        case.samples[0].elapsed_ns = elapsed_ns;
        case
    }

    /// An end that uses no CPU and slept so often.
    fn sleeper(voluntary_switches: u64) -> EndUsage {
        EndUsage { voluntary_switches, ..end(0.0, 0.0, 1.0, 0.0) }
    }

    #[test]
    fn the_bounds_between_what_ends_cost() {
        let in_kernel = |user, system| [end(user, system, 1.0, 0.1), end(0.1, 0.1, 1.0, 0.0)];
        let polling = |user, system, sleeps| [end(user, system, 0.02, sleeps), end(user, system, 0.02, 0.0)];
        let few_calls = [end(0.1, 0.8, 0.99, 0.1), end(0.1, 0.1, 1.0, 0.0)];
        let unknown = EndUsage { syscalls: None, ..end(0.1, 0.8, 0.0, 0.1) };
        for (what, block_bytes, ends, expected) in [
            ("busy for 80 %", 65536, &in_kernel(0.2, 0.6)[..], Some(Bound::Copies)),
            ("busy for 79 %", 65536, &in_kernel(0.2, 0.59), Some(Bound::WakeUps)),
            ("as long in user mode as in the kernel", 65536, &in_kernel(0.45, 0.45), Some(Bound::Copies)),
            ("longer in user mode", 65536, &in_kernel(0.46, 0.45), Some(Bound::Data)),
            ("4096 bytes a call", 4096, &in_kernel(0.1, 0.8), Some(Bound::Copies)),
            ("4095 bytes a call", 4095, &in_kernel(0.1, 0.8), Some(Bound::SystemCalls)),
            ("small blocks, but user mode", 64, &in_kernel(0.8, 0.1), Some(Bound::Data)),
            ("unknown calls", 64, &[unknown, end(0.1, 0.1, 1.0, 0.0)], Some(Bound::Copies)),
            ("fewer calls than blocks", 65536, &few_calls, Some(Bound::Copies)),
            ("polling in the kernel", 65536, &polling(0.37, 0.6, 0.0), None),
            ("the same, but busy for 96 %", 65536, &polling(0.36, 0.6, 0.0), Some(Bound::Copies)),
            ("the same with 199 sleeps", 65536, &polling(0.37, 0.6, 0.0199), None),
            ("the same with 200 sleeps", 65536, &polling(0.37, 0.6, 0.02), Some(Bound::Copies)),
            (
                "one of two ends that polls",
                65536,
                &[end(0.37, 0.6, 0.02, 0.0), end(0.1, 0.1, 0.02, 0.0)],
                Some(Bound::Copies),
            ),
            ("a single end that polls", 65536, &polling(0.37, 0.6, 0.0)[..1], Some(Bound::Copies)),
            (
                "always busy with calls",
                65536,
                &[end(0.1, 0.9, 1.0, 0.0), end(0.1, 0.9, 1.0, 0.0)],
                Some(Bound::Copies),
            ),
        ] {
            assert_eq!(bound_of(&case(block_bytes, ends)), expected, "{what}");
        }
    }

    #[test]
    fn the_bounds_between_what_ends_wait_for() {
        let preempted = |voluntary_switches, involuntary| {
            let mut case = lasting(10_000_000_000, &[sleeper(voluntary_switches)]);
            case.samples[0].involuntary_switches = involuntary;
            case
        };
        let half_busy =
            |sleeps| lasting(1_000_000_000, &[EndUsage { user_ns: 500_000_000, ..sleeper(sleeps) }]);
        // A block of 64 KiB is stored as 128 blocks of 512 bytes.
        let storing = |blocks_stored, sleeps| {
            lasting(1_000_000_000, &[EndUsage { blocks_stored, ..sleeper(sleeps) }, sleeper(10_000)])
        };
        for (what, case, expected) in [
            ("200 sleeps of half a millisecond", lasting(100_000_000, &[sleeper(200)]), Some(Bound::WakeUps)),
            ("199 sleeps for 10,000 blocks", lasting(100_000_000, &[sleeper(199)]), None),
            ("500 sleeps of a millisecond", half_busy(500), Some(Bound::WakeUps)),
            ("499 sleeps of a little more", half_busy(499), None),
            ("preempted 200 times", preempted(0, 200), Some(Bound::Scheduling)),
            ("preempted 199 times", preempted(0, 199), None),
            ("preempted more often than it slept", preempted(200, 201), Some(Bound::Scheduling)),
            ("preempted as often as it slept", preempted(200, 200), None),
            ("half of the bytes are stored", storing(64 * BLOCKS, 200), Some(Bound::Storage)),
            ("less than half of the bytes are stored", storing(64 * BLOCKS - 1, 200), Some(Bound::WakeUps)),
            ("it slept 199 times", storing(64 * BLOCKS, 199), Some(Bound::WakeUps)),
        ] {
            assert_eq!(bound_of(&case), expected, "{what}");
        }
    }

    #[test]
    fn the_usage_of_an_end_is_the_sum_over_all_samples() {
        let mut case = case(65536, &[end(0.1, 0.4, 1.0, 1.0), end(0.1, 0.1, 1.0, 1.0)]);
        assert_eq!(bound_of(&case), Some(Bound::WakeUps));
        let busy = [end(0.1, 1.9, 1.0, 0.0), end(0.1, 0.1, 1.0, 0.0)];
        case.samples.push(model::Sample { ends: busy.to_vec(), ..case.samples[0].clone() });
        assert_eq!(bound_of(&case), Some(Bound::Copies), "2.5 of 2 seconds");
    }

    #[test]
    fn a_single_task_shares_no_cpu_with_itself() {
        let mut case = case(65536, &[end(0.1, 0.4, 1.0, 1.0), end(0.2, 0.3, 1.0, 1.0)]);
        (case.cpus, case.tasks) = (vec![1, 1], Tasks::Single);
        assert_eq!(bound_of(&case), Some(Bound::WakeUps));
    }
}
