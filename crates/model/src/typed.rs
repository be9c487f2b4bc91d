//! Words as people type them and as a shell reads them.

use std::ffi::OsStr;

use crate::one_line;

/// The known word closest to a mistyped one, if any is close (Jaro-Winkler).
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// A word in quotes, as every shell but fish reads it back. What is no UTF-8 is not kept.
pub fn shell_quoted(word: &[u8]) -> String {
    format!("'{}'", String::from_utf8_lossy(word).replace('\'', r"'\''"))
}

/// A word that a script for another program may hold.
///
/// # Errors
/// A sentence: it is no text, or a line of it could be taken for a line of the script.
pub fn script_word(word: &(impl AsRef<OsStr> + ?Sized)) -> Result<&str, String> {
    let word = word.as_ref();
    let refused = |why| {
        let shown = one_line(&word.to_string_lossy());
        Err(format!("`{shown}` {why}: no job is made of it"))
    };
    match word.to_str() {
        None => refused("is not text in UTF-8"),
        Some(text) if text.contains(char::is_control) => refused("holds a control character"),
        Some(text) => Ok(text),
    }
}

/// Words as one line, of which a shell reads the same words again.
pub fn shell_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// As it is where it means itself to every shell; else in quotes, those of `$'…'` where a character cannot be seen.
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
        // Octal digits are never more than three, so that a digit may follow.
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
    }
}
