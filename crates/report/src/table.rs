//! A table, as all output formats are given it: columns with their headings, and rows of values.

use std::collections::BTreeSet;

pub use crate::layout::Tone;
use crate::lists::joined_if_any;
use crate::value::Value;

/// The heading, in Markdown and HTML, of the column of reasons, which a terminal shows below the row.
const WHY_NOT: &str = "why not";

/// The abilities of the terminal, and the amount of text that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use ANSI colour (bold and dim).
    pub color: bool,
    /// Whether to use characters beyond ASCII.
    pub unicode: bool,
    /// Whether to print all remarks, and not only the first.
    pub explain: bool,
}

impl Default for Style {
    /// For an unknown terminal: 80 columns, no colour, Unicode, the most important remarks.
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true, explain: false }
    }
}

/// A table: columns with their headings, and rows of cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Its title; may be empty.
    pub title: String,
    /// Its columns. The first one has the names of the rows.
    pub columns: Vec<Column>,
    /// Its rows, with a cell for each column.
    pub rows: Vec<Row>,
    /// Lines below it, as the meaning of a mark.
    pub notes: Vec<String>,
}

/// A column. It is not shown if all its cells are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    /// Its heading.
    pub head: String,
    /// Its heading in a terminal of less than 100 columns; empty if it is the same.
    pub(crate) short: String,
    /// Its name in CSV; empty if it is not there.
    pub(crate) csv: String,
    /// A sentence that is shown where the column is; empty for none.
    pub(crate) legend: &'static str,
    /// The alignment of its cells; without one it follows from them.
    pub(crate) align: Option<Align>,
    /// How it becomes narrower in a terminal without enough room.
    pub(crate) fit: Fit,
    /// Columns with the highest number are left out first if a terminal has too little room; those with 0 never are.
    pub(crate) drop: u8,
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// How a cell that is too wide for a terminal is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Not at all: if the table is too wide, its last columns are printed below, with the first column again.
    #[default]
    Whole,
    /// A spec: at most a third of the terminal wide, and broken after commas and colons.
    Spec,
    /// A command: its end is cut off.
    Cut,
    /// Words: wrapped.
    Wrap,
    /// A command of which all is shown: wrapped, and code in Markdown.
    Command,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// A value for each column.
    pub cells: Vec<Value>,
    /// The tone of the row.
    pub tone: Tone,
    /// The index of a bold cell.
    pub best: Option<usize>,
    /// Why numbers are missing, and what to try: below the row in a terminal, else in a column of its own.
    pub reasons: Vec<String>,
}

impl Table {
    /// A table of cells that are made row by row.
    pub fn new<C: Into<Column>, V: Into<Value>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: impl IntoIterator<Item = Vec<V>>,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        let row =
            |cells: Vec<V>| Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() };
        Self { title: title.into(), columns, rows: rows.into_iter().map(row).collect(), ..Self::default() }
    }

    /// The legends of the columns for which `is_shown` is true, as one line, without those in `known`, to which they are added; `None`
    /// if there are none.
    pub(crate) fn legend(
        &self,
        known: &mut BTreeSet<&'static str>,
        is_shown: impl Fn(&Column) -> bool,
    ) -> Option<String> {
        let legends = self.columns.iter().filter(|one| is_shown(one)).map(|one| one.legend);
        let new = legends.filter(|legend| !legend.is_empty() && known.insert(legend));
        joined_if_any(new.map(str::to_owned), " ")
    }

    /// Makes a row bold, if there is one.
    pub(crate) fn embolden(&mut self, row: Option<usize>) {
        if let Some(row) = row.and_then(|at| self.rows.get_mut(at)) {
            row.tone = Tone::Bold;
        }
    }

    /// The cells of a column, from top to bottom.
    pub(crate) fn cells(&self, at: usize) -> impl Iterator<Item = &Value> + Clone {
        self.rows.iter().filter_map(move |row| row.cells.get(at))
    }

    /// The indices of the columns that are not empty.
    pub(crate) fn filled_columns(&self) -> impl Iterator<Item = usize> {
        let has_cell = |at: &usize| self.cells(*at).any(|cell| !cell.is_empty());
        (0..self.columns.len()).filter(move |at| self.rows.is_empty() || has_cell(at))
    }

    /// Whether at least half of a column's filled cells are numbers, if it has no alignment of its own.
    pub(crate) fn is_flush_right(&self, at: usize) -> bool {
        if let Some(align) = self.columns[at].align {
            return align == Align::Right;
        }
        let filled = self.cells(at).filter(|cell| !cell.is_empty() && **cell != Value::Absent);
        filled.clone().filter(|cell| cell.is_number()).count() * 2 >= filled.count()
    }

    /// The table for other formats than the terminal: without bars and empty columns, and with the reasons in a column of their own.
    pub(crate) fn texts(&self) -> Self {
        let is_bar = |at: &usize| self.cells(*at).any(|cell| matches!(cell, Value::Bar(..)));
        let columns: Vec<usize> = self.filled_columns().filter(|at| !is_bar(at)).collect();
        let with_reasons = self.rows.iter().any(|row| !row.reasons.is_empty());
        let row = |row: &Row| {
            let cells = columns.iter().map(|at| row.cells.get(*at).cloned().unwrap_or(Value::EMPTY));
            let cells = cells.chain(with_reasons.then(|| row.reasons.join("; ").into())).collect();
            Row { cells, ..Row::default() }
        };
        let kept = columns.iter().map(|at| self.columns[*at].clone());
        Self {
            title: self.title.clone(),
            columns: kept.chain(with_reasons.then(|| Column::from(WHY_NOT).left())).collect(),
            rows: self.rows.iter().map(row).collect(),
            notes: self.notes.clone(),
        }
    }
}

impl Column {
    /// Sets its cells flush left, also numbers.
    pub fn left(self) -> Self {
        Self { align: Some(Align::Left), ..self }
    }

    /// Sets its cells flush right, also words.
    pub fn right(self) -> Self {
        Self { align: Some(Align::Right), ..self }
    }

    /// Sets how it becomes narrower.
    pub fn fit(self, fit: Fit) -> Self {
        Self { fit, ..self }
    }

    /// Sets when a terminal leaves it out.
    pub fn drop(self, drop: u8) -> Self {
        Self { drop, ..self }
    }

    /// Sets its heading in a narrow terminal.
    pub fn short(self, short: impl Into<String>) -> Self {
        Self { short: short.into(), ..self }
    }

    /// Sets its name in CSV.
    pub(crate) fn csv(self, name: impl Into<String>) -> Self {
        Self { csv: name.into(), ..self }
    }

    /// Sets the sentence that is shown where it is.
    pub(crate) fn legend(self, legend: &'static str) -> Self {
        Self { legend, ..self }
    }
}

impl From<String> for Column {
    fn from(head: String) -> Self {
        Self { head, ..Self::default() }
    }
}

impl From<&str> for Column {
    fn from(head: &str) -> Self {
        head.to_owned().into()
    }
}
