//! What the doctor reads in addition to the facts of a record: current load and memory, clocks and idle states, kernel switches, the
//! file systems of temporary files, and the limits of this process.

mod confinement;

use std::path::{Path, PathBuf};

use rustix::fs::statfs;

#[cfg(test)]
pub(crate) use confinement::Quota;
pub(crate) use confinement::{CAP_IPC_LOCK, CAP_SYS_ADMIN, Confinement};

use crate::cgroup::memory_at;
use crate::names::name_of;
use crate::roots::{CLOCKS, field, meminfo_bytes, stat_numbers};
use crate::{CpuList, Roots};

/// The current state of the machine and of this process. A field that cannot be read is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Vitals {
    /// Tasks that run or are ready to run, without this process (/proc/stat, `procs_running`).
    pub(crate) other_running_tasks: Option<u64>,
    /// CPUs of the machine (/sys/devices/system/cpu/online); load and tasks are counted over all of them.
    pub(crate) online_cpus: Option<usize>,
    /// CPU time that the hypervisor gave to other guests since boot, in percent of all CPU time (/proc/stat, `steal`).
    pub(crate) stolen_percent: Option<f64>,
    /// Share of the last ten seconds in which some task waited for a CPU, in percent (/proc/pressure/cpu).
    pub(crate) cpu_pressure_percent: Option<f64>,
    /// Memory that is available without swapping, in the machine and in this process's control groups.
    pub(crate) memory_available_bytes: Option<u64>,
    /// Memory swapped out.
    pub(crate) swap_used_bytes: Option<u64>,
    /// The clock source of CLOCK_MONOTONIC, such as "tsc".
    pub(crate) clocksource: Option<String>,
    /// The available clock sources.
    pub(crate) clocksources: Vec<String>,
    /// Whether CPUs may run above their nominal frequency.
    pub(crate) boost: Option<Boost>,
    /// Longest exit latency of the first CPU's enabled idle states, in microseconds.
    pub(crate) idle_exit_us: Option<u64>,
    /// CPUs that the scheduler does not use (boot parameter isolcpus).
    pub(crate) isolated: Option<CpuList>,
    /// Whether the kernel moves pages between NUMA nodes automatically (kernel.numa_balancing).
    pub(crate) numa_balancing: Option<bool>,
    /// kernel.io_uring_disabled: 0 for all, 1 for privileged users only, 2 off (since Linux 6.6).
    pub(crate) io_uring_disabled: Option<u64>,
    /// net.unix.max_dgram_qlen: most datagrams in the queue of a Unix socket. While it is full, the sender waits (unix(7)).
    pub(crate) unix_max_dgram_qlen: Option<u64>,
    /// vm.nr_hugepages: huge pages reserved for MAP_HUGETLB (mmap(2)).
    pub(crate) nr_hugepages: Option<u64>,
    /// /dev/shm, in which shm_open(3) makes its files; `None` if it is missing.
    pub(crate) shm: Option<FileSystem>,
    /// $TMPDIR, or /tmp.
    pub(crate) temporary: Option<FileSystem>,
    /// The limits and capabilities of this process.
    pub(crate) confinement: Confinement,
}

/// The switch for frequencies above the nominal one (turbo), which depends on the CPU's driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Boost {
    /// Whether such frequencies are allowed.
    pub(crate) on: bool,
    /// The switch's file.
    pub(crate) file: PathBuf,
    /// The value that forbids them.
    pub(crate) off: &'static str,
}

/// A folder's file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSystem {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// Its kind by name, or its magic number in hexadecimal.
    pub(crate) kind: String,
    /// Free bytes for an ordinary user; `None` if it has no limit: a tmpfs mounted with `size=0` reports a total of 0 blocks.
    pub(crate) available_bytes: Option<u64>,
    /// The error when a file is made there; `None` if that works.
    pub(crate) refusal: Option<String>,
}

impl Vitals {
    /// Reads all vitals. The file systems are always this machine's, also with other roots.
    pub(crate) fn read(roots: &Roots) -> Self {
        let stat = roots.proc_text("stat").unwrap_or_default();
        let meminfo = roots.proc_text("meminfo").unwrap_or_default();
        let swap = meminfo_bytes(&meminfo, "SwapTotal").zip(meminfo_bytes(&meminfo, "SwapFree"));
        let online = roots.sys_text("devices/system/cpu/online");
        let clocks = roots.sys_text(&format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
        Self {
            other_running_tasks: stat_numbers(&stat, "procs_running")
                .first()
                .map(|tasks| tasks.saturating_sub(1)),
            online_cpus: online.map(|text| CpuList::parse(&text).as_slice().len()).filter(|cpus| *cpus > 0),
            stolen_percent: stolen_percent(&stat_numbers(&stat, "cpu")),
            cpu_pressure_percent: roots.proc_text("pressure/cpu").and_then(|text| pressure(&text)),
            memory_available_bytes: memory_at(roots).map(|memory| memory.available_bytes),
            swap_used_bytes: swap.map(|(total, free)| total.saturating_sub(free)),
            clocksource: roots.sys_text(&format!("{CLOCKS}/current_clocksource")),
            clocksources: clocks.split_whitespace().map(str::to_owned).collect(),
            boost: boost(roots),
            idle_exit_us: idle_exit_us(roots),
            isolated: roots.sys_text("devices/system/cpu/isolated").map(|text| CpuList::parse(&text)),
            numa_balancing: roots.proc_number("sys/kernel/numa_balancing").map(|mode| mode != 0),
            io_uring_disabled: roots.proc_number("sys/kernel/io_uring_disabled"),
            unix_max_dgram_qlen: roots.proc_number("sys/net/unix/max_dgram_qlen"),
            nr_hugepages: roots.proc_number("sys/vm/nr_hugepages"),
            shm: FileSystem::holding(Path::new("/dev/shm")),
            temporary: FileSystem::holding(&model::temporary_folder()),
            confinement: Confinement::read(roots),
        }
    }
}

/// `ticks`: `user nice system idle iowait irq softirq steal`, where user time contains guest time (proc_stat(5)).
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

/// intel_pstate has its own switch, with the opposite meaning; all other drivers share one.
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

impl FileSystem {
    /// The file system of a folder; `None` if there is no such folder. Makes a temporary file there and removes it.
    fn holding(folder: &Path) -> Option<Self> {
        let stat = statfs(folder).ok()?;
        // The types of these fields differ between architectures.
        #[allow(clippy::unnecessary_cast)]
        let (magic, block_bytes) = (stat.f_type as u64 & 0xffff_ffff, stat.f_bsize as u64);
        let magic = format!("{magic:#x}");
        Some(Self {
            folder: folder.to_owned(),
            kind: name_of("file-system", &magic).map_or(magic, str::to_owned),
            available_bytes: (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(block_bytes)),
            // A read-only mount, modes, quotas and security modules can forbid it, so a file is made.
            refusal: tempfile::tempfile_in(folder).err().map(|error| model::describe_errno(&error)),
        })
    }

    /// Whether files are in memory.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    /// The vitals of a machine of files, without its file systems and the rights of its user, which are always this machine's.
    fn of_files(roots: &Roots) -> Vitals {
        Vitals { shm: None, temporary: None, confinement: Confinement::default(), ..Vitals::read(roots) }
    }

    #[test]
    fn a_busy_laptop() {
        let fake = Fake::new();
        fake.proc("stat", "cpu  50 0 20 20 0 0 0 10 5 0\ncpu0 1 1 1 1\nprocs_running 3\nprocs_blocked 0");
        fake.proc("pressure/cpu", "some avg10=7.25 avg60=0.54 total=6\nfull avg10=0.00 avg60=0.00");
        fake.proc("meminfo", "MemAvailable: 2048 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB");
        fake.proc("sys/kernel/numa_balancing", "1");
        fake.sys(&format!("{CLOCKS}/current_clocksource"), "hpet");
        fake.sys(&format!("{CLOCKS}/available_clocksource"), "tsc hpet acpi_pm");
        fake.sys("devices/system/cpu/intel_pstate/no_turbo", "0");
        fake.sys("devices/system/cpu/isolated", "2-3");
        for (state, latency, disable) in [(0, 0, 0), (1, 133, 0), (2, 890, 1)] {
            fake.sys(&format!("devices/system/cpu/cpu0/cpuidle/state{state}/latency"), &latency.to_string());
            fake.sys(&format!("devices/system/cpu/cpu0/cpuidle/state{state}/disable"), &disable.to_string());
        }
        let no_turbo = fake.roots().sys.join("devices/system/cpu/intel_pstate/no_turbo");
        let expected = Vitals {
            other_running_tasks: Some(2),
            stolen_percent: Some(10.0),
            cpu_pressure_percent: Some(7.25),
            memory_available_bytes: Some(2048 * 1024),
            swap_used_bytes: Some(40 * 1024),
            clocksource: Some("hpet".into()),
            clocksources: ["tsc", "hpet", "acpi_pm"].map(String::from).into(),
            boost: Some(Boost { on: true, file: no_turbo, off: "1" }),
            // A state that is switched off does not count.
            idle_exit_us: Some(133),
            isolated: Some(CpuList::parse("2-3")),
            numa_balancing: Some(true),
            ..Vitals::default()
        };
        assert_eq!(of_files(&fake.roots()), expected);
    }

    #[test]
    fn the_common_boost_switch_and_a_machine_without_files() {
        let fake = Fake::new();
        fake.sys("devices/system/cpu/cpufreq/boost", "0");
        assert_eq!(boost(&fake.roots()).map(|boost| (boost.on, boost.off)), Some((false, "0")));
        assert_eq!(of_files(&Fake::new().roots()), Vitals::default());
    }

    #[test]
    fn a_file_system_is_recognised_and_a_folder_is_tried() {
        let read = FileSystem::holding(Path::new("/proc")).expect("every Linux has it");
        assert_eq!(read.kind, "proc");
        assert!(!read.is_memory());
        assert_eq!(read.available_bytes, None);
        assert!(read.refusal.is_some(), "no file can be made in /proc");
        let folder = tempfile::tempdir().expect("a folder");
        let usable = FileSystem::holding(folder.path()).expect("there");
        assert_eq!(usable.refusal, None);
        assert!(folder.path().read_dir().expect("there").next().is_none(), "nothing is left");
        assert_eq!(FileSystem::holding(Path::new("/proc/no such folder")), None);
        assert!(Vitals::read(&Roots::default()).temporary.is_some());
    }
}
