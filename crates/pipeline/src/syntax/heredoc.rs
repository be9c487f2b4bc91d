//! Here-documents: their bodies stand lines away from their operators, and a text cut out of the whole has to take
//! its own along and to leave the others.

use std::ops::Range;

use super::SyntaxError;
use super::literal;

/// A here-document.
#[derive(Debug, Clone)]
pub(super) struct HereDoc {
    /// Where its `<<` stands.
    pub(super) operator: usize,
    /// `<<-`: leading tabs are removed.
    pub(super) strip_tabs: bool,
    /// Whether a part of the tag was quoted: nothing in the body is expanded then.
    pub(super) quoted: bool,
    /// The line that ends it.
    pub(super) tag: String,
    /// The lines between.
    pub(super) body: Range<usize>,
    /// Behind the line with the tag.
    pub(super) end: usize,
}

impl HereDoc {
    /// A document whose body is still to come.
    pub(super) fn new(operator: usize, strip_tabs: bool, tag: &str) -> Self {
        let quoted = tag.contains(['\\', '\'', '"']);
        HereDoc { operator, strip_tabs, quoted, tag: literal::unquoted(tag), body: 0..0, end: 0 }
    }

    /// Finds the body, which starts at `start`, and answers with the place behind the tag's line.
    ///
    /// # Errors
    /// No line is the tag.
    pub(super) fn read_body(&mut self, text: &str, start: usize) -> Result<usize, SyntaxError> {
        let mut pos = start;
        while pos < text.len() {
            let (line, end) = self.line(text, pos);
            if line == self.tag {
                self.body = start..pos;
                self.end = end;
                return Ok(end);
            }
            pos = end;
        }
        Err(self.never_ended())
    }

    /// The error of a document whose tag never comes.
    pub(super) fn never_ended(&self) -> SyntaxError {
        let message = format!("the here-document is never closed: no line is `{}'", self.tag);
        SyntaxError { message, offset: self.operator, incomplete: true }
    }

    /// The body as the program reads it, where nothing in it is expanded.
    pub(super) fn literal(&self, text: &str) -> Option<String> {
        let mut body = String::new();
        let mut pos = self.body.start;
        while pos < self.body.end {
            let (line, end) = self.line(text, pos);
            body.push_str(&line);
            body.push('\n');
            pos = end;
        }
        if self.quoted { Some(body) } else { literal::document(&body) }
    }

    /// The line at `pos`, tabs removed, and the place behind it. In an unquoted document a backslash joins lines.
    fn line(&self, text: &str, pos: usize) -> (String, usize) {
        let mut line = String::new();
        let mut rest = &text[pos..];
        loop {
            let (physical, ended) = match rest.split_once('\n') {
                Some((physical, behind)) => {
                    rest = behind;
                    (physical, true)
                }
                None => (std::mem::take(&mut rest), false),
            };
            let backslashes = physical.len() - physical.trim_end_matches('\\').len();
            let joined = ended && !self.quoted && backslashes % 2 == 1;
            line.push_str(if joined { &physical[..physical.len() - 1] } else { physical });
            if !joined {
                break;
            }
        }
        let line = if self.strip_tabs { line.trim_start_matches('\t').to_owned() } else { line };
        (line, text.len() - rest.len())
    }
}

/// The source between two places with the here-documents whose operators stand there, and no others: a text that
/// bash reads alone.
pub(super) fn cut(text: &str, span: Range<usize>, docs: &[HereDoc]) -> String {
    let mut out = String::new();
    let mut pos = span.start;
    let first = docs.partition_point(|doc| doc.end <= span.start);
    let docs = docs[first..].iter().take_while(|doc| doc.operator < span.end);
    let mut behind = Vec::new();
    for doc in docs {
        let own = doc.operator >= span.start;
        if own && doc.body.start >= span.end {
            behind.push(doc);
        } else if !own && doc.body.start < span.end {
            out.push_str(&text[pos..doc.body.start]);
            pos = doc.end;
        }
    }
    out.push_str(&text[pos..span.end]);
    for doc in behind {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&text[doc.body.start..doc.end]);
    }
    out
}
