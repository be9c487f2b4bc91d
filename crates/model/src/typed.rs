//! Words as people type them and as a shell reads them.

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
