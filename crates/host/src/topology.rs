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

/// The CPUs on which the calling thread may run. On kernels that are built for more than 1024 CPUs, sched_getaffinity(2) with a set of
/// fixed size fails with EINVAL; then /proc/self/status is read.
pub(crate) fn allowed(roots: &Roots) -> CpuList {
    match sched_getaffinity(None) {
        Ok(set) => {
            (0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).filter_map(|n| u32::try_from(n).ok()).collect()
        }
        Err(_) => {
            let status = roots.proc_text("self/status").unwrap_or_default();
            CpuList::parse(field(&status, "Cpus_allowed_list").unwrap_or("0"))
        }
    }
}

/// The CPUs that are both `allowed` and online, ascending. If /sys has no topology, as in some containers, each CPU counts as a
/// core of package 0, node 0.
pub(crate) fn cpus_at(roots: &Roots, allowed: &CpuList) -> Vec<Cpu> {
    let online = roots.sys_text("devices/system/cpu/online").map(|text| CpuList::parse(&text));
    let online = online.filter(|online| allowed.as_slice().iter().any(|id| online.contains(*id)));
    let usable =
        allowed.as_slice().iter().filter(|id| online.as_ref().is_none_or(|list| list.contains(**id)));
    let cpus: Vec<Cpu> = usable.map(|id| position(roots, *id)).collect();
    distinct_cores(cpus)
}

/// One CPU's position, before [`distinct_cores`].
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

    #[test]
    fn this_machine_has_a_cpu() {
        assert!(!cpus().is_empty());
    }
}
