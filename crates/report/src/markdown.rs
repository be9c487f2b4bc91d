//! Markdown: the table for an issue, a README or a pull request, with every column that has something to say.

use model::{BenchRecord, visible};

use crate::advice::advice;
use crate::columns::{ABSENT, Align, columns};
use crate::format::{Format, FormatError};
use crate::reason::reasons;
use crate::remarks::Told;
use crate::view::{Row, Section, View};
use crate::{languages, remarks};

/// The registry entry.
pub const FORMAT: Format =
    Format { name: "Markdown", flag: "md", summary: "the table for an issue or a README", render };

fn render(record: &BenchRecord) -> Result<String, FormatError> {
    if languages::is_of_workers(record) {
        return Ok(visible(&languages::markdown(record)));
    }
    let view = View::of(record);
    let mut text = format!("{}\n", remarks::heading(&view).join(" · "));
    if let Some(sentence) = remarks::interruption(&view) {
        text.push_str(&format!("\n**{sentence}**\n"));
    }
    for section in &view.sections {
        let title = view.title(section, true);
        if !title.is_empty() {
            text.push_str(&format!("\n### {title}\n"));
        }
        text.push('\n');
        text.push_str(&list(section, record.settings.interrupted));
        paragraph(&mut text, &remarks::footer(&view, section));
    }
    paragraph(&mut text, &remarks::references(&view));
    for remark in remarks::remarks(&view, Told { granted: true, seats: true }) {
        paragraph(&mut text, &remark);
    }
    for sentence in advice(record) {
        paragraph(&mut text, &sentence);
    }
    Ok(visible(&text))
}

fn paragraph(text: &mut String, sentence: &str) {
    if !sentence.is_empty() {
        text.push_str(&format!("\n{sentence}\n"));
    }
}

fn list(section: &Section, interrupted: bool) -> String {
    let mut columns = columns(section);
    columns.retain(|column| !column.picture);
    let has_reasons = section.rows.iter().any(|row| !reasons(row, interrupted).is_empty());
    let mut titles = vec!["mechanism".to_owned()];
    let mut rule = vec!["---".to_owned()];
    for column in &columns {
        titles.push(column.title.to_owned());
        rule.push(if column.align == Align::Right { "---:" } else { "---" }.to_owned());
    }
    if has_reasons {
        titles.push("why not".to_owned());
        rule.push("---".to_owned());
    }
    let mut text = line(&titles) + &line(&rule);
    for row in &section.rows {
        let mut cells = vec![format!("`{}`", row.label)];
        cells.extend(
            columns.iter().map(|column| (column.cell)(row, section).unwrap_or_else(|| ABSENT.to_owned())),
        );
        if has_reasons {
            cells.push(why_not(row, interrupted));
        }
        text.push_str(&line(&cells));
    }
    text
}

fn why_not(row: &Row, interrupted: bool) -> String {
    reasons(row, interrupted).join("; ")
}

/// One line of a table; a bar inside a cell would end it.
fn line(cells: &[String]) -> String {
    let escaped: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", escaped.join(" | "))
}
