//! What a part of a study is, and what it is given to work with.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::registry::Name;
use model::{Cpu, Observer, SpecError, StudyPart, describe_errno};
use thiserror::Error;

use crate::{Scale, bradford, comp517, kernel_pipe, stover};

/// What is to be run, and how.
pub struct Job<'a> {
    /// The study.
    pub study: Name,
    /// How much of it.
    pub scale: Scale,
    /// Decides the order within rounds, and random payloads.
    pub seed: u64,
    /// The CPUs there are.
    pub cpus: &'a [Cpu],
    /// The program whose `gen` and `sink` stand at the ends of pipelines: this one.
    pub hosepipe: &'a Path,
    /// The shell that runs pipelines.
    pub shell: &'a str,
    /// Whether the user wants to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Called with a signal that ended a program of ours and asks us to end, too.
    pub note_signal: &'a dyn Fn(i32),
}

/// What makes a part.
pub(crate) type Run = fn(&mut Stage<'_>) -> Result<StudyPart, ReproduceError>;

/// A part of a study.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Its name in records.
    pub name: &'static str,
    /// What it does, in a few words.
    pub title: &'static str,
    /// What it may take, in minutes, at full size; no round begins after that.
    pub minutes: f64,
    pub(crate) run: Run,
}

/// The parts of a study, in the order in which they are run.
pub fn parts(study: Name) -> Vec<Part> {
    match study {
        Name::Bradford => bradford::run::parts(),
        Name::Comp517 => comp517::run::parts(),
        Name::KernelPipe => kernel_pipe::run::parts(),
        Name::Stover => stover::run::parts(),
    }
}

/// What a part works with.
pub struct Stage<'a> {
    pub(crate) job: &'a Job<'a>,
    pub(crate) watcher: &'a mut dyn Observer,
    pub(crate) part: &'a Part,
    pub(crate) began: Instant,
}

impl Stage<'_> {
    /// What this part may take.
    pub(crate) fn budget(&self) -> Duration {
        Duration::from_secs_f64(self.part.minutes * 60.0)
    }

    /// Whether no other round should begin.
    pub(crate) fn is_over(&self) -> bool {
        (self.job.stop)() || self.began.elapsed() >= self.budget()
    }

    /// A part without figures yet.
    pub(crate) fn blank(&self, series: u32) -> StudyPart {
        StudyPart { name: self.part.name.to_owned(), series, ..StudyPart::default() }
    }
}

/// Why a part could not be run at all.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// The system refused something that the part cannot do without.
    #[error("{what}: {}", describe_errno(.source))]
    System {
        /// What was asked.
        what: String,
        /// The answer.
        source: std::io::Error,
    },
    /// A mechanism that is not in the registry.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A mechanism or option that is not in the registry.
    #[error(transparent)]
    Mechanism(#[from] mechanism::SpecProblem),
    /// A folder that cannot be made.
    #[error("{source}{}", source.remedy().map(|remedy| format!(": {remedy}")).unwrap_or_default())]
    Folder {
        /// Why not.
        #[from]
        source: mechanism::OpenError,
    },
    /// A link that is not in the registry.
    #[error(transparent)]
    Link(#[from] pipeline::link::LinkProblem),
    /// Workers that cannot be chosen.
    #[error("{0}")]
    Workers(String),
}

impl ReproduceError {
    /// A refusal of the system, for `map_err`.
    pub(crate) fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| Self::System { what, source: error.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What a full run of all studies may take, in minutes.
    const ALL_MINUTES: f64 = 45.0;

    #[test]
    fn all_studies_end_within_three_quarters_of_an_hour() {
        let minutes: f64 = Name::ALL.into_iter().flat_map(parts).map(|part| part.minutes).sum();
        assert!(minutes <= ALL_MINUTES, "{minutes}");
    }

    #[test]
    fn parts_have_names_of_their_own() {
        for study in Name::ALL {
            let names: BTreeSet<&str> = parts(study).iter().map(|part| part.name).collect();
            assert_eq!(names.len(), parts(study).len(), "{study}");
        }
    }
}
