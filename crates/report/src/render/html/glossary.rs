//! The glossary of an HTML page: each technical word of the page, explained once. It is a table in `glossary.md`.

const TABLE: &str = include_str!("glossary.md");

/// A word that a page explains.
pub(super) struct Word {
    pub(super) name: &'static str,
    /// The id of its explanation in links.
    pub(super) id: &'static str,
    commands: &'static str,
    phrases: &'static str,
    pub(super) meaning: &'static str,
}

impl Word {
    /// Whether pages of any of these commands explain it.
    pub(super) fn is_of(&self, commands: &[&str]) -> bool {
        self.commands.split(' ').any(|command| commands.contains(&command))
    }

    /// Phrases in captions that become links to its explanation.
    pub(super) fn phrases(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.phrases.split("; ").filter(|phrase| !phrase.is_empty())
    }
}

/// All words, in the order of the page.
pub(super) fn words() -> impl Iterator<Item = Word> {
    TABLE.lines().skip(2).filter_map(|line| {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let [name, id, commands, phrases, meaning] = std::array::from_fn(|_| cells.next());
        Some(Word { name: name?, id: id?, commands: commands?, phrases: phrases?, meaning: meaning? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_word() {
        assert_eq!(words().count(), TABLE.lines().count() - 2);
        for word in words() {
            let texts = [word.name, word.commands, word.meaning];
            assert!(word.id.starts_with("word-") && !texts.contains(&""), "{}", word.id);
        }
        assert_eq!(words().flat_map(|word| word.phrases()).count(), 8);
    }
}
