//! `stover`: a generator, a sink, six ways between them.

mod facts;
mod run;
mod view;

use serde::Deserialize;

use crate::view::Words;
use crate::{Study, Workload};

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "stover",
    run: |run| if run.part.name == "columns" { run::columns(run) } else { run::mechanisms(run) },
    show: |view| if view.part.name == "columns" { view::columns(view) } else { view::mechanisms(view) },
    elsewhere: None,
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct Stover {
    /// The study says 512 MB and counts in 1024s elsewhere: 512 * 2^20.
    workload: Workload,
    /// The texts of the programs that know nothing but standard input and output.
    filters: Words,
    #[serde(rename = "way")]
    ways: Vec<Way>,
    #[serde(rename = "host")]
    hosts: Vec<PublishedHost>,
    printed: Printed,
}

/// One way between the two, a column of the published table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    name: String,
    /// A mechanism, between two programs of our own.
    spec: Option<String>,
    /// Or a command line.
    text: Option<String>,
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

impl PublishedHost {
    /// Mean seconds of a column.
    fn mean(&self, column: usize) -> f64 {
        self.tests.iter().map(|test| test[column]).sum::<f64>() / self.tests.len() as f64
    }
}

impl Stover {
    /// The place of a column in the published table.
    fn column(&self, name: &str) -> usize {
        let place = self.ways.iter().position(|way| way.name == name);
        place.unwrap_or_else(|| panic!("stover/study.toml has no column `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sums_are_the_tests_sums() {
        let study: Stover = STUDY.parameters();
        for (column, sum) in study.printed.sums.iter().enumerate() {
            let tests = study.hosts.iter().flat_map(|host| &host.tests);
            let found = tests.map(|test| test[column]).sum::<f64>();
            assert_eq!(found, *sum, "{}", study.ways[column].name);
        }
    }

    /// Expected: each column has the times of its own program, wherever study.toml puts it.
    /// Happened: programs were tied to the columns' numbers, so another order gave each the times of another.
    #[test]
    fn every_way_has_one_program_of_its_own() {
        for way in STUDY.parameters::<Stover>().ways {
            assert!(way.spec.is_some() != way.text.is_some(), "{}", way.name);
        }
    }

    #[test]
    fn the_published_ratios_are_truncated() {
        let printed = STUDY.parameters::<Stover>().printed;
        let slowest = printed.sums.iter().copied().fold(0.0, f64::max);
        for (sum, text) in printed.sums.iter().zip(&printed.relative) {
            assert_eq!(format!("{:.2}", (slowest / sum * 100.0).floor() / 100.0), *text);
        }
    }
}
