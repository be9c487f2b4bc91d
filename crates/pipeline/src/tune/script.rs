//! A text of a shell as far as it must be understood to find the plain pipelines in it. All other text stays as it was typed. Where this is wrong (in a
//! here-document, a pattern of `case`), the changed text gives another output, or none, and is dropped.

use std::fmt::{self, Display};

use super::lexer::{Kind, Token, tokens};
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
        let tokens = tokens(text).unwrap_or_default();
        let mut pieces = Vec::new();
        let mut kept_from = 0;
        let ends = |token: &Token<'_>| token.kind == Kind::Operator && token.text != "|";
        for part in tokens.split(ends) {
            let part = middle(part);
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            let end = last.at + last.text.len();
            let Some(parsed) = Pipeline::of(part) else { continue };
            pieces.extend([Piece::Kept(text[kept_from..first.at].to_owned()), Piece::Changeable(parsed)]);
            kept_from = end;
        }
        pieces.push(Piece::Kept(text[kept_from..].to_owned()));
        pieces.retain(|piece| !matches!(piece, Piece::Kept(text) if text.is_empty()));
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

/// The tokens of a pipeline without what stands before it (words such as `do`, a `|` behind a compound command) and behind it: a `|` before a
/// compound command, and that command's first words.
fn middle<'a, 't>(part: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let is_keyword = |token: &Token<'_>| KEYWORDS.contains(&token.text) && !HEADS.contains(&token.text);
    let from = part.iter().take_while(|token| token.kind == Kind::Operator || is_keyword(token)).count();
    let part = &part[from..];
    let is_pipe = |at: &usize| part[*at].kind == Kind::Operator;
    let before_compound = |at: &usize| part.get(at + 1).is_none_or(|next| KEYWORDS.contains(&next.text));
    let end = (0..part.len()).filter(is_pipe).find(before_compound).unwrap_or(part.len());
    &part[..end]
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
