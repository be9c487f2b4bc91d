//! Page sizes, NUMA, and how much memory may be locked.

use std::collections::BTreeSet;

use model::Host;

use super::{Finding, State, size, unless};
use crate::Vitals;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn findings(host: &Host, vitals: &Vitals) -> Vec<Finding> {
    let mut findings = vec![transparent(host), shared(host)];
    findings.extend(reserved(vitals));
    findings.extend(numa_balancing(host, vitals));
    findings.push(memlock(host, vitals));
    findings
}

fn transparent(host: &Host) -> Finding {
    let name = "thp";
    let why =
        "vmsplice and large copies gain from 2 MiB pages: fewer pages to pass, fewer address translations.";
    match host.transparent_huge_pages.as_deref() {
        None => Finding::new(name, State::Unknown, "this kernel has no transparent huge pages", why),
        Some(word) => Finding::new(
            name,
            unless(word != "never", State::Caps),
            format!("transparent huge pages are `{word}`"),
            why,
        )
        .mend(format!("echo madvise | sudo tee {THP}/enabled")),
    }
}

fn shared(host: &Host) -> Finding {
    let name = "thp-shmem";
    let why = "Shared memory and memfds get 4 KiB pages unless this says otherwise: each first \
        touch is a fault, and large rings miss the TLB.";
    match host.shmem_huge_pages.as_deref() {
        None => Finding::new(name, State::Unknown, "this kernel has no huge pages for shared memory", why),
        Some(word) => {
            let fine = !matches!(word, "never" | "deny");
            Finding::new(
                name,
                unless(fine, State::Note),
                format!("huge pages for shared memory are `{word}`"),
                why,
            )
            .mend(format!("echo advise | sudo tee {THP}/shmem_enabled"))
        }
    }
}

fn reserved(vitals: &Vitals) -> Option<Finding> {
    let pages = vitals.switches.nr_hugepages?;
    let what = match pages {
        0 => "no huge pages are set aside".to_owned(),
        _ => format!("{pages} huge pages are set aside"),
    };
    let why = "Only MAP_HUGETLB needs them; rows that ask for it do without, and say so.";
    Some(
        Finding::new("hugepages", unless(pages > 0, State::Note), what, why)
            .mend("sudo sysctl -w vm.nr_hugepages=64"),
    )
}

fn numa_balancing(host: &Host, vitals: &Vitals) -> Option<Finding> {
    let on = vitals.clockwork.numa_balancing?;
    let nodes: BTreeSet<u32> = host.cpus.iter().map(|cpu| cpu.node).collect();
    if nodes.len() < 2 {
        return None;
    }
    let what = if on {
        "the kernel moves pages between NUMA nodes on its own"
    } else {
        "pages stay on their NUMA node"
    };
    let why = "It unmaps pages to see who touches them, and moves buffers in the middle of a trial.";
    Some(
        Finding::new("numa-balancing", unless(!on, State::Spoils), what, why)
            .mend("sudo sysctl -w kernel.numa_balancing=0"),
    )
}

fn memlock(host: &Host, vitals: &Vitals) -> Finding {
    const ENOUGH: u64 = 8 << 20;
    let free = vitals.confinement.may_lock_memory();
    let limit = host.limits.rlimit_memlock;
    let what = match (limit, free) {
        (None, _) => "memory may be locked without limit".to_owned(),
        (Some(bytes), true) => format!("{} may be locked, but CAP_IPC_LOCK goes past that", size(bytes)),
        (Some(bytes), false) => format!("{} may be locked", size(bytes)),
    };
    let fine = free || limit.is_none_or(|bytes| bytes >= ENOUGH);
    let why =
        "io_uring's registered buffers are locked memory; above the limit they are refused with ENOMEM.";
    let finding = Finding::new("memlock", unless(fine, State::Caps), what, why);
    finding.raise("sudo prlimit --pid $$ --memlock=unlimited", vitals)
}
