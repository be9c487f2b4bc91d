//! Sets the CPUs on which the calling thread runs. A child inherits its parent's CPUs.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Restricts the calling thread to one CPU.
///
/// # Errors
/// EINVAL if this process may not use the CPU, or its number does not fit into a set.
pub fn pin(cpu: u32) -> io::Result<()> {
    Ok(sched_setaffinity(None, &set_of(&[cpu])?)?)
}

/// A set of these CPUs. It has room for the numbers below [`CpuSet::MAX_CPU`], 1024.
fn set_of(cpus: &[u32]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL.into());
        }
        set.set(*cpu as usize);
    }
    Ok(set)
}

/// Restricts the calling thread to some CPUs until it is dropped.
pub struct Pinned {
    /// `None` if that is not known: with more than 1024 possible CPUs a set is too short for sched_getaffinity(2).
    before: Option<CpuSet>,
}

impl Pinned {
    /// Restricts the calling thread to one CPU.
    ///
    /// # Errors
    /// As [`pin`].
    pub fn to(cpu: u32) -> io::Result<Self> {
        Self::to_any(&[cpu])
    }

    /// Restricts the calling thread to these CPUs, among which the scheduler chooses.
    ///
    /// # Errors
    /// As [`pin`].
    pub fn to_any(cpus: &[u32]) -> io::Result<Self> {
        let before = sched_getaffinity(None).ok();
        sched_setaffinity(None, &set_of(cpus)?)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If the previous CPUs have become unavailable, the thread keeps the restriction. Of a full set the kernel takes those that the thread may have.
        let all = || (0..CpuSet::MAX_CPU as u32).collect::<Vec<_>>();
        if let Ok(before) = self.before.map_or_else(|| set_of(&all()), Ok) {
            let _ = sched_setaffinity(None, &before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_no_set_has_room_for_is_an_error() {
        for cpu in [1024, 5000] {
            assert_eq!(pin(cpu).expect_err("no room").raw_os_error(), Some(libc::EINVAL));
            assert!(Pinned::to(cpu).is_err());
        }
    }

    #[test]
    fn the_cpus_of_before_come_back() {
        let mine = || sched_getaffinity(None).expect("of this thread");
        let before = mine();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).expect("a CPU") as u32;
        let pinned = Pinned::to(cpu).expect("one of ours");
        assert_eq!((mine().count(), mine().is_set(cpu as usize)), (1, true));
        drop(pinned);
        assert_eq!(mine(), before);
    }
}
