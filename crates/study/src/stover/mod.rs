//! `stover`: a generator, a sink, and six ways between them.

mod facts;
mod run;
mod view;

use serde::Deserialize;

use crate::Study;
use crate::parameters::StudyWorkload;
use crate::view::Texts;

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
    /// The study says 512 MB. Elsewhere it counts in multiples of 1024, so this is 512 * 2^20 bytes.
    workload: StudyWorkload,
    /// The command lines of the filters, by name.
    filters: Texts,
    #[serde(rename = "way")]
    ways: Vec<Way>,
    #[serde(rename = "host")]
    hosts: Vec<PublishedHost>,
    printed: Printed,
}

/// One way between generator and sink: a column of the published table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    name: String,
    /// The mechanism, whose ends hosepipe runs itself; `None` if there is a `text`.
    spec: Option<String>,
    /// The command line of filters; `None` if there is a `spec`.
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedHost {
    name: String,
    machine: String,
    /// Seconds: for each test a list with one figure for each column.
    tests: Vec<Vec<f64>>,
}

/// The last lines of the published table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    /// For each column the seconds of all tests of both hosts.
    sums: Vec<f64>,
    /// For each column the largest sum divided by its own sum, truncated.
    relative: Vec<String>,
}

impl PublishedHost {
    /// Mean seconds of a column.
    fn mean(&self, column: usize) -> f64 {
        self.tests.iter().map(|test| test[column]).sum::<f64>() / self.tests.len() as f64
    }
}

impl Stover {
    /// The index of a column in the published table.
    fn column(&self, name: &str) -> usize {
        let index = self.ways.iter().position(|way| way.name == name);
        index.unwrap_or_else(|| panic!("stover/study.toml has no column `{name}`"))
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

    /// Expected: each column has the times of its own program, in any order of the ways in study.toml.
    /// Happened: programs belonged to columns by number, so in another order each column had the times of another program.
    #[test]
    fn every_way_is_a_mechanism_or_a_command_line() {
        for way in STUDY.parameters::<Stover>().ways {
            assert!(way.spec.is_some() != way.text.is_some(), "{}", way.name);
        }
    }

    #[test]
    fn the_published_ratios_are_truncated() {
        let printed = STUDY.parameters::<Stover>().printed;
        let largest = printed.sums.iter().copied().fold(0.0, f64::max);
        for (sum, text) in printed.sums.iter().zip(&printed.relative) {
            assert_eq!(format!("{:.2}", (largest / sum * 100.0).floor() / 100.0), *text);
        }
    }
}
