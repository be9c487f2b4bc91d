//! The reader against bash itself: what one refuses the other refuses, and both make the same of words.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Seek as _, Write as _};
use std::process::{Command, Stdio};

use pipeline::syntax::{Start, parse};
use proptest::prelude::*;

/// Texts of every kind that is read, one for each line; `~` stands for the end of a line inside a text.
const ACCEPTED: &str = include_str!("data/syntax_accepted.txt");

/// Texts that are no command lines, in the same form.
const REFUSED: &str = include_str!("data/syntax_refused.txt");

fn texts(table: &str) -> Vec<String> {
    table.lines().filter(|line| !line.is_empty()).map(|line| line.replace('~', "\n")).collect()
}

/// Whether `bash -n` takes each of these texts, asked in one shell that starts one more for each.
fn bash_takes(texts: &[String]) -> io::Result<Vec<bool>> {
    let script = "while IFS= read -r -d '' text; do \
        if problem=$(bash -n -c -- \"$text\" 2>&1) && [ -z \"$problem\" ]; then echo yes; else echo no; fi; done";
    let input: Vec<u8> = texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
    let answers = bash(script, &input)?;
    let answers: Vec<bool> = String::from_utf8_lossy(&answers).lines().map(|line| line == "yes").collect();
    assert_eq!(answers.len(), texts.len());
    Ok(answers)
}

/// What bash writes, running this script with this input.
fn bash(script: &str, input: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = tempfile::tempfile()?;
    file.write_all(input)?;
    file.rewind()?;
    let output =
        Command::new("/bin/bash").args(["-c", script]).stdin(file).stderr(Stdio::inherit()).output()?;
    Ok(output.stdout)
}

#[test]
fn every_stage_of_an_accepted_text_is_a_text_for_bash() {
    let texts = texts(ACCEPTED);
    assert!(texts.len() >= 150, "{}", texts.len());
    let mut pieces = BTreeSet::new();
    for text in &texts {
        let script = parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        for item in script.items {
            pieces.insert(item.pipeline.text);
            pieces.extend(item.pipeline.stages.into_iter().map(|stage| stage.text));
        }
    }
    let pieces: Vec<String> = pieces.into_iter().collect();
    for (piece, taken) in pieces.iter().zip(bash_takes(&pieces).unwrap()) {
        assert!(taken, "{piece:?}");
    }
}

#[test]
fn what_bash_refuses_is_refused() {
    let texts = texts(REFUSED);
    for (text, taken) in texts.iter().zip(bash_takes(&texts).unwrap()) {
        assert!(!taken, "bash takes {text:?}");
        let error = parse(text).expect_err(text);
        assert!(error.offset <= text.len() && text.is_char_boundary(error.offset), "{text:?}");
    }
}

#[test]
fn literal_words_are_what_bash_makes_of_them() {
    let texts = texts(include_str!("data/syntax_words.txt"));
    assert!(texts.len() >= 60, "{}", texts.len());
    let mut script = String::new();
    let mut expected = Vec::new();
    for text in &texts {
        let line = format!("printf '%s\\0' {text}");
        let parsed = parse(&line).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let Start::Direct(command) = &parsed.items[0].pipeline.stages[0].start else {
            panic!("{text:?} needs a shell")
        };
        for word in &command.words[2..] {
            expected.extend([word.as_bytes(), b"\0"].concat());
        }
        writeln!(script, "{line}").unwrap();
    }
    let found = bash(&script, b"").unwrap();
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected));
}

/// A word in single quotes, as bash wants them.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

proptest! {
    #[test]
    fn quoted_words_come_back(words in prop::collection::vec("[^\0]{0,12}", 1..6)) {
        let text = words.iter().fold(String::from("x"), |text, word| text + " " + &quoted(word));
        let script = parse(&text).unwrap();
        let Start::Direct(command) = &script.items[0].pipeline.stages[0].start else { panic!("{text:?}") };
        prop_assert_eq!(&command.words[1..], &words[..]);
    }

    #[test]
    fn no_text_is_too_odd_to_be_answered(pieces in prop::collection::vec(piece(), 0..24)) {
        let text = pieces.concat();
        match parse(&text) {
            Ok(script) => prop_assert!(script.items.iter().all(|item| !item.pipeline.stages.is_empty())),
            Err(error) => prop_assert!(text.is_char_boundary(error.offset), "{:?}", error),
        }
    }
}

/// The stuff that command lines are made of.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        " ",
        " ",
        "\n",
        "|",
        "||",
        "&",
        "&&",
        ";",
        ";;",
        "(",
        ")",
        "{ ",
        "}",
        "<",
        ">",
        "<<E\n",
        "\nE\n",
        "<<<",
        "|&",
        "'",
        "\"",
        "`",
        "$(",
        "${",
        "$((",
        "))",
        "((",
        "[[ ",
        " ]]",
        "\\",
        "é",
        "if ",
        "then ",
        "fi",
        "for ",
        "in ",
        "do ",
        "done",
        "case ",
        "esac",
        "while ",
        "! ",
        "time ",
        "x=",
        "x=(",
        "f() ",
        "function ",
        "coproc ",
        "2>",
        "2147483648>",
        "&>",
        ">&",
        "-",
        "#",
        "$",
        "~",
        "*",
        "[",
        "]",
        "\t",
        "!(",
        "$'",
        "\r",
    ])
}
