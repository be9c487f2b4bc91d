//! Sitting a process down on one CPU. A child inherits its parent's CPUs, so that the thread that starts a process sits there
//! itself for that moment; the writer's child, where it is to sit elsewhere, is started through taskset(1).

use std::ffi::OsString;
use std::io;

use model::{CaseError, ErrorKind, file_on_path};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::program::Program;

/// Where this thread sits for as long as the value lives.
pub(crate) struct Seat {
    before: CpuSet,
}

impl Seat {
    /// Sits down.
    ///
    /// # Errors
    /// EINVAL where this process may not use the CPU.
    pub(crate) fn take(cpu: u32) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(cpu as usize);
        sched_setaffinity(None, &only)?;
        Ok(Self { before })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The CPUs of a moment ago; should they be gone, this process works on one.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// The program, to be started on this CPU whatever its parent's is.
pub(crate) fn elsewhere(program: &Program, cpu: u32) -> Program {
    let words = ["taskset", "-c", &cpu.to_string()].map(OsString::from);
    let command = words.into_iter().chain(program.command.iter().cloned()).collect();
    Program { command, ..program.clone() }
}

/// What is said where a writer's child cannot be sat down elsewhere; `None` where it can.
pub(crate) fn no_taskset() -> Option<CaseError> {
    file_on_path("taskset").is_none().then(|| CaseError {
        kind: ErrorKind::Unavailable,
        message: "no `taskset` here, which puts the writer's child on another CPU".to_owned(),
        remedy: Some("apt-get install util-linux".to_owned()),
        expected: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sat_down_stands_up_again() {
        let mine = || sched_getaffinity(None).expect("of this thread");
        let before = mine();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).expect("a CPU") as u32;
        let seat = Seat::take(cpu).expect("one of ours");
        assert_eq!((mine().count(), mine().is_set(cpu as usize)), (1, true));
        drop(seat);
        assert_eq!(mine(), before);
    }
}
