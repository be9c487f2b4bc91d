//! The four pipelines of the study comp517 ("Comp 517 Final Project Report", 2023), and the files they run on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Lines of the file: as many as the study's had.
const LINES: u32 = 234_570;
/// Files in the folder: "just over 121,500".
const FILES: u32 = 121_501;

/// A pipeline of the study.
pub(crate) struct Preset {
    /// Its text; `{file}` and `{folder}` stand for what it runs on.
    text: &'static str,
    /// What that is.
    pub(crate) needs: Needs,
}

/// What a preset runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The processes there are.
    Nothing,
    /// A file of many lines, some of them twice.
    Lines,
    /// A folder of many files.
    Files,
}

/// All of them, in the study's order.
pub(crate) const PRESETS: [Preset; 4] = [
    Preset { text: "ps -ef | grep systemd | cut -c9-16", needs: Needs::Nothing },
    Preset { text: "cat {file} | sort | uniq -u | wc -l", needs: Needs::Lines },
    Preset { text: "ls -h {folder} | tail -n 14 | sed -n 12p | cut -c3", needs: Needs::Files },
    Preset { text: "ls -l {folder} | grep ourpipe | wc", needs: Needs::Files },
];

impl Preset {
    /// The text, to be run on what lies in `place`.
    pub(crate) fn text(&self, place: &Path) -> String {
        let word = |name: &str| format!("'{}'", place.join(name).to_string_lossy().replace('\'', r"'\''"));
        self.text.replace("{file}", &word("file.txt")).replace("{folder}", &word("files"))
    }

    /// As the study shows it, and what it needs.
    pub(crate) fn line(&self) -> String {
        let needs = match self.needs {
            Needs::Nothing => "the processes there are".to_owned(),
            Needs::Lines => format!("file.txt, {LINES} lines"),
            Needs::Files => format!("a folder of {FILES} files"),
        };
        format!("{:<44} {needs}", self.text.replace("{file}", "file.txt").replace(" {folder}", ""))
    }
}

/// Makes in `place` what a preset runs on, if it is not there yet.
///
/// # Errors
/// ENOSPC and whatever else open(2), write(2) and mkdir(2) answer.
pub(crate) fn make(needs: Needs, place: &Path) -> io::Result<()> {
    match needs {
        Needs::Nothing => Ok(()),
        Needs::Lines => make_lines(&place.join("file.txt"), LINES),
        Needs::Files => make_files(&place.join("files"), FILES),
    }
}

/// Every fourth line stands there twice; some 47 bytes each, as in the study's 11 MB.
fn make_lines(path: &Path, lines: u32) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let mut file = BufWriter::new(File::create(path)?);
    for line in 0..lines {
        let value = scattered(line - u32::from(line % 4 == 3));
        writeln!(file, "{value:010} {:016x} a line of the study", u64::from(value) * 0x9e37_79b9)?;
    }
    file.flush()
}

/// One in three has a name that the study's pipeline looks for.
fn make_files(folder: &Path, files: u32) -> io::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    std::fs::create_dir(folder)?;
    for number in 0..files {
        let name = if number % 3 == 0 { "ourpipe" } else { "other" };
        File::create(folder.join(format!("{name}-{number:06}")))?;
    }
    Ok(())
}

/// A number whose neighbours are far away: every 32-bit number once (the multiplier is odd).
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_as_the_study_had_them() {
        let place = tempfile::tempdir().expect("a folder");
        make_lines(&place.path().join("file.txt"), 1000).expect("made");
        let text = std::fs::read_to_string(place.path().join("file.txt")).expect("there");
        let unique: std::collections::BTreeSet<&str> = text.lines().collect();
        assert_eq!((text.lines().count(), unique.len()), (1000, 750));
        assert!((44..=50).contains(&(text.len() / 1000)), "{}", text.len());
        make_files(&place.path().join("files"), 30).expect("made");
        assert_eq!(std::fs::read_dir(place.path().join("files")).expect("there").count(), 30);
    }

    #[test]
    fn each_is_a_pipeline() {
        for preset in &PRESETS {
            let text = preset.text(Path::new("/tmp/it's"));
            let script = pipeline::syntax::parse(&text).expect("a command line");
            assert!(script.items[0].pipeline.stages.len() > 1, "{text}");
        }
    }
}
