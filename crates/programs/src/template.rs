//! Templates of programs: lines with conditions, marks, and lines that include headers or modules.
//!
//! A line of a template that begins with conditions such as `@reply` is left out unless all of them are true. Lines that include
//! headers or modules are sorted and moved to the place of the first of them. `{bytes}` and similar marks are replaced by values.

use crate::languages::CodeLanguage;

/// The marks of a template, and their values.
pub(crate) type Values = Vec<(&'static str, String)>;

/// The text of a template for these conditions and values; `@library` stays.
pub(crate) fn filled(text: &str, conditions: &[&str], values: &Values) -> String {
    let lines = text.lines().filter_map(|line| without_conditions(line, conditions));
    let fill =
        |line: &str| values.iter().fold(line.to_owned(), |line, (mark, value)| line.replace(mark, value));
    lines.flat_map(|line| [fill(line), "\n".to_owned()]).collect()
}

/// A line of a template without its conditions; `None` if one of them is false.
fn without_conditions<'t>(mut line: &'t str, conditions: &[&str]) -> Option<&'t str> {
    while let Some((condition, rest)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
        line = conditions.contains(&condition).then_some(rest)?;
    }
    Some(line)
}

/// The order of rustfmt, which is that of the other languages, too: a module before what is in it, and before types.
fn import_order(line: &str) -> Vec<(bool, &str)> {
    let names = line.trim_end_matches(';').split("::");
    names.map(|name| (!name.starts_with(char::is_lowercase), name)).collect()
}

/// A program whose lines that include headers or modules are sorted, in the place of the first of them, and without needless empty lines.
pub(crate) fn tidy(whole: &str, language: CodeLanguage) -> String {
    // The ring's header stays in its place, because macros before it configure it.
    let facts = language.facts();
    let is_import = |line: &str| {
        facts.imports.iter().any(|import| line.starts_with(import)) && !line.ends_with("\"ring.h\"")
    };
    let mut imported: Vec<&str> = whole.lines().filter(|line| is_import(line)).collect();
    imported.sort_by_cached_key(|line| import_order(line));
    imported.dedup();
    let (mut text, mut blank) = (String::new(), 0);
    let mut add = |line: &str| {
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank <= facts.blank_max {
            text.extend([line, "\n"]);
        }
    };
    for line in whole.lines() {
        match is_import(line) {
            true => imported.drain(..).for_each(&mut add),
            false => add(line),
        }
    }
    text
}
