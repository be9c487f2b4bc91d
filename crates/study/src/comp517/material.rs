//! The study's pipelines, which the prompt of `hosepipe sh` offers too, and the files that they read.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Deserialize;

use super::{Comp517, STUDY};
use crate::Scale;

/// The name of the file of lines.
const FILE_NAME: &str = "file.txt";
/// The name of the folder of empty files.
const FOLDER_NAME: &str = "files";

/// A pipeline of the study.
#[derive(Debug, Clone)]
pub struct Preset {
    /// `{file}` and `{folder}` are replaced by the paths of its input.
    pub(super) text: String,
    /// The size of its input.
    pub material: Material,
}

/// The size of the pipelines' input.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Material {
    /// Lines of the file.
    pub lines: u32,
    /// Files in the folder.
    pub files: u32,
}

/// The study's pipelines, with input of the study's size.
pub fn presets() -> Vec<Preset> {
    let material = STUDY.parameters::<Comp517>().material;
    let pipelines = STUDY.parts().into_iter().filter_map(|part| part.pipeline);
    pipelines.map(|text| Preset { text, material }).collect()
}

impl Preset {
    fn needs_file(&self) -> bool {
        self.text.contains("{file}")
    }

    fn needs_folder(&self) -> bool {
        self.text.contains("{folder}")
    }

    /// Whether it has an input of its own.
    pub(super) fn has_input(&self) -> bool {
        self.needs_file() || self.needs_folder()
    }

    /// The text with the paths of the input in `folder`.
    pub fn text_at(&self, folder: &Path) -> String {
        let names = [("file", FILE_NAME), ("folder", FOLDER_NAME)];
        let path = |place: &str| Some(quoted(&folder.join(names.iter().find(|(name, _)| *name == place)?.1)));
        model::filled(&self.text, path)
    }

    /// The text as the study shows it.
    pub fn shown(&self) -> String {
        self.text.replace("{file}", FILE_NAME).replace(" {folder}", "")
    }

    /// A description of its input.
    pub fn runs_on(&self) -> String {
        if self.needs_file() {
            format!("a file of {} lines", self.material.lines)
        } else if self.needs_folder() {
            format!("a folder of {} empty files", self.material.files)
        } else {
            "the running processes".to_owned()
        }
    }

    /// Creates its input in `folder`, unless it exists. Calls `continues` repeatedly; once that returns false, no more empty files are created.
    ///
    /// # Errors
    /// ENOSPC and other errors of open(2), write(2) and mkdir(2).
    pub fn make(&self, folder: &Path, continues: &mut dyn FnMut() -> bool) -> io::Result<()> {
        let (file, folder) = (folder.join(FILE_NAME), folder.join(FOLDER_NAME));
        if self.needs_file() && !file.exists() {
            let mut file = BufWriter::new(File::create(file)?);
            continues();
            self.material.write_lines(&mut file)?;
            file.flush()?;
        }
        if self.needs_folder() && !folder.exists() {
            fs::create_dir(&folder)?;
            for (number, name) in self.material.file_names().enumerate() {
                if number % 4096 == 0 && !continues() {
                    break;
                }
                File::create(folder.join(name))?;
            }
        }
        Ok(())
    }
}

/// A path, quoted for a shell.
pub(crate) fn quoted(path: &Path) -> String {
    model::shell_quoted(path.as_os_str().as_encoded_bytes())
}

impl Material {
    /// The least input.
    pub(super) const LEAST: Self = Self { lines: 1, files: 1 };

    /// The size at a scale.
    pub(super) fn scaled(self, scale: Scale) -> Self {
        let amount = |full: u32| u32::try_from(scale.amount(u64::from(full))).unwrap_or(u32::MAX);
        Self { lines: amount(self.lines), files: amount(self.files) }
    }

    /// Writes the file's lines, of 19 bytes each; every fourth line repeats the one before it. `uniq -u` leaves half of them, so
    /// that the three pipes carry 2.5 times the file: the 11 MB that the study's pipes stored.
    fn write_lines(self, out: &mut impl Write) -> io::Result<()> {
        for line in 0..self.lines {
            let value = scattered(line - u32::from(line % 4 == 3));
            writeln!(out, "{value:010} {:07x}", value >> 4)?;
        }
        Ok(())
    }

    /// The names of the empty files: about 15 bytes with the line feed, which gives the 1.8 MB that the study's pipes stored. One in a
    /// hundred is a name for which the pipeline searches.
    fn file_names(self) -> impl Iterator<Item = String> {
        (0..self.files).map(|number| match number % 100 {
            0 => format!("ourpipe{number:07}"),
            _ => format!("file{number:06}.txt"),
        })
    }
}

/// Spreads consecutive numbers: a permutation of all 32-bit numbers, because the multiplier is odd.
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn pipes_carry_as_much_of_the_lines_as_the_study_s_did() {
        let mut text = Vec::new();
        let study: Comp517 = STUDY.parameters();
        study.material.write_lines(&mut text).expect("written");
        let text = String::from_utf8(text).expect("text");
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        text.lines().for_each(|line| *seen.entry(line).or_default() += 1);
        assert_eq!(text.lines().count(), 234_570);
        let unique = seen.iter().filter(|(_, count)| **count == 1);
        let carried = 2 * text.len() + unique.map(|(line, _)| line.len() + 1).sum::<usize>();
        assert_eq!((carried as f64 / 1e6).round(), study.links[2].published[1].stored_mb);
    }

    #[test]
    fn pipes_carry_as_much_of_the_names_as_the_study_s_did() {
        let study: Comp517 = STUDY.parameters();
        let names: BTreeSet<String> = study.material.file_names().collect();
        assert_eq!(names.len(), 121_501);
        assert_eq!(names.iter().filter(|name| name.contains("ourpipe")).count(), 1216);
        let carried: usize = names.iter().map(|name| name.len() + 1).sum();
        assert_eq!((carried as f64 / 1e5).round() / 10.0, study.links[2].published[2].stored_mb);
    }

    #[test]
    fn five_links_have_a_figure_for_each_pipeline() {
        let study: Comp517 = STUDY.parameters();
        assert_eq!((study.material.lines, study.material.files), (234_570, 121_501));
        let published = study.links.iter().filter(|link| !link.published.is_empty());
        assert_eq!(published.clone().count(), 5);
        assert!(published.clone().all(|link| link.published.len() == presets().len()));
        let presets = presets();
        let needs: Vec<_> = presets.iter().map(|one| (one.needs_file(), one.needs_folder())).collect();
        assert_eq!(needs, [(false, false), (true, false), (false, true), (false, true)]);
        let text = presets[1].text_at(Path::new("/tmp/it's"));
        assert_eq!(text, r"cat '/tmp/it'\''s/file.txt' | sort | uniq -u | wc -l");
        assert_eq!(presets[3].shown(), "ls -l | grep ourpipe | wc");
    }

    #[test]
    fn the_input_of_a_pipeline_is_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for preset in presets().iter().chain(&presets()) {
            let small = Preset { material: Material { lines: 1000, files: 30 }, ..preset.clone() };
            small.make(folder.path(), &mut || true).expect("made");
        }
        let text = fs::read_to_string(folder.path().join(FILE_NAME)).expect("there");
        assert_eq!(text.lines().count(), 1000);
        assert_eq!(fs::read_dir(folder.path().join(FOLDER_NAME)).expect("there").count(), 30);
    }

    #[test]
    fn each_is_a_pipeline() {
        for preset in presets() {
            let text = preset.text_at(Path::new("/tmp/it's"));
            let read = std::process::Command::new("bash").args(["-n", "-c", &text]).status();
            assert!(read.is_ok_and(|status| status.success()) && text.contains(" | "), "{text}");
        }
    }
}
