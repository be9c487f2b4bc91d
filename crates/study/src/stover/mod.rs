//! `stover`: a generator, a sink, six ways between them.

mod facts;
pub(crate) mod run;
pub(crate) mod view;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::registry::{Head, embedded};
use crate::size::Size;

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stover {
    /// What it is.
    pub(crate) study: Head,
    workload: Workload,
    /// The ways, in the order of the published table.
    #[serde(rename = "column")]
    pub(crate) columns: Vec<Column>,
    /// What was measured, host by host.
    #[serde(rename = "host")]
    pub(crate) hosts: Vec<PublishedHost>,
    /// The last lines of the table, as printed.
    pub(crate) printed: Printed,
    choice: Choice,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    bytes: Size,
    chunk: Size,
    tests: u32,
}

/// A way between generator and sink.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    /// Its name, as in the published table.
    pub(crate) name: String,
}

/// A host and its tests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedHost {
    /// Its name.
    pub(crate) name: String,
    /// What it was.
    pub(crate) machine: String,
    /// Seconds, test by test, column by column.
    pub(crate) tests: Vec<Vec<f64>>,
}

/// The last lines of the published table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Printed {
    /// Seconds of all tests of both hosts, column by column.
    pub(crate) sums: Vec<f64>,
    /// The slowest sum by the sum, truncated, column by column.
    pub(crate) relative: Vec<String>,
    /// Hours and minutes of development, by what was developed.
    pub(crate) development: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    warmup: u32,
    minutes: f64,
}

impl Stover {
    /// Bytes that the generator sends. The study says 512 MB and counts in 1024s elsewhere: 512 * 2^20.
    pub(crate) fn bytes(&self) -> u64 {
        self.workload.bytes.value
    }

    /// Bytes handed over in one call.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.workload.chunk.value
    }

    /// Tests of each column.
    pub(crate) fn tests(&self) -> u32 {
        self.workload.tests
    }

    /// Untimed tests of each column before them.
    pub(crate) fn warmup(&self) -> u32 {
        self.choice.warmup
    }

    /// No round begins after so many minutes.
    pub(crate) fn minutes(&self) -> f64 {
        self.choice.minutes
    }
}

/// The study.
pub(crate) fn stover() -> Stover {
    embedded(include_str!("study.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sums_are_the_tests_sums() {
        let study = stover();
        for (column, sum) in study.printed.sums.iter().enumerate() {
            let tests = study.hosts.iter().flat_map(|host| &host.tests);
            assert_eq!(tests.map(|test| test[column]).sum::<f64>(), *sum, "{}", study.columns[column].name);
        }
    }

    #[test]
    fn the_published_ratios_are_truncated() {
        let printed = stover().printed;
        let slowest = printed.sums.iter().copied().fold(0.0, f64::max);
        for (sum, text) in printed.sums.iter().zip(&printed.relative) {
            assert_eq!(format!("{:.2}", (slowest / sum * 100.0).floor() / 100.0), *text);
        }
    }
}
