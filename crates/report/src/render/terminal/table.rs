//! A table in a terminal. If it is too wide, columns are left out, those with the highest `drop` first; columns that still do not fit are
//! printed below.

use std::collections::BTreeSet;

use crate::layout::{self, Line, Tone, ascii_plus_minus, fill, left, right, shortened, width, wrap};
use crate::table::{Column, Fit, Row, Style, Table};
use crate::value::{ABSENT, Value};

/// The gap between two columns.
const GAP: &str = "  ";
/// The blank before each line of a table.
pub(crate) const MARGIN: &str = " ";
/// Smallest width of a terminal with the long headings.
const WIDE: usize = 100;
/// Least width of a column of commands that are cut, and of words that are wrapped.
const CUT_COLUMNS_MIN: usize = 14;
const WRAP_COLUMNS_MIN: usize = 24;

/// A column that is shown.
struct ShownColumn<'t> {
    /// Its index in the table.
    at: usize,
    column: &'t Column,
    title: String,
    cells: Vec<String>,
    /// Its width: first the least one, then as much as there is room for.
    width: usize,
    /// The width of its longest cell.
    wanted: usize,
    flush_right: bool,
}

impl Table {
    /// The heading and the rows as text for a terminal.
    pub fn terminal(&self, style: &Style) -> String {
        layout::print(&self.lines(style), style.color, style.unicode)
    }

    /// The lines of the heading and the rows, without title and notes.
    pub(crate) fn lines(&self, style: &Style) -> Vec<Line> {
        let shown = self.fitting(style);
        let mut lines = Vec::new();
        let Some((first, mut others)) = shown.split_first() else { return lines };
        loop {
            let mut used = MARGIN.len() + first.width;
            let fits = |column: &&ShownColumn| {
                used += GAP.len() + column.width;
                used <= style.width
            };
            let count = others.iter().take_while(fits).count().max(1).min(others.len());
            let (now, later) = others.split_at(count);
            let columns: Vec<&ShownColumn> = std::iter::once(first).chain(now).collect();
            self.grid(&columns, style, &mut lines);
            if later.is_empty() {
                return lines;
            }
            lines.push(Line::default());
            others = later;
        }
    }

    /// The sentences on the columns that are shown, without those in `known`.
    pub(crate) fn legend_of_shown(
        &self,
        style: &Style,
        known: &mut BTreeSet<&'static str>,
    ) -> Option<String> {
        let shown = self.fitting(style);
        self.legend(known, |column| shown.iter().any(|one| std::ptr::eq(one.column, column)))
    }

    /// The columns that are shown: those with the highest `drop` are left out until the others fit.
    fn fitting(&self, style: &Style) -> Vec<ShownColumn<'_>> {
        let mut shown: Vec<ShownColumn> = self.filled_columns().map(|at| self.shown(at, style)).collect();
        let needed = |shown: &[ShownColumn]| {
            let columns = shown.iter().map(|column| GAP.len() + column.width);
            (MARGIN.len() + columns.sum::<usize>()).saturating_sub(GAP.len())
        };
        loop {
            let least = shown.iter().map(|column| column.column.drop).max().unwrap_or(0);
            if least == 0 || needed(&shown) <= style.width {
                break;
            }
            shown.retain(|column| column.column.drop != least);
        }
        let mut room = style.width.saturating_sub(needed(&shown));
        for column in &mut shown {
            let more = room.min(column.wanted - column.width);
            column.width += more;
            room -= more;
        }
        shown
    }

    fn shown(&self, at: usize, style: &Style) -> ShownColumn<'_> {
        let column = &self.columns[at];
        let short = style.width < WIDE && !column.short.is_empty();
        let title = ascii_plus_minus(if short { &column.short } else { &column.head }, style.unicode);
        let line = |cell: &Value| ascii_plus_minus(&cell.to_string().replace('\n', " "), style.unicode);
        let cells: Vec<String> = self.cells(at).map(line).collect();
        let cell_width = |cell: &String| match column.fit {
            Fit::Spec => {
                spec_lines(cell, spec_columns(style)).iter().map(|line| width(line)).max().unwrap_or(0)
            }
            _ => width(cell),
        };
        let wanted = cells.iter().map(cell_width).max().unwrap_or(0).max(width(&title));
        let width = match column.fit {
            Fit::Whole | Fit::Spec => wanted,
            Fit::Cut | Fit::Command => wanted.min(CUT_COLUMNS_MIN.max(width(&title))),
            Fit::Wrap => wanted.min(WRAP_COLUMNS_MIN.max(width(&title))),
        };
        ShownColumn { at, column, title, cells, width, wanted, flush_right: self.is_flush_right(at) }
    }

    /// The heading and all rows of some columns.
    fn grid(&self, columns: &[&ShownColumn], style: &Style, lines: &mut Vec<Line>) {
        let titles = columns.iter().map(|column| column.padded(&column.title)).collect::<Vec<String>>();
        let mut push = |line: Line| lines.extend(line.wrapped(style.width));
        push(Line::new(Tone::Dim, format!("{MARGIN}{}", titles.join(GAP))));
        for (at, row) in self.rows.iter().enumerate() {
            row_lines(at, row, columns, style).into_iter().for_each(&mut push);
        }
    }
}

impl ShownColumn<'_> {
    /// A text as wide as the column.
    fn padded(&self, text: &str) -> String {
        if self.flush_right { right(text, self.width) } else { left(text, self.width) }
    }

    /// The lines of a cell.
    fn lines_of(&self, row: usize, style: &Style) -> Vec<String> {
        let cell = &self.cells[row];
        match self.column.fit {
            Fit::Whole => vec![cell.clone()],
            Fit::Spec => spec_lines(cell, spec_columns(style)),
            Fit::Cut => vec![shortened(cell, self.width)],
            Fit::Wrap => wrap(cell, self.width),
            // A single word may be wider than the column.
            Fit::Command => wrap(cell, self.width).iter().map(|line| shortened(line, self.width)).collect(),
        }
    }
}

/// The lines of a row: its cells side by side, with its reasons from the second line on.
fn row_lines(at: usize, row: &Row, columns: &[&ShownColumn], style: &Style) -> Vec<Line> {
    let cells: Vec<Vec<String>> = columns.iter().map(|column| column.lines_of(at, style)).collect();
    let line_of = |number: usize| {
        let mut line = Line::new(row.tone, MARGIN);
        for (place, (column, lines)) in columns.iter().zip(&cells).enumerate() {
            let tone = if row.best == Some(column.at) { Tone::Bold } else { row.tone };
            let gap = if place == 0 { "" } else { GAP };
            let cell = lines.get(number).map_or("", String::as_str);
            line = line.with(tone, format!("{gap}{}", column.padded(cell)));
        }
        line
    };
    let name = |number: usize| {
        let name = cells.first().and_then(|lines| lines.get(number)).map_or("", String::as_str);
        format!("{MARGIN}{}{GAP}", columns.first().map_or(String::new(), |column| left(name, column.width)))
    };
    let room = style.width.saturating_sub(width(&name(0)) + 2);
    let mut reasons =
        row.reasons.iter().flat_map(|reason| wrap(&ascii_plus_minus(reason, style.unicode), room));
    let is_known = |column: &&ShownColumn| {
        let cell = row.cells.get(column.at);
        cell.is_some_and(|cell| !cell.is_empty() && *cell != Value::Absent)
    };
    let first = match columns.iter().skip(1).any(is_known) {
        false if !row.reasons.is_empty() => {
            let reason = format!("{ABSENT} {}", reasons.next().unwrap_or_default());
            Line::new(row.tone, name(0)).with(Tone::Dim, reason)
        }
        _ => line_of(0),
    };
    let mut lines = vec![first];
    let taken = cells.iter().map(Vec::len).max().unwrap_or(0);
    for number in 1.. {
        match reasons.next() {
            Some(reason) => {
                lines.push(Line::new(row.tone, name(number)).with(Tone::Dim, format!("  {reason}")))
            }
            None if number < taken => lines.push(line_of(number)),
            None => break,
        }
    }
    lines
}

/// Largest width of a spec.
fn spec_columns(style: &Style) -> usize {
    (style.width / 3).max(20)
}

/// A long spec, broken after its colon and commas; all lines but the first are indented.
fn spec_lines(spec: &str, columns: usize) -> Vec<String> {
    if width(spec) <= columns {
        return vec![spec.to_owned()];
    }
    let lines = fill(spec.split_inclusive([',', ':']), "", columns.saturating_sub(2));
    lines.into_iter().enumerate().map(|(at, line)| if at == 0 { line } else { format!("  {line}") }).collect()
}
