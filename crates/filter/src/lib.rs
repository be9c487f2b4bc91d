//! `hosepipe gen` and `hosepipe sink` as functions: a source and a drain for any pipeline, so fast that a measurement
//! shows what is between them. This crate knows payloads and descriptors, but no mechanisms, trials or tables.

mod error;
mod generate;
mod outlet;
mod pages;
mod pipe;
mod sink;

pub use error::FilterError;
pub use generate::{GenJob, GenReport, generate};
pub use outlet::GenRoad;
pub use sink::{SinkJob, SinkReport, SinkRoad, Verify, sink};
