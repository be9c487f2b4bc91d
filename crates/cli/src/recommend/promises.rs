//! What the programs of each mechanism promise: the table in `promises.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::question::Must;

/// What one word of `--must` asks for, and how a mechanism is called that does not do it.
#[derive(Debug, Deserialize)]
pub(super) struct MustText {
    pub(super) asks: String,
    pub(super) lacks: String,
}

/// How several senders reach one receiver, or several receivers compete for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sharing {
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
pub(super) struct Promises {
    pub(super) name: String,
    keeps: Vec<String>,
    /// Largest message that stays whole where several ends share the link, or an end dies.
    pub(super) atomic_bytes: Option<u64>,
    pub(super) many_senders: Sharing,
    pub(super) many_receivers: Sharing,
    /// Which messages arrive whole.
    pub(super) whole: String,
    pub(super) order: String,
    /// Whether receivers that compete get equal shares.
    pub(super) fair: String,
    /// What happens if messages are not read.
    pub(super) full: String,
    /// What a slow receiver does to the others that compete.
    pub(super) slow: String,
}

impl Promises {
    /// Those of a mechanism; `None` if there is no pair of programs with it.
    pub(super) fn of(mechanism: &str) -> Option<&'static Self> {
        TABLE.mechanism.iter().find(|one| one.name == mechanism)
    }

    pub(super) fn keeps(&self, must: Must) -> bool {
        self.keeps.iter().any(|word| word == must.word())
    }
}

impl Must {
    pub(super) fn text(self) -> &'static MustText {
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
