//! What spread computes without running anything: all tests in one program.

mod derive;
mod merge;
mod partition;
