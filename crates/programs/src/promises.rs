//! What the programs of each mechanism promise: the table in `promises.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::question::Must;

/// What one word of `--must` asks for, and how a mechanism is called that does not do it.
#[derive(Debug, Deserialize)]
pub struct MustText {
    pub asks: String,
    pub lacks: String,
}

/// How several senders reach one receiver, or several receivers compete for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// All use one queue.
    Shared,
    /// Each sender has a connection.
    Own,
    /// Each receiver has a link of its own, and the sender uses them in turn.
    Dealt,
    /// Not possible.
    None,
}

/// What the two programs promise with a mechanism between them.
#[derive(Debug, Deserialize)]
pub struct Promises {
    pub name: String,
    keeps: Vec<String>,
    /// Largest message that stays whole where several ends share the link, or an end dies.
    pub atomic_bytes: Option<u64>,
    pub many_senders: Sharing,
    pub many_receivers: Sharing,
    /// Which messages arrive whole.
    pub whole: String,
    pub order: String,
    /// Whether receivers that compete get equal shares.
    pub fair: String,
    /// What happens if messages are not read.
    pub full: String,
    /// What a slow receiver does to the others that compete.
    pub slow: String,
}

impl Promises {
    /// Those of a mechanism; `None` if there is no pair of programs with it.
    pub fn of(mechanism: &str) -> Option<&'static Self> {
        TABLE.mechanism.iter().find(|one| one.name == mechanism)
    }

    pub(crate) fn keeps(&self, must: Must) -> bool {
        self.keeps.iter().any(|word| word == must.word())
    }
}

impl Must {
    pub fn text(self) -> &'static MustText {
        &TABLE.must[self.word()]
    }
}

#[derive(Debug, Deserialize)]
struct Table {
    must: BTreeMap<String, MustText>,
    mechanism: Vec<Promises>,
}

static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("promises.toml")).expect("the table of this program"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_must_is_explained_and_each_promise_is_one_of_them() {
        let words: Vec<&str> = Must::ALL.iter().map(|must| must.word()).collect();
        let texts: Vec<&str> = TABLE.must.keys().map(String::as_str).collect();
        assert_eq!(words.len(), texts.len());
        assert!(words.iter().all(|word| texts.contains(word)), "{texts:?}");
        for promises in &TABLE.mechanism {
            assert!(promises.keeps.iter().all(|word| words.contains(&word.as_str())), "{promises:?}");
        }
    }
}
