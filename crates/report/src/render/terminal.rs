//! A document in a terminal.

mod chart;
mod table;

use std::collections::BTreeSet;

use crate::document::{Block, Document, Section};
use crate::layout::{self, Line, Tone};
use crate::table::{Style, Table};

/// Most lines of remarks under the tables, wrapped at this many columns; --explain shows all.
const REMARK_LINES_MAX: usize = 5;
const REMARK_COLUMNS: usize = 80;

impl Document {
    /// The document as text for a terminal; it ends with a newline.
    pub fn terminal(&self, style: &Style) -> String {
        let mut lines: Vec<Line> = Vec::new();
        // No blank line before the first line, nor between a section without a heading and the next heading.
        let mut titled = true;
        // A column of several tables is explained below the first of them.
        let mut explained = BTreeSet::new();
        for section in &self.sections {
            let heading = heading(section, style);
            if !heading.is_empty() && !titled {
                lines.push(Line::default());
            }
            titled = lines.is_empty() && heading.is_empty();
            let has_heading = !heading.is_empty();
            lines.extend(heading);
            for block in &section.blocks {
                if block.is_apart() && !titled {
                    lines.push(Line::default());
                }
                titled = matches!(block, Block::Title(_) | Block::Command(_));
                lines.extend(block.lines(style));
                if let Block::Table(table) = block {
                    let legend = table.legend_of_shown(style, &mut explained);
                    lines.extend(legend.iter().flat_map(|text| note(text, style)));
                }
            }
            titled = !has_heading;
        }
        layout::print(&lines, style.color, style.unicode)
    }
}

/// The title of a section and its lead.
fn heading(section: &Section, style: &Style) -> Vec<Line> {
    let title = wrapped(Tone::Bold, &section.title, style).into_iter();
    title.chain(section.lead.iter().flat_map(|text| wrapped(Tone::Dim, text, style))).collect()
}

fn wrapped(tone: Tone, text: &str, style: &Style) -> Vec<Line> {
    let lines = layout::wrap(&layout::ascii_plus_minus(text, style.unicode), style.width);
    lines.into_iter().map(|line| Line::new(tone, line)).collect()
}

fn notes(texts: &[String], style: &Style) -> Vec<Line> {
    texts.iter().flat_map(|text| note(text, style)).collect()
}

impl Block {
    /// Whether a blank line sets it apart from what is above it.
    fn is_apart(&self) -> bool {
        !matches!(self, Self::Heading(_) | Self::Notice(_) | Self::Note(_) | Self::Remarks(_) | Self::Line(_))
    }

    fn lines(&self, style: &Style) -> Vec<Line> {
        match self {
            Self::Heading(pieces) => layout::fill(pieces.iter().map(String::as_str), " · ", style.width)
                .into_iter()
                .flat_map(|line| wrapped(Tone::Dim, &line, style))
                .collect(),
            Self::Notice(text) | Self::Title(text) => wrapped(Tone::Bold, text, style),
            Self::Command(text) => vec![Line::new(Tone::Bold, text.replace('\n', " "))],
            Self::Code(text) => text.lines().map(|line| Line::new(Tone::Plain, line.to_owned())).collect(),
            Self::Chart(one) => chart::lines(one, style),
            Self::Table(table) => {
                let mut lines = titled_table(&table.title, table, style);
                lines.extend(notes(&table.notes, style));
                lines
            }
            Self::Folded(title, tables) => {
                tables.iter().flat_map(|table| titled_table(title, table, style)).collect()
            }
            Self::Note(text) => note(text, style),
            Self::Remarks(remarks) if style.explain => notes(remarks, style),
            Self::Remarks(remarks) => notes(&first_lines(remarks), style),
            Self::Line(text) | Self::Paragraph(text) => wrapped(Tone::Plain, text, style),
        }
    }
}

fn titled_table(title: &str, table: &Table, style: &Style) -> Vec<Line> {
    let mut lines = wrapped(Tone::Bold, title, style);
    lines.extend(table.lines(style));
    lines
}

/// A line below the figures, wrapped; the lines after the first are indented.
fn note(text: &str, style: &Style) -> Vec<Line> {
    let room = style.width.saturating_sub(3);
    let lines = text
        .lines()
        .flat_map(|line| layout::wrap_if_wider(&layout::ascii_plus_minus(line, style.unicode), room));
    let indented = |(number, line): (usize, String)| {
        Line::new(Tone::Dim, format!("{}{line}", if number == 0 { " " } else { "   " }))
    };
    lines.enumerate().map(indented).collect()
}

/// As many remarks as fit in a few lines, and how many more there are.
fn first_lines(remarks: &[String]) -> Vec<String> {
    let height = |remark: &String| layout::wrap(remark, REMARK_COLUMNS - 3).len();
    if remarks.iter().map(height).sum::<usize>() <= REMARK_LINES_MAX {
        return remarks.to_vec();
    }
    let mut left = REMARK_LINES_MAX - 1;
    let mut shown: Vec<String> = Vec::new();
    for remark in remarks.iter().filter(|remark| !remark.is_empty()) {
        if height(remark) <= left {
            left -= height(remark);
            shown.push(remark.clone());
        }
    }
    let rest = remarks.len() - shown.len();
    shown.push(format!("{rest} more {}: --explain", if rest == 1 { "remark" } else { "remarks" }));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks() -> Document {
        let long = "word ".repeat(30);
        let texts = ["first", &long, "third", &long, "last"].map(|text| text.trim().to_owned());
        Document::from_blocks(vec![Block::Remarks(texts.to_vec())])
    }

    #[test]
    fn five_lines_of_remarks_and_how_many_more() {
        let text = remarks().terminal(&Style::default());
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(
            text.starts_with(" first\n") && text.ends_with("\n third\n 2 more remarks: --explain\n"),
            "{text}"
        );
        let all = remarks().terminal(&Style { explain: true, ..Style::default() });
        assert!(all.lines().count() == 7 && all.ends_with(" last\n"), "{all}");
        assert_eq!(remarks().markdown().lines().count(), 5, "one line for each of them");
    }
}
