//! Markdown: what a terminal shows, for an issue, a README or a pull request, with every column and all remarks.

use crate::format::Format;
use crate::{layout, sheet};

/// The registry entry.
pub const FORMAT: Format = Format {
    name: "Markdown",
    flag: "md",
    summary: "the tables for an issue or a README",
    render: |records, view_of| {
        let text = |loaded: &crate::read::Loaded| {
            let title = if records.len() > 1 {
                format!("## {}\n\n", layout::markdown(&loaded.name))
            } else {
                String::new()
            };
            title + &sheet::of(&loaded.record, false, view_of).markdown()
        };
        Ok(records.iter().map(text).collect::<Vec<String>>().join("\n"))
    },
};
