//! `stover`: a generator, a sink, six ways between them.

mod facts;
mod run;
mod view;

use serde::Deserialize;

use crate::scale::Size;
use crate::{Needs, Study};

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "stover",
    elsewhere: None,
    needs: |scale| Needs { disk_bytes: Stover::read().workload.bytes(scale), ..Needs::default() },
    parts: &[("columns", run::columns, view::columns), ("mechanisms", run::mechanisms, view::mechanisms)],
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct Stover {
    workload: Workload,
    #[serde(rename = "host")]
    hosts: Vec<PublishedHost>,
    printed: Printed,
    choice: Choice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    /// What the generator sends. The study says 512 MB and counts in 1024s elsewhere: 512 * 2^20.
    bytes: Size,
    /// What is handed over in one call.
    chunk: Size,
    /// How often each column is run.
    tests: u32,
    /// The ways, in the order of the published table.
    columns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedHost {
    name: String,
    machine: String,
    /// Seconds, test by test, column by column.
    tests: Vec<Vec<f64>>,
}

/// The last lines of the published table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    /// Seconds of all tests of both hosts, column by column.
    sums: Vec<f64>,
    /// The slowest sum by the sum, truncated, column by column.
    relative: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    warmup: u32,
}

impl Workload {
    fn bytes(&self, scale: crate::Scale) -> u64 {
        scale.bytes(self.bytes.value, self.chunk.value)
    }
}

impl PublishedHost {
    /// Mean seconds of a column.
    fn mean(&self, column: usize) -> f64 {
        self.tests.iter().map(|test| test[column]).sum::<f64>() / self.tests.len() as f64
    }
}

impl Stover {
    fn read() -> Self {
        STUDY.parameters()
    }

    /// The place of a column in the published table.
    fn column(&self, name: &str) -> usize {
        let place = self.workload.columns.iter().position(|column| column == name);
        place.unwrap_or_else(|| panic!("stover/study.toml has no column `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sums_are_the_tests_sums() {
        let study = Stover::read();
        for (column, sum) in study.printed.sums.iter().enumerate() {
            let tests = study.hosts.iter().flat_map(|host| &host.tests);
            assert_eq!(
                tests.map(|test| test[column]).sum::<f64>(),
                *sum,
                "{}",
                study.workload.columns[column]
            );
        }
    }

    #[test]
    fn the_published_ratios_are_truncated() {
        let printed = Stover::read().printed;
        let slowest = printed.sums.iter().copied().fold(0.0, f64::max);
        for (sum, text) in printed.sums.iter().zip(&printed.relative) {
            assert_eq!(format!("{:.2}", (slowest / sum * 100.0).floor() / 100.0), *text);
        }
    }
}
