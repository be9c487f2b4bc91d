//! The languages of the programs, and what they differ in.

use std::fmt;
use std::str::FromStr;

model::words! {
    /// The languages of the templates.
    pub enum CodeLanguage {
        /// For cc(1).
        C = "c",
        /// For rustc, with the standard library only.
        Rust = "rust",
        /// For Python 3, with the standard library only.
        Python = "python",
        /// For `go build`, with the standard library only.
        Go = "go",
        /// For Java 17 and later.
        Java = "java",
    }
}

/// What languages differ in.
pub struct LanguageFacts {
    /// Its name in sentences.
    pub name: &'static str,
    pub(crate) extension: &'static str,
    /// How the lines begin that include headers or modules.
    pub(crate) imports: &'static [&'static str],
    /// Most empty lines between two others.
    pub(crate) blank_max: usize,
    /// Its own cost per call is larger than the differences between mechanisms.
    pub(crate) is_slow: bool,
    /// Whether there are templates for a program of both ends, and for a receiver that waits in poll(2).
    pub has_one_file: bool,
}

/// In the order of [`CodeLanguage`].
const LANGUAGES: [LanguageFacts; 5] = [
    LanguageFacts {
        name: "C",
        extension: "c",
        imports: &["#include "],
        blank_max: 1,
        is_slow: false,
        has_one_file: true,
    },
    LanguageFacts {
        name: "Rust",
        extension: "rs",
        imports: &["use "],
        blank_max: 1,
        is_slow: false,
        has_one_file: true,
    },
    LanguageFacts {
        name: "Python",
        extension: "py",
        imports: &["import ", "from "],
        blank_max: 2,
        is_slow: true,
        has_one_file: true,
    },
    LanguageFacts {
        name: "Go",
        extension: "go",
        imports: &["import "],
        blank_max: 1,
        is_slow: true,
        has_one_file: false,
    },
    LanguageFacts {
        name: "Java",
        extension: "java",
        imports: &["import "],
        blank_max: 1,
        is_slow: true,
        has_one_file: false,
    },
];

impl CodeLanguage {
    pub fn facts(self) -> &'static LanguageFacts {
        &LANGUAGES[self as usize]
    }

    /// The commands that compile the file `stem` with this language's extension, empty for Python, and that run it.
    pub(crate) fn commands(self, stem: &str) -> (Vec<String>, Vec<String>) {
        let source = format!("{stem}.{}", self.facts().extension);
        let (compiler, run) = match self {
            Self::C => (format!("cc -O2 -pthread -o {stem} {source} -lrt"), format!("./{stem}")),
            Self::Rust => (format!("rustc -O --edition 2021 -o {stem} {source}"), format!("./{stem}")),
            Self::Python => (String::new(), format!("python3 {source}")),
            Self::Go => (format!("go build -o {stem} {source}"), format!("./{stem}")),
            Self::Java => (format!("javac {source}"), format!("java {stem}")),
        };
        let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
        (words(compiler), words(run))
    }
}

/// The languages of the program to print, or of the programs of a sender and a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    pub(crate) sender: CodeLanguage,
    /// `None`: the sender's.
    pub(crate) receiver: Option<CodeLanguage>,
}

impl Code {
    pub fn both(self) -> [CodeLanguage; 2] {
        [self.sender, self.receiver.unwrap_or(self.sender)]
    }

    /// "C", "Rust and Python".
    pub fn names(self) -> String {
        match self.both().map(|one| one.facts().name) {
            [one, other] if one == other => one.to_owned(),
            [one, other] => format!("{one} and {other}"),
        }
    }

    /// Whether calls of one of them cost more than mechanisms differ in.
    pub fn is_slow(self) -> bool {
        self.both().iter().any(|one| one.facts().is_slow)
    }
}

impl Default for Code {
    fn default() -> Self {
        Self { sender: CodeLanguage::C, receiver: None }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sender)?;
        self.receiver.map_or(Ok(()), |receiver| write!(f, ",{receiver}"))
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let language = |word: &str| {
            let word = word.trim();
            let known = CodeLanguage::ALL.iter().find(|one| one.word().eq_ignore_ascii_case(word)).copied();
            let names: Vec<&str> = CodeLanguage::ALL.iter().map(|one| one.word()).collect();
            known.ok_or_else(|| format!("`{word}` is no language that --code knows: {}", names.join(", ")))
        };
        match text.split(',').collect::<Vec<_>>()[..] {
            [both] => Ok(Self { sender: language(both)?, receiver: None }),
            [sender, receiver] => Ok(Self { sender: language(sender)?, receiver: Some(language(receiver)?) }),
            _ => {
                Err(format!("`{text}` is neither one language nor a sender's and a receiver's: rust,python"))
            }
        }
    }
}
