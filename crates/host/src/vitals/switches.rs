//! Kernel switches that cap a mechanism and are no part of a record.

use crate::Roots;

/// Switches below /proc/sys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Switches {
    /// kernel.io_uring_disabled: 0 for all, 1 for the privileged, 2 for nobody (since Linux 6.6).
    pub io_uring_disabled: Option<u64>,
    /// net.unix.max_dgram_qlen: datagrams waiting in a Unix socket before the sender does (unix(7)).
    pub unix_max_dgram_qlen: Option<u64>,
    /// vm.nr_hugepages: huge pages set aside for MAP_HUGETLB (mmap(2)).
    pub nr_hugepages: Option<u64>,
}

impl Switches {
    /// Reads them.
    pub fn read(roots: &Roots) -> Self {
        Self {
            io_uring_disabled: roots.proc_number("sys/kernel/io_uring_disabled"),
            unix_max_dgram_qlen: roots.proc_number("sys/net/unix/max_dgram_qlen"),
            nr_hugepages: roots.proc_number("sys/vm/nr_hugepages"),
        }
    }
}
