//! The locale of a running program (locale(7)): whether it compares and reads letters, or bytes.

use std::fs::File;
use std::io::Read;

/// What a program takes a text for, in one category of its locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Bytes: the locale C or POSIX.
    Bytes,
    /// Characters of UTF-8 in the order of their numbers: C.UTF-8.
    Characters,
    /// The letters of a language, in its order.
    Language,
}

/// The locale of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locale {
    /// How it compares texts (`LC_COLLATE`).
    pub collate: Letters,
    /// How it divides texts into characters (`LC_CTYPE`).
    pub ctype: Letters,
}

/// Where glibc keeps most locales (locale-archive: their names are in its first part).
const ARCHIVE: &str = "/usr/lib/locale/locale-archive";
const ARCHIVE_NAMES_BYTES: u64 = 1 << 20;

impl Locale {
    /// Reads the locale of a process that has executed its program. `None` if this user may not read that, if the program has only begun, or if it
    /// has no file of a locale open.
    pub fn of(pid: i32) -> Option<Self> {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        if environment.is_empty() {
            return None;
        }
        let names = names(&environment);
        let [collate, ctype] = names.map(letters);
        let asked = Self { collate, ctype };
        let mut not_bytes = names.into_iter().filter(|name| letters(name) != Letters::Bytes).peekable();
        if not_bytes.peek().is_none() {
            return Some(asked);
        }
        let maps = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
        let maps = String::from_utf8_lossy(&maps);
        if maps.contains("/LC_C") {
            return Some(asked);
        }
        // A locale that is not installed leaves a program in C (setlocale(3)).
        let is_there = maps.contains(ARCHIVE).then(|| not_bytes.all(is_in_archive))?;
        Some(if is_there { asked } else { Self { collate: Letters::Bytes, ctype: Letters::Bytes } })
    }
}

/// The names of the locales for `LC_COLLATE` and `LC_CTYPE` in an environment; the first variable that is set decides.
fn names(environment: &[u8]) -> [&str; 2] {
    let value = |name: &str| {
        let variables = environment.split(|byte| *byte == 0).filter_map(|one| str::from_utf8(one).ok());
        variables.filter_map(|one| one.strip_prefix(name)?.strip_prefix('=')).find(|value| !value.is_empty())
    };
    ["LC_COLLATE", "LC_CTYPE"]
        .map(|category| ["LC_ALL", category, "LANG"].into_iter().find_map(value).unwrap_or("C"))
}

fn letters(name: &str) -> Letters {
    match name {
        "C" | "POSIX" => Letters::Bytes,
        name if name.starts_with("C.") => Letters::Characters,
        _ => Letters::Language,
    }
}

/// Whether the archive has a locale, whose name there has a codeset of small letters and digits.
fn is_in_archive(name: &str) -> bool {
    let (language, codeset) = name.split_once('.').unwrap_or((name, ""));
    let codeset: String =
        codeset.chars().filter(|letter| *letter != '-').flat_map(char::to_lowercase).collect();
    let wanted = if codeset.is_empty() { format!("{language}\0") } else { format!("{language}.{codeset}\0") };
    let mut names = Vec::new();
    let read = File::open(ARCHIVE).and_then(|file| file.take(ARCHIVE_NAMES_BYTES).read_to_end(&mut names));
    read.is_ok() && names.windows(wanted.len()).any(|name| name == wanted.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        use Letters::{Bytes, Characters, Language};
        for (environment, expected) in [
            ("PATH=/bin\0", [Bytes, Bytes]),
            ("LANG=en_US.UTF-8\0", [Language, Language]),
            ("LC_ALL=\0LANG=C.UTF-8\0", [Characters, Characters]),
            ("LANG=de_DE.UTF-8\0LC_COLLATE=C\0", [Bytes, Language]),
            ("LC_COLLATE=C\0LC_CTYPE=C\0LC_ALL=POSIX\0LANG=de_DE\0", [Bytes, Bytes]),
            ("LC_ALL=tr_TR.UTF-8\0LC_COLLATE=C\0", [Language, Language]),
        ] {
            assert_eq!(names(environment.as_bytes()).map(letters), expected, "{environment}");
        }
    }

    /// Expected: the locale of the program itself, which `export` in a shell has changed.
    /// Happened: that of hosepipe, and one that is not installed.
    #[test]
    fn it_is_the_one_that_the_process_uses() {
        for name in ["C", "xx_XX.no-such-locale"] {
            let mut command = Command::new("cat");
            command.env_clear().env("LC_ALL", name).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut cat = command.spawn().expect("cat");
            // What comes back shows that the program has begun.
            cat.stdin.as_mut().expect("its input").write_all(b"x").expect("written");
            cat.stdout.as_mut().expect("its output").read_exact(&mut [0]).expect("read");
            let found = Locale::of(cat.id() as i32).map(|locale| locale.collate);
            drop(cat.stdin.take());
            cat.wait().expect("reaped");
            // Without an archive of locales it is not known why there is none.
            assert!(found == Some(Letters::Bytes) || (found.is_none() && name != "C"), "{name}: {found:?}");
        }
    }
}
