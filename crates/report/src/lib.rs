//! A record as text. This room runs nothing and does no I/O: a summarised record goes in, strings come out.
//!
//! Each kind of record makes sections of a [`document`]: sentences, [`table`]s, figures, remarks. A document is shown in a terminal,
//! as Markdown, or as a page. A new output format is one file and one entry in [`FORMATS`], and every command that makes records has
//! it.

pub mod chains;
pub mod chart;
mod data_costs;
pub mod difference;
pub mod document;
pub mod held_back;
pub mod interval;
pub mod json;
pub mod numbers;
mod offsets;
pub mod read;
pub mod sheet;
pub mod slow_copies;
pub mod study;
pub mod table;
pub mod unit;
pub mod value;
pub mod words;

mod advice;
mod assemble;
mod bench;
mod boost;
mod bounds;
mod cause;
mod columns;
mod compare;
mod conditions;
mod crossings;
mod disjoint;
mod dot;
mod estimate;
mod fleet;
mod folded;
mod formats;
mod granted;
mod groups;
mod hosts;
mod labels;
mod languages;
mod layout;
mod limits;
mod lists;
mod load;
mod machine;
mod race;
mod reason;
mod remarks;
mod render;
mod row_labels;
mod show;
mod stages;
mod statuses;
mod sweep;
mod tail;
mod template;
pub mod tune;
mod unsteady;
mod verdict;
mod view;
pub mod why;

pub use advice::advice;
pub use assemble::{disjoint_records, page, terminal, text};
pub use cause::with_sentence;
pub use dot::dot;
pub use estimate::estimate_value;
pub use formats::{FORMATS, Format, FormatError};
pub use layout::{hanging, wrap};
pub use lists::first_of;
pub use machine::{MeasuredFigure, MeasuredFinding, machine_table, measured_findings};
pub use race::RaceWords;
pub use table::{Style, Table};
pub use unit::Unit;
pub use value::{ABSENT, Value};
pub use view::SWEEP_FROM;
