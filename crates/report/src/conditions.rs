//! What cases have in common, in words, and in which of it groups of them differ.

use model::CaseRecord;

use crate::lists::{distinct, joined};
use crate::words;

/// Conditions; what is not said is empty.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// The blocks of both workloads.
    pub(crate) blocks: String,
    /// The tasks at the ends, and their CPUs.
    pub(crate) ends: String,
    /// What was done with the data.
    pub(crate) data: String,
    /// The relays between the ends.
    pub(crate) relays: String,
}

impl Conditions {
    /// Those of the cases of a group, without their blocks.
    pub(crate) fn of_cases<'a>(cases: impl Iterator<Item = &'a CaseRecord> + Clone) -> Self {
        let Some(first) = cases.clone().next() else { return Self::default() };
        let cpus = cases.clone().map(|case| case.cpus.as_slice()).find(|cpus| !cpus.is_empty());
        let data = words::payload_remark(first.data, cases.clone().find_map(|case| case.check));
        Self {
            ends: words::describe_tasks_and_cpus(first.tasks, first.placement, cpus.unwrap_or_default()),
            data: data.to_owned(),
            relays: words::relays(first.relays).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Those that are the same in all.
    pub(crate) fn shared_by(all: &[Self]) -> Self {
        Self::from_fields(|field| match &distinct(all.iter().map(field))[..] {
            [one] => (*one).clone(),
            _ => String::new(),
        })
    }

    /// Those that are not the same in the others.
    pub(crate) fn without(&self, others: &Self) -> Self {
        Self::from_fields(|field| match field(self) == field(others) {
            true => String::new(),
            false => field(self).clone(),
        })
    }

    fn from_fields(text: impl Fn(fn(&Self) -> &String) -> String) -> Self {
        Self {
            blocks: text(|one| &one.blocks),
            ends: text(|one| &one.ends),
            data: text(|one| &one.data),
            relays: text(|one| &one.relays),
        }
    }

    /// All of them, joined.
    pub(crate) fn text(&self) -> String {
        joined([&self.blocks, &self.ends, &self.data, &self.relays].map(String::as_str))
    }
}
