//! Figures of a machine that bound what any mechanism can do on it.

use serde::Serialize;

/// What a figure of a machine is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineUnit {
    /// Nanoseconds.
    Ns,
    /// Bytes per second.
    BytesPerS,
}

/// One figure of a machine: what was measured, each time it was, or why it could not be.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineFigure {
    /// Which one.
    pub kind: MachineFigureKind,
    /// Short repeats of one measurement; empty where there are none.
    pub values: Vec<f64>,
    /// Why there are none.
    pub missing: Option<String>,
}

crate::words! {
    /// The figures of a machine.
    pub enum MachineFigureKind {
        /// One system call that does next to nothing (getppid(2)), in nanoseconds.
        SystemCall = "system-call",
        /// One look at CLOCK_MONOTONIC, in nanoseconds.
        Clock = "clock",
        /// The smallest step between two looks at it, in nanoseconds.
        ClockStep = "clock-step",
        /// From one end's write(2) into an eventfd until the other end, on the same CPU, has read it: half a round trip, in nanoseconds.
        WakeUpSame = "wake-up-same-cpu",
        /// The same between two CPUs.
        WakeUpCross = "wake-up-other-cpu",
        /// Copying a block of 64 KiB that stays in the cache, in bytes per second.
        CopyCached = "copy-in-cache",
        /// Copying a block of 16 MiB, in bytes per second.
        CopyMemory = "copy-in-memory",
        /// The first touch of a page of 4 KiB, in nanoseconds.
        PageFault = "page-fault",
    }
}

impl MachineFigureKind {
    /// What it is measured in.
    pub fn unit(self) -> MachineUnit {
        match self {
            Self::CopyCached | Self::CopyMemory => MachineUnit::BytesPerS,
            _ => MachineUnit::Ns,
        }
    }
}
