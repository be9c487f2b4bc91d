//! `comp517`: four pipelines over pipes made of files and sockets, and what they ran on.

pub(crate) mod run;
pub(crate) mod view;

use std::io::{self, Write};
use std::path::Path;

use serde::Deserialize;

use crate::registry::{Head, embedded};

/// What the file of lines is called, in the place where the material lies.
pub const FILE_NAME: &str = "file.txt";
/// What the folder of files is called.
pub const FOLDER_NAME: &str = "files";

/// The study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comp517 {
    /// What it is.
    pub study: Head,
    /// What its pipelines ran on.
    pub material: Material,
    trials: Trials,
    /// Its pipelines.
    #[serde(rename = "pipeline")]
    pub pipelines: Vec<Pipeline>,
    /// What stood between their stages, and the figures.
    #[serde(rename = "link")]
    pub links: Vec<Link>,
    choice: Choice,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trials {
    count: u32,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    warmup: u32,
    minutes: f64,
}

/// What pipelines run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Material {
    /// Lines of the file.
    pub lines: u32,
    /// Files in the folder.
    pub files: u32,
}

/// A pipeline of the study.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Its text; `{file}` and `{folder}` stand for what it runs on.
    pub text: String,
}

/// What a pipeline runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The processes there are.
    Nothing,
    /// A file of many lines, some of them twice.
    Lines,
    /// A folder of many files.
    Files,
}

/// What stood between the stages.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The study's name for it; ours where the study did not have it.
    pub name: String,
    /// The link of ours that is it.
    pub via: String,
    /// Mean and standard deviation in seconds, and stored 10^6 bytes, pipeline by pipeline; empty where the study did
    /// not have it.
    #[serde(default)]
    pub published: Vec<[f64; 3]>,
}

impl Comp517 {
    /// Timed runs of each pipeline over each link.
    pub fn trials(&self) -> u32 {
        self.trials.count
    }

    /// Untimed runs of each before them.
    pub fn warmup(&self) -> u32 {
        self.choice.warmup
    }

    /// No round begins after so many minutes.
    pub fn minutes(&self) -> f64 {
        self.choice.minutes
    }
}

impl Pipeline {
    /// What it runs on.
    pub fn needs(&self) -> Needs {
        if self.text.contains("{file}") {
            Needs::Lines
        } else if self.text.contains("{folder}") {
            Needs::Files
        } else {
            Needs::Nothing
        }
    }

    /// The text, to be run on what lies in `place`.
    pub fn text_at(&self, place: &Path) -> String {
        let word = |name: &str| format!("'{}'", place.join(name).to_string_lossy().replace('\'', r"'\''"));
        self.text.replace("{file}", &word(FILE_NAME)).replace("{folder}", &word(FOLDER_NAME))
    }

    /// As the study shows it.
    pub fn shown(&self) -> String {
        self.text.replace("{file}", FILE_NAME).replace(" {folder}", "")
    }
}

impl Material {
    /// Writes the file's lines, of 19 bytes; every fourth is the one before it again. `uniq -u` leaves half of them, so
    /// that the three pipes carry 2.5 times the file: the 11 MB that the study's pipes stored.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn write_lines(&self, out: &mut impl Write) -> io::Result<()> {
        for line in 0..self.lines {
            let value = scattered(line - u32::from(line % 4 == 3));
            writeln!(out, "{value:010} {:07x}", value >> 4)?;
        }
        Ok(())
    }

    /// The names of the files, which are empty: some 15 bytes with the line's end, for the 1.8 MB that the study's pipes
    /// stored of them; one in a hundred is a name that its pipeline looks for.
    pub fn file_names(&self) -> impl Iterator<Item = String> {
        (0..self.files).map(|number| match number % 100 {
            0 => format!("ourpipe{number:07}"),
            _ => format!("file{number:06}.txt"),
        })
    }
}

/// A number whose neighbours are far away: every 32-bit number once (the multiplier is odd).
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1)
}

/// The study.
pub fn comp517() -> Comp517 {
    embedded(include_str!("study.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn pipes_carry_as_much_of_the_lines_as_the_study_s_did() {
        let mut text = Vec::new();
        let study = comp517();
        study.material.write_lines(&mut text).expect("written");
        let text = String::from_utf8(text).expect("text");
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        text.lines().for_each(|line| *seen.entry(line).or_default() += 1);
        assert_eq!(text.lines().count(), 234_570);
        let unique = seen.iter().filter(|(_, count)| **count == 1);
        let carried = 2 * text.len() + unique.map(|(line, _)| line.len() + 1).sum::<usize>();
        assert_eq!((carried as f64 / 1e6).round(), study.links[2].published[1][2]);
    }

    #[test]
    fn pipes_carry_as_much_of_the_names_as_the_study_s_did() {
        let study = comp517();
        let names: BTreeSet<String> = study.material.file_names().collect();
        assert_eq!(names.len(), 121_501);
        assert_eq!(names.iter().filter(|name| name.contains("ourpipe")).count(), 1216);
        let carried: usize = names.iter().map(|name| name.len() + 1).sum();
        assert_eq!((carried as f64 / 1e5).round() / 10.0, study.links[2].published[2][2]);
    }

    #[test]
    fn five_links_have_a_figure_for_each_pipeline() {
        let study = comp517();
        assert_eq!((study.material.lines, study.material.files, study.trials()), (234_570, 121_501, 8));
        let published = study.links.iter().filter(|link| !link.published.is_empty());
        assert_eq!(published.clone().count(), 5);
        assert!(published.clone().all(|link| link.published.len() == study.pipelines.len()));
        let needs: Vec<Needs> = study.pipelines.iter().map(Pipeline::needs).collect();
        assert_eq!(needs, [Needs::Nothing, Needs::Lines, Needs::Files, Needs::Files]);
        let text = study.pipelines[1].text_at(Path::new("/tmp/it's"));
        assert_eq!(text, r"cat '/tmp/it'\''s/file.txt' | sort | uniq -u | wc -l");
        assert_eq!(study.pipelines[3].shown(), "ls -l | grep ourpipe | wc");
    }
}
