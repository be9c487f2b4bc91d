//! Clocks, frequencies, idle states, and whether CPUs are set aside: what makes one second unlike the next.

use std::path::PathBuf;

use crate::{CpuList, Roots};

/// The clock sources there are, below /sys.
pub(crate) const CLOCKS_AVAILABLE: &str = "devices/system/clocksource/clocksource0/available_clocksource";

/// How time passes on this machine, from /sys/devices/system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clockwork {
    /// What CLOCK_MONOTONIC is read from, as in "tsc".
    pub clocksource: Option<String>,
    /// What it could be read from.
    pub clocksources: Vec<String>,
    /// Whether CPUs may run above their nominal frequency.
    pub boost: Option<Boost>,
    /// The longest time an enabled idle state of the first CPU needs to wake, in microseconds.
    pub idle_exit_us: Option<u64>,
    /// CPUs the scheduler leaves alone (boot parameter isolcpus); empty where none.
    pub isolated: Option<CpuList>,
    /// Whether the kernel moves pages between NUMA nodes on its own (kernel.numa_balancing).
    pub numa_balancing: Option<bool>,
}

/// Turbo, by whichever switch this CPU's driver has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boost {
    /// Frequencies above the nominal one are allowed.
    pub on: bool,
    /// The switch.
    pub file: PathBuf,
    /// What to write to it to keep the frequency down.
    pub off: &'static str,
}

impl Clockwork {
    /// Reads them.
    pub fn read(roots: &Roots) -> Self {
        let available = roots.sys_text(CLOCKS_AVAILABLE).unwrap_or_default();
        Self {
            clocksource: roots.sys_text("devices/system/clocksource/clocksource0/current_clocksource"),
            clocksources: available.split_whitespace().map(str::to_owned).collect(),
            boost: boost(roots),
            idle_exit_us: idle_exit_us(roots),
            isolated: roots.sys_text("devices/system/cpu/isolated").map(|text| CpuList::parse(&text)),
            numa_balancing: roots.proc_number("sys/kernel/numa_balancing").map(|mode| mode != 0),
        }
    }
}

/// intel_pstate has a switch of its own, which says "no"; all other drivers share one.
fn boost(roots: &Roots) -> Option<Boost> {
    let switch = |path: &str, on: u64, off: &'static str| {
        let value = roots.sys_number(path)?;
        Some(Boost { on: value == on, file: roots.sys.join(path), off })
    };
    switch("devices/system/cpu/intel_pstate/no_turbo", 0, "1")
        .or_else(|| switch("devices/system/cpu/cpufreq/boost", 1, "0"))
}

/// Kernel documentation, admin-guide/pm/cpuidle.rst: `latency` is the exit latency in microseconds.
fn idle_exit_us(roots: &Roots) -> Option<u64> {
    let folder = "devices/system/cpu/cpu0/cpuidle";
    let number = |state: &str, name: &str| roots.sys_number(&format!("{folder}/{state}/{name}"));
    let names = roots.sys_names(folder);
    let enabled = names.iter().filter(|state| number(state, "disable") == Some(0));
    enabled.filter_map(|state| number(state, "latency")).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn a_laptop() {
        let fake = Fake::new();
        fake.sys("devices/system/clocksource/clocksource0/current_clocksource", "hpet");
        fake.sys(CLOCKS_AVAILABLE, "tsc hpet acpi_pm");
        fake.sys("devices/system/cpu/intel_pstate/no_turbo", "0");
        fake.sys("devices/system/cpu/isolated", "2-3");
        fake.proc("sys/kernel/numa_balancing", "1");
        for (state, latency, disable) in [(0, 0, 0), (1, 133, 0), (2, 890, 1)] {
            fake.sys(&format!("devices/system/cpu/cpu0/cpuidle/state{state}/latency"), &latency.to_string());
            fake.sys(&format!("devices/system/cpu/cpu0/cpuidle/state{state}/disable"), &disable.to_string());
        }
        let read = Clockwork::read(&fake.roots());
        assert_eq!(read.clocksource.as_deref(), Some("hpet"));
        assert_eq!(read.clocksources, ["tsc", "hpet", "acpi_pm"]);
        assert_eq!(read.boost.map(|boost| (boost.on, boost.off)), Some((true, "1")));
        assert_eq!(read.idle_exit_us, Some(133), "a state that is switched off does not count");
        assert_eq!(read.isolated.map(|list| list.to_string()).as_deref(), Some("2-3"));
        assert_eq!(read.numa_balancing, Some(true));
    }

    #[test]
    fn the_common_boost_switch() {
        let fake = Fake::new();
        fake.sys("devices/system/cpu/cpufreq/boost", "0");
        assert_eq!(boost(&fake.roots()).map(|boost| (boost.on, boost.off)), Some((false, "0")));
        assert_eq!(Clockwork::read(&Fake::new().roots()), Clockwork::default());
    }
}
