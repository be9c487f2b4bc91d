//! Published studies, run here and shown beside what was published. Each is a folder: its parameters, the streams that it measures,
//! published figures, and every word and column that is shown (`study.toml`); code only for what it runs or shows in a way of its own;
//! and an entry in [`STUDIES`].
//!
//! A study is run part by part into one record that can be resumed ([`run`]). Nothing here prints.

mod bradford;
mod comp517;
mod kernel_pipe;
mod needs;
mod run;
mod scale;
mod stover;
mod streams;
mod view;

use std::collections::BTreeMap;
use std::fmt;

use model::{DataLevel, StudyRecord};
use needs::Needs;
use report::document::Section;
use scale::Size;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use streams::Streams;

pub use comp517::{Material, Preset, presets};
pub use needs::Have;
pub use run::{Job, PartRun, check_resume, failed, foreign_part, run};
pub use scale::Scale;
pub use view::{summarise, view};

/// Every study there is, in the order of the documentation.
pub static STUDIES: &[&Study] = &[&bradford::STUDY, &comp517::STUDY, &kernel_pipe::STUDY, &stover::STUDY];

/// A published study.
#[derive(Debug)]
pub struct Study {
    /// The word for it on the command line and in records.
    pub name: &'static str,
    /// Runs a part: [`run::PartRun::run_streams`] where it has no way of its own.
    run: run::Run,
    /// What is shown of a part: [`view::PartView::shown`] where it has no way of its own.
    show: view::Show,
    /// What is shown of records made elsewhere; none where it takes none.
    elsewhere: Option<fn(&StudyRecord, &File) -> Option<Section>>,
    /// The figures in the sentences on what changed since it was published.
    facts: fn(&StudyRecord) -> view::Words,
    /// Its parts, parameters and published figures.
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

    /// Whether records made elsewhere can stand beside its own ([`foreign_part`]).
    pub fn takes_foreign_records(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Its file, which is a part of the program: a test reads them all.
    fn parameters<T: DeserializeOwned>(&self) -> T {
        toml::from_str(self.toml).unwrap_or_else(|error| panic!("{}/study.toml: {error}", self.name))
    }
}

impl fmt::Display for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// What every study has in its file.
#[derive(Deserialize)]
struct File {
    study: Head,
    workload: Option<Workload>,
    #[serde(rename = "part")]
    parts: Vec<Part>,
    /// For parts that have none of their own.
    table: Option<TableText>,
    figure: Option<FigureText>,
    /// On what changed since it was published.
    #[serde(rename = "paragraph")]
    paragraphs: Vec<Paragraph>,
}

/// What a study is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    title: String,
    authors: String,
    /// Where and when.
    published: String,
    year: u32,
    question: String,
    /// Its parts as they are shown, from above; as they are run where it is empty.
    #[serde(default)]
    shown: Vec<String>,
    /// What it needs at full size, beside what every study needs.
    #[serde(default)]
    needs: Needs,
    /// What was set for every part.
    #[serde(default)]
    settings: Vec<[String; 2]>,
}

/// What a study of one workload sends.
#[derive(Deserialize)]
struct Workload {
    bytes: Size,
    /// What is handed over in one call.
    block: Size,
}

/// A part of a study.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its name in records.
    pub name: String,
    /// What it does, in a few words.
    pub title: String,
    /// What it may take, at full size; no round begins after that.
    minutes: f64,
    /// How often each of its cases is run, at full size.
    #[serde(default = "once")]
    trials: u32,
    /// What was set, for people: the name and a text. `{100k}` in it is replaced by that amount at the scale.
    #[serde(default)]
    settings: Vec<[String; 2]>,
    #[serde(default)]
    streams: Vec<Streams>,
    /// The pipeline that it runs; `{file}` and `{folder}` stand for what that runs on.
    pipeline: Option<String>,
    /// The heading above its figures.
    heading: String,
    /// Whether the heading is a command line.
    #[serde(default)]
    is_command: bool,
    /// What is said below the heading.
    lead: String,
    table: Option<TableText>,
    figure: Option<FigureText>,
    /// The rows of its table; without any each thing that was measured has one.
    #[serde(default, rename = "row")]
    rows: Vec<RowText>,
}

fn once() -> u32 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    caption: String,
    /// From left to right: the heading, and the word for the cell: a word of the row itself, or one of what was measured.
    columns: Vec<[String; 2]>,
    /// The row whose throughput is 1 in the cells `ratio`.
    #[serde(default)]
    base_row: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    /// The part's heading where there is none.
    title: Option<String>,
    caption: String,
    #[serde(default)]
    is_logarithmic: bool,
    /// Groups of bars, each of the rows' cases with these data; one of all where there are none.
    #[serde(default)]
    groups: Vec<(String, DataLevel)>,
}

/// A row of a part's table, and which case or measure of the record it is about.
#[derive(Debug, Deserialize)]
struct RowText {
    spec: Option<String>,
    block: Option<Size>,
    data: Option<DataLevel>,
    measure: Option<String>,
    /// Its own words, by their columns.
    #[serde(flatten)]
    words: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paragraph {
    #[serde(rename = "sentence")]
    sentences: Vec<Sentence>,
}

/// A sentence, or a part of one; it is left out where one of its facts is not known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    /// `{fact}` is replaced by the fact.
    text: String,
    /// Facts that must be known beside those in the text.
    #[serde(default)]
    needs: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What a full run of all studies may take.
    const ALL_MINUTES: f64 = 45.0;

    #[test]
    fn every_study_reads_and_is_found_by_its_name() {
        for study in STUDIES {
            assert_eq!(Study::named(study.name).map(|study| study.name), Some(study.name));
            let parts = study.parts();
            let names: BTreeSet<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            assert_eq!(names.len(), parts.len(), "{study}: parts have names of their own");
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
