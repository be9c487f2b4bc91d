//! Tables. All tables of all output formats are made of this type.

use std::collections::BTreeSet;

pub use crate::layout::Tone;
use crate::lists::joined_if_any;

/// The mark of an absent figure.
pub const ABSENT: &str = "–";
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Its title; may be empty.
    pub title: String,
    /// Its columns. The first one has the names of the rows.
    pub columns: Vec<Column>,
    /// Its rows, with a cell for each column.
    pub rows: Vec<Row>,
    /// Lines below it, as the meaning of a mark.
    pub notes: Vec<String>,
    /// Sentences that speak of one column: its heading, and the sentence, which is shown where the column is.
    pub legends: Vec<(String, String)>,
}

/// A column. It is not shown if all its cells are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Its heading in a terminal of less than 100 columns; empty if it is the same.
    pub short: String,
    /// The alignment of its cells.
    pub align: Align,
    /// How it becomes narrower in a terminal without enough room.
    pub fit: Fit,
    /// Columns with the highest number are left out first if a terminal has too little room; those with 0 never are.
    pub drop: u8,
    /// Whether it is a bar for the figure beside it, which only terminals show.
    pub picture: bool,
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For figures.
    Right,
    /// Right if most cells are figures.
    Auto,
}

/// How a cell that is too wide for a terminal is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Not at all: if the table is too wide, its last columns are printed below, with the first column again.
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// A text for each column.
    pub cells: Vec<String>,
    /// The tone of the row.
    pub tone: Tone,
    /// The index of a bold cell.
    pub best: Option<usize>,
    /// Why figures are missing, and what to try: below the row in a terminal, else in a column of its own.
    pub reasons: Vec<String>,
}

impl Table {
    /// A table of texts.
    pub fn new<C: Into<Column>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        let rows = rows.into_iter().map(|cells| Row { cells, ..Row::default() }).collect();
        Self { title: title.into(), columns, rows, ..Self::default() }
    }

    /// Adds a column with a cell for each row; `None` is a missing figure. A column of missing figures is left out, unless its `drop`
    /// is 0.
    pub fn add(&mut self, column: Column, cells: impl IntoIterator<Item = Option<String>>) {
        let cells: Vec<Option<String>> = cells.into_iter().collect();
        if column.drop > 0 && cells.iter().all(Option::is_none) {
            return;
        }
        self.rows.resize(cells.len(), Row::default());
        let absent = if column.picture { "" } else { ABSENT };
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row.cells.push(cell.unwrap_or_else(|| absent.to_owned()));
        }
        self.columns.push(column);
    }

    /// Adds a sentence on a column, if the table has it.
    pub(crate) fn explain(&mut self, column: &str, sentence: &str) {
        if self.columns.iter().any(|one| one.title == column) {
            self.legends.push((column.to_owned(), sentence.to_owned()));
        }
    }

    /// The sentences on the columns for which `is_shown` is true, as one line, without those in `known`, to which they are added; `None`
    /// if there are none.
    pub(crate) fn legend(
        &self,
        known: &mut BTreeSet<String>,
        is_shown: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let shown = self.legends.iter().filter(|(column, _)| is_shown(column));
        let new = shown.filter(|(_, sentence)| known.insert(sentence.clone()));
        joined_if_any(new.map(|(_, sentence)| sentence.clone()), " ")
    }

    /// Makes a row bold, if there is one.
    pub(crate) fn embolden(&mut self, row: Option<usize>) {
        if let Some(row) = row.and_then(|at| self.rows.get_mut(at)) {
            row.tone = Tone::Bold;
        }
    }

    /// The cells of a column, from top to bottom.
    pub(crate) fn cells(&self, at: usize) -> impl Iterator<Item = &str> + Clone {
        self.rows.iter().map(move |row| row.cells.get(at).map_or("", String::as_str))
    }

    /// The indices of the columns that are not empty.
    pub(crate) fn filled_columns(&self) -> impl Iterator<Item = usize> {
        let has_text = |at: &usize| self.cells(*at).any(|cell| !cell.is_empty());
        (0..self.columns.len()).filter(move |at| self.rows.is_empty() || has_text(at))
    }

    pub(crate) fn is_flush_right(&self, at: usize) -> bool {
        match self.columns[at].align {
            Align::Left => false,
            Align::Right => true,
            Align::Auto => self.filled_columns().next() != Some(at) && are_figures(self.cells(at)),
        }
    }

    /// The table for other formats than the terminal: without bars and empty columns, and with the reasons in a column of their own.
    pub(crate) fn texts(&self) -> Self {
        let columns: Vec<usize> = self.filled_columns().filter(|at| !self.columns[*at].picture).collect();
        let with_reasons = self.rows.iter().any(|row| !row.reasons.is_empty());
        let row = |row: &Row| {
            let cells = columns.iter().map(|at| row.cells.get(*at).cloned().unwrap_or_default());
            let cells = cells.chain(with_reasons.then(|| row.reasons.join("; "))).collect();
            Row { cells, ..Row::default() }
        };
        let kept = columns.iter().map(|at| self.columns[*at].clone());
        Self {
            title: self.title.clone(),
            columns: kept.chain(with_reasons.then(|| Column::left(WHY_NOT))).collect(),
            rows: self.rows.iter().map(row).collect(),
            notes: self.notes.clone(),
            legends: self.legends.clone(),
        }
    }
}

impl Column {
    /// A column of words.
    pub fn left(title: impl Into<String>) -> Self {
        Self { align: Align::Left, ..title.into().into() }
    }

    /// A column of figures.
    pub fn right(title: impl Into<String>) -> Self {
        Self { align: Align::Right, ..title.into().into() }
    }

    /// A column of bars for the figures beside it. It has no heading.
    pub fn picture() -> Self {
        Self { picture: true, ..Self::left("") }
    }

    /// Sets when a terminal leaves it out.
    pub fn drop(self, drop: u8) -> Self {
        Self { drop, ..self }
    }

    /// Sets how it becomes narrower.
    pub fn fit(self, fit: Fit) -> Self {
        Self { fit, ..self }
    }

    /// Sets its heading in a narrow terminal.
    pub fn short(self, short: impl Into<String>) -> Self {
        Self { short: short.into(), ..self }
    }
}

impl From<String> for Column {
    fn from(title: String) -> Self {
        Self { title, short: String::new(), align: Align::Auto, fit: Fit::Whole, drop: 0, picture: false }
    }
}

impl From<&str> for Column {
    fn from(title: &str) -> Self {
        title.to_owned().into()
    }
}

/// Whether at least half of the cells with a text are figures.
fn are_figures<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> bool {
    let figure = |text: &&str| {
        text.trim_start_matches(['<', '≥', '±', '-', ' ']).starts_with(|c: char| c.is_ascii_digit())
    };
    let texts = cells.filter(|text| !text.is_empty() && *text != ABSENT);
    texts.clone().filter(figure).count() * 2 >= texts.count().max(1)
}
