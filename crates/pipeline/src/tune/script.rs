//! A text of a shell as far as it must be understood to find the plain pipelines in it. All other text stays as it was typed. Where this is wrong (in a
//! here-document, a pattern of `case`), the changed text gives another output, or none, and is dropped.

use std::fmt::{self, Display};

use super::text::{KEYWORDS, Pipeline};

/// A text in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Kept(String),
    Changeable(Pipeline),
}

impl Script {
    /// Reads a text.
    pub fn parse(text: &str) -> Self {
        let mut pieces = Vec::new();
        for (is_separator, part) in parts(text) {
            if is_separator {
                pieces.push(Piece::Kept(part.to_owned()));
                continue;
            }
            let (before, pipeline, behind) = middle(part);
            let parsed = Pipeline::parse(pipeline).filter(|parsed| parsed.to_string() == pipeline);
            let kept = |text: &str| (!text.is_empty()).then(|| Piece::Kept(text.to_owned()));
            pieces.extend(kept(before));
            pieces.push(parsed.map_or_else(|| Piece::Kept(pipeline.to_owned()), Piece::Changeable));
            pieces.extend(kept(behind));
        }
        Self(pieces)
    }

    /// Its pipelines, in their order.
    pub fn pipelines(&self) -> Vec<&Pipeline> {
        self.0.iter().filter_map(Piece::pipeline).collect()
    }

    /// The pipeline, if it is the whole text.
    pub fn as_pipeline(&self) -> Option<&Pipeline> {
        match self.0.as_slice() {
            [Piece::Changeable(pipeline)] => Some(pipeline),
            _ => None,
        }
    }

    /// The text with each pipeline changed.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(usize, &Pipeline) -> Pipeline) -> Self {
        let mut number = 0;
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Kept(text) => Piece::Kept(text.clone()),
            Piece::Changeable(pipeline) => {
                number += 1;
                Piece::Changeable(change(number - 1, pipeline))
            }
        });
        Self(pieces.collect())
    }
}

impl Display for Script {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Kept(text) => out.write_str(text),
            Piece::Changeable(pipeline) => pipeline.fmt(out),
        })
    }
}

impl Piece {
    fn pipeline(&self) -> Option<&Pipeline> {
        match self {
            Self::Kept(_) => None,
            Self::Changeable(pipeline) => Some(pipeline),
        }
    }
}

/// The parts of a text between `;`, `&&`, `||`, `&`, parentheses and line ends, and these themselves.
fn parts(text: &str) -> Vec<(bool, &str)> {
    let (mut parts, mut from, mut quote, mut depth) = (Vec::new(), 0, None, 0);
    let mut letters = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None | Some('"' | '`'), '\\') => drop(letters.next()),
            // The command in `$(…)` and `<(…)` is a part of a word.
            (None, '(') if matches!(before, '$' | '<' | '>') || depth > 0 => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, '&') if matches!(before, '>' | '<') || next == Some('>') => {}
            (None, '|') if depth == 0 && next == Some('|') => {
                letters.next();
                parts.extend([(false, &text[from..at]), (true, &text[at..at + 2])]);
                from = at + 2;
            }
            (None, ';' | '&' | '(' | ')' | '\n')
                if depth == 0 && !(letter == '\n' && continues(&text[from..at])) =>
            {
                parts.extend([(false, &text[from..at]), (true, &text[at..=at])]);
                from = at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    parts.push((false, &text[from..]));
    parts.retain(|(_, part)| !part.is_empty());
    parts
}

/// Whether the next line belongs to this part.
fn continues(part: &str) -> bool {
    part.trim_end().ends_with('|')
}

/// A part as what stands before a pipeline in it, the pipeline, and what stands behind it: words such as `do`, a `|` before or behind a
/// compound command, and that command's first word.
fn middle(part: &str) -> (&str, &str, &str) {
    let mut from = part.len() - part.trim_start().len();
    loop {
        let rest = &part[from..];
        let word = rest.split([' ', '\t', '\n', '|']).next().unwrap_or_default();
        let skipped = match rest.starts_with('|') {
            true => 1,
            false if KEYWORDS.contains(&word) && !HEADS.contains(&word) => word.len(),
            false => break,
        };
        from += skipped;
        from += part[from..].len() - part[from..].trim_start().len();
    }
    let rest = part[from..].trim_end();
    let compound = rest.rmatch_indices('|').find(|(at, _)| {
        let word = rest[at + 1..].split_whitespace().next().unwrap_or_default();
        word.is_empty() || KEYWORDS.contains(&word)
    });
    let end = compound.map_or(rest, |(at, _)| rest[..at].trim_end()).len();
    (&part[..from], &part[from..from + end], &part[from + end..])
}

/// Keywords behind which there is no command.
const HEADS: &[&str] = &["for", "case", "select", "function", "[["];

#[cfg(test)]
mod tests {
    use super::*;

    fn pipelines(text: &str) -> Vec<String> {
        let script = Script::parse(text);
        assert_eq!(script.to_string(), text);
        script.pipelines().into_iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pipelines_in_lists_loops_and_groups_are_found() {
        assert_eq!(pipelines(" a | b "), ["a | b"]);
        assert_eq!(pipelines("a | b; c && d || e"), ["a | b", "c", "d", "e"]);
        assert_eq!(
            pipelines("for f in *.c; do sort \"$f\" | uniq -c; done | sort -rn | head"),
            ["sort \"$f\" | uniq -c", "sort -rn | head"]
        );
        assert_eq!(pipelines("{ cat a; cat b; } | sort"), ["cat a", "cat b", "sort"]);
        assert_eq!(pipelines("(cat a; cat b) | sort | uniq -c"), ["cat a", "cat b", "sort | uniq -c"]);
        assert_eq!(pipelines("sort f | while read x; do echo $x; done"), ["sort f", "echo $x"]);
        assert_eq!(pipelines("if grep -q x f; then sort f; fi"), ["grep -q x f", "sort f"]);
        assert_eq!(pipelines("x=$(sort f | head); sort 'a; b' 2>&1"), ["sort 'a; b' 2>&1"]);
        assert_eq!(pipelines("f() { sort | uniq; }\nf <x"), ["f", "sort | uniq", "f <x"]);
    }

    #[test]
    fn one_pipeline_is_known_as_such() {
        assert!(Script::parse("a | b").as_pipeline().is_some());
        assert!(Script::parse("a | b; c").as_pipeline().is_none());
    }
}
