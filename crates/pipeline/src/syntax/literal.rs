//! Words that mean themselves: quotes removed where a shell would find nothing else to do.

/// The word without its quotes, or nothing where bash might expand something in it. In doubt it might: a tilde
/// behind `=` or `:` and braces with a `,` or `..` count as expansions wherever they stand.
pub(super) fn word(source: &str) -> Option<String> {
    if source.contains('{') && (source.contains(',') || source.contains("..")) && braces_unquoted(source) {
        return None;
    }
    let mut out = String::new();
    let mut rest = source.chars();
    let mut tilde_expands = true;
    while let Some(c) = rest.next() {
        match c {
            '*' | '?' | '[' | '$' | '`' | '<' | '>' | '(' | ')' => return None,
            '~' if tilde_expands => return None,
            '\\' => match rest.next() {
                Some('\n') => continue,
                escaped => out.extend(escaped),
            },
            '\'' => out.push_str(&single(&mut rest)),
            '"' => out.push_str(&double(&mut rest)?),
            _ => out.push(c),
        }
        tilde_expands = matches!(c, '=' | ':');
    }
    Some(out)
}

/// What a document with an unquoted tag holds, or nothing where something in it is expanded.
pub(super) fn document(body: &str) -> Option<String> {
    escapes(body, &['$', '`', '\\'])
}

/// A word without its quotes whatever is in it: what bash makes of a here-document's tag.
pub(super) fn unquoted(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('\n') => {}
                escaped => out.extend(escaped),
            },
            '\'' => out.push_str(&single(&mut rest)),
            '"' => {
                let inside = until_double(&mut rest);
                out.push_str(
                    &escapes(&inside.replace('$', "\\$").replace('`', "\\`"), QUOTED).unwrap_or(inside),
                );
            }
            _ => out.push(c),
        }
    }
    out
}

/// What a backslash takes the meaning from inside `"`.
const QUOTED: &[char] = &['$', '`', '"', '\\'];

/// Whether a `{` stands outside quotes.
fn braces_unquoted(source: &str) -> bool {
    let mut rest = source.chars();
    while let Some(c) = rest.next() {
        match c {
            '{' => return true,
            '\\' => drop(rest.next()),
            '\'' => drop(single(&mut rest)),
            '"' => drop(until_double(&mut rest)),
            _ => {}
        }
    }
    false
}

/// The rest of `'...'`.
fn single(rest: &mut std::str::Chars) -> String {
    rest.by_ref().take_while(|c| *c != '\'').collect()
}

/// The rest of `"..."`, or nothing where something in it is expanded.
fn double(rest: &mut std::str::Chars) -> Option<String> {
    escapes(&until_double(rest), QUOTED)
}

/// The characters up to the `"` that no backslash stands before, with all backslashes.
fn until_double(rest: &mut std::str::Chars) -> String {
    let mut out = String::new();
    while let Some(c) = rest.next() {
        match c {
            '"' => break,
            '\\' => {
                out.push(c);
                out.extend(rest.next());
            }
            _ => out.push(c),
        }
    }
    out
}

/// Removes the backslashes before these characters and before new lines; nothing where `$` or a backquote stands
/// without one.
fn escapes(source: &str, escaped: &[char]) -> Option<String> {
    let mut out = String::new();
    let mut rest = source.chars();
    while let Some(c) = rest.next() {
        match c {
            '$' | '`' => return None,
            '\\' => match rest.next() {
                Some('\n') => {}
                Some(next) if escaped.contains(&next) => out.push(next),
                next => {
                    out.push('\\');
                    out.extend(next);
                }
            },
            _ => out.push(c),
        }
    }
    Some(out)
}
