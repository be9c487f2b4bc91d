//! What every kind of record can: sections for people, a table for programs, and a check of what its types do not say. There is one
//! implementation for each kind, in its file.

use model::{CaseRecord, Record, decode_histogram};

use crate::document::{Context, Section};
use crate::table::Table;

/// A kind of record.
pub(crate) trait Show {
    /// Its sections in a text or on a page.
    fn sections(&self, context: &Context) -> Vec<Section>;

    /// Its numbers as they are in CSV.
    fn data(&self) -> Table;

    /// Whether every place in it exists, and every histogram can be read.
    ///
    /// # Errors
    /// A sentence on the first one that does not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The record as its kind.
pub(crate) fn kind_of(record: &Record) -> &dyn Show {
    match record {
        Record::Bench(record) => record,
        Record::Run(record) => record,
        Record::Compare(record) => record,
        Record::Study(record) => record,
        Record::Diff(record) => record,
        Record::Boost(record) => record,
        Record::Top(record) => record,
        Record::Fleet(record) => record,
        Record::Why(record) => record,
        Record::Tune(record) => record,
    }
}

/// Checks that all histograms of cases can be read.
pub(crate) fn histograms(cases: &[CaseRecord]) -> Result<(), String> {
    let samples = cases.iter().flat_map(|case| case.samples.iter().chain(&case.disturbed));
    let texts = samples.flat_map(|sample| [&sample.latency_histogram, &sample.service_histogram]);
    texts.flatten().try_for_each(|text| decode_histogram(text).map(drop).map_err(|error| error.to_string()))
}

/// Checks that all indexes are before the end of a list. In the record they count from `first`.
pub(crate) fn indexes(
    what: &str,
    first: usize,
    indexes: impl IntoIterator<Item = usize>,
    list: &str,
    end: usize,
) -> Result<(), String> {
    match indexes.into_iter().find(|index| *index >= end) {
        Some(index) => Err(format!("{what} is {}, and `{list}` ends before it", index.saturating_add(first))),
        None => Ok(()),
    }
}
