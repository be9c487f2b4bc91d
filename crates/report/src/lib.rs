//! A record as text. This room runs nothing and does no I/O: a summarised record goes in, strings come out.
//!
//! A new output format is one file and one entry in [`FORMATS`]. The terminal's [`table`] stands apart,
//! because it alone must know how wide and how colourful its reader is; [`advice`] is said after either.

pub mod advice;
pub mod comparison;
pub mod csv;
pub mod figure;
pub mod format;
pub mod json;
pub mod markdown;
pub mod noise;
pub mod numbers;
pub mod page;
pub mod read;
pub mod stages;
pub mod study;
pub mod table;
pub mod words;

mod against_pipe;
mod beside;
mod columns;
mod granted;
mod grid;
mod languages;
mod layout;
mod lists;
mod reason;
mod remarks;
mod sweep;
mod verdict;
mod view;

pub use advice::advice;
pub use columns::{ABSENT, noise_mark};
pub use format::{FORMATS, Format, FormatError};
pub use layout::wrap;
pub use table::Style;
