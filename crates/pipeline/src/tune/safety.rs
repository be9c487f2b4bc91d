//! Texts that must not be run several times without being asked: they write, remove, send, or ask a person. A list of words cannot know what
//! a program does that it does not name; it is read for the programs that people use.

use std::sync::LazyLock;

use serde::Deserialize;

use super::lexer::{Kind, Token, tokens};
use super::text::is_assignment;

/// The lists of `safety.toml`.
#[derive(Default, Deserialize)]
struct Lists {
    stop: Vec<String>,
    of_shells: Vec<String>,
    shells: Vec<String>,
    starters: Vec<String>,
    values: Vec<String>,
    harmless: Vec<String>,
    writes: Vec<Options>,
    replaces: Vec<Options>,
}

/// Options of some programs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    programs: Vec<String>,
    letters: String,
    long: Vec<String>,
    begins: Vec<String>,
}

fn lists() -> &'static Lists {
    // A test reads the file.
    static LISTS: LazyLock<Lists> =
        LazyLock::new(|| toml::from_str(include_str!("safety.toml")).unwrap_or_default());
    &LISTS
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|one| one == name)
}

/// The word for which a text must not be run several times; `None` if there is none.
pub fn stops(text: &str) -> Option<String> {
    // What is not understood may do anything.
    let Some(tokens) = tokens(text) else { return Some(text.to_owned()) };
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
    let is_condition = tokens.iter().any(|token| token.text == "[[");
    let (mut words, mut rest) = (Vec::new(), tokens.iter());
    while let Some(token) = rest.next() {
        if let Kind::Word { .. } = token.kind {
            words.push(Argument::of(token));
            continue;
        }
        let Some(file) = rest.next() else { continue };
        let (written, name) = (token.text.contains('>'), Argument::of(file).value);
        let is_descriptor =
            token.text.ends_with('&') && name.chars().all(|letter| letter.is_ascii_digit() || letter == '-');
        if written && !is_descriptor && !is_condition && !has(&lists().harmless, &name) {
            return Some(format!("> {}", file.text));
        }
    }
    stops_command(&words)
}

/// A word, as a program gets it where that is known.
#[derive(Clone)]
struct Argument {
    value: String,
    is_known: bool,
}

impl Argument {
    fn of(token: &Token<'_>) -> Self {
        let value = match &token.kind {
            Kind::Word { value, .. } => value.clone(),
            Kind::Redirection | Kind::Operator => None,
        };
        Self { is_known: value.is_some(), value: value.unwrap_or_else(|| token.text.to_owned()) }
    }
}

/// The same for the words of one command.
fn stops_command(words: &[Argument]) -> Option<String> {
    const BEFORE: &[&str] =
        &["!", "{", "}", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "time", "esac"];
    const HEADS: &[&str] = &["for", "case", "select", "[["];
    let is_before = |word: &&Argument| is_assignment(&word.value) || BEFORE.contains(&word.value.as_str());
    // The loop that reads a pipe.
    let is_loop =
        words.iter().take_while(is_before).any(|word| word.value == "while" || word.value == "until");
    let mut words = &words[words.iter().take_while(is_before).count()..];
    // Options of `time`.
    while words.first().is_some_and(|word| word.value == "-p") {
        words = &words[1..];
    }
    // Its name.
    if words.first().is_some_and(|word| word.value == "function") {
        return stops_command(words.get(2..)?);
    }
    let first = words.first()?;
    if HEADS.contains(&first.value.as_str()) {
        return None;
    }
    let is_of_shell = has(&lists().of_shells, &first.value) && !(is_loop && first.value == "read");
    if !first.is_known || is_of_shell {
        return Some(first.value.clone());
    }
    stops_program(words)
}

/// The same for a command that no shell runs itself.
fn stops_program(words: &[Argument]) -> Option<String> {
    let (first, arguments) = words.split_first()?;
    let name = first.value.rsplit('/').next().unwrap_or(&first.value);
    let arguments: Vec<&str> = arguments.iter().map(|word| word.value.as_str()).collect();
    let of = |all: &'static [Options]| all.iter().filter(move |one| has(&one.programs, name));
    let operands = || arguments.iter().filter(|word| !word.starts_with('-'));
    if has(&lists().stop, name) {
        return Some(name.to_owned());
    }
    let writes = |one: &Options| arguments.iter().find(|word| one.has(word) && !writes_harmlessly(word));
    if let Some(word) = of(&lists().writes).find_map(writes) {
        return Some(format!("{name} {word}"));
    }
    // tar(1) takes its letters without a dash, too.
    let of_tar = |one: &Options| {
        let first = arguments.first().filter(|word| name == "tar" && !word.starts_with('-'));
        first.is_some_and(|word| word.contains(|letter| one.letters.contains(letter)))
    };
    let replaces = |one: &Options| !of_tar(one) && !arguments.iter().any(|word| one.has(word));
    let is_given_files = operands().next().is_some() || name == "tar";
    if is_given_files && of(&lists().replaces).any(replaces) {
        return Some(name.to_owned());
    }
    if let Some(text) = arguments.iter().find(|text| text_writes(name, text)) {
        return Some(format!("{name} {text}"));
    }
    if has(&lists().shells, name) {
        let text = arguments.iter().position(|word| word.starts_with('-') && word.ends_with('c'));
        return match text.and_then(|at| arguments.get(at + 1)) {
            Some(text) => stops(text),
            None => operands().next().is_none().then(|| name.to_owned()),
        };
    }
    let words = &words[1..];
    match name {
        "find" => {
            let starts = |at: &usize| words[*at].value.starts_with("-exec");
            (0..words.len()).filter(starts).find_map(|at| stops_program(&words[at + 1..]))
        }
        // Two files, and no number of fields: the second one is written.
        "uniq" => {
            let is_file = |word: &&&&str| !word.starts_with(|letter: char| letter.is_ascii_digit());
            (operands().filter(|word| is_file(&word)).count() > 1).then(|| name.to_owned())
        }
        _ if has(&lists().starters, name) => stops_started(words),
        _ => None,
    }
}

/// The same for the words behind a starter: its options, and the program.
fn stops_started(words: &[Argument]) -> Option<String> {
    let is_amount = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
    // A long option may have its value in the next word: then any word may be the program.
    if words
        .iter()
        .any(|word| word.value.starts_with("--") && word.value.len() > 2 && !word.value.contains('='))
    {
        return (0..words.len()).find_map(|at| stops_program(&words[at..]));
    }
    let mut at = 0;
    while let Some(word) = words.get(at).map(|word| word.value.as_str()) {
        at += match word {
            "--" => 1,
            option if has(&lists().values, option) => 2,
            option if option.starts_with('-') || is_assignment(option) || is_amount(option) => 1,
            _ => break,
        };
    }
    let started = words.get(at)?;
    if started.is_known { stops_program(&words[at..]) } else { Some(started.value.clone()) }
}

impl Options {
    /// Whether a word is one of them.
    fn has(&self, word: &str) -> bool {
        let begins = self.begins.iter().any(|beginning| word.starts_with(beginning.as_str()));
        let is_one = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => {
                let name = long.split('=').next().unwrap_or_default();
                !name.is_empty() && self.long.iter().any(|one| one.starts_with(name))
            }
            (None, Some(letters)) => letters.contains(|letter| self.letters.contains(letter)),
            (None, None) => false,
        };
        begins || is_one
    }
}

/// `of=/dev/null`.
fn writes_harmlessly(word: &str) -> bool {
    word.split_once('=').is_some_and(|(_, file)| has(&lists().harmless, file))
}

/// Whether an argument is a program in awk(1) or sed(1) that writes, or starts another one.
fn text_writes(name: &str, text: &str) -> bool {
    if name.ends_with("awk") {
        let prints_elsewhere = |statement: &str| {
            let printed = statement.split_once("print").map_or("", |(_, printed)| printed);
            // What is in a string is printed.
            printed.split('"').step_by(2).any(|part| part.contains(['>', '|']))
        };
        let starts = text.contains("system") || text.contains('|') && text.contains("getline");
        return starts || text.split([';', '}', '\n']).any(prints_elsewhere);
    }
    if !name.ends_with("sed") || text.starts_with('-') {
        return false;
    }
    // The commands w, W and e, and the flags w and e of a replacement.
    let of_command = |at: usize| {
        let before = text[..at].trim_end().chars().next_back();
        let is_command = before.is_none_or(|letter| letter.is_ascii_digit() || "/;{}$!\n".contains(letter));
        is_command && text[at + 1..].starts_with([' ', '\t'])
    };
    let is_flag = |letter: char| "gpiIMm0123456789".contains(letter);
    let flags = text.strip_prefix('s').and_then(|rest| rest.rsplit(rest.chars().next()?).next());
    text.match_indices(['w', 'W', 'e']).any(|(at, _)| of_command(at))
        || flags.is_some_and(|flags| {
            flags.len() + 2 < text.len() && flags.trim_start_matches(is_flag).starts_with(['e', 'w'])
        })
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
            ("cat f 1>/dev/nullx", "> /dev/nullx"),
            ("cat f >&1x", "> 1x"),
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
            ("sed -Ei s/a/b/ f", "sed -Ei"),
            ("sed -n --in-pl=.w 1p f", "sed --in-pl=.w"),
            ("perl -0pi -e x f", "perl -0pi"),
            ("sort -uo OUT f", "sort -uo"),
            ("sort --outp=OUT f", "sort --outp=OUT"),
            ("tar zcf a.tar f", "tar"),
            ("tar -xvf a.tar", "tar"),
            ("ls | xargs -I{} -P2 rm {}", "rm"),
            ("ls | xargs -0 -I{} -n1 rm {}", "rm"),
            ("</dev/null touch x", "touch"),
            ("2>/dev/null touch x", "touch"),
            ("x+=1 touch x", "touch"),
            ("x[0]=1 touch x", "touch"),
            ("time -p touch x", "touch"),
            ("coproc touch x", "coproc"),
            ("IFS= eval 'touch x'", "eval"),
            ("if eval 'touch x'; then :; fi", "eval"),
            ("trap 'touch x' EXIT", "trap"),
            ("echo $'\\'' | tee x", "tee"),
            ("echo a # it's\ntouch x", "touch"),
            ("echo 'touch x' | bash", "bash"),
            ("sh -c '>x'", "> x"),
            ("bash -c 'touch\tx'", "touch"),
            ("awk -v o=x '{print $1>o}'", "awk {print $1>o}"),
            ("awk '{print|\"cmd\"}'", "awk {print|\"cmd\"}"),
            ("sed 'w x' f", "sed w x"),
            ("sed 's/a/b/w x' f", "sed s/a/b/w x"),
            ("sed '1e cmd' f", "sed 1e cmd"),
            ("sed 's/a/b/e' f", "sed s/a/b/e"),
            ("x=tee; ls | $x out", "$x"),
            ("$(echo touch) x", "$(echo touch)"),
            ("/usr/bin/tou?h x", "/usr/bin/tou?h"),
            ("gzip -9 f", "gzip"),
            ("echo ${x:-$(touch x)}", "touch"),
            ("tar --extract -f x.tar", "tar"),
            ("tar -x --file=x.tar", "tar"),
            ("find . -exec grep x {} + -exec rm {} +", "rm"),
            ("flock f touch x", "flock"),
            ("ls | xargs --arg-file F touch x", "touch"),
            ("ls | parallel 'rm {}'", "parallel"),
            ("function f { touch x; }; f", "touch"),
            ("sed 's/a/b/gw out' f", "sed s/a/b/gw out"),
            ("uniq f out", "uniq"),
            ("read x; echo $x", "read"),
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
            "tar -tf a.tar xfile | wc -l",
            "tar tf undo.tar",
            "tar -xOf a.tar f | wc",
            "sort f | while read x; do echo $x; done",
            "find -L . -name x | uniq -f 1 | uniq -c",
            "gzip -9c f | wc; zstd -dqc f | wc",
            "find . -name make | xargs grep -l rm",
            "timeout 5 grep mail f",
            "env LC_ALL=C grep mount f",
            "awk '$2 > \"2026\"' f",
            "if [[ b > a ]]; then sort f; fi",
            "sort f >'/dev/null' 2>/dev/stdout",
            "dd if=f of=/dev/null",
            "sed -n '/werk/p; s/we/ew/g' f | sed 5q",
            "awk '{print \"a > b\"}' f",
        ] {
            assert_eq!(stops(text), None, "{text}");
        }
    }
}
