//! What records are called on a page: the shortest end of their paths that tells them apart.

use crate::read::Loaded;

/// A name for each record, in their order; no two are the same.
pub(super) fn labels(records: &[Loaded]) -> Vec<String> {
    let mut parts_kept = 1;
    loop {
        let labels: Vec<String> = records.iter().map(|record| ending(&record.name, parts_kept)).collect();
        let longest = records.iter().map(|record| record.name.split('/').count()).max().unwrap_or(1);
        if !has_twins(&labels) || parts_kept >= longest {
            return numbered(labels);
        }
        parts_kept += 1;
    }
}

/// The last parts of a path, without `.json`.
fn ending(path: &str, parts: usize) -> String {
    let all: Vec<&str> = path.split('/').collect();
    let end = all[all.len().saturating_sub(parts)..].join("/");
    let stem = end.strip_suffix(".json").unwrap_or(&end);
    if stem.is_empty() { end.clone() } else { stem.to_owned() }
}

fn has_twins(labels: &[String]) -> bool {
    labels.iter().enumerate().any(|(at, label)| labels[..at].contains(label))
}

/// The same file twice is told apart by a number.
fn numbered(labels: Vec<String>) -> Vec<String> {
    let twin = |at: usize| labels[..at].iter().filter(|other| **other == labels[at]).count();
    let name = |at: usize| match twin(at) {
        0 => labels[at].clone(),
        before => format!("{} ({})", labels[at], before + 1),
    };
    (0..labels.len()).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::AnyRecord;
    use model::{CompareRecord, Host, SCHEMA, Tool};

    fn named(names: &[&str]) -> Vec<String> {
        let record = CompareRecord {
            schema: SCHEMA.to_owned(),
            tool: Tool { version: String::new(), revision: None },
            host: Host::default(),
            arguments: Vec::new(),
            started: String::new(),
            seed: 1,
            trials: 1,
            warmup: 0,
            interrupted: false,
            results: Vec::new(),
        };
        let loaded =
            |name: &&str| Loaded { name: (*name).to_owned(), record: AnyRecord::Compare(record.clone()) };
        labels(&names.iter().map(loaded).collect::<Vec<_>>())
    }

    #[test]
    fn the_shortest_end_that_tells_records_apart() {
        assert_eq!(named(&["/tmp/run.json"]), ["run"]);
        assert_eq!(named(&["a/run.json", "b/run.json", "c.json"]), ["a/run", "b/run", "c"]);
        assert_eq!(named(&["run.json", "run.json"]), ["run", "run (2)"]);
    }
}
