//! The CPUs that this process may use, and their place in the topology.
//! Source: /sys/devices/system/cpu (kernel documentation, admin-guide/cputopology.rst), sched_getaffinity(2).

use std::collections::BTreeMap;

use model::Cpu;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::roots::field;
use crate::{CpuList, Roots};

/// The CPUs that this process may use on this machine.
pub fn cpus() -> Vec<Cpu> {
    let roots = Roots::default();
    cpus_at(&roots, &allowed(&roots))
}

/// The CPUs on which the calling thread may run.
pub(crate) fn allowed(roots: &Roots) -> CpuList {
    let set = sched_getaffinity(None).ok();
    set.map_or_else(
        || allowed_by_status(roots),
        |set| (0..CPUS_MAX).filter(|cpu| set.is_set(*cpu as usize)).collect(),
    )
}

/// CPUs that a set of sched_setaffinity(2) has room for: a thread cannot be pinned to others here.
const CPUS_MAX: u32 = CpuSet::MAX_CPU as u32;

/// The same from /proc/self/status: on a machine with more possible CPUs, sched_getaffinity(2) with a set of fixed size fails with EINVAL.
fn allowed_by_status(roots: &Roots) -> CpuList {
    let status = roots.proc_text("self/status").unwrap_or_default();
    let all = CpuList::parse(field(&status, "Cpus_allowed_list").unwrap_or("0"));
    let (pinnable, others): (Vec<u32>, Vec<u32>) = all.as_slice().iter().partition(|cpu| **cpu < CPUS_MAX);
    if pinnable.is_empty() { others.into_iter().collect() } else { pinnable.into_iter().collect() }
}

/// The CPUs that are both `allowed` and online, ascending. If /sys has no topology, as in some containers, each CPU counts as a
/// core of package 0, node 0.
pub(crate) fn cpus_at(roots: &Roots, allowed: &CpuList) -> Vec<Cpu> {
    let online = roots.sys_text("devices/system/cpu/online").map(|text| CpuList::parse(&text));
    let online = online.filter(|online| allowed.as_slice().iter().any(|id| online.contains(*id)));
    let usable =
        allowed.as_slice().iter().filter(|id| online.as_ref().is_none_or(|list| list.contains(**id)));
    let cpus: Vec<Cpu> = usable.map(|id| position(roots, *id)).collect();
    with_kinds(roots, distinct_cores(cpus))
}

/// Cores whose speed is at least this share of the fastest one's are of its kind: some cores of a kind may be a little faster than the others.
const OF_ONE_KIND: f64 = 0.85;

/// Notes the kinds of cores, if the machine has several (hybrid CPUs). x86 names them (`cpu_core`, `cpu_atom`); arm64 has a capacity for each CPU;
/// elsewhere the highest frequency shows them.
fn with_kinds(roots: &Roots, mut cpus: Vec<Cpu>) -> Vec<Cpu> {
    let small = roots.sys_text("devices/cpu_atom/cpus").map(|text| CpuList::parse(&text));
    let per_cpu =
        |cpu: &Cpu, file: &str| roots.sys_number(&format!("devices/system/cpu/cpu{}/{file}", cpu.id));
    let speed = |cpu: &Cpu| match &small {
        Some(small) => Some(if small.contains(cpu.id) { 1 } else { 2 }),
        None => per_cpu(cpu, "cpu_capacity").or_else(|| per_cpu(cpu, "cpufreq/cpuinfo_max_freq")),
    };
    let Some(speeds) = cpus.iter().map(speed).collect::<Option<Vec<u64>>>() else { return cpus };
    let mut left: Vec<usize> = (0..cpus.len()).collect();
    while let Some(fastest) = left.iter().map(|at| speeds[*at]).max() {
        let is_alike = |at: &usize| speeds[*at] as f64 >= fastest as f64 * OF_ONE_KIND;
        let (kind, others): (Vec<usize>, Vec<usize>) = left.iter().partition(|at| is_alike(at));
        if kind.len() == cpus.len() {
            break;
        }
        let first = kind.iter().map(|at| cpus[*at].id).min();
        kind.into_iter().for_each(|at| cpus[at].kind = first);
        left = others;
    }
    cpus
}

/// One CPU's position, before [`distinct_cores`] and [`with_kinds`].
fn position(roots: &Roots, id: u32) -> Cpu {
    let folder = format!("devices/system/cpu/cpu{id}");
    let number = |name: &str| {
        // physical_package_id is -1 if the firmware does not report it.
        roots.sys_text(&format!("{folder}/topology/{name}")).and_then(|text| text.parse().ok())
    };
    let node = roots.sys_names(&folder).iter().find_map(|name| name.strip_prefix("node")?.parse().ok());
    Cpu {
        id,
        core: lowest_sibling(roots, &folder).or_else(|| number("core_id")).unwrap_or(id),
        package: number("physical_package_id").unwrap_or(0),
        node: node.unwrap_or(0),
        kind: None,
    }
}

/// The number of a core: its lowest hardware thread. `core_id` is not unique on arm64 machines with a device tree, where it starts at
/// 0 in every cluster.
fn lowest_sibling(roots: &Roots, folder: &str) -> Option<u32> {
    let list = ["core_cpus_list", "thread_siblings_list"]
        .iter()
        .find_map(|name| roots.sys_text(&format!("{folder}/topology/{name}")))?;
    CpuList::parse(&list).as_slice().first().copied()
}

/// Corrects wrong core numbers. Some virtual machines have no sibling lists and the same `core_id` for every CPU of a package. If a core
/// then has more than 8 threads, more than any CPU's core has (POWER has 8), each CPU counts as a core.
fn distinct_cores(mut cpus: Vec<Cpu>) -> Vec<Cpu> {
    let mut threads: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for cpu in &cpus {
        *threads.entry((cpu.package, cpu.core)).or_default() += 1;
    }
    if threads.values().any(|count| *count > 8) {
        for cpu in &mut cpus {
            cpu.core = cpu.id;
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, cpu};

    fn read(fake: &Fake, allowed: &str) -> Vec<Cpu> {
        cpus_at(&fake.roots(), &CpuList::parse(allowed))
    }

    #[test]
    fn one_cpu() {
        assert_eq!(read(&Fake::machine(&[(0, 0, 0, 0)]), "0"), [cpu(0, 0, 0, 0)]);
    }

    #[test]
    fn two_cores_of_two_threads_numbered_as_intel_does() {
        let fake = Fake::machine(&[(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0), (3, 1, 0, 0)]);
        assert_eq!(read(&fake, "0-3"), [cpu(0, 0, 0, 0), cpu(1, 1, 0, 0), cpu(2, 0, 0, 0), cpu(3, 1, 0, 0)]);
        assert_eq!(read(&fake, "2-3"), [cpu(2, 0, 0, 0), cpu(3, 1, 0, 0)]);
    }

    #[test]
    fn two_nodes() {
        let fake = Fake::machine(&[(0, 0, 0, 0), (4, 4, 1, 1)]);
        assert_eq!(read(&fake, "0-7"), [cpu(0, 0, 0, 0), cpu(4, 4, 1, 1)]);
    }

    #[test]
    fn a_cpu_that_is_offline_is_not_used() {
        let fake = Fake::machine(&[(0, 0, 0, 0), (1, 1, 0, 0), (2, 2, 0, 0)]);
        fake.sys("devices/system/cpu/online", "0,2");
        assert_eq!(read(&fake, "0-2"), [cpu(0, 0, 0, 0), cpu(2, 2, 0, 0)]);
    }

    /// Expected four cores; `core_id` alone made CPUs 0 and 2 siblings, since it counts within a cluster.
    #[test]
    fn clusters_that_repeat_core_ids() {
        let fake = Fake::new();
        for (id, core) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            fake.sys(&format!("devices/system/cpu/cpu{id}/topology/core_id"), &format!("{core}"));
            fake.sys(&format!("devices/system/cpu/cpu{id}/topology/thread_siblings_list"), &format!("{id}"));
        }
        let cores: Vec<u32> = read(&fake, "0-3").iter().map(|cpu| cpu.core).collect();
        assert_eq!(cores, [0, 1, 2, 3]);
    }

    #[test]
    fn without_topology_each_cpu_is_a_core() {
        assert_eq!(read(&Fake::new(), "0-1"), [cpu(0, 0, 0, 0), cpu(1, 1, 0, 0)]);
        let fake = Fake::new();
        fake.sys("devices/system/cpu/online", "8-9");
        assert_eq!(read(&fake, "0"), [cpu(0, 0, 0, 0)], "an online list without an allowed CPU is ignored");
        fake.sys("devices/system/cpu/cpu0/topology/physical_package_id", "-1");
        assert_eq!(read(&fake, "0"), [cpu(0, 0, 0, 0)]);
    }

    #[test]
    fn impossible_core_ids_are_ignored() {
        let fake = Fake::new();
        for id in 0..16 {
            fake.sys(&format!("devices/system/cpu/cpu{id}/topology/core_id"), "0");
        }
        assert_eq!(read(&fake, "0-15").last(), Some(&cpu(15, 15, 0, 0)));
    }

    fn kinds(fake: &Fake, allowed: &str) -> Vec<Option<u32>> {
        read(fake, allowed).iter().map(|cpu| cpu.kind).collect()
    }

    #[test]
    fn kinds_of_cores_are_known_on_a_hybrid_cpu() {
        let machine = || Fake::machine(&[(0, 0, 0, 0), (1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 0, 0)]);
        let with = |file: &str, values: [u32; 4]| {
            let fake = machine();
            for (id, value) in values.iter().enumerate() {
                fake.sys(&format!("devices/system/cpu/cpu{id}/{file}"), &value.to_string());
            }
            fake
        };
        let x86 = machine();
        x86.sys("devices/cpu_core/cpus", "0-1");
        x86.sys("devices/cpu_atom/cpus", "2-3");
        assert_eq!(kinds(&x86, "0-3"), [Some(0), Some(0), Some(2), Some(2)]);
        assert_eq!(kinds(&x86, "0-1"), [None, None], "all that may be used are alike");
        let arm = with("cpu_capacity", [446, 1024, 871, 446]);
        assert_eq!(kinds(&arm, "0-3"), [Some(0), Some(1), Some(1), Some(0)]);
        assert_eq!(
            kinds(&with("cpufreq/cpuinfo_max_freq", [5000, 5100, 3500, 3500]), "0-3")[2..],
            [Some(2); 2]
        );
        assert_eq!(kinds(&with("cpufreq/cpuinfo_max_freq", [5000, 5100, 5300, 5000]), "0-3"), [None; 4]);
        assert_eq!(kinds(&machine(), "0-3"), [None; 4]);
    }

    /// Expected: CPUs to which a thread can be pinned. Happened: CPU 1024 made pinning panic.
    #[test]
    fn of_more_than_1024_cpus_those_that_can_be_pinned_are_used() {
        let fake = Fake::new();
        fake.proc("self/status", "Cpus_allowed_list:\t1020-1100");
        assert_eq!(allowed_by_status(&fake.roots()).to_string(), "1020-1023");
        fake.proc("self/status", "Cpus_allowed_list:\t2000-2001");
        assert_eq!(allowed_by_status(&fake.roots()).to_string(), "2000-2001");
    }

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(!cpus().is_empty());
    }
}
