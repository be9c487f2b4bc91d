//! What all studies have: a name, authors, a question.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// Which study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Pipes in Linux and Windows, 2001.
    Bradford,
    /// Pipes made of files and sockets, 2023.
    Comp517,
    /// One pipe, five languages, 2026.
    KernelPipe,
    /// Six ways between a generator and a sink, 2002.
    Stover,
}

impl Name {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Bradford, Self::Comp517, Self::KernelPipe, Self::Stover];

    /// The word that stands for it on the command line and in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bradford => "bradford",
            Self::Comp517 => "comp517",
            Self::KernelPipe => "kernel-pipe",
            Self::Stover => "stover",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Name {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|name| name.word() == word).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|name| name.word()).collect();
            format!("unknown study `{word}`: choose {}", known.join(", "))
        })
    }
}

/// What a study is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The word for it.
    pub name: String,
    /// Its title, as published.
    pub title: String,
    /// Who wrote it.
    pub authors: String,
    /// Where and when.
    pub published: String,
    /// The year.
    pub year: u32,
    /// What it asked.
    pub question: String,
}

/// What a study is, by its name.
pub fn head(name: Name) -> Head {
    match name {
        Name::Bradford => crate::bradford::bradford().study,
        Name::Comp517 => crate::comp517::comp517().study,
        Name::KernelPipe => crate::kernel_pipe::kernel_pipe().study,
        Name::Stover => crate::stover::stover().study,
    }
}

/// Reads a file of the program itself; a test reads them all.
pub(crate) fn embedded<T: serde::de::DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| panic!("study.toml: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_reads_and_bears_its_name() {
        for name in Name::ALL {
            assert_eq!(head(name).name, name.word());
            assert_eq!(name.word().parse(), Ok(name));
        }
        let error = "bradfort".parse::<Name>().expect_err("no such study");
        assert!(error.contains("bradford, comp517, kernel-pipe, stover"), "{error}");
    }
}
