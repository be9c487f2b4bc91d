//! Parses the argument of `--workers`: a list of languages and variants.

use model::nearest;
use thiserror::Error;

use crate::registry::{Language, PEERS, Registry, Variant};

/// A language and one of its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LanguageVariant<'a> {
    pub language: &'a Language,
    pub variant: &'a Variant,
}

/// Why a text selects no worker.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SelectError(String);

impl Registry {
    /// The variants that a text such as `all` or `c,java:tuned,go` selects, in the order typed. A language without a variant
    /// means all of its variants; a variant that is typed twice counts once.
    ///
    /// # Errors
    /// An unknown word; the message names the most similar known one.
    pub fn select(&self, text: &str) -> Result<Vec<LanguageVariant<'_>>, SelectError> {
        let choices: Result<Vec<_>, _> = text.split(',').map(|word| self.choices_of(word.trim())).collect();
        Ok(without_repetitions(choices?.concat()))
    }

    /// The languages of the variants that a text selects.
    ///
    /// # Errors
    /// As [`Registry::select`].
    pub fn select_languages(&self, text: &str) -> Result<Vec<&Language>, SelectError> {
        Ok(without_repetitions(self.select(text)?.into_iter().map(|choice| choice.language)))
    }

    fn choices_of(&self, word: &str) -> Result<Vec<LanguageVariant<'_>>, SelectError> {
        let typed = word.to_lowercase();
        let (key, variant) = typed.split_once(':').map_or((&*typed, None), |(key, name)| (key, Some(name)));
        let is_meant = |language: &&Language| match key {
            // `all` does not include languages whose programs use another transport than a pipe.
            "all" => language.transport.is_none(),
            PEERS => language.transport.is_some(),
            key => [&*language.key, &language.folder, &language.name.to_lowercase()].contains(&key),
        };
        let is_wanted = |choice: &LanguageVariant<'_>| variant.is_none_or(|name| choice.variant.name == name);
        let languages = self.languages().iter().filter(is_meant);
        let chosen: Vec<LanguageVariant<'_>> =
            languages.flat_map(Language::choices).filter(is_wanted).collect();
        if chosen.is_empty() { Err(self.unknown(word)) } else { Ok(chosen) }
    }

    fn unknown(&self, word: &str) -> SelectError {
        let typed = word.to_lowercase();
        let keys = || self.languages().iter().map(|language| language.key.as_str());
        let (key, _) = typed.split_once(':').unwrap_or((&typed, ""));
        if let Some(language) = self.languages().iter().find(|language| language.key == key) {
            let ways: Vec<String> =
                language.variants.iter().map(|variant| format!("{key}:{}", variant.name)).collect();
            return SelectError(format!("no worker `{word}`: {} has {}", language.name, ways.join(" and ")));
        }
        let guess = nearest(key, keys()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let known = keys().collect::<Vec<_>>().join(", ");
        SelectError(format!(
            "no worker `{word}`: {guess}There are: all, peers, {known}; each may be followed by :VARIANT"
        ))
    }
}

/// The items without repetitions, in the order of their first occurrence.
pub(crate) fn without_repetitions<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

impl Language {
    /// Every variant of this language.
    pub fn choices(&self) -> impl Iterator<Item = LanguageVariant<'_>> {
        self.variants.iter().map(|variant| LanguageVariant { language: self, variant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::tests::THREE;

    fn selected(text: &str) -> Result<String, String> {
        let registry = Registry::of_text(THREE);
        let choices = registry.select(text).map_err(|error| error.to_string())?;
        let names = choices.iter().map(|choice| format!("{}:{}", choice.language.key, choice.variant.name));
        Ok(names.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn words_select() {
        let all = "cpp:idiomatic cpp:tuned go:idiomatic shell:idiomatic";
        assert_eq!(selected("all").as_deref(), Ok(all));
        assert_eq!(selected("go, cpp:tuned").as_deref(), Ok("go:idiomatic cpp:tuned"));
        assert_eq!(selected("C++,cpp:tuned").as_deref(), Ok("cpp:idiomatic cpp:tuned"));
        assert!(selected("peers").is_err(), "none of these three is one");
        assert_eq!(selected("all:tuned").as_deref(), Ok("cpp:tuned"));
    }

    #[test]
    fn the_message_of_a_wrong_word_lists_the_right_ones() {
        let shown = "no worker `shel`: did you mean `shell`? There are: all, peers, cpp, go, shell; each may be followed by :VARIANT";
        assert_eq!(selected("go,shel").unwrap_err(), shown);
        assert_eq!(
            selected("cpp:fast").unwrap_err(),
            "no worker `cpp:fast`: C++ has cpp:idiomatic and cpp:tuned"
        );
        assert!(selected("").is_err());
        assert!(selected("all:fast").is_err());
    }
}
