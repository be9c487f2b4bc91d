//! What limits this process, or exempts it from limits: capabilities, a seccomp filter, a tracer, a CPU quota of its control group.

use std::path::{Path, PathBuf};

use crate::Roots;
use crate::cgroup::{Version, groups_of};
use crate::roots::field;

/// The bit of `CapEff` (capabilities(7), linux/capability.h) with which RLIMIT_MEMLOCK does not apply (mlock(2)).
pub(crate) const CAP_IPC_LOCK: u32 = 14;
/// The same, with which `io_uring_disabled = 1` does not apply.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
/// The same; see [`Confinement::may_exceed_resources`].
const CAP_SYS_RESOURCE: u32 = 24;

/// The privileges and limits of this process, from /proc/self.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Confinement {
    /// The effective user is root.
    pub(crate) root: bool,
    /// The prefix of a command that only root may run.
    pub(crate) sudo: &'static str,
    /// Effective capabilities. In a user namespace some of them have no effect: the limits of pipes and message queues require the
    /// capability in the initial namespace.
    pub(crate) capabilities: u64,
    /// The bounding set: no program that this process starts, not even sudo(8), gets another capability. `None` if unknown.
    pub(crate) bounding: Option<u64>,
    /// A seccomp filter runs at each system call.
    pub(crate) seccomp_filter: Option<bool>,
    /// The process that traces this one; 0 if there is none.
    pub(crate) tracer_pid: Option<u32>,
    /// The lowest CPU quota from this process's control group up to the root.
    pub(crate) quota: Option<Quota>,
}

/// A CPU quota (cgroups(7); kernel documentation, admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quota {
    /// CPUs' worth of time in each period.
    pub(crate) cpus: f64,
    /// The quota's file.
    pub(crate) file: PathBuf,
    /// The value that removes the quota.
    pub(crate) lift: &'static str,
}

impl Confinement {
    pub(crate) fn read(roots: &Roots) -> Self {
        let status = roots.proc_text("self/status").unwrap_or_default();
        let effective_uid = field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1));
        let set = |name| field(&status, name).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        Self {
            root: effective_uid == Some("0"),
            sudo: model::sudo(),
            capabilities: set("CapEff").unwrap_or(0),
            bounding: set("CapBnd"),
            seccomp_filter: field(&status, "Seccomp").map(|mode| mode == "2"),
            tracer_pid: field(&status, "TracerPid").and_then(|pid| pid.parse().ok()),
            quota: quota(roots),
        }
    }

    /// CAP_SYS_RESOURCE: fs.pipe-max-size and the POSIX queues' maxima do not apply (pipe(7), mq_overview(7)).
    pub(crate) fn may_exceed_resources(&self) -> bool {
        self.capable(CAP_SYS_RESOURCE)
    }

    /// Whether this process, or root by sudo(8), can raise a hard limit: CAP_SYS_RESOURCE (setrlimit(2)).
    pub(crate) fn can_raise_limits(&self) -> bool {
        let by_sudo = !self.root && self.bounding.is_none_or(|set| set >> CAP_SYS_RESOURCE & 1 == 1);
        self.may_exceed_resources() || by_sudo
    }

    /// CAP_SYS_RESOURCE or CAP_SYS_ADMIN: the pages of a user's pipes are not counted (pipe(7)).
    pub(crate) fn may_exceed_pipe_pages(&self) -> bool {
        self.capable(CAP_SYS_RESOURCE) || self.capable(CAP_SYS_ADMIN)
    }

    /// Whether a capability is effective.
    pub(crate) fn capable(&self, bit: u32) -> bool {
        self.capabilities >> bit & 1 == 1
    }
}

/// The lowest of all quotas above this process, in both versions of control groups.
fn quota(roots: &Roots) -> Option<Quota> {
    let quotas = groups_of(roots, "cpu").into_iter().filter_map(|(group, version)| match version {
        Version::V1 => quota_v1(&group),
        Version::V2 => quota_v2(&group),
    });
    quotas.min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// `cpu.max`: "max 100000" or "150000 100000".
fn quota_v2(group: &Path) -> Option<Quota> {
    let file = group.join("cpu.max");
    let text = std::fs::read_to_string(&file).ok()?;
    let mut words = text.split_whitespace();
    let (quota_us, period_us): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (period_us > 0.0).then(|| Quota { cpus: quota_us / period_us, file, lift: "max" })
}

/// `cpu.cfs_quota_us`: -1 if there is none.
fn quota_v1(group: &Path) -> Option<Quota> {
    let file = group.join("cpu.cfs_quota_us");
    let number = |path: &Path| std::fs::read_to_string(path).ok()?.trim().parse::<f64>().ok();
    let (quota_us, period_us) = (number(&file)?, number(&group.join("cpu.cfs_period_us"))?);
    (quota_us > 0.0 && period_us > 0.0).then(|| Quota { cpus: quota_us / period_us, file, lift: "-1" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn a_container_of_control_groups_v2() {
        let fake = Fake::new();
        fake.proc(
            "self/status",
            "Uid:\t1000\t0\t0\t0\nCapEff:\t0000000001000000\nSeccomp:\t2\nTracerPid:\t77",
        );
        fake.proc("self/cgroup", "0::/slice/box");
        fake.sys("fs/cgroup/slice/box/cpu.max", "max 100000");
        fake.sys("fs/cgroup/slice/cpu.max", "150000 100000");
        let read = Confinement::read(&fake.roots());
        assert!(read.root && read.may_exceed_resources() && read.may_exceed_pipe_pages());
        assert!(!read.capable(CAP_IPC_LOCK) && !read.capable(CAP_SYS_ADMIN));
        assert_eq!((read.seccomp_filter, read.tracer_pid), (Some(true), Some(77)));
        let quota = read.quota.expect("the slice above has one");
        assert_eq!((quota.cpus, quota.lift), (1.5, "max"));
        assert!(quota.file.ends_with("fs/cgroup/slice/cpu.max"));
    }

    #[test]
    fn control_groups_v1_share_a_folder() {
        let fake = Fake::new();
        fake.proc("self/cgroup", "3:cpuset:/\n4:cpu,cpuacct:/box\n0::/");
        fake.sys("fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000");
        fake.sys("fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000");
        fake.sys("fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
        fake.sys("fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
        let quota = quota(&fake.roots()).expect("half a CPU");
        assert_eq!((quota.cpus, quota.lift), (0.5, "-1"));
    }
}
