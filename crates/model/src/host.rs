//! The facts about the machine in a record. The crate `host` reads them.

use serde::{Deserialize, Serialize};

use crate::SlowOffsets;

/// The machine, as recorded with each measurement. A field that the system does not report is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// `uname -s -r`, as in "Linux 6.18.0".
    pub kernel: String,
    /// Machine architecture, as in "x86_64".
    pub architecture: String,
    /// CPU model name.
    pub cpu_model: String,
    /// The CPUs that this process may use, with their place in the topology.
    pub cpus: Vec<Cpu>,
    /// Cache sizes of the first CPU by name (`L1d`, `L2`, `L3`), in bytes.
    pub caches_bytes: std::collections::BTreeMap<String, u64>,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor, if there is one, such as "KVM".
    pub hypervisor: Option<String>,
    /// The frequency governor of the first CPU.
    pub governor: Option<String>,
    /// CPU vulnerabilities and their mitigations, by name.
    pub mitigations: std::collections::BTreeMap<String, String>,
    /// Transparent huge pages: the chosen word of `always madvise never`.
    pub transparent_huge_pages: Option<String>,
    /// The same for shared memory (`shmem_enabled`).
    pub shmem_huge_pages: Option<String>,
    /// Load average over one minute when the run began.
    pub load_average_1m: Option<f64>,
    /// The page offsets at which copies are slow (`bench --workers`); absent if there are none, or they were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_copies: Option<SlowOffsets>,
    /// Limits of mechanisms.
    #[serde(flatten)]
    pub limits: Limits,
}

/// One CPU's place in the topology, from /sys/devices/system/cpu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// The kernel's number of this CPU.
    pub id: u32,
    /// Its core: the lowest CPU number among the core's hardware threads.
    pub core: u32,
    /// The socket.
    pub package: u32,
    /// The NUMA node.
    pub node: u32,
    /// Where a machine has several kinds of cores (hybrid CPUs), the kind of this one: the lowest CPU number of that kind; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<u32>,
}

/// Limits of mechanisms, from /proc/sys and getrlimit(2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// fs.pipe-max-size in bytes: the largest pipe of an ordinary user (pipe(7)).
    pub pipe_max_size: Option<u64>,
    /// fs.pipe-user-pages-soft in pages: above it new pipes get two pages, one before Linux 5.14 (pipe(7)).
    pub pipe_user_pages_soft: Option<u64>,
    /// kernel.msgmax in bytes: the longest System V message (msgget(2)).
    pub msgmax: Option<u64>,
    /// kernel.msgmnb in bytes: the capacity of a System V queue (msgget(2)).
    pub msgmnb: Option<u64>,
    /// kernel.msgmni: the number of System V queues (msgget(2)).
    pub msgmni: Option<u64>,
    /// fs.mqueue.msg_max: messages in a POSIX queue (mq_overview(7)).
    pub mq_msg_max: Option<u64>,
    /// fs.mqueue.msgsize_max in bytes: the longest POSIX message (mq_overview(7)).
    pub mq_msgsize_max: Option<u64>,
    /// fs.mqueue.queues_max: the number of POSIX queues (mq_overview(7)).
    pub mq_queues_max: Option<u64>,
    /// RLIMIT_MSGQUEUE in bytes, soft; `None` if unlimited.
    pub rlimit_msgqueue: Option<u64>,
    /// RLIMIT_MEMLOCK in bytes, soft; `None` if unlimited.
    pub rlimit_memlock: Option<u64>,
    /// RLIMIT_NOFILE, soft; `None` if unlimited.
    pub rlimit_nofile: Option<u64>,
    /// net.core.wmem_max in bytes: the largest SO_SNDBUF an ordinary user gets (socket(7)).
    pub wmem_max: Option<u64>,
    /// net.core.rmem_max in bytes: the largest SO_RCVBUF an ordinary user gets (socket(7)).
    pub rmem_max: Option<u64>,
}
