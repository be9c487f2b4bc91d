//! Text cut into tokens with their exact places. Comments, blanks and line continuations fall between tokens; a
//! new line takes the bodies of the here-documents before it along.

use super::SyntaxError;
use super::heredoc::HereDoc;
use super::quote;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, quotes and expansions and all.
    Word,
    /// A control or redirection operator.
    Op(&'static str),
    /// The end of a line.
    Newline,
    /// The end of the text.
    End,
}

/// A token and the bytes it takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    /// What it is.
    pub(super) kind: Kind,
    /// Its first byte.
    pub(super) start: usize,
    /// The byte behind its last.
    pub(super) end: usize,
}

/// The deepest nesting read: reading is recursive, and so is the parser behind it, and bash scripts that people
/// write stay far below.
pub(super) const MAX_DEPTH: usize = 40;

/// The operators, longest first.
const OPERATORS: [&str; 23] = [
    "<<<", "<<-", "&>>", ";;&", "&&", "||", ";;", ";&", "|&", "<<", "<&", ">&", ">>", "<>", ">|", "&>", "|",
    ";", "&", "(", ")", "<", ">",
];

/// Reads tokens one after the other.
pub(super) struct Reader<'a> {
    /// The whole text.
    pub(super) text: &'a str,
    /// Where the next token is looked for.
    pub(super) pos: usize,
    /// The here-documents met, in the order of their operators.
    pub(super) docs: Vec<HereDoc>,
    /// How many constructs are open around this place.
    pub(super) depth: usize,
    /// How many of `docs` have their bodies.
    filled: usize,
    peeked: Option<Token>,
}

impl<'a> Reader<'a> {
    /// A reader that starts in the middle of a text, `depth` constructs deep.
    pub(super) fn new(text: &'a str, pos: usize, depth: usize) -> Self {
        Reader { text, pos, docs: Vec::new(), depth, filled: 0, peeked: None }
    }

    /// The token ahead.
    pub(super) fn peek(&mut self) -> Result<Token, SyntaxError> {
        if let Some(token) = self.peeked {
            return Ok(token);
        }
        let token = self.scan()?;
        self.peeked = Some(token);
        Ok(token)
    }

    /// Steps over the token ahead.
    pub(super) fn next(&mut self) -> Result<Token, SyntaxError> {
        let token = self.peek()?;
        self.jump(token.end);
        if token.kind == Kind::Newline {
            while let Some(doc) = self.docs.get_mut(self.filled) {
                self.pos = doc.read_body(self.text, self.pos)?;
                self.filled += 1;
            }
        }
        Ok(token)
    }

    /// Goes on from another place, forgetting what was looked at.
    pub(super) fn jump(&mut self, pos: usize) {
        self.pos = pos;
        self.peeked = None;
    }

    /// The here-document whose body is still to come, if any.
    pub(super) fn open_document(&self) -> Option<&HereDoc> {
        self.docs.get(self.filled)
    }

    /// The byte at a place, 0 behind the end.
    pub(super) fn byte(&self, pos: usize) -> u8 {
        self.text.as_bytes().get(pos).copied().unwrap_or(0)
    }

    /// A token's text as bash compares it with reserved words: without line continuations.
    pub(super) fn plain(&self, token: Token) -> String {
        self.text[token.start..token.end].replace("\\\n", "")
    }

    /// Whether a token is one of these operators.
    pub(super) fn is_op(token: Token, operators: &[&str]) -> bool {
        matches!(token.kind, Kind::Op(op) if operators.contains(&op))
    }

    fn scan(&self) -> Result<Token, SyntaxError> {
        let start = self.skip_blanks();
        let rest = &self.text[start..];
        let token = |kind, end| Ok(Token { kind, start, end });
        if rest.is_empty() {
            return token(Kind::End, start);
        }
        if rest.starts_with('\n') {
            return token(Kind::Newline, start + 1);
        }
        let substitution = rest.starts_with("<(") || rest.starts_with(">(");
        let operator = OPERATORS.iter().find(|op| rest.starts_with(**op));
        if let Some(op) = operator.filter(|_| !substitution) {
            return token(Kind::Op(op), start + op.len());
        }
        token(Kind::Word, quote::word(self.text, start, self.depth)?)
    }

    /// The start of the next token: behind blanks, continuations and a comment.
    fn skip_blanks(&self) -> usize {
        let mut pos = self.pos;
        loop {
            match self.byte(pos) {
                b' ' | b'\t' => pos += 1,
                b'\\' if self.byte(pos + 1) == b'\n' => pos += 2,
                b'#' => return self.text[pos..].find('\n').map_or(self.text.len(), |length| pos + length),
                _ => return pos,
            }
        }
    }
}
