//! `~/.config/hosepipe/config.toml`: how a prompt begins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pipeline::link::LinkSpec;
use serde::Deserialize;

/// What the file may say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What stands between stages.
    pub link: String,
    /// Whether each pipeline's time and bytes are shown.
    pub stats: bool,
    /// The prompt; `{dir}`, `{link}` and `{status}` stand for the folder, the link, and a status that is not 0.
    pub prompt: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { link: "pipe".to_owned(), stats: true, prompt: "{dir} ({link}){status}> ".to_owned() }
    }
}

impl Config {
    /// Reads the user's file. What is wrong with it comes back as a sentence, and the defaults stand.
    pub fn read() -> (Self, Option<String>) {
        let Some(path) = config_file() else { return (Self::default(), None) };
        match read_text(&path) {
            Ok(text) => match Self::parse(&text) {
                Ok(config) => (config, None),
                Err(problem) => {
                    (Self::default(), Some(format!("{}: {problem}; the defaults are used", path.display())))
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (Self::default(), None),
            Err(error) => {
                let problem = model::describe_errno(&error);
                (Self::default(), Some(format!("{}: {problem}; the defaults are used", path.display())))
            }
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            line.map_or(message.clone(), |line| format!("line {line}: {message}"))
        })?;
        LinkSpec::parse(&config.link).map_err(|problem| format!("link: {problem}"))?;
        Ok(config)
    }
}

/// Reads a text that is a file: a FIFO would be waited for, a device may never end.
fn read_text(path: &Path) -> std::io::Result<String> {
    if path.metadata()?.is_file() {
        return std::fs::read_to_string(path);
    }
    Err(std::io::Error::other("this is no file"))
}

/// Where the file lies (XDG Base Directory Specification).
fn config_file() -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config")?.join("hosepipe/config.toml"))
}

/// Where earlier lines are kept.
pub(crate) fn history_file() -> Option<PathBuf> {
    Some(base("XDG_DATA_HOME", ".local/share")?.join("hosepipe/history"))
}

fn base(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value: &OsString| Path::new(value).is_absolute());
    set(variable).map(PathBuf::from).or_else(|| Some(Path::new(&set("HOME")?).join(below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_say_little() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
        let config = Config::parse("link = \"tmpfile\"\nstats = false\n").expect("right");
        assert_eq!((config.link.as_str(), config.stats), ("tmpfile", false));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let problem = |text: &str| Config::parse(text).expect_err("wrong");
        assert!(problem("stats = true\nlinc = \"pipe\"\n").starts_with("line 2: unknown field `linc`"));
        assert!(problem("stats = 3").starts_with("line 1: invalid type"));
        assert!(problem("stats = ").starts_with("line 1: "));
        assert!(problem("link = \"pip\"").contains("did you mean `pipe`?"));
    }
}
