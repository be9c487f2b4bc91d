//! Figures of a machine that limit every mechanism.

use serde::Serialize;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MachineUnit {
    /// Nanoseconds.
    Ns,
    /// Bytes per second.
    BytesPerS,
}

/// One figure of a machine: its measurements, or why there are none.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineFigure {
    /// Which one.
    pub kind: MachineFigureKind,
    /// The results of short repeated measurements.
    pub values: Vec<f64>,
    /// Why there are no values.
    pub missing: Option<String>,
}

crate::words! {
    /// The figures of a machine.
    pub enum MachineFigureKind {
        /// A system call that does almost nothing (getppid(2)), in nanoseconds.
        SystemCall = "system-call",
        /// The cost of reading CLOCK_MONOTONIC, in nanoseconds.
        Clock = "clock",
        /// The resolution of CLOCK_MONOTONIC, in nanoseconds.
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
    /// Its unit.
    pub fn unit(self) -> MachineUnit {
        match self {
            Self::CopyCached | Self::CopyMemory => MachineUnit::BytesPerS,
            _ => MachineUnit::Ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_speeds_and_the_other_figures_are_times() {
        for kind in MachineFigureKind::ALL {
            let unit = if kind.word().starts_with("copy") { MachineUnit::BytesPerS } else { MachineUnit::Ns };
            assert_eq!(kind.unit(), unit, "{kind}");
        }
    }
}
