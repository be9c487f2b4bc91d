//! Texts that must not be run several times without being asked: they write, remove, send, or ask a person. A list of words cannot know what
//! a program does that it does not name; it is read for the programs that people use.

use std::sync::LazyLock;

use serde::Deserialize;

use super::lexer::{Kind, Token, tokens};

/// The lists of `safety.toml`.
#[derive(Default, Deserialize)]
struct Lists {
    stop: Vec<String>,
    of_shells: Vec<String>,
    starters: Vec<String>,
    harmless: Vec<String>,
    writes: Vec<Programs>,
    replaces: Vec<Programs>,
}

/// Programs, and the beginnings of arguments that decide.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Programs {
    programs: Vec<String>,
    with: Vec<String>,
    without: Vec<String>,
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|one| one == name)
}

fn lists() -> &'static Lists {
    // A test reads the file.
    static LISTS: LazyLock<Lists> =
        LazyLock::new(|| toml::from_str(include_str!("safety.toml")).unwrap_or_default());
    &LISTS
}

/// The word for which a text must not be run several times; `None` if there is none.
pub fn stops(text: &str) -> Option<String> {
    // What is not understood is what the shell refuses, too.
    let tokens = tokens(text)?;
    let is_operator = |token: &Token<'_>| token.kind == Kind::Operator;
    let in_words = || {
        let commands = tokens.iter().filter_map(|token| match &token.kind {
            Kind::Word { commands, .. } => Some(commands),
            Kind::Redirection | Kind::Operator => None,
        });
        commands.flatten().find_map(|command| stops(command))
    };
    tokens.split(is_operator).find_map(stops_part).or_else(in_words)
}

/// The same for the tokens of one command.
fn stops_part(tokens: &[Token<'_>]) -> Option<String> {
    let (mut words, mut rest) = (Vec::new(), tokens.iter());
    while let Some(Token { text, kind, .. }) = rest.next() {
        match kind {
            Kind::Word { value, .. } => words.push(value.clone().unwrap_or_else(|| (*text).to_owned())),
            Kind::Redirection | Kind::Operator => {
                let file = rest.next().map_or("", |token| token.text);
                let is_descriptor = text.ends_with('&')
                    && file.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
                if text.contains('>') && !is_descriptor && !has(&lists().harmless, file) {
                    return Some(format!("> {file}"));
                }
            }
        }
    }
    stops_command(&words)
}

/// The same for the words of one command.
fn stops_command(words: &[String]) -> Option<String> {
    let of_shell = words.first().filter(|word| has(&lists().of_shells, word)).cloned();
    of_shell.or_else(|| stops_program(words))
}

/// The same for a command that no shell runs itself.
fn stops_program(words: &[String]) -> Option<String> {
    const BEFORE: &[&str] = &["!", "{", "if", "then", "else", "elif", "do", "while", "until", "time"];
    let is_before = |word: &&String| {
        let is_variable = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        });
        is_variable || BEFORE.contains(&word.as_str())
    };
    let at = words.iter().take_while(is_before).count();
    let (first, arguments) = words.get(at..)?.split_first()?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let of = |all: &'static [Programs]| all.iter().filter(move |one| has(&one.programs, name));
    let begins = |beginnings: &[String]| {
        arguments.iter().find(|word| beginnings.iter().any(|beginning| word.starts_with(beginning.as_str())))
    };
    if has(&lists().stop, name) {
        return Some(name.to_owned());
    }
    if let Some(word) = of(&lists().writes).find_map(|one| begins(&one.with)) {
        return Some(format!("{name} {word}"));
    }
    let has_operand = arguments.iter().any(|word| !word.starts_with('-'));
    if of(&lists().replaces).any(|one| has_operand && begins(&one.without).is_none()) {
        return Some(name.to_owned());
    }
    // A program in awk or Perl that writes or starts something.
    let is_interpreter = ["awk", "gawk", "mawk", "nawk"].contains(&name);
    let starts = |word: &&String| {
        ["system(", "| \"", "print >", "print>", "printf >", "> \"", ">> \"", ">\""]
            .iter()
            .any(|part| word.contains(part))
    };
    if let Some(word) = arguments.iter().filter(|_| is_interpreter).find(starts) {
        return Some(format!("{name} {word}"));
    }
    if has(&lists().starters, name) {
        // The text of `sh -c`.
        let of_text = |word: &String| word.contains([' ', ';', '|']).then(|| stops(word)).flatten();
        let started = |at: usize| stops_program(&arguments[at..]).or_else(|| of_text(&arguments[at]));
        // Behind options with values of their own, any word may be the program.
        return (0..arguments.len()).find_map(started);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_can_be_read() {
        let read: Lists = toml::from_str(include_str!("safety.toml")).expect("the lists");
        assert!(read.stop.len() > 90 && !read.writes.is_empty() && !read.replaces.is_empty());
    }

    #[test]
    fn what_writes_removes_sends_or_asks_is_named() {
        for (text, word) in [
            ("sort f > out", "> out"),
            ("sort f >>out; ls", "> out"),
            ("sort f 2>err", "> err"),
            ("sort f &>err", "> err"),
            ("ls | xargs -n 1 rm", "rm"),
            ("ls | xargs sh -c 'rm x'", "rm"),
            ("find . -name x -delete", "find -delete"),
            ("find . -exec rm {} +", "rm"),
            ("cat f | tee g | wc", "tee"),
            ("for x in a b; do mv $x y; done", "mv"),
            ("x=1 /usr/bin/curl http://a | jq .", "curl"),
            ("echo $(rm x)", "rm"),
            ("echo \"`rm x`\"", "rm"),
            ("echo \"$(rm x)\"", "rm"),
            ("echo \"`ls`\" | rm y", "rm"),
            ("echo \"$(ls \"a b\")\" | rm y", "rm"),
            ("sed -i s/a/b/ f", "sed -i"),
            ("sort -o f f", "sort -o"),
            ("dd if=a of=b", "dd of=b"),
            ("gzip f", "gzip"),
            ("awk '{print > \"x\"}' f", "awk {print > \"x\"}"),
            ("if true; then rm x; fi", "rm"),
            ("sudo cat f | wc", "sudo"),
            ("timeout 3 ssh host ls | wc", "ssh"),
        ] {
            assert_eq!(stops(text).as_deref(), Some(word), "{text}");
        }
    }

    #[test]
    fn what_only_reads_is_not_stopped() {
        for text in [
            "cat access.log | grep GET | cut -d\" \" -f7 | sort | uniq -c | sort -rn | head",
            "grep rm log | awk '$1 > 5' | wc -l",
            "gzip -dc f.gz | zstd -q -c | wc -c",
            "gzip <f | wc -c",
            "sort f 2>/dev/null | uniq 2>&1 >&2",
            "for x in rm mv; do grep $x f; done | sort",
            "find . -name '*.c' | xargs cat | wc",
            "echo 'a > b; rm x' | cat",
            "tar -tf a.tar | wc -l",
        ] {
            assert_eq!(stops(text), None, "{text}");
        }
    }
}
