//! The reduce of a few single commands, whose parts are known to come together again.

use model::shell_quoted;

/// How the whole is made of the parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// What is run for each partition.
    pub map: String,
    /// What is run over what came out.
    pub reduce: String,
    /// Whether the reduce reads the names of the parts, each followed by a NUL; else it reads one part after the other.
    pub reads_names: bool,
}

/// Characters with a meaning to a shell. A text with any of them, quoted or not, derives nothing.
const SPECIAL: [char; 17] =
    [';', '&', '<', '>', '$', '`', '(', ')', '{', '}', '*', '?', '[', '#', '\n', '~', '!'];

/// Options of sort with which what is sorted in parts can be merged: short ones in a bundle, and the ones that take a value.
const SORT_FLAGS: &str = "bdfghinMVrsu";
const SORT_VALUES: &str = "kt";

/// The map and the reduce of a text: of `sort`, of `sort | uniq`, of `sort | head`, of `wc` and of `grep -c`. Each prints what the text
/// itself would of everything.
///
/// # Errors
/// Why nothing is derived of it.
pub fn derive(text: &str) -> Result<Derived, String> {
    let refused = |why: &str| {
        Err(format!(
            "how the parts of `{text}` come together is not known ({why}): say it with --reduce (`--reduce cat` where the lines just follow \
             each other). Known are sort, sort | uniq [-c], sort | head -n N, wc and grep -c"
        ))
    };
    if let Some(special) = text.chars().find(|character| SPECIAL.contains(character)) {
        return refused(&format!("it has a {special:?} in it"));
    }
    let Some(stages) = stages(text) else {
        return refused("its quotes are not closed, or a backslash stands between them");
    };
    let stages: Vec<Vec<&str>> =
        stages.iter().map(|stage| stage.iter().map(String::as_str).collect()).collect();
    let derived = match stages.iter().map(Vec::as_slice).collect::<Vec<_>>().as_slice() {
        [["sort", options @ ..], behind @ ..] if mergeable(options) && works_again(behind) => {
            let again = behind.iter().map(|stage| format!(" | {}{}", stage[0], quoted(&stage[1..])));
            let again: String = again.collect();
            // Counts of parts would have to be added: the lines themselves are merged, and counted once.
            let counts = behind.iter().any(|stage| stage.contains(&"-c"));
            let map = if counts { format!("sort{}", quoted(options)) } else { text.to_owned() };
            let reduce = format!("sort -m{} --files0-from=-{again}", quoted(options));
            Derived { map, reduce, reads_names: true }
        }
        [["wc", options @ ..]] => match summed(options) {
            Some(awk) => Derived { map: text.to_owned(), reduce: format!("awk '{awk}'"), reads_names: false },
            None => return refused("with these options its figures do not add up, or it names a file"),
        },
        [["grep", options @ ..]] if counts(options) => Derived {
            // That one part has no match is no failure.
            map: format!("{text} || [ $? -eq 1 ]"),
            // grep itself prints nothing where nothing can match (`grep -cv ''`).
            reduce: "awk '{ n += $1 } END { if (NR) printf \"%.0f\\n\", n; exit n == 0 }'".to_owned(),
            reads_names: false,
        },
        [[]] => return refused("it is empty"),
        [[program, ..]] => return refused(&format!("of `{program}` with these words nothing is known")),
        _ => return refused("it is a pipeline of others"),
    };
    Ok(derived)
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!(" {}", shell_quoted(word.as_bytes()))).collect()
}

/// The words of each stage; `None` where a quote is not closed.
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

/// Whether parts sorted with these options can be merged with the same: no file, nothing written, and nothing by chance.
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

/// Whether what comes out behind a sort of parts comes out the same behind their merge.
fn works_again(behind: &[&[&str]]) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match behind {
        [] | [["uniq"] | ["uniq", "-c"] | ["head"]] => true,
        [["head", "-n", count]] => digits(count),
        [["head", count]] => count.strip_prefix("-n").or(count.strip_prefix('-')).is_some_and(digits),
        _ => false,
    }
}

/// What adds the figures of `wc`, as it prints those of a pipe; to some awks an integer ends at 2³¹, so that they are printed as floats.
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

/// Whether it is `grep -c` of one pattern at its standard input.
fn counts(options: &[&str]) -> bool {
    let (flags, others): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    let plain = |flag: &&str| flag[1..].chars().all(|letter| "cEFGPivwx".contains(letter));
    flags.iter().all(plain) && flags.iter().any(|flag| flag.contains('c')) && others.len() == 1
}
