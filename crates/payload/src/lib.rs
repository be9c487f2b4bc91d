//! What is sent, how the sender produces it, how the receiver checks it.
//!
//! A payload is a periodic stream: a [`Tile`] of bytes, repeated. Byte `i` of the stream is byte
//! `i mod period` of the tile, so that both ends, in whatever chunks they work, agree on every byte.

mod block;
mod check;
mod compare;
mod consumer;
mod producer;
mod reservoir;
mod tagged;
mod tile;
mod xor;

pub use block::{Block, Buffering};
pub use check::{Checker, expected_checksum};
pub use compare::{Comparer, Detector, Mismatch};
pub use consumer::Consumer;
pub use producer::Producer;
pub use reservoir::Reservoir;
pub use tagged::{BlockTotals, TAG_BYTES, TagChecker, Tagger};
pub use tile::{PayloadError, Period, Tile};
