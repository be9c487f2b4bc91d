//! The text of a plain pipeline, as far as it must be understood to change one of its stages: its words, with the quotes in which they were
//! typed. What is not changed is printed as it was typed, and is parsed by the shell alone.

use std::fmt::{self, Display};

use model::shell_line;

use super::lexer::{Kind, Token, tokens};

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As typed, or quoted for a shell.
    pub text: String,
    /// What the program gets; `None` if only the shell knows, because of a variable or a pattern for file names.
    pub value: Option<String>,
}

impl Word {
    /// A word that the program gets as it is.
    pub fn new(value: &str) -> Self {
        Self { text: shell_line(&[value.to_owned()]), value: Some(value.to_owned()) }
    }
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stage {
    /// Variables before the command, `NAME=value`, as typed.
    pub variables: Vec<String>,
    /// The command and its arguments.
    pub words: Vec<Word>,
    /// Redirections, as typed.
    pub redirections: Vec<String>,
}

impl Stage {
    /// Reads the tokens of a simple command.
    fn of(tokens: &[Token<'_>]) -> Option<Self> {
        let mut stage = Self::default();
        let mut rest = tokens.iter();
        while let Some(Token { text, kind, .. }) = rest.next() {
            match kind {
                Kind::Operator => return None,
                // Here-documents have their text elsewhere.
                Kind::Redirection if text.contains("<<") || text.contains("<>") => return None,
                Kind::Redirection => stage.redirections.push(format!("{text}{}", rest.next()?.text)),
                Kind::Word { .. } if stage.words.is_empty() && is_assignment(text) => {
                    stage.variables.push((*text).to_owned());
                }
                Kind::Word { value, .. } => {
                    stage.words.push(Word { text: (*text).to_owned(), value: value.clone() });
                }
            }
        }
        stage.words.first().is_some_and(|word| !KEYWORDS.contains(&word.text.as_str())).then_some(stage)
    }

    /// The command's file name; `None` if only the shell knows it.
    pub fn program(&self) -> Option<&str> {
        self.words.first()?.value.as_deref()?.rsplit('/').next()
    }

    /// The words after the command.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether its standard input is redirected.
    pub fn has_input(&self) -> bool {
        self.redirections.iter().any(|typed| typed.starts_with('<') || typed.starts_with("0<"))
    }
}

impl Display for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words.iter().map(|word| word.text.as_str());
        let all = self.variables.iter().map(String::as_str).chain(words);
        let all = all.chain(self.redirections.iter().map(String::as_str));
        out.write_str(&all.collect::<Vec<_>>().join(" "))
    }
}

/// A plain pipeline: simple commands with `|` between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// For each stage of the original what takes its place: nothing, itself or another command, or two.
    pub places: Vec<Vec<Stage>>,
}

impl Pipeline {
    /// Reads a text; `None` if it is anything else than a plain pipeline in the syntax of sh(1).
    pub fn parse(text: &str) -> Option<Self> {
        Self::of(&tokens(text)?)
    }

    /// Reads tokens.
    pub(super) fn of(tokens: &[Token<'_>]) -> Option<Self> {
        let is_pipe = |token: &Token<'_>| token.kind == Kind::Operator && token.text == "|";
        let stages: Option<Vec<Stage>> = tokens.split(is_pipe).map(Stage::of).collect();
        Some(Self { places: stages?.into_iter().map(|stage| vec![stage]).collect() })
    }

    /// The stages that are left, with what took the place of others.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        self.places.iter().flatten()
    }

    /// The stage at a place that nothing has been removed from, or added to.
    pub fn at(&self, place: usize) -> Option<&Stage> {
        match self.places.get(place)?.as_slice() {
            [stage] => Some(stage),
            _ => None,
        }
    }

    /// The same pipeline with another file in place of each word that names one of these.
    pub fn with_files(&self, files: &[(String, String)]) -> Self {
        let mut changed = self.clone();
        for stage in changed.places.iter_mut().flatten() {
            for (file, other) in files {
                let named = |word: &&mut Word| word.value.as_deref() == Some(file);
                stage.words.iter_mut().filter(named).for_each(|word| *word = Word::new(other));
                for typed in &mut stage.redirections {
                    if input_of(typed).as_deref() == Some(file) {
                        *typed = format!("<{}", Word::new(other).text);
                    }
                }
            }
        }
        changed
    }

    /// The files that its words and its redirections of input may name.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.stages().flat_map(|stage| {
            let words = stage.arguments().iter().filter_map(|word| word.value.clone());
            words.chain(stage.redirections.iter().filter_map(|typed| input_of(typed)))
        })
    }
}

impl Display for Pipeline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.stages().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
    }
}

/// With these a compound command begins, or something else than a command that is executed.
pub(super) const KEYWORDS: &[&str] = &[
    "!", "{", "}", "if", "then", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "[[",
];

/// Whether a word is `NAME=value`, `NAME+=value` or `NAME[…]=value`.
pub(super) fn is_assignment(word: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+').split('[').next().unwrap_or_default();
        let begins_well = name.starts_with(|letter: char| !letter.is_ascii_digit());
        begins_well && name.chars().all(is_of_name)
    })
}

/// The file of a redirection of input, if it is known.
fn input_of(typed: &str) -> Option<String> {
    let name = typed.strip_prefix("0<").or_else(|| typed.strip_prefix('<'))?;
    match tokens(name)?.pop()?.kind {
        Kind::Word { value, .. } => value,
        Kind::Redirection | Kind::Operator => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_pipeline_is_printed_as_it_was_typed() {
        for text in [
            "cat access.log | grep GET",
            r#"LC_ALL=C sort -k2 "$x" ~/f* | awk '{print $1 "|" $2; n++}' 2>/dev/null | sed "s/a|\"b/\\$/" <in"#,
            "tr -s ' ' '\\n' <f 2>&1",
        ] {
            let pipeline = Pipeline::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(pipeline.to_string(), text);
        }
        let broken = Pipeline::parse("a |\n b").expect("a pipeline");
        assert_eq!(broken.to_string(), "a | b");
    }

    #[test]
    fn words_have_the_values_that_programs_get() {
        let pipeline = Pipeline::parse(r#"a\ b 'c d'"e\n" $x "p$" x=1 "\"" *.c"#).expect("plain");
        let values: Vec<Option<&str>> =
            pipeline.places[0][0].words.iter().map(|word| word.value.as_deref()).collect();
        assert_eq!(values, [Some("a b"), Some("c de\\n"), None, Some("p$"), Some("x=1"), Some("\""), None]);
    }

    #[test]
    fn what_only_a_shell_can_parse_is_not_plain() {
        for text in [
            "a; b",
            "a && b",
            "a || b",
            "a |& b",
            "a &",
            "(a) | b",
            "for x in y; do z; done | b",
            "{ a; } | b",
            "! a | b",
            "time a | b",
            "a <<x",
            "a <<<x",
            "a 'b",
            "a |",
            "while read x",
        ] {
            assert_eq!(Pipeline::parse(text), None, "{text}");
        }
    }

    #[test]
    fn files_are_replaced_where_they_are_named() {
        let pipeline = Pipeline::parse("grep log log <log | cat 'log'").expect("plain");
        let files = [("log".to_owned(), "/proc/1/fd/3".to_owned())];
        assert_eq!(
            pipeline.with_files(&files).to_string(),
            "grep /proc/1/fd/3 /proc/1/fd/3 </proc/1/fd/3 | cat /proc/1/fd/3"
        );
        assert_eq!(pipeline.names().collect::<Vec<_>>(), ["log", "log", "log", "log"]);
    }
}
