//! Partitions, schedules and what launchers say: all tests in one program.

mod derive;
mod fleet;
mod merge;
mod partition;
