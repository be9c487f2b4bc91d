//! The tests of partitions, reduces, merged records, schedules and launchers, in one program.

mod derive;
mod fleet;
mod merge;
mod partition;
