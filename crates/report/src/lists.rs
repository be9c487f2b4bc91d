//! Lists of names and of lines: without repetitions, in their order, and shortened.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Each item once, at its first place.
pub(crate) fn distinct<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    items.into_iter().filter(|item| known.insert(item.clone())).collect()
}

/// The values of each key, the keys in the order of their first pairs.
pub(crate) fn grouped<K: Clone + Eq + Hash, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[place].1.push(value);
    }
    groups
}

/// The names of the first items of a list, and how many more there are: "a, b and 7 more".
pub fn first_of<T>(items: &[T], most: usize, separator: &str, name: impl Fn(&T) -> String) -> String {
    let names = items.iter().take(most).map(name).collect::<Vec<_>>().join(separator);
    match items.len().saturating_sub(most) {
        0 => names,
        rest => format!("{names} and {rest} more"),
    }
}

/// The first items, with commas.
pub(crate) fn first_names(items: &[String], most: usize) -> String {
    first_of(items, most, ", ", String::clone)
}

/// The same of what may have no items: then `None`.
pub(crate) fn first_if_any(
    items: impl IntoIterator<Item = String>,
    most: usize,
    separator: &str,
) -> Option<String> {
    let items: Vec<String> = items.into_iter().collect();
    (!items.is_empty()).then(|| first_of(&items, most, separator, String::clone))
}

/// The items with a separator between them; `None` if there are none.
pub(crate) fn joined_if_any(items: impl IntoIterator<Item = String>, separator: &str) -> Option<String> {
    let items: Vec<String> = items.into_iter().collect();
    (!items.is_empty()).then(|| items.join(separator))
}

/// The first lines of one kind, and how many more there are.
pub(crate) fn first_lines(mut lines: Vec<String>, most: usize) -> Vec<String> {
    let rest = lines.len().saturating_sub(most);
    lines.truncate(most);
    lines.extend((rest > 0).then(|| format!("{rest} more of the same kind: see the record (--json).")));
    lines
}

/// The parts that are not empty, with dots between them.
pub(crate) fn joined<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_nothing_said_twice() {
        assert_eq!(distinct(["b", "a", "b"]), ["b", "a"]);
        assert_eq!(grouped([("b", 1), ("a", 2), ("b", 3)]), [("b", vec![1, 3]), ("a", vec![2])]);
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            (first_names(&names, 3), first_of(&names, 1, "; ", String::clone)),
            ("a, b, c".into(), "a and 2 more".into())
        );
    }
}
