//! What `study.toml` has of a study: its settings, what its parts measure, and the texts of its tables, figures and paragraphs.

use std::collections::BTreeMap;

use model::DataLevel;
use serde::Deserialize;

use crate::scale::Size;
use crate::streams::Streams;

/// The tables of `study.toml` that every study has.
#[derive(Deserialize)]
pub(crate) struct StudyToml {
    pub(crate) study: StudyHead,
    pub(crate) workload: Option<StudyWorkload>,
    #[serde(rename = "part")]
    pub(crate) parts: Vec<PartText>,
    /// The table and the figure of parts without their own.
    pub(crate) table: Option<TableText>,
    pub(crate) figure: Option<FigureText>,
    /// What has changed since the study was published.
    #[serde(rename = "paragraph")]
    pub(crate) paragraphs: Vec<Paragraph>,
}

/// What the study is, and the settings of all its parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StudyHead {
    pub(crate) title: String,
    pub(crate) authors: String,
    /// Place and date.
    pub(crate) published: String,
    pub(crate) year: u32,
    pub(crate) question: String,
    /// The order in which its parts are shown; if empty, the order in which they are run.
    #[serde(default)]
    pub(crate) shown: Vec<String>,
    /// Settings of every part: name and text.
    #[serde(default)]
    pub(crate) settings: Vec<[String; 2]>,
}

/// The workload of a study that has only one.
#[derive(Deserialize)]
pub(crate) struct StudyWorkload {
    pub(crate) bytes: Size,
    /// Bytes of one call.
    pub(crate) block: Size,
}

/// A part of a study.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartText {
    /// Its name in records.
    pub name: String,
    /// A short description for the progress bar.
    pub title: String,
    /// Its time limit: no round begins after that.
    pub(crate) minutes: f64,
    /// Trials of each case, at full size; if absent, one.
    pub(crate) trials: Option<u32>,
    /// Settings for the reader: name and text. `{100k}` in a text is replaced by that amount at the scale.
    #[serde(default)]
    pub(crate) settings: Vec<[String; 2]>,
    #[serde(default)]
    pub(crate) streams: Vec<Streams>,
    /// The pipeline that it runs; `{file}` and `{folder}` are replaced by the paths of its input.
    pub(crate) pipeline: Option<String>,
    /// The heading above its figures.
    pub(crate) heading: String,
    /// Whether the heading is a command line.
    #[serde(default)]
    pub(crate) is_command: bool,
    /// The text below the heading.
    pub(crate) lead: String,
    pub(crate) table: Option<TableText>,
    pub(crate) figure: Option<FigureText>,
    /// The rows of its table; if empty, the table has a row for each case and each measure.
    #[serde(default, rename = "row")]
    pub(crate) rows: Vec<RowText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableText {
    pub(crate) caption: String,
    /// From left to right.
    pub(crate) columns: Vec<ColumnText>,
    /// The row to whose throughput the cells `ratio` refer.
    #[serde(default)]
    pub(crate) base_row: usize,
}

/// In the file a list: `["time", "measured time", "right"]`.
#[derive(Debug, Deserialize)]
pub(crate) struct ColumnText {
    pub(crate) heading: String,
    /// The name of the text in its cells, which the row has in `study.toml` or which was measured.
    pub(crate) text: String,
    /// `right` for numbers.
    #[serde(default)]
    pub(crate) alignment: Option<Alignment>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Alignment {
    Right,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureText {
    /// If absent, the part's heading.
    pub(crate) title: Option<String>,
    pub(crate) caption: String,
    #[serde(default)]
    pub(crate) is_logarithmic: bool,
    /// Groups of bars: a name, and the data level of the cases in it. If empty, one group has all cases.
    #[serde(default)]
    pub(crate) groups: Vec<(String, DataLevel)>,
}

/// A row of a part's table. The first four fields select a case or a measure of the record.
#[derive(Debug, Deserialize)]
pub(crate) struct RowText {
    pub(crate) spec: Option<String>,
    pub(crate) block: Option<Size>,
    pub(crate) data: Option<DataLevel>,
    pub(crate) measure: Option<String>,
    /// Its other texts, by the name that a column has for them.
    #[serde(flatten)]
    pub(crate) texts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paragraph {
    #[serde(rename = "sentence")]
    pub(crate) sentences: Vec<Sentence>,
}

/// A sentence, or a part of one; it is omitted if one of its facts is unknown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sentence {
    /// `{fact}` is replaced by the fact.
    pub(crate) text: String,
    /// Further facts that must be known.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
}
