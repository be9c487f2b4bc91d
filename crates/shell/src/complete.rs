//! Completion: commands, files, links, options.

use std::path::{Path, PathBuf};

use model::visible;
use pipeline::link::LinkSpec;
use reedline::{Completer, Span, Suggestion};

use crate::builtins;
use crate::tokens::{Kind, Piece, pieces};
use crate::words::Words;

/// More than this nobody reads; the next letter makes it fewer.
const SUGGESTIONS_MAX: usize = 200;

/// Bytes that a shell takes for something else than themselves.
const SPECIAL: &str = " \t'\"\\|&;()<>$`*?[]#~!{}";

pub(crate) struct Completions(pub(crate) Words);

impl Completer for Completions {
    fn complete(&mut self, line: &str, cursor: usize) -> Vec<Suggestion> {
        let before = line.get(..cursor).unwrap_or(line);
        let mut pieces = pieces(before);
        let touched = pieces.pop_if(|piece| piece.range.end == cursor && piece.kind != Kind::Operator);
        let start = touched.as_ref().map_or(cursor, |piece| piece.range.start);
        let word = &before[start..];
        let command = touched.map_or_else(|| a_command_follows(before), |piece| piece.kind == Kind::Command);
        let previous = |piece: &Piece| &before[piece.range.clone()];
        let begin = pieces.iter().rposition(|piece| piece.kind == Kind::Command);
        let own: Vec<&str> =
            begin.map(|begin| pieces[begin..].iter().map(previous).collect()).unwrap_or_default();
        let found: Vec<Found> = match pieces.last().map(previous) {
            _ if command && !word.contains('/') => {
                self.0.commands(word).into_iter().map(Found::word).collect()
            }
            Some("via" | "--via") => links(word),
            Some(ours) if !command && builtins::arguments(ours).is_some() => {
                words(builtins::arguments(ours).unwrap_or(&[]).iter().copied(), word)
            }
            _ if word.starts_with('-') => self.options(&own, word),
            Some("hosepipe") if own.len() == 1 && !word.is_empty() => {
                let found = named(self.0.subcommands("hosepipe"), word);
                if found.is_empty() { files(word) } else { found }
            }
            Some("cd") => files(word).into_iter().filter(|found| found.goes_on).collect(),
            _ => files(word),
        };
        let span = Span::new(start, cursor);
        let suggestion = |found: Found| Suggestion {
            value: found.text,
            span,
            append_whitespace: !found.goes_on,
            ..Suggestion::default()
        };
        // What would steer the terminal is not shown there.
        let found = found.into_iter().filter(|found| visible(&found.text) == found.text);
        found.take(SUGGESTIONS_MAX).map(suggestion).collect()
    }
}

impl Completions {
    /// Options of the command that these words begin, those that the word could become.
    fn options(&self, command: &[&str], word: &str) -> Vec<Found> {
        let Some((name, arguments)) = command.split_first() else { return Vec::new() };
        named(self.0.options(name, arguments.first().copied()), word)
    }
}

/// Names that begin as the word does; a value follows `=` at once.
fn named(names: Vec<String>, word: &str) -> Vec<Found> {
    let found = names.into_iter().filter(|name| name.starts_with(word));
    found.map(|text| Found { goes_on: text.ends_with('='), text }).collect()
}

/// What a word could become.
struct Found {
    text: String,
    /// A folder, or something else that goes on without a blank.
    goes_on: bool,
}

impl Found {
    fn word(text: String) -> Self {
        Self { text, goes_on: false }
    }
}

/// Whether the next word would be a command's name.
fn a_command_follows(before: &str) -> bool {
    let with_one_more = format!("{before}x");
    pieces(&with_one_more).last().is_some_and(|piece| piece.kind == Kind::Command)
}

/// Links whose names begin as the word does; behind a colon, or a comma, the link's options.
fn links(word: &str) -> Vec<Found> {
    let Some((name, options)) = word.split_once(':') else { return words(LinkSpec::names(), word) };
    let typed = options.rsplit(',').next().unwrap_or(options);
    let before = &word[..word.len() - typed.len()];
    let options = LinkSpec::options_of(name).iter().filter(|option| option.starts_with(typed));
    // A value may follow, so no blank does.
    options.map(|option| Found { text: format!("{before}{option}"), goes_on: true }).collect()
}

fn words(all: impl Iterator<Item = &'static str>, start: &str) -> Vec<Found> {
    all.filter(|name| name.starts_with(start)).map(|name| Found::word(name.to_owned())).collect()
}

/// Files whose names begin as the word does, folders with a slash behind.
fn files(word: &str) -> Vec<Found> {
    let quote = word.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let typed = quote.map_or(word, |_| &word[1..]);
    let plain = if quote.is_some() { typed.to_owned() } else { unescaped(typed) };
    let (folder, start) = plain
        .rsplit_once('/')
        .map_or(("", plain.as_str()), |(folder, start)| (&plain[..folder.len() + 1], start));
    let Ok(entries) = std::fs::read_dir(place(folder)) else { return Vec::new() };
    let mut found: Vec<Found> = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with(start) || (name.starts_with('.') && !start.starts_with('.')) {
            continue;
        }
        let is_folder = std::fs::metadata(entry.path()).is_ok_and(|found| found.is_dir());
        let path = format!("{folder}{name}{}", if is_folder { "/" } else { "" });
        let text = match quote {
            Some(quote) if is_folder => format!("{quote}{path}"),
            Some(quote) => format!("{quote}{path}{quote}"),
            None => escaped(&path),
        };
        found.push(Found { text, goes_on: is_folder });
    }
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found
}

/// Where a folder as typed lies.
fn place(folder: &str) -> PathBuf {
    match folder.strip_prefix("~/").zip(std::env::var_os("HOME")) {
        Some((rest, home)) => Path::new(&home).join(rest),
        None if folder.is_empty() => PathBuf::from("."),
        None => PathBuf::from(folder),
    }
}

fn unescaped(word: &str) -> String {
    let mut plain = String::new();
    let mut characters = word.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

/// A path with a backslash before what a shell would take otherwise; `~/` in front stays what it is.
fn escaped(path: &str) -> String {
    let (home, rest) = path.strip_prefix("~/").map_or(("", path), |rest| ("~/", rest));
    let mut text = home.to_owned();
    for character in rest.chars() {
        if SPECIAL.contains(character) {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &str) -> Vec<String> {
        let found = Completions(Words::default()).complete(line, line.len());
        found.into_iter().map(|suggestion| suggestion.value).collect()
    }

    #[test]
    fn links_follow_via() {
        assert!(values("via ").contains(&"socketpair".to_owned()));
        assert_eq!(values("hosepipe run --via sock"), ["socketpair"]);
        assert_eq!(values("via pipe:s"), ["pipe:size"]);
        assert_eq!(values("via file:sync,or"), ["file:sync,order"]);
        assert!(values("via nothing:").is_empty());
        assert_eq!(values("stats o"), ["off", "on"]);
    }

    #[test]
    fn commands_stand_first_and_files_behind() {
        assert!(values("ls | comp").contains(&"compare".to_owned()));
        assert!(values("ls | ").contains(&"via".to_owned()));
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("with blank"), "").expect("a file");
        std::fs::create_dir(folder.path().join("deep")).expect("a folder");
        let root = folder.path().to_string_lossy().into_owned();
        assert_eq!(values(&format!("cat {root}/with")), [format!("{root}/with\\ blank")]);
        assert_eq!(values(&format!("cat '{root}/wi")), [format!("'{root}/with blank'")]);
        assert_eq!(values(&format!("cat {root}/with\\ bl")), [format!("{root}/with\\ blank")]);
        assert_eq!(values(&format!("cd {root}/")), [format!("{root}/deep/")]);
    }
}
