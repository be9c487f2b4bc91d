//! A mechanism with its options, as typed: `pipe:size=1MiB`, `shm-ring:wait=spin`, `file:sync`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A mechanism's name and its options as typed. The registry has not checked them yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spec {
    /// The mechanism's name, such as `pipe`.
    pub mechanism: String,
    /// Options by name; a bare option such as `sync` has the value `None`.
    pub options: BTreeMap<String, Option<String>>,
}

/// Why a text is not a spec, and the right form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` {1}")]
pub struct SpecError(String, String);

impl Spec {
    /// A mechanism without options.
    pub fn plain(mechanism: &str) -> Self {
        Self { mechanism: mechanism.to_owned(), options: BTreeMap::new() }
    }

    /// Whether a text is a spec that has this value of an option.
    pub fn has_option(text: &str, option: &str, value: &str) -> bool {
        let spec = text.parse::<Self>();
        spec.is_ok_and(|spec| spec.options.get(option).is_some_and(|given| given.as_deref() == Some(value)))
    }
}

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        if name.trim().is_empty() {
            let right = "names no mechanism: write NAME or NAME:option=value,option (see `hosepipe list`)";
            return Err(SpecError(text.to_owned(), right.to_owned()));
        }
        let mut options = BTreeMap::new();
        for item in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) = item.split_once('=').map_or((item, None), |(key, value)| (key, Some(value)));
            let (key, value) = (key.trim(), value.map(|value| value.trim().to_owned()));
            if key.is_empty() {
                let right = "has an empty option: write NAME:option=value,option";
                return Err(SpecError(text.to_owned(), right.to_owned()));
            }
            if options.insert(key.to_owned(), value).is_some() {
                return Err(SpecError(text.to_owned(), format!("gives the option `{key}` twice")));
            }
        }
        Ok(Self { mechanism: name.trim().to_owned(), options })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = |(key, value): (&String, &Option<String>)| match value {
            Some(value) => format!("{key}={value}"),
            None => key.clone(),
        };
        let options: Vec<String> = self.options.iter().map(option).collect();
        let colon = if options.is_empty() { "" } else { ":" };
        f.pad(&format!("{}{colon}{}", self.mechanism, options.join(",")))
    }
}

crate::axes::serde_as_text!(Spec);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn specs_read_and_print() {
        for text in ["pipe", "pipe:size=1MiB", "file:sync", "shm-ring:size=1MiB,wait=spin"] {
            assert_eq!(text.parse::<Spec>().map(|s| s.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn wrong_specs_say_what_is_wrong() {
        for (text, wrong) in [
            ("", "`` names no mechanism"),
            (":size=1", "`:size=1` names no mechanism"),
            ("pipe:", "`pipe:` has an empty option"),
            ("pipe:size=1k,,", "`pipe:size=1k,,` has an empty option"),
            ("pipe:size=1,size=2", "`pipe:size=1,size=2` gives the option `size` twice"),
        ] {
            let error = text.parse::<Spec>().expect_err(text).to_string();
            assert!(error.starts_with(wrong), "{error}");
        }
    }

    proptest! {
        #[test]
        fn printing_is_a_fixed_point(text in "[a-z-]{1,8}(:[a-z]{1,4}(=[a-z0-9]{0,4})?)?") {
            if let Ok(spec) = text.parse::<Spec>() {
                prop_assert_eq!(spec.to_string().parse::<Spec>(), Ok(spec));
            }
        }
    }
}
