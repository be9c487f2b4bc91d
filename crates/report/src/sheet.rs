//! What is shown of a record, from above: a heading, tables, remarks, sentences. Printed in a terminal or as Markdown.

use crate::layout::{self, Line, Tone, markdown as safe};
use crate::page::{Block, Section};
use crate::read::AnyRecord;
use crate::study::{StudyView, ViewOf};
use crate::table::{Style, Table};
use crate::{bench, boost, chains, comparison, difference, fleet, stages, study};

/// Lines of remarks under the tables, as they would be wrapped at 80 columns, unless all are asked for.
const REMARK_LINES_MAX: usize = 5;
const REMARK_COLUMNS: usize = 80;

/// A piece of a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SheetPart {
    /// The machine and what all figures have in common, in pieces.
    Heading(Vec<String>),
    /// What must not be missed: the run did not come to its end.
    Notice(String),
    /// What the tables after it have in common.
    Title(String),
    /// A command line that the tables after it are about.
    Command(String),
    /// A table.
    Table(Table),
    /// A table under a heading, for those who want to see it: Markdown folds it.
    Folded(String, Table),
    /// A line under the tables that is always shown.
    Note(String),
    /// What a reader should know of the figures, the most important first. A terminal shows a few lines of them.
    Remarks(Vec<String>),
    /// A sentence right below what is above it.
    Line(String),
    /// A sentence that stands by itself.
    Paragraph(String),
}

/// Everything that is shown of a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sheet {
    /// From above.
    pub parts: Vec<SheetPart>,
}

/// What is shown of a record. Many block sizes are shown as grids where `grids` is true, else as a list for each.
pub fn of(record: &AnyRecord, grids: bool, view_of: ViewOf) -> Sheet {
    match record {
        AnyRecord::Bench(record) => bench::sheet(record, grids),
        AnyRecord::Run(record) => stages::sheet(record),
        AnyRecord::Compare(record) => comparison::sheet(record),
        AnyRecord::Study(record) => of_study(&view_of(record)),
        AnyRecord::Diff(record) => difference::sheet(record),
        AnyRecord::Boost(record) => boost::sheet(record),
        AnyRecord::Top(record) => chains::sheet(&record.seen),
        AnyRecord::Fleet(record) => fleet::sheet(record),
    }
}

/// What a terminal shows of a record.
pub fn terminal(record: &AnyRecord, style: &Style, view_of: ViewOf) -> String {
    match record {
        AnyRecord::Study(record) => study::render(&view_of(record), style),
        record => of(record, true, view_of).terminal(style),
    }
}

/// A study, its figures as tables.
fn of_study(view: &StudyView) -> Sheet {
    let mut parts = vec![SheetPart::Title(view.title.clone())];
    parts.extend(view.lead.iter().cloned().map(SheetPart::Paragraph));
    parts.extend(view.sections.iter().flat_map(of_section));
    Sheet { parts }
}

fn of_section(section: &Section) -> Vec<SheetPart> {
    let mut parts = vec![SheetPart::Title(section.title.clone())];
    parts.extend(section.lead.iter().cloned().map(SheetPart::Paragraph));
    for block in &section.blocks {
        match block {
            Block::Figure(figure) => parts.push(SheetPart::Table(figure.table())),
            Block::Table(table) => parts.push(SheetPart::Table(table.clone())),
            Block::Folded(_, tables) => parts.extend(tables.iter().cloned().map(SheetPart::Table)),
            Block::Remarks(remarks) => parts.push(SheetPart::Remarks(remarks.clone())),
        }
    }
    parts
}

impl Sheet {
    /// As text for a terminal; it ends with a newline.
    pub fn terminal(&self, style: &Style) -> String {
        let mut lines: Vec<Line> = Vec::new();
        let mut titled = true;
        for part in &self.parts {
            let apart = matches!(
                part,
                SheetPart::Title(_)
                    | SheetPart::Command(_)
                    | SheetPart::Table(_)
                    | SheetPart::Folded(..)
                    | SheetPart::Paragraph(_)
            );
            if apart && !titled {
                lines.push(Line::default());
            }
            titled = matches!(part, SheetPart::Title(_) | SheetPart::Command(_));
            lines.extend(part.lines(style));
        }
        layout::print(&lines, style.color, style.unicode)
    }

    /// As Markdown, with all remarks, for an issue or a README; it ends with a newline.
    pub fn markdown(&self) -> String {
        let parts: Vec<String> =
            self.parts.iter().map(SheetPart::markdown).filter(|text| !text.is_empty()).collect();
        parts.join("\n\n") + "\n"
    }
}

impl SheetPart {
    fn lines(&self, style: &Style) -> Vec<Line> {
        let wrapped = |tone: Tone, text: &str| -> Vec<Line> {
            let lines = layout::wrap(&layout::spell(text, style.unicode), style.width);
            lines.into_iter().map(|line| Line::new(tone, line)).collect()
        };
        let noted = |texts: &[String]| texts.iter().flat_map(|text| note(text, style)).collect();
        match self {
            Self::Heading(pieces) => layout::fill(pieces.iter().map(String::as_str), " · ", style.width)
                .into_iter()
                .flat_map(|line| wrapped(Tone::Dim, &line))
                .collect(),
            Self::Notice(text) | Self::Title(text) => wrapped(Tone::Bold, text),
            Self::Command(text) => vec![Line::new(Tone::Bold, text.replace('\n', " "))],
            Self::Table(table) => {
                let mut lines = wrapped(Tone::Bold, &table.title);
                lines.extend(table.lines(style));
                lines.extend::<Vec<Line>>(noted(&table.notes));
                lines
            }
            Self::Folded(title, table) => {
                let mut lines = wrapped(Tone::Bold, title);
                lines.extend(table.lines(style));
                lines
            }
            Self::Note(text) => note(text, style),
            Self::Remarks(remarks) if style.explain => noted(remarks),
            Self::Remarks(remarks) => noted(&first(remarks)),
            Self::Line(text) | Self::Paragraph(text) => wrapped(Tone::Plain, text),
        }
    }

    fn markdown(&self) -> String {
        let lines = |texts: &[String], before: &str, between: &str| {
            let texts: Vec<String> = texts.iter().map(|text| format!("{before}{}", safe(text))).collect();
            texts.join(between)
        };
        match self {
            Self::Heading(pieces) => lines(pieces, "", " · "),
            Self::Notice(text) => format!("**{}**", safe(text)),
            Self::Title(text) => format!("### {}", safe(text)),
            Self::Command(text) => format!("### {}", safe(&layout::code(text))),
            Self::Table(table) => {
                let title = Some(&table.title).filter(|title| !title.is_empty());
                let title = title.map(|title| format!("### {}\n\n", safe(title))).unwrap_or_default();
                let notes = lines(&table.notes, "", "\n\n");
                format!("{title}{}\n{notes}", table.markdown()).trim_end().to_owned()
            }
            Self::Folded(title, table) => {
                let summary = safe(title);
                format!("<details>\n<summary>{summary}</summary>\n\n{}\n</details>", table.markdown())
            }
            Self::Note(text) | Self::Line(text) | Self::Paragraph(text) => safe(text),
            Self::Remarks(remarks) => lines(remarks, "- ", "\n"),
        }
    }
}

/// A line below the figures, wrapped; what goes on is indented.
fn note(text: &str, style: &Style) -> Vec<Line> {
    let room = style.width.saturating_sub(3);
    let lines = text.lines().flat_map(|line| layout::wrap_kept(&layout::spell(line, style.unicode), room));
    let indented = |(number, line): (usize, String)| {
        Line::new(Tone::Dim, format!("{}{line}", if number == 0 { " " } else { "   " }))
    };
    lines.enumerate().map(indented).collect()
}

/// As many remarks as fit in a few lines, and how many more there are.
fn first(remarks: &[String]) -> Vec<String> {
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

    fn remarks() -> Sheet {
        let long = "word ".repeat(30);
        let texts = ["first", &long, "third", &long, "last"].map(|text| text.trim().to_owned());
        Sheet { parts: vec![SheetPart::Remarks(texts.to_vec())] }
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
