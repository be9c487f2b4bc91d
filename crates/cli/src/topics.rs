//! `hosepipe help method|links|record`: pages of docs/ in a terminal, and the JSON Schema of records.

use std::ffi::OsString;

use report::{Style, hanging, wrap};

use crate::terminal;

/// Longest line of text.
const WIDTH_MAX: usize = 100;

/// The pages. `pages/` has symbolic links to docs/, so that the files are in the package of this crate.
const TOPICS: [(&str, &str); 3] = [
    ("method", include_str!("../pages/METHOD.md")),
    ("links", include_str!("../pages/LINKS.md")),
    ("record", include_str!("../pages/RECORD.md")),
];

/// The schema of records: `hosepipe help record --schema`.
const SCHEMA: &str = include_str!("../pages/record.schema.json");

/// Prints the page that these arguments ask for; `None` if they ask for no page.
pub(crate) fn answer(words: &[OsString]) -> Option<anyhow::Result<()>> {
    let words: Vec<&str> = words.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
    match words[..] {
        ["help", "record", "--schema"] => Some(terminal::print_data(SCHEMA)),
        ["help", topic] => {
            let (_, page) = TOPICS.iter().find(|(name, _)| *name == topic)?;
            Some(terminal::print_painted(&rendered(page, &terminal::style())))
        }
        _ => None,
    }
}

/// A page of Markdown as text for a terminal. It supports what these pages contain: headings, paragraphs, lists, tables, blocks of code
/// and links; pictures are left out.
fn rendered(page: &str, style: &Style) -> String {
    let width = style.width.min(WIDTH_MAX);
    let bold = |text: &str| if style.color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let mut text = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                text += &format!("    {code}\n");
            }
        } else if let Some(heading) = line.strip_prefix('#') {
            text += &format!(
                "{}{}\n",
                if text.is_empty() { "" } else { "\n" },
                bold(&plain(heading.trim_start_matches('#')))
            );
        } else if line.starts_with('|') {
            let heads = cells(line);
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                if !row.starts_with("|-") {
                    text += &laid_out_row(&heads, &cells(row), width, &bold);
                }
            }
        } else if line.starts_with("![") {
        } else {
            let indent = if line.starts_with("- ") { 2 } else { 0 };
            let mut paragraph = line.to_owned();
            let continues = |line: &&str| {
                !line.is_empty() && !line.starts_with(['#', '|', '-']) && !line.starts_with("```")
            };
            while let Some(next) = lines.next_if(|next| !paragraph.is_empty() && continues(next)) {
                paragraph = paragraph + " " + next.trim();
            }
            text += &hanging("", indent, wrap(&plain(&paragraph), width - indent));
            if paragraph.is_empty() {
                text += "\n";
            }
        }
    }
    text
}

/// The first cell of a row, and below it the others; if there are several others, each with the heading of its column.
fn laid_out_row(heads: &[String], row: &[String], width: usize, bold: &dyn Fn(&str) -> String) -> String {
    let Some((first, others)) = row.split_first() else { return String::new() };
    let mut text = hanging("  ", 2, wrap(first, width - 2).iter().map(|line| bold(line)));
    for (cell, head) in others.iter().zip(heads.iter().skip(1)).filter(|(cell, _)| !cell.is_empty()) {
        let cell = if others.len() > 1 { format!("{head}: {cell}") } else { cell.clone() };
        text += &hanging("      ", 6, wrap(&cell, width - 6));
    }
    text
}

/// The cells of a row of a table; `\|` is a bar within a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').replace("\\|", "\u{1}");
    let row = row.strip_suffix('|').unwrap_or(&row);
    row.split('|').map(|cell| plain(&cell.replace('\u{1}', "|"))).collect()
}

/// Text without links and emphasis.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain += before;
        match after.split_once("](").and_then(|(label, target)| Some((label, target.split_once(')')?.1))) {
            Some((label, after)) if !label.contains(['[', '\n']) => {
                plain += label;
                rest = after;
            }
            _ => {
                plain.push('[');
                rest = after;
            }
        }
    }
    (plain + rest).replace("**", "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_laid_out_for_a_terminal() {
        let page = "# Title\nOne [link](a.md#b) and `cases[]` in\na paragraph.\n\n- first\n  goes on\n- second\n\n```\nas  it is\n```\n\
                    | what | who |\n|---|---|\n| `a\\|b` | [x](y) |\n";
        let expected = "Title\nOne link and `cases[]` in a paragraph.\n\n- first goes on\n- second\n\n    as  it is\n  `a|b`\n      x\n";
        assert_eq!(rendered(page, &Style { width: 60, color: false, ..Style::default() }), expected);
    }
}
