//! Sets the CPUs on which the calling thread runs. A child inherits its parent's CPUs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Restricts the calling thread to one CPU.
///
/// # Errors
/// EINVAL if this process may not use the CPU.
pub fn pin(cpu: u32) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    Ok(sched_setaffinity(None, &only)?)
}

/// Restricts the calling thread to some CPUs until it is dropped.
pub struct Pinned {
    before: CpuSet,
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
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        cpus.iter().for_each(|cpu| only.set(*cpu as usize));
        sched_setaffinity(None, &only)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // If the previous CPUs have become unavailable, the thread keeps the restriction.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
