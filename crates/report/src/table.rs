//! The table on a terminal: a heading, ranked lists or sweeps, the floor and the ceiling, remarks.
//! Columns are left out in the order of their weight until the lists fit.

use model::BenchRecord;

use crate::columns::{ABSENT, Align, Column, columns};
use crate::layout::{self, Line, Tone};
use crate::reason::reasons;
use crate::remarks::Told;
use crate::view::{Group, Row, Section, View};
use crate::{languages, remarks, sweep};

/// Between two columns.
const GAP: &str = "  ";
/// Before each line of figures.
pub(crate) const MARGIN: &str = " ";
/// From this width on there is room for the long titles.
const WIDE: usize = 100;

/// What the reader's terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use ANSI colour (bold and dim).
    pub color: bool,
    /// Whether to use characters beyond ASCII.
    pub unicode: bool,
}

impl Default for Style {
    /// What is safe where nothing is known: 80 columns, no colour, Unicode.
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true }
    }
}

/// The record as a table; the text ends with a newline.
pub fn render(record: &BenchRecord, style: &Style) -> String {
    if languages::is_of_workers(record) {
        return languages::render(record, style);
    }
    let view = View::of(record);
    let mut lines = head(&view, style);
    let footers: Vec<String> = view.sections.iter().map(|section| remarks::footer(&view, section)).collect();
    let one_footer = footers.windows(2).all(|pair| pair[0] == pair[1]);
    let mut told = Told { granted: !view.sections.is_empty(), seats: !view.sections.is_empty() };
    for group in view.groups() {
        lines.push(Line::default());
        match &group {
            Group::Ranked(section) => {
                lines.extend(title(&view.title(section, true)));
                let shown = fitting(section, style);
                told.granted &= shown.shows("granted");
                told.seats &= shown.shows("on two");
                lines.extend(list(section, &shown, record.settings.interrupted));
            }
            Group::Sweep(sections) => {
                told = Told { granted: false, seats: false };
                lines.extend(title(&view.title(sections[0], false)));
                lines.extend(sweep::grid(sections, style.width, record.settings.interrupted));
            }
        }
        if !one_footer {
            lines.extend(group_footer(&view, &group).iter().flat_map(|footer| framed(footer, style)));
        }
    }
    if one_footer {
        lines.extend(framed(footers.first().map_or("", String::as_str), style));
    }
    lines.extend(framed(&remarks::references(&view), style));
    for remark in remarks::remarks(&view, told) {
        lines.extend(framed(&remark, style));
    }
    layout::print(&lines, style.color, style.unicode)
}

fn head(view: &View, style: &Style) -> Vec<Line> {
    let pieces = remarks::heading(view);
    let wrapped = layout::fill(pieces.iter().map(String::as_str), " · ", style.width);
    let mut lines: Vec<Line> = wrapped.into_iter().map(|line| Line::new(Tone::Dim, line)).collect();
    lines.extend(remarks::interruption(view).map(|sentence| Line::new(Tone::Bold, sentence)));
    lines
}

fn title(text: &str) -> Option<Line> {
    (!text.is_empty()).then(|| Line::new(Tone::Bold, text))
}

/// A remark below the figures, wrapped.
fn framed(text: &str, style: &Style) -> Vec<Line> {
    let lines =
        layout::wrap_kept(&layout::spell(text, style.unicode), style.width.saturating_sub(MARGIN.len()));
    lines.into_iter().map(|line| Line::new(Tone::Dim, format!("{MARGIN}{line}"))).collect()
}

/// The floor and the ceiling of a group; of a sweep those of its ends, where they are not the same.
fn group_footer(view: &View, group: &Group) -> Vec<String> {
    let ends = match group {
        Group::Ranked(section) => return vec![remarks::footer(view, section)],
        Group::Sweep(sections) => sections.first().into_iter().chain(sections.last()),
    };
    let footers: Vec<(&Section, String)> =
        ends.map(|section| (*section, remarks::footer(view, section))).collect();
    match footers.as_slice() {
        [(_, first), (_, last)] if first == last => vec![first.clone()],
        several => several
            .iter()
            .map(|(section, footer)| format!("{}:  {footer}", sweep::size_of(section)))
            .collect(),
    }
}

/// The columns that fit, and their widths.
struct Fitting {
    label_width: usize,
    columns: Vec<Filled>,
    style: Style,
}

/// A column with its title, what it says of each row, and as wide as that.
struct Filled {
    column: &'static Column,
    title: String,
    cells: Vec<String>,
    width: usize,
}

impl Filled {
    fn of(column: &'static Column, section: &Section, style: &Style) -> Self {
        let title = if style.width >= WIDE { column.title } else { column.short };
        let title = layout::spell(title, style.unicode);
        let cells: Vec<String> = section.rows.iter().map(|row| cell(column, row, section)).collect();
        let widths = cells.iter().map(|cell| layout::width(cell));
        let width = widths.max().unwrap_or(0).max(layout::width(&title));
        Self { column, title, cells, width }
    }
}

impl Fitting {
    fn shows(&self, title: &str) -> bool {
        self.columns.iter().any(|filled| filled.column.title == title)
    }

    fn total(&self) -> usize {
        let columns = self.columns.iter().map(|filled| GAP.len() + filled.width);
        MARGIN.len() + self.label_width + columns.sum::<usize>()
    }
}

/// Leaves out the least important column until the rest fits.
fn fitting(section: &Section, style: &Style) -> Fitting {
    let label_max = (style.width / 3).max(20);
    let labels = section.rows.iter().flat_map(|row| label_lines(&row.label, label_max));
    let label_width = labels.map(|line| layout::width(&line)).max().unwrap_or(0).max("mechanism".len());
    let columns = columns(section).into_iter().map(|column| Filled::of(column, section, style)).collect();
    let mut fitting = Fitting { label_width, columns, style: *style };
    loop {
        let least = fitting.columns.iter().map(|filled| filled.column.drop).max().unwrap_or(0);
        if least == 0 || fitting.total() <= style.width {
            return fitting;
        }
        // Columns of one weight say something only together.
        fitting.columns.retain(|filled| filled.column.drop != least);
    }
}

fn list(section: &Section, fitting: &Fitting, interrupted: bool) -> Vec<Line> {
    let titles = fitting.columns.iter().map(|filled| filled.title.as_str());
    let mut lines = vec![Line::new(Tone::Dim, figures("mechanism", titles, fitting))];
    let many = section.rows.iter().filter(|row| row.has_figures()).count() > 1;
    for (at, row) in section.rows.iter().enumerate() {
        let tone = if at == 0 && many { Tone::Bold } else { Tone::Plain };
        lines.extend(row_lines((at, row), fitting, tone, interrupted));
    }
    lines
}

fn row_lines((at, row): (usize, &Row), fitting: &Fitting, tone: Tone, cut: bool) -> Vec<Line> {
    let labels = label_lines(&row.label, fitting.label_width);
    let first = labels.first().map_or("", String::as_str);
    let indent = MARGIN.len() + fitting.label_width + GAP.len();
    let mut reasons: Vec<String> = reasons(row, cut)
        .iter()
        .flat_map(|reason| layout::wrap(reason, fitting.style.width.saturating_sub(indent + 2)))
        .collect();
    let mut lines = Vec::new();
    if row.has_figures() {
        let cells = fitting.columns.iter().map(|filled| filled.cells[at].as_str());
        lines.push(Line::new(tone, figures(first, cells, fitting)));
    } else {
        let reason = if reasons.is_empty() { String::new() } else { reasons.remove(0) };
        let start = format!("{MARGIN}{}{GAP}", layout::left(first, fitting.label_width));
        lines.push(Line::new(tone, start).and(Tone::Dim, format!("{ABSENT} {reason}")));
    }
    // What is left of the label and of the reasons goes on below, side by side.
    let below = labels.len().saturating_sub(1).max(reasons.len());
    for index in 0..below {
        let label = labels.get(index + 1).map_or("", String::as_str);
        let reason = reasons.get(index).map_or("", String::as_str);
        let start = format!("{MARGIN}{}{GAP}  ", layout::left(label, fitting.label_width));
        lines.push(Line::new(tone, start).and(Tone::Dim, reason));
    }
    lines
}

/// A figure, a dash where it is missing, or nothing where a bar is missing.
fn cell(column: &Column, row: &Row, section: &Section) -> String {
    let absent = if column.picture { "" } else { ABSENT };
    (column.cell)(row, section).unwrap_or_else(|| absent.to_owned())
}

fn figures<'a>(label: &str, cells: impl Iterator<Item = &'a str>, fitting: &Fitting) -> String {
    let mut line = format!("{MARGIN}{}", layout::left(label, fitting.label_width));
    for (cell, Filled { column, width, .. }) in cells.zip(&fitting.columns) {
        line.push_str(GAP);
        line.push_str(&match column.align {
            Align::Left => layout::left(cell, *width),
            Align::Right => layout::right(cell, *width),
        });
    }
    line
}

/// A long spec broken after its colon and commas; what follows is indented.
fn label_lines(label: &str, width: usize) -> Vec<String> {
    if layout::width(label) <= width {
        return vec![label.to_owned()];
    }
    let pieces = label.split_inclusive([',', ':']);
    let lines = layout::fill(pieces, "", width.saturating_sub(2));
    lines.into_iter().enumerate().map(|(at, line)| if at == 0 { line } else { format!("  {line}") }).collect()
}
