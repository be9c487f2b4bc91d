//! Typed words: suggestions for unknown ones, and quoting for shells.

use std::ffi::OsStr;

use crate::one_line;

/// The known word nearest to a mistyped one: at most a third of its letters are wrong, missing, too many or swapped, or it is the
/// beginning of the known word.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    let edits = |candidate: &'a str| {
        let is_beginning = letters > 2 && candidate.starts_with(&word);
        let edits = if is_beginning { 1 } else { strsim::osa_distance(&word, candidate) };
        (edits <= (letters / 3).max(1)).then_some((edits, candidate))
    };
    known.filter_map(edits).min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate)
}

/// Quotes a word for every shell except fish. Bytes that are not UTF-8 are replaced.
pub fn shell_quoted(word: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(word).replace('\'', r"'\''"))
}

/// A word that can be written into a script for another program.
///
/// # Errors
/// It is not UTF-8, or it contains a control character, such as a line feed that would begin a new line of the script.
pub fn script_word(word: &(impl AsRef<OsStr> + ?Sized)) -> Result<&str, String> {
    let word = word.as_ref();
    let refused = |why| {
        let shown = one_line(&word.to_string_lossy());
        Err(format!("`{shown}` {why}: it cannot be written into a script"))
    };
    match word.to_str() {
        None => refused("is not text in UTF-8"),
        Some(text) if text.contains(char::is_control) => refused("holds a control character"),
        Some(text) => Ok(text),
    }
}

/// Words as one line that a shell splits into the same words.
pub fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The word itself if no shell changes it; else in quotes; with invisible characters in `$'…'`.
fn shell_word(argument: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-+=:,./@%".contains(character);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    if !argument.chars().any(char::is_control) {
        return shell_quoted(argument.as_bytes());
    }
    let escaped = |character: char| match character {
        '\'' | '\\' => format!("\\{character}"),
        // Always three octal digits, so that a digit may follow.
        _ if character.is_control() => {
            let mut bytes = [0; 4];
            character.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")).collect()
        }
        _ => character.to_string(),
    };
    format!("$'{}'", argument.chars().map(escaped).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_near_words() {
        assert_eq!(shell_quoted(b"a'b\\c"), r"'a'\''b\c'");
        assert_eq!(nearest("pip", ["fifo", "pipe"].into_iter()), Some("pipe"));
        assert_eq!(nearest("xyz", ["fifo", "pipe"].into_iter()), None);
        // Expected: no word that has little in common. Happened: `get_robust_list`, which has some of its letters.
        assert_eq!(nearest("bogus", ["get_robust_list", "pipe2"].into_iter()), None);
        assert_eq!(nearest("SHMRING", ["shm-ring", "shm-copy"].into_iter()), Some("shm-ring"));
        assert_eq!(nearest("unix", ["fifo", "unix-stream"].into_iter()), Some("unix-stream"));
        assert_eq!(nearest("a", ["go"].into_iter()), None);
    }

    #[test]
    fn a_long_word_may_have_more_mistakes_and_two_letters_are_no_beginning() {
        assert_eq!(nearest("sokcte", ["socket"].into_iter()), Some("socket"));
        assert_eq!(nearest("un", ["unix-stream"].into_iter()), None);
    }

    #[test]
    fn a_word_of_a_script_is_text_without_control_characters() {
        assert_eq!(script_word("a b'é"), Ok("a b'é"));
        let refused = script_word("a\nb").expect_err("two lines");
        assert_eq!(refused, "`a\u{240a}b` holds a control character: it cannot be written into a script");
        let bytes: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff");
        assert!(script_word(bytes).is_err_and(|refused| refused.contains("is not text in UTF-8")));
    }

    #[test]
    fn a_line_is_split_by_a_shell_into_its_words() {
        let words = ["ls", "--a=b_c:,./@%+", "", "a b", "it's", "é", "a\nb'c\\1\u{85}"].map(str::to_owned);
        let line = r"ls --a=b_c:,./@%+ '' 'a b' 'it'\''s' 'é' $'a\012b\'c\\1\302\205'";
        assert_eq!(shell_line(&words), line);
    }
}
