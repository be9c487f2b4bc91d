//! Findings about the machine: its CPUs and clocks, other programs on them, its memory.

use std::collections::BTreeSet;

use model::{Host, Placement};

use super::Severity::{Caps, Good, Note, Spoils, Unknown};
use super::{Finding, Rule, size, unless, write_command};
use crate::vitals::Vitals;
use crate::{CpuList, resolve};

pub(super) const RULES: &[Rule] = &[
    cpus,
    siblings,
    isolated,
    hypervisor,
    mitigations,
    quota,
    seccomp,
    governor,
    clocksource,
    boost,
    idle,
    load,
    running,
    pressure,
    stolen,
    swap,
    tracer,
    thp,
    thp_shmem,
    reserved,
    numa_balancing,
];

/// A command that shows the busy programs.
const BUSY_PROGRAMS: &str = "ps -eo pid,pcpu,comm --sort=-pcpu | head";
/// The folder with the switches of transparent huge pages.
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
/// Clock sources that the vDSO reads without a system call (vdso(7); arch/*/include/asm/vdso/clocksource.h).
const FAST_CLOCKS: &str =
    "tsc kvm-clock hyperv_clocksource_tsc_page arch_sys_counter riscv_clocksource timebase tod";

fn cpus(host: &Host, _: &Vitals) -> Option<Finding> {
    let list: CpuList = host.cpus.iter().map(|cpu| cpu.id).collect();
    let count = host.cpus.len();
    let what = match count {
        1 => format!("this process may use one CPU ({list})"),
        _ => format!("this process may use {count} CPUs ({list})"),
    };
    let why = match count {
        0 | 1 => {
            "Both ends share the CPU: every block needs a context switch, and only --place same and any are \
                possible."
        }
        2 | 3 => "Two ends use two CPUs, and every other program takes time from one of them.",
        _ => "There are CPUs for two ends and for other programs.",
    };
    Some(Finding::new("cpus", unless(count > 3, Note), what, why))
}

fn siblings(host: &Host, _: &Vitals) -> Option<Finding> {
    let why = "Siblings share one core's caches and execution units: wake-ups are faster, copies are slower. \
        Placement `cross` uses two cores, `smt` two siblings.";
    let what = match resolve(Placement::Smt, &host.cpus).as_deref() {
        Ok([a, b]) => format!("SMT siblings are visible, as CPUs {a} and {b}"),
        _ => "no SMT siblings are visible".to_owned(),
    };
    Some(Finding::new("smt", Good, what, why))
}

fn isolated(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let found = |state, what: &str, why| Some(Finding::new("isolation", state, what, why));
    match &vitals.isolated {
        None => {
            let why = "Isolated CPUs run only tasks that are pinned to them.";
            found(Unknown, "the kernel does not say which CPUs are isolated", why)
        }
        Some(list) if list.is_empty() && host.cpus.len() < 4 => {
            let why = "With fewer than four CPUs the system needs them all.";
            found(Good, "no CPU is isolated, and none is superfluous", why)
        }
        Some(list) if list.is_empty() => {
            let why = "The scheduler may run other tasks on the CPUs of the ends. Boot with isolcpus= and \
                nohz_full= for the steadiest figures.";
            found(Note, "no CPU is isolated", why)
        }
        Some(list) => {
            let why = "Pin the ends there (--place CPU,CPU under `taskset -c`): nothing else runs on them.";
            found(Good, &format!("CPUs {list} are isolated"), why)
        }
    }
}

fn hypervisor(host: &Host, _: &Vitals) -> Option<Finding> {
    let guest = "To wake another CPU, a guest has to exit to its host: round trips across CPUs cost tens of \
        microseconds, and blocking mechanisms fall behind spinning ones by more than on bare metal. Other guests \
        of the host take CPU time that cannot be seen here.";
    let bare = "Wake-ups and clocks are the machine's own.";
    Some(match &host.hypervisor {
        Some(name) => Finding::new("hypervisor", Note, format!("this is a guest of {name}"), guest),
        None => Finding::new("hypervisor", Good, "no hypervisor is visible", bare),
    })
}

fn mitigations(host: &Host, _: &Vitals) -> Option<Finding> {
    let (state, why) = match host.mitigated_at_system_calls() {
        None => (Unknown, "Some mitigations make every system call slower."),
        Some(names) if names.is_empty() => (Good, "System calls run at the CPU's own speed."),
        Some(_) => {
            let why = "It slows small blocks and round trips most. Compare figures only between machines \
                with the same mitigations; they are in every record.";
            (Note, why)
        }
    };
    Some(Finding::new("mitigations", state, host.mitigations_in_words(), why))
}

fn quota(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let quota = vitals.confinement.quota.as_ref()?;
    // Two spinning ends need two CPUs. A quota as large as all CPUs has no effect.
    let enough = quota.cpus >= host.cpus.len().min(2) as f64;
    let what = format!("a control group allows {:.2} CPUs' worth of time", quota.cpus);
    let why = "Once it is used up both ends stop until the period ends (usually 100 ms): \
        throughput comes in steps and the tail of latency is the period.";
    Finding::new("cpu-quota", unless(enough, Spoils), what, why)
        .remedy(write_command(quota.lift, quota.file.display()))
}

fn seccomp(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let why = "Containers have one: it costs tens to hundreds of nanoseconds a call and may refuse \
        io_uring, vmsplice or process_vm_readv altogether.";
    let filtered = vitals.confinement.seccomp_filter == Some(true);
    filtered.then(|| Finding::new("seccomp", Note, "a seccomp filter runs at each system call", why))
}

fn governor(host: &Host, _: &Vitals) -> Option<Finding> {
    let found = |state, what: &str, why| Finding::new("governor", state, what, why);
    match (host.governor.as_deref(), &host.hypervisor) {
        (Some("performance"), _) => {
            let why = "The CPU frequency does not have to rise with the load first.";
            Some(found(Good, "the frequency governor is `performance`", why))
        }
        (Some(word), _) => {
            let why = "The CPU frequency follows the load: short trials, and ends that sleep between blocks, run \
                slower than long busy ones.";
            found(Spoils, &format!("the frequency governor is `{word}`"), why)
                .remedy("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
        }
        (None, Some(_)) => {
            let why = "The CPU frequency may change without this system's knowledge; interleaved trials spread the \
                change over all rows.";
            Some(found(Note, "no frequency governor: the hypervisor's host decides", why))
        }
        (None, None) => {
            let why = "It is unknown whether the CPU frequency is constant; see the intervals.";
            Some(found(Unknown, "no frequency governor is visible", why))
        }
    }
}

fn clocksource(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let found = |state, what: &str, why| Finding::new("clocksource", state, what, why);
    let is_fast = |source: &str| FAST_CLOCKS.split(' ').any(|fast| fast == source);
    let Some(source) = vitals.clocksource.as_deref() else {
        let why = "A clock that needs a system call makes short round trips longer.";
        return Some(found(Unknown, "the kernel does not name its clock source", why));
    };
    let what = format!("time is read from `{source}`");
    if is_fast(source) {
        return Some(found(Good, &what, "CLOCK_MONOTONIC costs about 20 ns and no system call."));
    }
    let why =
        "Each clock reading is a system call of a microsecond or more, and is part of every round trip.";
    let finding = found(Spoils, &what, why);
    let Some(better) = vitals.clocksources.iter().find(|other| is_fast(other)) else { return Some(finding) };
    finding.remedy(write_command(better, "/sys/devices/system/clocksource/clocksource0/current_clocksource"))
}

fn boost(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let boost = vitals.boost.as_ref()?;
    let what = match boost.on {
        true => "the CPU may run above its nominal frequency",
        false => "the CPU stays at or below its nominal frequency",
    };
    let why = "How far above depends on heat and on how many cores are busy: the first trials are \
        faster than the last, one busy core is faster than two.";
    Finding::new("boost", unless(!boost.on, Spoils), what, why)
        .remedy(write_command(boost.off, boost.file.display()))
}

fn idle(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let exit_us = vitals.idle_exit_us?;
    let what = format!("an idle CPU needs up to {exit_us} µs to wake");
    let why =
        "When an end blocks, its CPU becomes idle: the exit time is part of every round trip across CPUs.";
    // A wake-up on another core costs 2 to 5 µs on bare metal, so a shorter exit time is not visible.
    Finding::new("idle-states", unless(exit_us <= 5, Caps), what, why).remedy("sudo cpupower idle-set -D 5")
}

/// Number of CPUs of the machine; a pinned process (taskset(1)) may use fewer.
fn all_cpus(host: &Host, vitals: &Vitals) -> usize {
    vitals.online_cpus.unwrap_or(host.cpus.len())
}

fn load(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let why = "Other programs take CPU time from the ends, and their share changes from trial to trial.";
    let Some(load) = host.load_average_1m else {
        return Some(Finding::new("load", Unknown, "the load average cannot be read", why));
    };
    let cpus = all_cpus(host, vitals);
    // Two CPUs are for the ends. If more than half of the others are busy, caches and frequency change.
    let load_max = ((cpus as f64 - 2.0) / 2.0).max(0.25);
    let machine = if cpus == 1 { "one CPU".to_owned() } else { format!("{cpus} CPUs") };
    let what = format!("the load average is {load:.2} on the machine's {machine}");
    Finding::new("load", unless(load <= load_max, Spoils), what, why).remedy(BUSY_PROGRAMS)
}

fn running(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let others = vitals.other_running_tasks?;
    let fine = others == 0 || others.saturating_add(2) <= all_cpus(host, vitals) as u64;
    let what = match others {
        0 => "no other task runs now".to_owned(),
        1 => "one other task runs now".to_owned(),
        _ => format!("{others} other tasks run now"),
    };
    let why = "Together with the two ends there are more tasks than CPUs: some task always waits.";
    Finding::new("running", unless(fine, Spoils), what, why).remedy(BUSY_PROGRAMS)
}

fn pressure(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let percent = vitals.cpu_pressure_percent?;
    let what = format!("tasks waited for a CPU during {percent:.1} % of the last ten seconds");
    let why = "An end that waits for a CPU moves no bytes.";
    Finding::new("cpu-pressure", unless(percent < 5.0, Spoils), what, why).remedy(BUSY_PROGRAMS)
}

fn stolen(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let percent = vitals.stolen_percent?;
    let what = format!("{percent:.2} % of CPU time since boot was given to other guests");
    let why = "Stolen time is in the elapsed time, but in no counter of the ends: throughput drops and \
        the tail of latency grows for no visible reason.";
    Some(Finding::new("stolen-time", unless(percent < 1.0, Spoils), what, why))
}

fn swap(_: &Host, vitals: &Vitals) -> Option<Finding> {
    const LITTLE: u64 = 512 << 20;
    let available = vitals.memory_available_bytes?;
    let swapped = vitals.swap_used_bytes.unwrap_or(0);
    let what = match swapped {
        0 => format!("{} of memory are available, nothing is swapped out", size(available)),
        _ => format!("{} of memory are available, {} are swapped out", size(available), size(swapped)),
    };
    let state = if available < LITTLE { Spoils } else { unless(swapped == 0, Note) };
    let why = "Buffers, page cache and files as links need memory; reading a page from swap takes longer than \
        sending any block.";
    let finding = Finding::new("memory", state, what, why);
    if swapped == 0 || swapped >= available / 2 {
        return Some(finding);
    }
    finding.remedy("sudo swapoff -a && sudo swapon -a")
}

fn tracer(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let pid = vitals.confinement.tracer_pid.filter(|pid| *pid > 0)?;
    let why = "Under strace(1) or a debugger every system call stops twice; no figure means anything.";
    Finding::new("tracer", Spoils, format!("process {pid} traces this one"), why)
        .remedy(format!("ps -p {pid} -o pid,comm,args"))
}

fn thp(host: &Host, _: &Vitals) -> Option<Finding> {
    let why =
        "vmsplice and large copies gain from 2 MiB pages: fewer pages to pass, fewer address translations.";
    let Some(word) = host.transparent_huge_pages.as_deref() else {
        return Some(Finding::new("thp", Unknown, "this kernel has no transparent huge pages", why));
    };
    let what = format!("transparent huge pages are `{word}`");
    Finding::new("thp", unless(word != "never", Caps), what, why)
        .remedy(write_command("madvise", format_args!("{THP}/enabled")))
}

fn thp_shmem(host: &Host, _: &Vitals) -> Option<Finding> {
    let name = "thp-shmem";
    let why = "Shared memory and memfds get 4 KiB pages unless this is changed: each first access is a fault, \
        and large rings miss the TLB.";
    let Some(word) = host.shmem_huge_pages.as_deref() else {
        return Some(Finding::new(name, Unknown, "this kernel has no huge pages for shared memory", why));
    };
    let what = format!("huge pages for shared memory are `{word}`");
    Finding::new(name, unless(!matches!(word, "never" | "deny"), Note), what, why)
        .remedy(write_command("advise", format_args!("{THP}/shmem_enabled")))
}

fn reserved(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let pages = vitals.nr_hugepages?;
    let what = match pages {
        0 => "no huge pages are reserved".to_owned(),
        _ => format!("{pages} huge pages are reserved"),
    };
    let why = "Only MAP_HUGETLB needs them; rows that request it run without, with a remark.";
    Finding::new("hugepages", unless(pages > 0, Note), what, why).remedy("sudo sysctl -w vm.nr_hugepages=64")
}

fn numa_balancing(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let on = vitals.numa_balancing?;
    let nodes: BTreeSet<u32> = host.cpus.iter().map(|cpu| cpu.node).collect();
    if nodes.len() < 2 {
        return None;
    }
    let what = match on {
        true => "the kernel moves pages between NUMA nodes automatically",
        false => "pages stay on their NUMA node",
    };
    let why = "It unmaps pages to see which task touches them, and moves buffers in the middle of a trial.";
    Finding::new("numa-balancing", unless(!on, Spoils), what, why)
        .remedy("sudo sysctl -w kernel.numa_balancing=0")
}
