//! `~/.config/hosepipe/config.toml`: the settings with which `hosepipe sh` begins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pipeline::link::LinkSpec;
use serde::Deserialize;

const PROMPT_IS_OLD: &str = "`prompt` is no longer used: the prompt is your own shell's";

/// The file's settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The link between stages.
    pub link: String,
    /// Whether the line after a pipeline is shown.
    pub stats: bool,
    /// Shortest pipeline, in seconds, with such a line.
    pub stats_above: f64,
    /// Whether the prompt also shows a link that is a plain pipe.
    pub mark_pipes: bool,
    /// Pipelines by name.
    pub presets: BTreeMap<String, String>,
    /// Only for a note: earlier versions had a prompt of their own.
    prompt: Option<toml::Value>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            link: "pipe".to_owned(),
            stats: true,
            stats_above: 0.5,
            mark_pipes: false,
            presets: BTreeMap::new(),
            prompt: None,
        }
    }
}

impl Config {
    /// Reads the user's file. If it is wrong, returns the defaults and a message.
    pub fn read() -> (Self, Option<String>) {
        let Some(path) = config_file() else { return (Self::default(), None) };
        let text = match process::open_regular(&path).and_then(std::io::read_to_string) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (Self::default(), None),
            read => read.map_err(|error| model::describe_errno(&error)),
        };
        let read = text.and_then(|text| Self::parse(&text));
        let note = match &read {
            Err(problem) => Some(format!("{problem}; the defaults are used")),
            Ok(config) => config.prompt.as_ref().map(|_| PROMPT_IS_OLD.to_owned()),
        };
        (read.unwrap_or_default(), note.map(|note| format!("{}: {note}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            line.map_or(message.clone(), |line| format!("line {line}: {message}"))
        })?;
        LinkSpec::parse(&config.link).map_err(|problem| format!("link: {problem}"))?;
        Duration::try_from_secs_f64(config.stats_above)
            .map_err(|problem| format!("stats_above: {problem}"))?;
        Ok(config)
    }

    /// Shortest pipeline with a line after it.
    pub fn above(&self) -> Duration {
        Duration::try_from_secs_f64(self.stats_above).unwrap_or_default()
    }
}

/// The path of the file (XDG Base Directory Specification).
fn config_file() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).filter(|value: &OsString| Path::new(value).is_absolute());
    let below_home = || Some(Path::new(&absolute("HOME")?).join(".config"));
    let base = absolute("XDG_CONFIG_HOME").map(PathBuf::from).or_else(below_home);
    Some(base?.join("hosepipe/config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_default() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
        let config = Config::parse("link = \"tmpfile\"\nstats = false\n").expect("right");
        assert_eq!((config.link.as_str(), config.stats), ("tmpfile", false));
        let config = Config::parse("stats_above = 2\nprompt = \"> \"\n[presets]\nbig = \"du | sort -n\"\n");
        let config = config.expect("an old key is allowed");
        assert_eq!(config.above(), Duration::from_secs(2));
        assert_eq!(config.presets["big"], "du | sort -n");
    }

    #[test]
    fn an_error_has_its_line() {
        let problem = |text: &str| Config::parse(text).expect_err("wrong");
        assert!(problem("stats = true\nlinc = \"pipe\"\n").starts_with("line 2: unknown field `linc`"));
        assert!(problem("stats = 3").starts_with("line 1: invalid type"));
        assert!(problem("stats = ").starts_with("line 1: "));
        assert!(problem("stats_above = -1").starts_with("stats_above: "));
        assert!(problem("link = \"pip\"").contains("did you mean `pipe`?"));
    }
}
