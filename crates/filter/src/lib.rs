//! `hosepipe gen` and `hosepipe sink` as functions: a source and a sink for any pipeline, fast enough to measure what is
//! between them. This crate knows payloads and descriptors, but no mechanisms, trials or tables.

mod error;
mod generate;
mod outlet;
mod pages;
mod pipe;
mod sink;

pub use error::FilterError;
pub use generate::{GenJob, GenReport, generate};
pub use outlet::GenMethod;
pub use sink::{SinkJob, SinkMethod, SinkReport, Verify, sink};
