//! A record as text. This room runs nothing and does no I/O: a summarised record goes in, strings come out.
//!
//! What is shown of a record is a [`sheet`]: headings, [`table`]s, remarks. It is printed in a terminal, or as Markdown. A
//! new output format is one file and one entry in [`FORMATS`], and every command that makes records has it.

pub mod advice;
pub mod bench;
pub mod boost;
pub mod chains;
pub mod comparison;
pub mod csv;
pub mod difference;
pub mod figure;
pub mod format;
pub mod json;
pub mod markdown;
pub mod noise;
pub mod numbers;
pub mod page;
pub mod pipes;
pub mod read;
pub mod sheet;
pub mod stages;
pub mod study;
pub mod table;
pub mod words;

mod against_pipe;
mod beside;
mod columns;
mod costs;
mod fleet;
mod granted;
mod languages;
mod layout;
mod lists;
mod load;
mod machine;
mod reason;
mod remarks;
mod statuses;
mod sweep;
mod verdict;
mod versus;
mod view;

pub use advice::advice;
pub use format::{FORMATS, Format, FormatError};
pub use layout::wrap;
pub use machine::{MeasuredFigure, MeasuredFinding, machine_table, measured_findings};
pub use table::{ABSENT, Style, Table};
