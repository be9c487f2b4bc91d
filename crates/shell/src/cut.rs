//! A text cut at our commands: what is run by `pipeline` in between stays whole.

use std::ops::Range;

use pipeline::Session;
use pipeline::syntax::{Item, Join, Script, Start, Timed};

use crate::builtins::find;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// Items for the pipelines.
    Items(Range<usize>),
    /// An item whose first stage is one of our commands, and that command's words.
    Ours(usize, Vec<String>),
}

/// Cuts a text at our commands.
pub(crate) fn segments(script: &Script, session: &Session, at_prompt: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut begun = 0;
    for (index, item) in script.items.iter().enumerate() {
        let Some(words) = ours(item, session, at_prompt) else { continue };
        if begun < index {
            segments.push(Segment::Items(begun..index));
        }
        segments.push(Segment::Ours(index, words));
        begun = index + 1;
    }
    if begun < script.items.len() {
        segments.push(Segment::Items(begun..script.items.len()));
    }
    segments
}

/// The text of some items, with what stands before and behind each of them; byte offsets stay what they are.
pub(crate) fn text_until<'a>(text: &'a str, script: &Script, end: usize) -> &'a str {
    let Some(next) = script.items.get(end) else { return text };
    let mut before = text[..next.offset].trim_end();
    let words: &[&str] = match (next.pipeline.negated, next.pipeline.timed) {
        (false, Timed::No) => &[],
        (true, Timed::No) => &["!"],
        (false, Timed::Bash) => &["time"],
        (true, Timed::Bash) => &["!", "time"],
        (false, Timed::Posix) => &["-p", "time"],
        (true, Timed::Posix) => &["!", "-p", "time"],
    };
    let joined: &[&str] = match next.join {
        Join::Always => &[],
        Join::IfOk => &["&&"],
        Join::IfFailed => &["||"],
    };
    for word in words.iter().chain(joined) {
        before = before.strip_suffix(word).unwrap_or(before).trim_end();
    }
    before
}

fn ours(item: &Item, session: &Session, at_prompt: bool) -> Option<Vec<String>> {
    let stage = item.pipeline.stages.first()?;
    let words = match &stage.start {
        Start::Direct(command) if command.assignments.is_empty() => command.words.clone(),
        Start::Direct(_) => return None,
        Start::Shell => about_jobs(&stage.text).or_else(|| below_home(&stage.text, session))?,
    };
    let name = words.first()?.as_str();
    find(name).filter(|builtin| at_prompt || builtin.in_scripts)?;
    // What is no job is bash's to send a signal to.
    let names_jobs = name != "kill" || words.iter().any(|word| word.starts_with('%'));
    let defined = session.defined().any(|defined| defined == name);
    (names_jobs && !defined).then_some(words)
}

/// The words of `wait $!`, `kill %?part` and their like, which no shell that is given them can know of.
fn about_jobs(text: &str) -> Option<Vec<String>> {
    let word = |word: &str| match word {
        "$!" | "${!}" | "\"$!\"" | "\"${!}\"" => Some("$!".to_owned()),
        _ => word.chars().all(|c| c.is_ascii_alphanumeric() || "%+-?_".contains(c)).then(|| word.to_owned()),
    };
    let words: Vec<String> = text.split_whitespace().map(word).collect::<Option<_>>()?;
    matches!(words.first()?.as_str(), "bg" | "disown" | "fg" | "kill" | "wait").then_some(words)
}

/// The words of `keep ~/folder`.
fn below_home(text: &str, session: &Session) -> Option<Vec<String>> {
    let folder = text.trim().strip_prefix("keep ")?.trim_start().strip_prefix("~/")?;
    let literal = folder.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
    let home = session.variable("HOME")?.to_str().filter(|_| literal)?;
    Some(vec!["keep".to_owned(), format!("{home}/{folder}")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipeline::syntax::parse;

    fn cut(text: &str) -> Vec<String> {
        let session = Session::new("bash").expect("bash");
        let script = parse(text).expect("a command line");
        let shown = |segment| match segment {
            Segment::Items(items) => {
                let begin = script.items[items.start].offset;
                text_until(text, &script, items.end)[begin..].trim_end_matches([';', '\n', ' ']).to_owned()
            }
            Segment::Ours(_, words) => format!("<{}>", words.join(" ")),
        };
        segments(&script, &session, true).into_iter().map(shown).collect()
    }

    #[test]
    fn a_text_is_cut_at_our_commands() {
        assert_eq!(
            cut("a | b; via tmpfile; ! c\nstats 'on'\nd"),
            ["a | b", "<via tmpfile>", "c", "<stats on>", "d"]
        );
        assert_eq!(cut("help"), ["<help>"]);
        assert_eq!(cut("a && via x || b"), ["a", "<via x>", "b"]);
        assert_eq!(cut("a; time ! help | cat"), ["a", "<help>"]);
        assert_eq!(cut("echo time; help >x"), ["echo time", "<help>"]);
        assert!(cut("keep ~/kept")[0].ends_with("/kept>"));
        for whole in ["A=1 help", "ls | help", "echo help", "kill 5", "kill $!", "wait $pid"] {
            assert_eq!(cut(whole), [whole]);
        }
        assert_eq!(cut("sleep 1 & wait \"$!\"; kill -9 %1"), ["sleep 1 &", "<wait $!>", "<kill -9 %1>"]);
    }
}
