//! The table: every column of figures that hosepipe shows is one of these.

pub use crate::layout::Tone;

/// The mark of an absent figure.
pub const ABSENT: &str = "–";
/// The column, in Markdown and HTML, of the reasons that a terminal has below a row.
const WHY_NOT: &str = "why not";

/// What the reader's terminal can show, and how much the reader wants.
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
    /// What is safe where nothing is known: 80 columns, no colour, Unicode, the most important remarks.
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true, explain: false }
    }
}

/// A table: columns with their headings, and rows of cells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// What it shows; may be empty.
    pub title: String,
    /// Its columns. The first one names the rows.
    pub columns: Vec<Column>,
    /// Its rows, as long as there are columns.
    pub rows: Vec<Row>,
    /// Lines below it: the floor and the ceiling, the meaning of a mark.
    pub notes: Vec<String>,
}

/// A column. Columns in which no cell says anything are not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Its heading in a terminal of fewer than 100 columns; empty: the same.
    pub short: String,
    /// On which side its cells are flush.
    pub align: Align,
    /// How it becomes narrower where a terminal has too little room.
    pub fit: Fit,
    /// The higher, the sooner a terminal leaves it out; 0: never. Columns of one number go together.
    pub drop: u8,
    /// True for a picture of the figure beside it: only terminals show it.
    pub picture: bool,
}

/// On which side a column is flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
    /// As most of its cells want it.
    Auto,
}

/// How a cell that is too wide for a terminal is made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Not at all: where the table is too wide, its last columns go below, each time with the first column again.
    Whole,
    /// A spec: it takes a third of the terminal at the most, and is broken after commas and colons.
    Spec,
    /// A command: its end is cut off.
    Cut,
    /// Words: they go on below.
    Wrap,
    /// A command that must be read to its end: its words go on below, and in Markdown it is code.
    Command,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// A text for each column.
    pub cells: Vec<String>,
    /// How the row is set off.
    pub tone: Tone,
    /// The cell that is bold.
    pub best: Option<usize>,
    /// Why it lacks figures, and what to try: below the row in a terminal, else a column of its own.
    pub reasons: Vec<String>,
}

impl Table {
    /// A table of texts whose columns are flush as their cells want it.
    pub fn new<C: Into<Column>>(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        let rows = rows.into_iter().map(Row::from).collect();
        Self { title: title.into(), columns, rows, notes: Vec::new() }
    }

    /// Adds a column with a cell for each row; `None` is a figure that is missing. A column that says nothing is left out,
    /// unless it must stay (`drop` is 0).
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

    /// The cells of a column, from above.
    pub(crate) fn cells(&self, at: usize) -> impl Iterator<Item = &str> + Clone {
        self.rows.iter().map(move |row| row.cells.get(at).map_or("", String::as_str))
    }

    /// The columns that say something.
    pub(crate) fn filled_columns(&self) -> impl Iterator<Item = usize> {
        let speaks = |at: &usize| self.cells(*at).any(|cell| !cell.is_empty());
        (0..self.columns.len()).filter(move |at| self.rows.is_empty() || speaks(at))
    }

    pub(crate) fn is_flush_right(&self, at: usize) -> bool {
        match self.columns[at].align {
            Align::Left => false,
            Align::Right => true,
            Align::Auto => self.filled_columns().next() != Some(at) && are_figures(self.cells(at)),
        }
    }

    /// What is shown where there is no terminal: no pictures, no column that says nothing, the reasons in a column of their own.
    pub(crate) fn texts(&self) -> Self {
        let columns: Vec<usize> = self.filled_columns().filter(|at| !self.columns[*at].picture).collect();
        let with_reasons = self.rows.iter().any(|row| !row.reasons.is_empty());
        let row = |row: &Row| {
            let cells = columns.iter().map(|at| row.cells.get(*at).cloned().unwrap_or_default());
            cells.chain(with_reasons.then(|| row.reasons.join("; "))).collect::<Vec<String>>().into()
        };
        let kept = columns.iter().map(|at| self.columns[*at].clone());
        Self {
            title: self.title.clone(),
            columns: kept.chain(with_reasons.then(|| Column::left(WHY_NOT))).collect(),
            rows: self.rows.iter().map(row).collect(),
            notes: self.notes.clone(),
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

    /// A picture of a figure beside it, which has no heading.
    pub fn picture() -> Self {
        Self { picture: true, ..Self::left("") }
    }

    /// How soon a terminal leaves it out.
    pub fn drop(self, drop: u8) -> Self {
        Self { drop, ..self }
    }

    /// How it becomes narrower.
    pub fn fit(self, fit: Fit) -> Self {
        Self { fit, ..self }
    }

    /// Its heading where room is short.
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

impl From<Vec<String>> for Row {
    fn from(cells: Vec<String>) -> Self {
        Self { cells, ..Self::default() }
    }
}

/// Whether most of the cells that say something hold figures rather than words.
fn are_figures<'a>(cells: impl Iterator<Item = &'a str> + Clone) -> bool {
    let figure = |text: &&str| {
        text.trim_start_matches(['<', '≥', '±', '-', ' ']).starts_with(|c: char| c.is_ascii_digit())
    };
    let spoken = cells.filter(|text| !text.is_empty() && *text != ABSENT);
    spoken.clone().filter(figure).count() * 2 >= spoken.count().max(1)
}
