//! Figures of this machine that do not depend on a mechanism: wake-ups and copies, measured by trials; system calls, clock and page
//! faults, measured by loops in this process.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::io;
use std::time::Duration;

use model::{
    Amount, Case, CaseRecord, Cpu, DataLevel, MachineFigure, MachineFigureKind, Placement, Sample, Silent,
    Spec, Tasks, Workload, decode_histogram, monotonic_ns,
};
use process::Pinned;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::param::page_size;

use crate::plan::Plan;
use crate::session::run;

/// Repeats of each figure.
const REPEATS: u32 = 9;
/// Time limit of wake-ups and copies together.
const BUDGET: Duration = Duration::from_millis(2200);
/// System calls, and readings of the clock, in one repeat.
const CALLS: u64 = 20_000;
/// Pages of one repeat.
const PAGES: usize = 1024;

/// Measures this machine in about three seconds.
///
/// Must be called from a process with one thread: trials are forked from it.
pub fn measure_machine(cpus: &[Cpu]) -> Vec<MachineFigure> {
    let mut figures = in_this_process(cpus);
    figures.extend(by_trials(cpus));
    figures
}

/// Measures a figure, in its unit.
type Loop = fn() -> io::Result<f64>;

/// The figures that need no second task.
fn in_this_process(cpus: &[Cpu]) -> Vec<MachineFigure> {
    // If this process cannot be pinned, the figures are of several CPUs.
    let _pinned = cpus.first().and_then(|cpu| Pinned::to(cpu.id).ok());
    let loops: [(MachineFigureKind, Loop); 4] = [
        (MachineFigureKind::SystemCall, || Ok(call_ns(rustix::process::getppid))),
        (MachineFigureKind::Clock, || Ok(call_ns(monotonic_ns))),
        (MachineFigureKind::ClockStep, || Ok(clock_step_ns())),
        (MachineFigureKind::PageFault, page_fault_ns),
    ];
    let figure = |(kind, measure): (MachineFigureKind, Loop)| {
        let values: io::Result<Vec<f64>> = (0..REPEATS).map(|_| measure()).collect();
        let missing = values.as_ref().err().map(model::describe_errno);
        MachineFigure { kind, values: values.unwrap_or_default(), missing }
    };
    loops.into_iter().map(figure).collect()
}

/// The time of one call.
fn call_ns<T>(call: impl Fn() -> T) -> f64 {
    let began = monotonic_ns();
    for _ in 0..CALLS {
        black_box(call());
    }
    (monotonic_ns() - began) as f64 / CALLS as f64
}

/// The clock's resolution: the smallest difference between the intervals of consecutive readings, which are multiples of it.
fn clock_step_ns() -> f64 {
    let mut readings: Vec<u64> = (0..CALLS).map(|_| monotonic_ns()).collect();
    readings.dedup();
    let mut steps: Vec<u64> = readings.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    steps.dedup();
    let between = steps.windows(2).map(|pair| pair[1] - pair[0]).min();
    between.or(steps.first().copied()).unwrap_or(1) as f64
}

/// The first write to each page of a fresh mapping.
fn page_fault_ns() -> io::Result<f64> {
    let (page, len) = (page_size(), PAGES * page_size());
    // SAFETY: a fresh private mapping at an address of the kernel's choice, unmapped below; only its own bytes are written.
    unsafe {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let start = mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::PRIVATE)?;
        // A huge page would be 512 pages at once. Kernels without huge pages return an error, which does not matter.
        let _ = madvise(start, len, Advice::LinuxNoHugepage);
        let began = monotonic_ns();
        for number in 0..PAGES {
            start.cast::<u8>().add(number * page).write_volatile(1);
        }
        let took = monotonic_ns() - began;
        munmap(start, len)?;
        Ok(took as f64 / PAGES as f64)
    }
}

/// Half of a round trip over an eventfd on one CPU and between two, and copies in the cache and beyond it.
fn by_trials(cpus: &[Cpu]) -> Vec<MachineFigure> {
    let wake_up = |placement| Case {
        workload: Workload::PingPong,
        placement,
        data: DataLevel::None,
        block_bytes: 1,
        ..Case::stream(Spec::plain("eventfd"))
    };
    let copy = |block_bytes| Case {
        tasks: Tasks::Single,
        placement: Placement::Same,
        data: DataLevel::None,
        block_bytes,
        amount: Amount::Adaptive,
        ..Case::stream(Spec::plain("memcpy"))
    };
    let cases = [
        (MachineFigureKind::WakeUpSame, wake_up(Placement::Same)),
        (MachineFigureKind::WakeUpCross, wake_up(Placement::Cross)),
        (MachineFigureKind::CopyCached, copy(64 << 10)),
        (MachineFigureKind::CopyMemory, copy(16 << 20)),
    ];
    let (kinds, cases): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let plan = Plan::new(cases, REPEATS, 1, Some(BUDGET));
    let outcome = run(&plan, Vec::new(), cpus, None, &mut Silent, &|| false);
    kinds.into_iter().zip(&outcome.cases).map(|(kind, case)| machine_figure(kind, case)).collect()
}

fn machine_figure(kind: MachineFigureKind, case: &CaseRecord) -> MachineFigure {
    let value = |sample: &Sample| match case.workload {
        Workload::Stream => Some(sample.bytes as f64 * 1e9 / sample.elapsed_ns.max(1) as f64),
        Workload::PingPong => {
            let trips = decode_histogram(sample.latency_histogram.as_deref()?).ok()?;
            Some(trips.value_at_quantile(0.5) as f64 / 2.0)
        }
    };
    let missing = case.error.as_ref().map(|error| error.message.clone());
    MachineFigure { kind, values: case.samples.iter().filter_map(value).collect(), missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_in_this_process_have_plausible_figures() {
        for figure in in_this_process(&[]) {
            assert_eq!(figure.values.len(), REPEATS as usize, "{figure:?}");
            assert!(figure.values.iter().all(|value| *value > 0.0 && *value < 1e9), "{figure:?}");
        }
    }

    /// Each first write is a page fault; a write to a touched page would only be a memory access.
    #[test]
    fn every_page_is_a_fault() {
        let faults = || {
            nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD)
                .map(|usage| usage.minor_page_faults())
        };
        let before = faults().expect("of this thread");
        page_fault_ns().expect("a mapping");
        assert!(faults().expect("of this thread") - before >= PAGES as i64);
    }
}
