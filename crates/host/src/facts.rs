//! The facts about the machine that are written to a record.

use std::collections::BTreeMap;

use model::{Host, Limits, parse_size};
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;

use crate::roots::{chosen, meminfo_bytes};
use crate::{CpuList, Roots, cpuinfo, hypervisor, topology};

/// The facts of this machine. Reads a few dozen small files; omits what cannot be read.
pub fn facts() -> Host {
    let roots = Roots::default();
    facts_at(&roots, &topology::allowed(&roots), hypervisor::signature().as_deref())
}

/// The facts in these /proc and /sys. Kernel, architecture and RLIMIT_* come from system calls and are always this machine's.
fn facts_at(roots: &Roots, allowed: &CpuList, signature: Option<&str>) -> Host {
    let kernel = uname();
    let cpus = topology::cpus_at(roots, allowed);
    let first = cpus.first().map_or(0, |cpu| cpu.id);
    let cpuinfo = roots.proc_text("cpuinfo").unwrap_or_default();
    let huge_pages = |name: &str| {
        let text = roots.sys_text(&format!("kernel/mm/transparent_hugepage/{name}"))?;
        chosen(&text).map(str::to_owned)
    };
    Host {
        kernel: format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy()),
        architecture: kernel.machine().to_string_lossy().into_owned(),
        cpu_model: cpuinfo::model_name(&cpuinfo).unwrap_or_else(|| "unknown CPU".to_owned()),
        cpus,
        caches_bytes: caches(roots, first),
        memory_bytes: meminfo_bytes(&roots.proc_text("meminfo").unwrap_or_default(), "MemTotal").unwrap_or(0),
        hypervisor: hypervisor::hypervisor(roots, signature),
        governor: roots.sys_text(&format!("devices/system/cpu/cpu{first}/cpufreq/scaling_governor")),
        mitigations: mitigations(roots),
        transparent_huge_pages: huge_pages("enabled"),
        shmem_huge_pages: huge_pages("shmem_enabled"),
        load_average_1m: roots.proc_text("loadavg").and_then(|text| text.split(' ').next()?.parse().ok()),
        slow_copies: None,
        limits: limits(roots),
    }
}

/// One CPU's caches by name, from /sys/devices/system/cpu/cpuN/cache.
fn caches(roots: &Roots, cpu: u32) -> BTreeMap<String, u64> {
    let folder = format!("devices/system/cpu/cpu{cpu}/cache");
    let cache = |index: &String| {
        let text = |name: &str| roots.sys_text(&format!("{folder}/{index}/{name}"));
        let suffix = match text("type")?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        Some((format!("L{}{suffix}", text("level")?), parse_size(&text("size")?).ok()?.0))
    };
    roots.sys_names(&folder).iter().filter(|name| name.starts_with("index")).filter_map(cache).collect()
}

/// The kernel's report for each CPU vulnerability that it knows.
fn mitigations(roots: &Roots) -> BTreeMap<String, String> {
    let folder = "devices/system/cpu/vulnerabilities";
    let mitigation = |name: String| Some((name.clone(), roots.sys_text(&format!("{folder}/{name}"))?));
    roots.sys_names(folder).into_iter().filter_map(mitigation).collect()
}

/// Limits of mechanisms.
fn limits(roots: &Roots) -> Limits {
    let sysctl = |name: &str| roots.proc_number(&format!("sys/{name}"));
    let soft = |resource| getrlimit(resource).current;
    Limits {
        pipe_max_size: sysctl("fs/pipe-max-size"),
        pipe_user_pages_soft: sysctl("fs/pipe-user-pages-soft"),
        msgmax: sysctl("kernel/msgmax"),
        msgmnb: sysctl("kernel/msgmnb"),
        msgmni: sysctl("kernel/msgmni"),
        mq_msg_max: sysctl("fs/mqueue/msg_max"),
        mq_msgsize_max: sysctl("fs/mqueue/msgsize_max"),
        mq_queues_max: sysctl("fs/mqueue/queues_max"),
        rlimit_msgqueue: soft(Resource::Msgqueue),
        rlimit_memlock: soft(Resource::Memlock),
        rlimit_nofile: soft(Resource::Nofile),
        wmem_max: sysctl("net/core/wmem_max"),
        rmem_max: sysctl("net/core/rmem_max"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, cpu};

    #[test]
    fn a_machine_of_files() {
        let fake = Fake::machine(&[(2, 2, 0, 0), (3, 3, 0, 0)]);
        fake.proc("cpuinfo", "model name : AMD EPYC\nflags : fpu hypervisor");
        fake.proc("meminfo", "MemTotal:       24684084 kB\nMemFree: 1 kB");
        fake.proc("loadavg", "0.09 0.10 0.04 1/83 4959");
        fake.proc("sys/fs/pipe-max-size", "1048576");
        for (index, level, kind, size) in
            [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (2, 2, "Unified", "1M")]
        {
            let folder = format!("devices/system/cpu/cpu2/cache/index{index}");
            fake.sys(&format!("{folder}/level"), &level.to_string());
            fake.sys(&format!("{folder}/type"), kind);
            fake.sys(&format!("{folder}/size"), size);
        }
        fake.sys("devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave");
        fake.sys("devices/system/cpu/vulnerabilities/meltdown", "Not affected");
        fake.sys("kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
        let host = facts_at(&fake.roots(), &CpuList::parse("0-3"), None);
        assert_eq!(host.cpus, [cpu(2, 2, 0, 0), cpu(3, 3, 0, 0)]);
        assert_eq!(host.cpu_model, "AMD EPYC");
        assert_eq!(host.memory_bytes, 24_684_084 * 1024);
        assert_eq!(host.caches_bytes.get("L1d"), Some(&49152));
        assert_eq!(host.caches_bytes.get("L2"), Some(&(1 << 20)));
        assert_eq!(host.governor.as_deref(), Some("powersave"));
        assert_eq!(host.hypervisor.as_deref(), Some("unknown"));
        assert_eq!(host.mitigations.get("meltdown").map(String::as_str), Some("Not affected"));
        assert_eq!(host.transparent_huge_pages.as_deref(), Some("madvise"));
        assert_eq!(host.shmem_huge_pages, None);
        assert_eq!(host.load_average_1m, Some(0.09));
        assert_eq!(host.limits.pipe_max_size, Some(1 << 20));
        assert_eq!(host.limits.msgmax, None);
    }

    #[test]
    fn a_machine_without_any_files() {
        let host = facts_at(&Fake::new().roots(), &CpuList::parse("0"), None);
        assert_eq!((host.cpu_model.as_str(), host.memory_bytes), ("unknown CPU", 0));
        assert!(host.kernel.starts_with("Linux "));
    }

    #[test]
    fn the_facts_of_this_machine_are_the_same_after_json() {
        let host = facts();
        assert!(host.memory_bytes > 0 && !host.cpus.is_empty());
        let text = serde_json::to_string(&host).expect("facts are data");
        assert_eq!(serde_json::from_str::<Host>(&text).expect("they read back"), host);
    }
}
