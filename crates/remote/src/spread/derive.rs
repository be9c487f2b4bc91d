//! The reduce that is known for a few commands.

use model::shell_quoted;

/// The map and the reduce of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The text that is run for each partition.
    pub map: String,
    /// The text that is run over the outputs of all partitions.
    pub reduce: String,
    /// Whether the reduce reads the names of the outputs, each followed by a NUL; else it reads one output after the other.
    pub reads_names: bool,
}

/// Characters with a meaning to a shell. For a text with any of them, quoted or not, no reduce is known.
const SPECIAL: [char; 17] =
    [';', '&', '<', '>', '$', '`', '(', ')', '{', '}', '*', '?', '[', '#', '\n', '~', '!'];

/// Options of sort with which sorted parts can be merged: those without a value, and those with one.
const SORT_FLAGS: &str = "bdfghinMVrsu";
const SORT_VALUES: &str = "kt";

/// The map and the reduce of a text: of `sort`, `sort | uniq`, `sort | head`, `wc` and `grep -c`. Together they print what the text itself
/// prints for the whole input.
///
/// # Errors
/// A sentence: why no reduce is known.
pub fn derive(text: &str) -> Result<Derived, String> {
    let refused = |why: &str| {
        Err(format!(
            "no reduce is known for `{text}` ({why}): name one with --reduce (`--reduce cat` if the outputs just follow each other). Known \
             are sort, sort | uniq [-c], sort | head -n N, wc and grep -c"
        ))
    };
    if let Some(special) = text.chars().find(|character| SPECIAL.contains(character)) {
        return refused(&format!("it has a {special:?} in it"));
    }
    let Some(stages) = stages(text) else {
        return refused("its quotes are not closed, or have a backslash between them");
    };
    let stages: Vec<Vec<&str>> =
        stages.iter().map(|stage| stage.iter().map(String::as_str).collect()).collect();
    Ok(match stages.iter().map(Vec::as_slice).collect::<Vec<_>>().as_slice() {
        [["sort", options @ ..], behind @ ..] if mergeable(options) && works_again(behind) => {
            let again = behind.iter().map(|stage| format!(" | {}{}", stage[0], quoted(&stage[1..])));
            let again: String = again.collect();
            // The map only sorts: the counts of `uniq -c` cannot be merged, lines can.
            let has_counts = behind.iter().any(|stage| stage.contains(&"-c"));
            let map = if has_counts { format!("sort{}", quoted(options)) } else { text.to_owned() };
            let reduce = format!("sort -m{} --files0-from=-{again}", quoted(options));
            Derived { map, reduce, reads_names: true }
        }
        [["wc", options @ ..]] => match summed(options) {
            Some(awk) => Derived { map: text.to_owned(), reduce: format!("awk '{awk}'"), reads_names: false },
            None => return refused("its results with these options cannot be added, or it names a file"),
        },
        [["grep", options @ ..]] if counts(options) => Derived {
            // A part without a match is no failure.
            map: format!("{text} || [ $? -eq 1 ]"),
            // grep itself prints nothing if nothing can match (`grep -cv ''`).
            reduce: "awk '{ n += $1 } END { if (NR) printf \"%.0f\\n\", n; exit n == 0 }'".to_owned(),
            reads_names: false,
        },
        [[]] => return refused("it is empty"),
        [[program, ..]] => return refused(&format!("not with `{program}` and these arguments")),
        _ => return refused("it is another pipeline"),
    })
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!(" {}", shell_quoted(word.as_bytes()))).collect()
}

/// The words of each stage; `None` if a quote is not closed.
fn stages(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut stages, mut words, mut word): (Vec<Vec<String>>, Vec<String>, Option<String>) =
        (Vec::new(), Vec::new(), None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == character => break,
                        '\\' if character == '"' => return None,
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next()?),
            '|' => {
                words.extend(word.take());
                stages.push(std::mem::take(&mut words));
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    stages.push(words);
    Some(stages)
}

/// Whether parts sorted with these options can be merged with the same ones: no input or output file, no random order.
fn mergeable(options: &[&str]) -> bool {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let Some(letters) = option.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return false;
        };
        let Some(place) = letters.find(|letter| !SORT_FLAGS.contains(letter)) else { continue };
        if !letters[place..].starts_with(|letter| SORT_VALUES.contains(letter)) {
            return false;
        }
        // The value is the rest of the word, or the next one.
        if place + 1 == letters.len() && options.next().is_none() {
            return false;
        }
    }
    true
}

/// Whether these stages after `sort` can also be run after the merge.
fn works_again(behind: &[&[&str]]) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match behind {
        [] | [["uniq"] | ["uniq", "-c"] | ["head"]] => true,
        [["head", "-n", count]] => digits(count),
        [["head", count]] => count.strip_prefix("-n").or(count.strip_prefix('-')).is_some_and(digits),
        _ => false,
    }
}

/// The awk program that adds the results of `wc`, in the format that `wc` has for a pipe. Some awks have integers of 32 bits: %.0f prints larger
/// sums.
fn summed(options: &[&str]) -> Option<&'static str> {
    match options {
        ["-l"] | ["-w"] | ["-c"] | ["-m"] | ["--lines"] | ["--words"] | ["--bytes"] | ["--chars"] => {
            Some("{ n += $1 } END { printf \"%.0f\\n\", n }")
        }
        ["-L"] | ["--max-line-length"] => Some("$1 > n { n = $1 } END { printf \"%.0f\\n\", n }"),
        [] => Some("{ l += $1; w += $2; c += $3 } END { printf \"%7.0f %7.0f %7.0f\\n\", l, w, c }"),
        _ => None,
    }
}

/// Whether it is `grep -c` with one pattern and no file.
fn counts(options: &[&str]) -> bool {
    let (flags, others): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    let plain = |flag: &&str| flag[1..].chars().all(|letter| "cEFGPivwx".contains(letter));
    flags.iter().all(plain) && flags.iter().any(|flag| flag.contains('c')) && others.len() == 1
}
