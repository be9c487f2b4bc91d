//! What runs between two stages, as far as the generator must know it: a stage is only put where the whole
//! pipeline does the same each time it is run.

use super::case::{Item, Stage};

/// How much a stage writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// A few lines.
    Small,
    /// More than some links hold.
    Large,
    /// Without end.
    Infinite,
}

/// What a pipeline under construction does so far.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    /// Its stages.
    pub(crate) stages: Vec<Stage>,
    /// What the last of them writes.
    pub(crate) amount: Amount,
    /// Whether bytes that are no text are among it.
    pub(crate) binary: bool,
    /// Whether a stage does something besides writing on (a file): a reader that leaves early would decide how
    /// much of that gets done.
    pub(crate) side_effects: bool,
    /// Whether the statuses of stages other than the last are shown. What a stage that loses its reader ends with
    /// is known only where it writes without end.
    pub(crate) observed: bool,
    /// Whether a stage may have a line break in it: not while a here-document waits for its body.
    pub(crate) many_lines: bool,
    /// Whether a stage writes without end.
    pub(crate) infinite: bool,
    /// Whether a stage may be gone while the one before it still writes.
    pub(crate) early_exit: bool,
}

impl Flow {
    /// Begins with a stage.
    pub(crate) fn from(stage: Stage, amount: Amount, binary: bool, observed: bool) -> Self {
        let many_lines = stage.body.is_none();
        let infinite = amount == Amount::Infinite;
        Self {
            stages: vec![stage],
            amount,
            binary,
            side_effects: false,
            observed,
            many_lines,
            infinite,
            early_exit: false,
        }
    }

    /// Whether a reader may leave before the end of what comes.
    pub(crate) fn may_be_left(&self) -> bool {
        !self.side_effects && (!self.observed || self.amount == Amount::Infinite)
    }

    /// Adds a stage that reads to the end.
    pub(crate) fn through(&mut self, stage: Stage) {
        self.stages.push(stage);
    }

    /// Adds a stage that reads to the end of it and writes a few lines.
    pub(crate) fn summed_up(&mut self, stage: Stage) {
        self.stages.push(stage);
        self.amount = Amount::Small;
        self.binary = false;
    }

    /// Adds a stage that leaves before the end.
    pub(crate) fn cut(&mut self, stage: Stage) {
        self.early_exit |= self.amount != Amount::Small || self.stages.len() > 1;
        self.stages.push(stage);
        self.amount = Amount::Small;
    }

    /// The pipeline.
    pub(crate) fn item(self) -> Item {
        Item { infinite: self.infinite, early_exit: self.early_exit, ..Item::of(self.stages) }
    }
}
