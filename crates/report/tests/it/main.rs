//! Golden tests of every output, and properties of it. All are one program, so that it is linked once.
mod mock;

mod axes;
mod buffers;
mod chains;
mod chart;
mod difference;
mod disturbed;
mod fleet;
mod golden;
mod languages;
mod large;
mod load;
mod page;
mod race;
mod schema;
mod stages;
mod sweep;
mod unsteady;
mod why;
