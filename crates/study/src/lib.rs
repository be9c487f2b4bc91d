//! Published studies: this crate runs them here and shows the new figures beside the published ones. Each study is a folder and an
//! entry in [`STUDIES`]. `study.toml` in the folder has its parameters, the streams that it measures, the published figures, and all
//! headings, columns and sentences that are shown. Code is only for parts that are measured or shown in a special way.
//!
//! A study is run part by part into one record, which can be resumed ([`run`]). This crate prints nothing.

mod bradford;
mod comp517;
mod kernel_pipe;
mod run;
mod scale;
mod stover;
mod streams;
mod view;

use std::collections::BTreeMap;
use std::fmt;

use model::{DataLevel, StudyRecord};
use report::document::Section;
use scale::Size;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use streams::Streams;

pub use comp517::{Material, Preset, presets};
pub use run::{PartRun, StudyRequest, check_resume, failed, foreign_part, is_without_figures, run};
pub use scale::Scale;
pub use view::{summarise, view};

/// Every study, in the order of the documentation.
pub static STUDIES: &[&Study] = &[&bradford::STUDY, &comp517::STUDY, &kernel_pipe::STUDY, &stover::STUDY];

/// A published study.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line and in records.
    pub name: &'static str,
    /// Measures a part; most parts need only [`run::PartRun::run_streams`].
    run: run::RunPart,
    /// The blocks that show a part; most parts need only [`view::PartView::shown`].
    show: view::ShowPart,
    /// The section of records from other machines; `None` for a study that accepts no such records.
    elsewhere: Option<fn(&StudyRecord, &File) -> Option<Section>>,
    /// The figures for the sentences of `study.toml` on what has changed since the study was published.
    facts: fn(&StudyRecord) -> view::Texts,
    /// The text of its `study.toml`.
    toml: &'static str,
}

impl Study {
    /// The study of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        STUDIES.iter().copied().find(|study| study.name == name)
    }

    /// Its parts, in the order in which they are run.
    pub fn parts(&self) -> Vec<Part> {
        self.parameters::<File>().parts
    }

    /// Whether it can show records from other machines beside its own ([`foreign_part`]).
    pub fn takes_foreign_records(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Its `study.toml`, or the tables of it that `T` has. The file is compiled in, so an error in it is a bug; a test reads every file.
    fn parameters<T: DeserializeOwned>(&self) -> T {
        model::from_toml(self.toml).unwrap_or_else(|error| panic!("{}/study.toml: {error}", self.name))
    }
}

impl fmt::Display for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// The tables of `study.toml` that every study has.
#[derive(Deserialize)]
struct File {
    study: Head,
    workload: Option<StudyWorkload>,
    #[serde(rename = "part")]
    parts: Vec<Part>,
    /// The table and the figure of parts without their own.
    table: Option<TableText>,
    figure: Option<FigureText>,
    /// What has changed since the study was published.
    #[serde(rename = "paragraph")]
    paragraphs: Vec<Paragraph>,
}

/// What the study is, and the settings of all its parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    title: String,
    authors: String,
    /// Place and date.
    published: String,
    year: u32,
    question: String,
    /// The order in which its parts are shown; if empty, the order in which they are run.
    #[serde(default)]
    shown: Vec<String>,
    /// Settings of every part: name and text.
    #[serde(default)]
    settings: Vec<[String; 2]>,
}

/// The workload of a study that has only one.
#[derive(Deserialize)]
struct StudyWorkload {
    bytes: Size,
    /// Bytes of one call.
    block: Size,
}

/// A part of a study.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name in records.
    pub name: String,
    /// A short description for the progress bar.
    pub title: String,
    /// Its time limit: no round begins after that.
    minutes: f64,
    /// Trials of each case, at full size; if absent, one.
    trials: Option<u32>,
    /// Settings for the reader: name and text. `{100k}` in a text is replaced by that amount at the scale.
    #[serde(default)]
    settings: Vec<[String; 2]>,
    #[serde(default)]
    streams: Vec<Streams>,
    /// The pipeline that it runs; `{file}` and `{folder}` are replaced by the paths of its input.
    pipeline: Option<String>,
    /// The heading above its figures.
    heading: String,
    /// Whether the heading is a command line.
    #[serde(default)]
    is_command: bool,
    /// The text below the heading.
    lead: String,
    table: Option<TableText>,
    figure: Option<FigureText>,
    /// The rows of its table; if empty, the table has a row for each case and each measure.
    #[serde(default, rename = "row")]
    rows: Vec<RowText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    caption: String,
    /// From left to right: a heading; the name of the cell's text, which the row has in `study.toml` or which was measured; and for numbers
    /// `right`.
    columns: Vec<Vec<String>>,
    /// The row to whose throughput the cells `ratio` refer.
    #[serde(default)]
    base_row: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    /// If absent, the part's heading.
    title: Option<String>,
    caption: String,
    #[serde(default)]
    is_logarithmic: bool,
    /// Groups of bars: a name, and the data level of the cases in it. If empty, one group has all cases.
    #[serde(default)]
    groups: Vec<(String, DataLevel)>,
}

/// A row of a part's table. The first four fields select a case or a measure of the record.
#[derive(Debug, Deserialize)]
struct RowText {
    spec: Option<String>,
    block: Option<Size>,
    data: Option<DataLevel>,
    measure: Option<String>,
    /// Its other texts, by the name that a column has for them.
    #[serde(flatten)]
    texts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paragraph {
    #[serde(rename = "sentence")]
    sentences: Vec<Sentence>,
}

/// A sentence, or a part of one; it is omitted if one of its facts is unknown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    /// `{fact}` is replaced by the fact.
    text: String,
    /// Further facts that must be known.
    #[serde(default)]
    needs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Limit of a full run of all studies.
    const ALL_MINUTES: f64 = 45.0;

    #[test]
    fn every_study_reads_and_is_found_by_its_name() {
        for study in STUDIES {
            assert_eq!(Study::named(study.name).map(|study| study.name), Some(study.name));
            let parts = study.parts();
            let names: BTreeSet<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            assert_eq!(names.len(), parts.len(), "{study}: no two parts have one name");
            let shown = study.parameters::<File>().study.shown;
            assert!(shown.is_empty() || names == shown.iter().map(String::as_str).collect(), "each is shown");
        }
        assert!(Study::named("bradfort").is_none());
    }

    #[test]
    fn all_studies_end_within_three_quarters_of_an_hour() {
        let minutes: f64 = STUDIES.iter().flat_map(|study| study.parts()).map(|part| part.minutes).sum();
        assert!(minutes <= ALL_MINUTES, "{minutes}");
    }
}
