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
    let found = Finding::new("cpus", unless(count > 3, Note), what);
    Some(match count {
        0 | 1 => found.because("few"),
        2 | 3 => found.because("two"),
        _ => found,
    })
}

fn siblings(host: &Host, _: &Vitals) -> Option<Finding> {
    let what = match resolve(Placement::Smt, &host.cpus).as_deref() {
        Ok([a, b]) => format!("SMT siblings are visible, as CPUs {a} and {b}"),
        _ => "no SMT siblings are visible".to_owned(),
    };
    Some(Finding::new("smt", Good, what))
}

fn isolated(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let found = |state, what: &str| Finding::new("isolation", state, what);
    Some(match &vitals.isolated {
        None => found(Unknown, "the kernel does not say which CPUs are isolated"),
        Some(list) if list.is_empty() && host.cpus.len() < 4 => {
            found(Good, "no CPU is isolated, and none is superfluous").because("few")
        }
        Some(list) if list.is_empty() => found(Note, "no CPU is isolated"),
        Some(list) => found(Good, &format!("CPUs {list} are isolated")),
    })
}

fn hypervisor(host: &Host, _: &Vitals) -> Option<Finding> {
    Some(match &host.hypervisor {
        Some(name) => Finding::new("hypervisor", Note, format!("this is a guest of {name}")),
        None => Finding::new("hypervisor", Good, "no hypervisor is visible"),
    })
}

fn mitigations(host: &Host, _: &Vitals) -> Option<Finding> {
    let state = match host.mitigated_at_system_calls() {
        None => Unknown,
        Some(names) => unless(names.is_empty(), Note),
    };
    Some(Finding::new("mitigations", state, host.mitigations_in_words()))
}

fn quota(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let quota = vitals.confinement.quota.as_ref()?;
    // Two spinning ends need two CPUs. A quota as large as all CPUs has no effect.
    let enough = quota.cpus >= host.cpus.len().min(2) as f64;
    let what = format!("a control group allows {:.2} CPUs' worth of time", quota.cpus);
    Finding::new("cpu-quota", unless(enough, Spoils), what)
        .remedy(write_command(quota.lift, quota.file.display()))
}

fn seccomp(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let filtered = vitals.confinement.seccomp_filter == Some(true);
    filtered.then(|| Finding::new("seccomp", Note, "a seccomp filter runs at each system call"))
}

fn governor(host: &Host, _: &Vitals) -> Option<Finding> {
    let found = |state, what: &str| Finding::new("governor", state, what);
    match (host.governor.as_deref(), &host.hypervisor) {
        (Some("performance"), _) => Some(found(Good, "the frequency governor is `performance`")),
        (Some(word), _) => found(Spoils, &format!("the frequency governor is `{word}`")).remedied(),
        (None, Some(_)) => Some(found(Note, "no frequency governor: the hypervisor's host decides")),
        (None, None) => Some(found(Unknown, "no frequency governor is visible")),
    }
}

fn clocksource(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let found = |state, what: &str| Finding::new("clocksource", state, what);
    let is_fast = |source: &str| FAST_CLOCKS.split(' ').any(|fast| fast == source);
    let Some(source) = vitals.clocksource.as_deref() else {
        return Some(found(Unknown, "the kernel does not name its clock source"));
    };
    let finding = found(unless(is_fast(source), Spoils), &format!("time is read from `{source}`"));
    let Some(better) = vitals.clocksources.iter().find(|other| is_fast(other)) else { return Some(finding) };
    finding.remedy(write_command(better, "/sys/devices/system/clocksource/clocksource0/current_clocksource"))
}

fn boost(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let boost = vitals.boost.as_ref()?;
    let what = match boost.on {
        true => "the CPU may run above its nominal frequency",
        false => "the CPU stays at or below its nominal frequency",
    };
    Finding::new("boost", unless(!boost.on, Spoils), what)
        .remedy(write_command(boost.off, boost.file.display()))
}

fn idle(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let exit_us = vitals.idle_exit_us?;
    let what = format!("an idle CPU needs up to {exit_us} µs to wake");
    // A wake-up on another core costs 2 to 5 µs on bare metal, so a shorter exit time is not visible.
    Finding::new("idle-states", unless(exit_us <= 5, Caps), what).remedied()
}

/// Number of CPUs of the machine; a pinned process (taskset(1)) may use fewer.
fn all_cpus(host: &Host, vitals: &Vitals) -> usize {
    vitals.online_cpus.unwrap_or(host.cpus.len())
}

fn load(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let Some(load) = host.load_average_1m else {
        return Some(Finding::new("load", Unknown, "the load average cannot be read"));
    };
    let cpus = all_cpus(host, vitals);
    // Two CPUs are for the ends. If more than half of the others are busy, caches and frequency change.
    let load_max = ((cpus as f64 - 2.0) / 2.0).max(0.25);
    let machine = if cpus == 1 { "one CPU".to_owned() } else { format!("{cpus} CPUs") };
    let what = format!("the load average is {load:.2} on the machine's {machine}");
    Finding::new("load", unless(load <= load_max, Spoils), what).remedied()
}

fn running(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let others = vitals.other_running_tasks?;
    let fine = others == 0 || others.saturating_add(2) <= all_cpus(host, vitals) as u64;
    let what = match others {
        0 => "no other task runs now".to_owned(),
        1 => "one other task runs now".to_owned(),
        _ => format!("{others} other tasks run now"),
    };
    Finding::new("running", unless(fine, Spoils), what).remedied()
}

fn pressure(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let percent = vitals.cpu_pressure_percent?;
    let what = format!("tasks waited for a CPU during {percent:.1} % of the last ten seconds");
    Finding::new("cpu-pressure", unless(percent < 5.0, Spoils), what).remedied()
}

fn stolen(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let percent = vitals.stolen_percent?;
    let what = format!("{percent:.2} % of CPU time since boot was given to other guests");
    Some(Finding::new("stolen-time", unless(percent < 1.0, Spoils), what))
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
    let finding = Finding::new("memory", state, what);
    if swapped == 0 || swapped >= available / 2 {
        return Some(finding);
    }
    finding.remedy("sudo swapoff -a && sudo swapon -a")
}

fn tracer(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let pid = vitals.confinement.tracer_pid.filter(|pid| *pid > 0)?;
    Finding::new("tracer", Spoils, format!("process {pid} traces this one"))
        .remedy(format!("ps -p {pid} -o pid,comm,args"))
}

fn thp(host: &Host, _: &Vitals) -> Option<Finding> {
    let Some(word) = host.transparent_huge_pages.as_deref() else {
        return Some(Finding::new("thp", Unknown, "this kernel has no transparent huge pages"));
    };
    let what = format!("transparent huge pages are `{word}`");
    Finding::new("thp", unless(word != "never", Caps), what).remedied()
}

fn thp_shmem(host: &Host, _: &Vitals) -> Option<Finding> {
    let name = "thp-shmem";
    let Some(word) = host.shmem_huge_pages.as_deref() else {
        return Some(Finding::new(name, Unknown, "this kernel has no huge pages for shared memory"));
    };
    let what = format!("huge pages for shared memory are `{word}`");
    Finding::new(name, unless(!matches!(word, "never" | "deny"), Note), what).remedied()
}

fn reserved(_: &Host, vitals: &Vitals) -> Option<Finding> {
    let pages = vitals.nr_hugepages?;
    let what = match pages {
        0 => "no huge pages are reserved".to_owned(),
        _ => format!("{pages} huge pages are reserved"),
    };
    Finding::new("hugepages", unless(pages > 0, Note), what).remedied()
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
    Finding::new("numa-balancing", unless(!on, Spoils), what).remedied()
}
