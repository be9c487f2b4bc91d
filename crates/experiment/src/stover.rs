//! `stover`: a generator, a sink, six ways between them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::size::Size;
use crate::study::{Head, embedded};

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stover {
    /// What it is.
    pub study: Head,
    workload: Workload,
    /// The ways, in the order of the published table.
    #[serde(rename = "column")]
    pub columns: Vec<Column>,
    /// What was measured, host by host.
    #[serde(rename = "host")]
    pub hosts: Vec<PublishedHost>,
    /// The last lines of the table, as printed.
    pub printed: Printed,
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
pub struct Column {
    /// Its name, as in the published table.
    pub name: String,
}

/// A host and its tests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedHost {
    /// Its name.
    pub name: String,
    /// What it was.
    pub machine: String,
    /// Seconds, test by test, column by column.
    pub tests: Vec<Vec<f64>>,
}

/// The last lines of the published table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// Seconds of all tests of both hosts, column by column.
    pub sums: Vec<f64>,
    /// The slowest sum by the sum, truncated, column by column.
    pub relative: Vec<String>,
    /// Hours and minutes of development, by what was developed.
    pub development: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    warmup: u32,
    minutes: f64,
}

impl Stover {
    /// Bytes that the generator sends. The study says 512 MB and counts in 1024s elsewhere: 512 * 2^20.
    pub fn bytes(&self) -> u64 {
        self.workload.bytes.value
    }

    /// Bytes handed over in one call.
    pub fn chunk_bytes(&self) -> u64 {
        self.workload.chunk.value
    }

    /// Tests of each column.
    pub fn tests(&self) -> u32 {
        self.workload.tests
    }

    /// Untimed tests of each column before them.
    pub fn warmup(&self) -> u32 {
        self.choice.warmup
    }

    /// No round begins after so many minutes.
    pub fn minutes(&self) -> f64 {
        self.choice.minutes
    }
}

/// The study.
pub fn stover() -> Stover {
    embedded("stover.toml", include_str!("../../../experiments/stover.toml"))
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
