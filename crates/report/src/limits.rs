//! How much a text says: the lengths of lists in sentences, and the smallest difference of which it speaks. (Those of a page are in `bounds`; those by
//! which figures are judged are in `stats`.)

/// Most names in a list.
pub(crate) const NAMES_MAX: usize = 4;
/// The same where a reader looks for his own row: most names, and most lines of one kind.
pub(crate) const MANY_MAX: usize = 24;
/// Most pipelines, or processes, in one sentence.
pub(crate) const LONG_NAMES_MAX: usize = 3;
/// Most lines on single cases.
pub(crate) const CASES_MAX: usize = 6;
/// Most sentences of one kind, or ranges of sizes in one sentence.
pub(crate) const SENTENCES_MAX: usize = 5;
/// Most suggestions.
pub(crate) const SUGGESTIONS_MAX: usize = 3;
/// Longest command in a sentence.
pub(crate) const COMMAND_COLUMNS: usize = 40;
/// Width of the longest bar.
pub(crate) const BAR_COLUMNS: usize = 12;

/// Smallest factor that counts as a gain.
pub(crate) const GAIN_MIN: f64 = 1.1;
/// A factor, or the lower bound of one, says next to nothing below this.
pub(crate) const FACTOR_MIN: f64 = 1.05;
/// Smallest share of the CPUs that other programs took, of which is spoken: a quiet virtual machine has a few percent.
pub(crate) const PROGRAMS_FROM: f64 = 0.15;
/// The same of what the hypervisor gave to other guests, and of the fall of the CPUs' frequency.
pub(crate) const DISTURBANCE_FROM: f64 = 0.10;
