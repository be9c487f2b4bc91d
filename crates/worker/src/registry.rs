//! The registry of languages, read from workers.toml.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::describe_errno;
use serde::Deserialize;
use thiserror::Error;

use crate::sources::Sources;

/// The word after `--workers` for all languages with another transport than a pipe.
pub const PEERS: &str = "peers";

/// A registered language. In commands and in the environment `{src}` is the folder of the copied sources, `{out}` the folder of the
/// compiler's output, and `{cache}` a folder that the language keeps between builds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    /// Its name in tables: "C++".
    pub name: String,
    /// Its name on the command line, in lower case.
    pub key: String,
    /// The folder of its sources.
    pub folder: String,
    /// The transport between its ends, if that is not a pipe. Then both ends must be of this language.
    pub transport: Option<String>,
    /// How the receiving end is run.
    #[serde(default)]
    pub receiver: Receiver,
    /// What installs the toolchain: a Debian package, or a whole command such as `pip install ziglang`.
    pub package: String,
    /// A command that prints the toolchain's version.
    pub probe: Vec<String>,
    /// A command that builds its program; empty if nothing has to be built.
    #[serde(default)]
    pub build: Vec<String>,
    /// Variables that are set for its probe, its build and its program.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
}

/// How a program's receiving end is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Receiver {
    /// By the command `CHILD`, which the sender starts.
    #[default]
    Child,
    /// In a thread of the sender, which gets no `CHILD`.
    Thread,
    /// In a process that the sender makes in another way (fork, mpirun); the sender gets no `CHILD`.
    Own,
}

/// A variant of a language's program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// `idiomatic` or `tuned`.
    pub name: String,
    /// The program's command up to the role.
    pub run: Vec<String>,
}

/// Why the registry cannot be read: where it is, and the problem.
#[derive(Debug, Error)]
#[error("cannot read the registry of {0}: {1}")]
pub struct RegistryError(String, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "language")]
    languages: Vec<Language>,
}

/// All languages, in the order of workers.toml.
#[derive(Debug, Clone)]
pub struct Registry {
    pub(crate) sources: Sources,
    languages: Vec<Language>,
}

impl Registry {
    /// Reads the registry in the folder of the environment variable [`crate::WORKERS_VARIABLE`]; without it, the embedded one.
    ///
    /// # Errors
    /// The folder cannot be read, or its workers.toml is wrong.
    pub fn open() -> Result<Self, RegistryError> {
        Self::read(Sources::from_environment())
    }

    /// Reads the registry of a folder.
    ///
    /// # Errors
    /// As [`Registry::open`].
    pub fn open_folder(folder: &Path) -> Result<Self, RegistryError> {
        Self::read(Sources::Folder(folder.to_owned()))
    }

    pub(crate) fn read(sources: Sources) -> Result<Self, RegistryError> {
        let wrong = |why: String| RegistryError(sources.name(), why);
        let text = sources
            .registry_text()
            .map_err(|error| wrong(format!("workers.toml: {}", describe_errno(&error))))?;
        let languages = parse(&text).map_err(wrong)?;
        Ok(Self { sources, languages })
    }

    pub fn languages(&self) -> &[Language] {
        &self.languages
    }
}

/// Reads workers.toml and checks its entries.
fn parse(text: &str) -> Result<Vec<Language>, String> {
    let languages = model::from_toml::<File>(text)?.languages;
    let mut keys = BTreeSet::new();
    for language in &languages {
        let key = &language.key;
        if !keys.insert(key.clone()) {
            return Err(format!("two languages have the key `{key}`"));
        }
        let has_meaning = ["", "all", PEERS].contains(&key.as_str());
        if has_meaning || key.contains([',', ':']) || *key != key.to_lowercase() {
            let rule = "a key is in lower case, without `,` and `:`, and is not a word of --workers";
            return Err(format!("`{key}` cannot be a key: {rule}"));
        }
        if language.receiver != Receiver::Child && language.transport.is_none() {
            return Err(format!("`{key}` starts no CHILD: it needs a transport"));
        }
        if language.probe.is_empty() || language.variants.is_empty() {
            return Err(format!("`{key}` needs a probe and a variant"));
        }
        let mut names = BTreeSet::new();
        for variant in &language.variants {
            if variant.run.is_empty() || !names.insert(&variant.name) {
                return Err(format!("`{key}:{}` has no command, or is there twice", variant.name));
            }
        }
    }
    Ok(languages)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A registry of three languages that are never built.
    pub(crate) const THREE: &str = r#"
        [[language]]
        name = "C++"
        key = "cpp"
        folder = "cpp"
        package = "g++"
        probe = ["c++", "--version"]
        build = ["c++", "{src}/worker.cpp"]
        [[language.variant]]
        name = "idiomatic"
        run = ["{out}/worker"]
        [[language.variant]]
        name = "tuned"
        run = ["{out}/worker", "tuned"]
        [[language]]
        name = "Go"
        key = "go"
        folder = "go"
        package = "golang"
        probe = ["go", "version"]
        environment = { GOCACHE = "{cache}" }
        [[language.variant]]
        name = "idiomatic"
        run = ["{out}/worker"]
        [[language]]
        name = "Shell"
        key = "shell"
        folder = "shell"
        package = "dash"
        probe = ["sh", "-c", "true"]
        [[language.variant]]
        name = "idiomatic"
        run = ["sh", "{src}/worker.sh"]
    "#;

    impl Registry {
        /// A folder of sources without a registered language.
        pub(crate) fn of_folder(folder: &Path) -> Self {
            Self { sources: Sources::Folder(folder.to_owned()), languages: Vec::new() }
        }

        pub(crate) fn of_text(text: &str) -> Self {
            Self { sources: Sources::Embedded, languages: parse(text).expect("a good registry") }
        }
    }

    #[test]
    fn a_registry_reads() {
        let registry = Registry::of_text(THREE);
        assert_eq!(registry.languages().len(), 3);
        assert_eq!(registry.languages()[1].environment["GOCACHE"], "{cache}");
        assert!(registry.languages()[1].build.is_empty());
    }

    #[test]
    fn wrong_registries_say_what_is_wrong() {
        let wrong = |from: &str, to: &str| parse(&THREE.replace(from, to)).expect_err("wrong");
        assert!(wrong("key = \"go\"", "key = \"cpp\"").contains("two languages"));
        assert!(wrong("key = \"go\"", "key = \"all\"").contains("cannot be a key"));
        assert!(wrong("key = \"go\"", "key = \"peers\"").contains("cannot be a key"));
        assert!(wrong("key = \"go\"", "key = \"go\"\nreceiver = \"thread\"").contains("needs a transport"));
        assert!(wrong("key = \"go\"", "key = \"Go\"").contains("cannot be a key"));
        assert!(wrong("\"tuned\"\n", "\"idiomatic\"\n").contains("twice"));
        assert!(wrong("package = \"golang\"", "packet = \"golang\"").contains("packet"));
        assert!(wrong("[\"go\", \"version\"]", "[]").contains("probe"));
    }
}
