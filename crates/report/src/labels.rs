//! The names of records on a page: the shortest endings of their paths that differ.

use crate::lists::distinct;

/// A name for each record, in their order; no two are the same.
pub(crate) fn labels(names: &[&str]) -> Vec<String> {
    let longest = names.iter().map(|name| name.split('/').count()).max().unwrap_or(1);
    let endings = |parts: usize| names.iter().map(|name| ending(name, parts)).collect::<Vec<String>>();
    let differ = |labels: &Vec<String>| distinct(labels.iter()).len() == labels.len();
    (1..=longest).map(endings).find(differ).unwrap_or_else(|| numbered(&endings(longest)))
}

/// The last parts of a path, without `.json`.
fn ending(path: &str, parts: usize) -> String {
    let all: Vec<&str> = path.split('/').collect();
    let end = all[all.len().saturating_sub(parts)..].join("/");
    end.strip_suffix(".json").filter(|stem| !stem.is_empty()).unwrap_or(&end).to_owned()
}

/// A name that occurs again gets a number: "run", "run (2)".
fn numbered(labels: &[String]) -> Vec<String> {
    let name =
        |(at, label): (usize, &String)| match labels[..at].iter().filter(|other| *other == label).count() {
            0 => label.clone(),
            before => format!("{label} ({})", before + 1),
        };
    labels.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_endings_that_differ() {
        assert_eq!(labels(&["/tmp/run.json"]), ["run"]);
        assert_eq!(labels(&["a/run.json", "b/run.json", "c.json"]), ["a/run", "b/run", "c"]);
        assert_eq!(labels(&["run.json", "run.json"]), ["run", "run (2)"]);
    }
}
