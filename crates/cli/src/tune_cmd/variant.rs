//! A variant of the pipeline: the changes that were made to it, and its text.

use model::TuneChange;
use pipeline::tune::rules::{Rule, available};
use pipeline::tune::safety;
use pipeline::tune::script::Script;
use pipeline::tune::text::{Pipeline, Stage};

/// A text with some changes.
#[derive(Clone)]
pub(super) struct Variant {
    pub(super) script: Script,
    pub(super) changes: Vec<TuneChange>,
}

/// A rule at a place in one of the pipelines.
#[derive(Clone, Copy)]
pub(super) struct Idea {
    pub(super) rule: &'static Rule,
    pipeline: usize,
    pub(super) place: usize,
}

/// A change to certain stages: the number of the first one, and what they were and are.
pub(super) type Tried = (Option<usize>, String, String);

impl Variant {
    pub(super) fn new(text: &str) -> Self {
        Self { script: Script::parse(text), changes: Vec::new() }
    }

    pub(super) fn text(&self) -> String {
        self.script.to_string()
    }

    /// Every rule at every place.
    pub(super) fn ideas(&self) -> Vec<Idea> {
        let pipelines = self.script.pipelines();
        // What writes a file (`--yes`) is not changed: only standard output is compared.
        let is_compared = |pipeline: &Pipeline| safety::stops(&pipeline.to_string()).is_none();
        let compared = pipelines.iter().enumerate().filter(|(_, pipeline)| is_compared(pipeline));
        let places = compared
            .flat_map(|(pipeline, found)| (0..found.places.len()).map(move |place| (pipeline, place)));
        places
            .flat_map(|(pipeline, place)| available().iter().map(move |rule| Idea { rule, pipeline, place }))
            .collect()
    }

    /// Whether a rule holds somewhere.
    pub(super) fn has_idea(&self) -> bool {
        self.ideas().into_iter().any(|idea| self.with(idea).is_some())
    }

    /// What its last change is.
    pub(super) fn last_change(&self) -> Option<Tried> {
        self.changes.last().map(|change| (change.stage, change.before.clone(), change.after.clone()))
    }

    /// With one more change; `None` where its rule does not hold.
    pub(super) fn with(&self, idea: Idea) -> Option<Self> {
        let Idea { rule, pipeline: number, place } = idea;
        let pipelines = self.script.pipelines();
        let old = pipelines.get(number)?;
        let new = rule.apply(old, place)?;
        let shown = |pipeline: &Pipeline| {
            let stages = pipeline.places[place..place + rule.stages()].iter().flatten();
            stages.map(Stage::to_string).collect::<Vec<_>>().join(" | ")
        };
        let before: usize = pipelines[..number].iter().map(|pipeline| pipeline.places.len()).sum();
        let is_known = rule.knows_words(old, place);
        let unknown = "a word that only the shell knows could be an option, or several files";
        let change = TuneChange {
            rule: rule.name.clone(),
            stage: Some(before + place + 1),
            before: shown(old),
            after: shown(&new),
            ratio: None,
            equal_because: rule.equal.clone().filter(|_| is_known),
            differs: rule.differs.clone().or_else(|| (!is_known).then(|| unknown.to_owned())),
        };
        let changes = self.changes.iter().cloned().chain([change]).collect();
        let script =
            self.script.map(|at, pipeline| if at == number { new.clone() } else { pipeline.clone() });
        Some(Self { script, changes })
    }
}
