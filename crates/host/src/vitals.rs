//! What the doctor asks beyond the facts of a record: what changes from minute to minute, who this process
//! is, and the switches that cap one mechanism or another.

mod activity;
mod clockwork;
mod confinement;
mod storage;
mod switches;

pub use activity::Activity;
pub(crate) use clockwork::CLOCKS_AVAILABLE;
pub use clockwork::{Boost, Clockwork};
pub use confinement::{Confinement, Quota};
pub use storage::{FileSystem, Storage};
pub use switches::Switches;

use crate::Roots;

/// The machine and this process, now. A field the system would not tell is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vitals {
    /// What else runs.
    pub activity: Activity,
    /// Clocks, frequencies and idle states.
    pub clockwork: Clockwork,
    /// What holds this process back.
    pub confinement: Confinement,
    /// Where files and shared memory go.
    pub storage: Storage,
    /// Kernel switches that cap a mechanism and stand in no record.
    pub switches: Switches,
}

impl Vitals {
    /// Reads them. The file systems are found by path and are this machine's, whatever the roots.
    pub fn read(roots: &Roots) -> Self {
        Self {
            activity: Activity::read(roots),
            clockwork: Clockwork::read(roots),
            confinement: Confinement::read(roots),
            storage: Storage::read(),
            switches: Switches::read(roots),
        }
    }
}
