//! Published studies, run here and shown beside what was published. Each is a folder: its parameters, published figures and
//! every word and column that is shown (`study.toml`), how its parts are run (`run.rs`), what is in the cells (`view.rs`), and an
//! entry in [`STUDIES`].
//!
//! A study is run part by part into one record that can be resumed ([`run`]). Nothing here prints.

mod bradford;
mod comp517;
mod kernel_pipe;
mod needs;
mod run;
mod scale;
mod stover;
mod view;

use std::fmt;

use model::StudyRecord;
use needs::Needs;
use report::document::Section;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use comp517::{Material, Preset, presets};
pub use needs::Have;
pub use run::{Job, PartRun, check_resume, failed, foreign_part, run};
pub use scale::Scale;
pub use view::{summarise, view};

/// Every study there is, in the order of the documentation.
pub static STUDIES: &[Study] = &[bradford::STUDY, comp517::STUDY, kernel_pipe::STUDY, stover::STUDY];

/// A published study.
#[derive(Debug)]
pub struct Study {
    /// The word for it on the command line and in records.
    pub name: &'static str,
    /// What it needs at a scale, beside what every study needs.
    needs: fn(Scale) -> Needs,
    /// How each of its parts is run, and what is shown of it.
    parts: &'static [(&'static str, run::Run, view::Show)],
    /// What is shown of records made elsewhere; none where it takes none.
    elsewhere: Option<fn(&StudyRecord, &File) -> Option<Section>>,
    /// The figures in the sentences on what changed since it was published.
    facts: fn(&StudyRecord) -> view::Facts,
    /// Its parts, parameters and published figures.
    toml: &'static str,
}

impl Study {
    /// The study of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        STUDIES.iter().find(|study| study.name == name)
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
    /// The heading above its figures.
    heading: String,
    /// Whether the heading is a command line.
    #[serde(default)]
    is_command: bool,
    /// What is said below the heading.
    lead: String,
    table: Option<TableText>,
    figure: Option<FigureText>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    caption: String,
    /// From left to right: the heading, and the word by which the view knows the cell.
    columns: Vec<[String; 2]>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureText {
    /// The part's heading where there is none.
    title: Option<String>,
    caption: String,
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
            assert_eq!(names, study.parts.iter().map(|(name, ..)| *name).collect(), "each can be run");
            let shown = study.parameters::<File>().study.shown;
            assert!(shown.is_empty() || names == shown.iter().map(String::as_str).collect(), "each is shown");
        }
        assert!(Study::named("bradfort").is_none());
    }

    #[test]
    fn all_studies_end_within_three_quarters_of_an_hour() {
        let minutes: f64 = STUDIES.iter().flat_map(Study::parts).map(|part| part.minutes).sum();
        assert!(minutes <= ALL_MINUTES, "{minutes}");
    }
}
