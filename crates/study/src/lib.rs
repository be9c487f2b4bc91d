//! Published studies: this crate runs them here and shows the new figures beside the published ones. Each study is a folder and an
//! entry in [`STUDIES`]. `study.toml` in the folder has its parameters, the streams that it measures, the published figures, and all
//! headings, columns and sentences that are shown. Code is only for parts that are measured or shown in a special way.
//!
//! A study is run part by part into one record, which can be resumed ([`run`]). This crate prints nothing.

mod bradford;
mod comp517;
mod kernel_pipe;
mod parameters;
mod run;
mod scale;
mod start;
mod stover;
mod streams;
mod view;

use std::fmt;

use model::StudyRecord;
use parameters::StudyToml;
use report::document::Section;
use serde::de::DeserializeOwned;

pub use comp517::{Material, Preset, presets};
pub use parameters::PartText;
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
    elsewhere: Option<fn(&StudyRecord, &StudyToml) -> Option<Section>>,
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
    pub fn parts(&self) -> Vec<PartText> {
        self.parameters::<StudyToml>().parts
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
            let shown = study.parameters::<StudyToml>().study.shown;
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
