//! A document as Markdown, with every column and all remarks, for an issue, a README or a pull request.

use std::collections::BTreeSet;

use model::visible;

use crate::document::{Block, Document, Section};
use crate::layout::code;
use crate::table::{Fit, Table};

impl Document {
    /// The document as Markdown; it ends with a newline.
    pub fn markdown(&self) -> String {
        let (mut texts, mut explained) = (Vec::new(), BTreeSet::new());
        for section in &self.sections {
            texts.extend(heading(section));
            for block in &section.blocks {
                texts.push(block.markdown());
                if let Block::Table(table) = block {
                    texts.extend(table.legend(&mut explained, |_| true).map(|text| escaped(&text)));
                }
            }
        }
        texts.retain(|text| !text.is_empty());
        texts.join("\n\n") + "\n"
    }
}

fn heading(section: &Section) -> Vec<String> {
    let title = Some(&section.title).filter(|title| !title.is_empty());
    let title = title.map(|title| format!("### {}", escaped(title)));
    title.into_iter().chain(section.lead.iter().map(|text| escaped(text))).collect()
}

fn joined(texts: &[String], before: &str, between: &str) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{before}{}", escaped(text))).collect();
    texts.join(between)
}

impl Block {
    fn markdown(&self) -> String {
        match self {
            Self::Heading(pieces) => joined(pieces, "", " · "),
            Self::Notice(text) => format!("**{}**", escaped(text)),
            Self::Title(text) => format!("### {}", escaped(text)),
            Self::Command(text) => format!("### {}", escaped(&code(text))),
            // Indented, because the text may contain fences.
            Self::Code(text) => {
                visible(text).lines().map(|line| format!("    {line}")).collect::<Vec<String>>().join("\n")
            }
            Self::Chart(chart) => titled(&chart.table()),
            Self::Table(table) => titled(table),
            Self::Folded(title, tables) => {
                let tables = tables.iter().map(Table::markdown).collect::<Vec<String>>().join("\n");
                format!("<details>\n<summary>{}</summary>\n\n{tables}\n</details>", escaped(title))
            }
            Self::Note(text) | Self::Line(text) | Self::Paragraph(text) => escaped(text),
            Self::Remarks(remarks) => joined(remarks, "- ", "\n"),
        }
    }
}

fn titled(table: &Table) -> String {
    let title = Some(&table.title).filter(|title| !title.is_empty());
    let title = title.map(|title| format!("### {}\n\n", escaped(title))).unwrap_or_default();
    let notes = joined(&table.notes, "", "\n\n");
    format!("{title}{}\n{notes}", table.markdown()).trim_end().to_owned()
}

impl Table {
    /// The columns and rows as Markdown, without the title and the notes.
    pub fn markdown(&self) -> String {
        let table = self.texts();
        let mut text = String::new();
        let mut line = |cells: Vec<String>| {
            // A bar inside a cell would end it.
            let cell = |cell: String| escaped(cell.trim_end()).replace('|', "\\|");
            text.push_str(&format!("| {} |\n", cells.into_iter().map(cell).collect::<Vec<_>>().join(" | ")));
        };
        line(table.columns.iter().map(|column| column.head.clone()).collect());
        let rule = |at: usize| if table.is_flush_right(at) { "---:" } else { "---" };
        line((0..table.columns.len()).map(|at| rule(at).to_owned()).collect());
        for row in &table.rows {
            let cells = table.columns.iter().zip(&row.cells).map(|(column, cell)| match column.fit {
                Fit::Spec | Fit::Command => code(&cell.to_string()),
                _ => cell.to_string(),
            });
            line(cells.collect());
        }
        text
    }
}

/// A text as Markdown in one line, with HTML tags escaped. Code spans are unchanged, because Markdown shows their text
/// literally (CommonMark, "code spans", "raw HTML").
pub(crate) fn escaped(text: &str) -> String {
    let text = visible(text).replace('\n', " ");
    let (mut rest, mut safe) = (text.as_str(), String::new());
    while let Some(at) = rest.find(['\\', '`', '<']) {
        safe.push_str(&rest[..at]);
        rest = &rest[at..];
        let next = rest.chars().nth(1);
        let taken = match rest.as_bytes()[0] {
            b'\\' if next.is_some_and(|next| next.is_ascii_punctuation()) => 2,
            b'`' => code_span(rest),
            b'<' if next.is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(next)) => {
                safe.push_str("&lt;");
                rest = &rest[1..];
                continue;
            }
            _ => 1,
        };
        safe.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    safe + rest
}

/// Bytes of the code span at the start of a text; if it is not closed, of its backticks only.
fn code_span(text: &str) -> usize {
    let fence = text.len() - text.trim_start_matches('`').len();
    let mut from = fence;
    while let Some(at) = text[from..].find('`').map(|at| from + at) {
        let closing = text[at..].len() - text[at..].trim_start_matches('`').len();
        if closing == fence {
            return at + fence;
        }
        from = at + closing;
    }
    fence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_in_texts_is_escaped() {
        let unchanged = ["a < b, <0.001", "`sort < <words>` and `` a`<b> ``", "x \\<b>", "µs ±"];
        assert_eq!(unchanged.map(escaped), unchanged);
        for (text, safe) in [
            ("<img src=x onerror=y>\n</b>", "&lt;img src=x onerror=y> &lt;/b>"),
            ("`<a>` <b> ` <c>", "`<a>` &lt;b> ` &lt;c>"),
            ("\\`<a>\\` `` <b> `", "\\`&lt;a>\\` `` &lt;b> `"),
            ("\\\\<a>\u{1b}[1m", "\\\\&lt;a>\u{241b}[1m"),
        ] {
            assert_eq!(escaped(text), safe);
        }
    }
}
