//! What else runs: everything here takes time from a measurement, or gives it a different machine.

use crate::Roots;
use crate::facts::meminfo_bytes;
use crate::roots::field;

/// The neighbours' doings, from /proc.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Activity {
    /// Tasks running or ready at this moment, without the one that asks (/proc/stat, `procs_running`).
    pub other_running_tasks: Option<u64>,
    /// CPU time the hypervisor gave to others since boot, as a share of all CPU time in percent
    /// (/proc/stat, `steal`).
    pub stolen_percent: Option<f64>,
    /// Share of the last ten seconds in which some task waited for a CPU, in percent (/proc/pressure/cpu).
    pub cpu_pressure_percent: Option<f64>,
    /// Memory that can be had without swapping, in bytes (/proc/meminfo, `MemAvailable`).
    pub memory_available_bytes: Option<u64>,
    /// Memory swapped out, in bytes.
    pub swap_used_bytes: Option<u64>,
}

impl Activity {
    /// Reads them.
    pub fn read(roots: &Roots) -> Self {
        let stat = roots.proc_text("stat").unwrap_or_default();
        let meminfo = roots.proc_text("meminfo").unwrap_or_default();
        let swap = meminfo_bytes(&meminfo, "SwapTotal").zip(meminfo_bytes(&meminfo, "SwapFree"));
        Self {
            other_running_tasks: words_after(&stat, "procs_running")
                .first()
                .map(|tasks| tasks.saturating_sub(1)),
            stolen_percent: stolen_percent(&words_after(&stat, "cpu")),
            cpu_pressure_percent: roots.proc_text("pressure/cpu").and_then(|text| pressure(&text)),
            memory_available_bytes: meminfo_bytes(&meminfo, "MemAvailable"),
            swap_used_bytes: swap.map(|(total, free)| total.saturating_sub(free)),
        }
    }
}

/// The numbers behind `name` in /proc/stat.
fn words_after(stat: &str, name: &str) -> Vec<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_default().split_whitespace().map_while(|word| word.parse().ok()).collect()
}

/// Of `user nice system idle iowait irq softirq steal`, in ticks; guest time is within user time
/// (proc_stat(5)).
fn stolen_percent(ticks: &[u64]) -> Option<f64> {
    let steal = *ticks.get(7)?;
    let total: u64 = ticks.iter().take(8).sum();
    (total > 0).then(|| 100.0 * steal as f64 / total as f64)
}

/// `avg10` of the line `some` (kernel documentation, accounting/psi.rst).
fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    field(&some.replace(' ', "\n").replace('=', ":"), "avg10")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn a_busy_machine() {
        let fake = Fake::new();
        fake.proc("stat", "cpu  50 0 20 20 0 0 0 10 5 0\ncpu0 1 1 1 1\nprocs_running 3\nprocs_blocked 0");
        fake.proc(
            "pressure/cpu",
            "some avg10=7.25 avg60=0.54 avg300=0.51 total=6\nfull avg10=0.00 avg60=0.00",
        );
        fake.proc("meminfo", "MemAvailable: 2048 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB");
        let expected = Activity {
            other_running_tasks: Some(2),
            stolen_percent: Some(10.0),
            cpu_pressure_percent: Some(7.25),
            memory_available_bytes: Some(2048 * 1024),
            swap_used_bytes: Some(40 * 1024),
        };
        assert_eq!(Activity::read(&fake.roots()), expected);
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Activity::read(&Fake::new().roots()), Activity::default());
    }
}
