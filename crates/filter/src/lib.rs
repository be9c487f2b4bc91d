//! `hosepipe gen` and `hosepipe sink` as functions: a source and a drain for any pipeline, fast enough that
//! what is between them is what one measures. Only payloads and descriptors come in; nothing of
//! mechanisms, trials or tables.

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
