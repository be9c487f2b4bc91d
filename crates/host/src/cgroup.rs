//! The control groups of this process, and their memory limits (cgroups(7); kernel documentation, admin-guide/cgroup-v2.rst and
//! cgroup-v1/memory.rst).

use std::fs;
use std::path::{Path, PathBuf};

use crate::Roots;
use crate::roots::meminfo_bytes;

/// Which files a control group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// The folders of the control groups that apply to this process for a controller, from its own group up to the root.
pub(crate) fn groups_of(roots: &Roots, controller: &str) -> Vec<(PathBuf, Version)> {
    let groups = roots.proc_text("self/cgroup").unwrap_or_default();
    let mounts = roots.sys.join("fs/cgroup");
    let mut folders = Vec::new();
    for line in groups.lines() {
        let Some((controllers, path)) = line.split_once(':').and_then(|(_, rest)| rest.split_once(':'))
        else {
            continue;
        };
        let version = match controllers {
            "" => Version::V2,
            _ if controllers.split(',').any(|name| name == controller) => Version::V1,
            _ => continue,
        };
        let mount = mounts.join(controllers);
        let path = Path::new(path.trim_start_matches('/'));
        folders.extend(path.ancestors().map(|group| (mount.join(group), version)));
    }
    folders
}

/// The memory of a machine, or of the control group with the lowest limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All memory that this process and the others of its group may have, in bytes.
    pub total_bytes: u64,
    /// Available without swapping, in bytes.
    pub available_bytes: u64,
}

/// The memory that this process may have; `None` if /proc/meminfo cannot be read. Beyond the limit of a control group the kernel kills a process.
pub fn memory() -> Option<Memory> {
    memory_at(&Roots::default())
}

pub(crate) fn memory_at(roots: &Roots) -> Option<Memory> {
    let meminfo = roots.proc_text("meminfo")?;
    let (total, available) = (meminfo_bytes(&meminfo, "MemTotal"), meminfo_bytes(&meminfo, "MemAvailable"));
    let machine = Memory { total_bytes: total.or(available)?, available_bytes: available.or(total)? };
    let groups = groups_of(roots, "memory").into_iter().filter_map(|(group, version)| limit(&group, version));
    Some(groups.fold(machine, |least, group| Memory {
        total_bytes: least.total_bytes.min(group.total_bytes),
        available_bytes: least.available_bytes.min(group.available_bytes),
    }))
}

/// The limit of a control group; `None` if it has none. Cached pages of files count as used there, and are available.
fn limit(group: &Path, version: Version) -> Option<Memory> {
    let (limit, used, prefix) = match version {
        Version::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        Version::V2 => ("memory.max", "memory.current", ""),
    };
    let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    let total_bytes = number(limit)?;
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached = |list: &str| {
        let name = format!("{prefix}{list}_file ");
        statistics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap_or(0)
    };
    let used_bytes = number(used).unwrap_or(0).saturating_sub(cached("inactive") + cached("active"));
    Some(Memory { total_bytes, available_bytes: total_bytes.saturating_sub(used_bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    const MIB: u64 = 1 << 20;

    fn machine() -> Fake {
        let fake = Fake::new();
        fake.proc("meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB");
        fake
    }

    fn expect(fake: &Fake, total_mib: u64, available_mib: u64) {
        let expected = Memory { total_bytes: total_mib * MIB, available_bytes: available_mib * MIB };
        assert_eq!(memory_at(&fake.roots()), Some(expected));
    }

    /// Expected: the limit of a group above this one applies. Happened: only the machine's memory was looked at, and the kernel killed the run.
    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let fake = machine();
        expect(&fake, 8192, 4096);
        fake.proc("self/cgroup", "0::/slice/box");
        fake.sys("fs/cgroup/slice/box/memory.max", "max");
        fake.sys("fs/cgroup/slice/box/memory.current", "1");
        expect(&fake, 8192, 4096);
        fake.sys("fs/cgroup/slice/memory.max", &(512 * MIB).to_string());
        fake.sys("fs/cgroup/slice/memory.current", &(400 * MIB).to_string());
        expect(&fake, 512, 112);
        let cached = format!("anon 5\nfile 999\ninactive_file {}\nactive_file {}", 200 * MIB, 100 * MIB);
        fake.sys("fs/cgroup/slice/memory.stat", &cached);
        expect(&fake, 512, 412);
    }

    /// In a container the root of the mounted groups is the container's own, whatever path /proc/self/cgroup names.
    #[test]
    fn limits_of_version_1_and_of_a_container_count() {
        let fake = machine();
        fake.proc("self/cgroup", "4:cpu,cpuacct:/box\n3:memory:/docker/0123\n1:name=systemd:/x\n0::/x");
        fake.sys("fs/cgroup/memory/memory.limit_in_bytes", &(256 * MIB).to_string());
        fake.sys("fs/cgroup/memory/memory.usage_in_bytes", &(100 * MIB).to_string());
        fake.sys("fs/cgroup/memory/memory.stat", &format!("total_inactive_file {}", 50 * MIB));
        expect(&fake, 256, 206);
        // What version 1 has for "no limit".
        fake.sys("fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        expect(&fake, 8192, 4096);
    }
}
