//! The four pipelines of the study comp517, and the files they run on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use study::{Comp517, FILE_NAME, FOLDER_NAME, Runs};

/// A pipeline as the study shows it, and what it needs.
pub(crate) fn line(study: &Comp517, index: usize) -> String {
    let pipeline = &study.pipelines[index];
    let needs = match pipeline.needs() {
        Runs::Nothing => "the processes there are".to_owned(),
        Runs::Lines => format!("{FILE_NAME}, {} lines", study.material.lines),
        Runs::Files => format!("a folder of {} files", study.material.files),
    };
    format!("{:<44} {needs}", pipeline.shown())
}

/// Makes in `place` what a pipeline runs on, if it is not there yet.
pub(crate) fn make(study: &Comp517, needs: Runs, place: &Path) -> io::Result<()> {
    let (file, folder) = (place.join(FILE_NAME), place.join(FOLDER_NAME));
    match needs {
        Runs::Lines if !file.exists() => {
            let mut file = BufWriter::new(File::create(file)?);
            study.material.write_lines(&mut file)?;
            file.flush()
        }
        Runs::Files if !folder.exists() => {
            std::fs::create_dir(&folder)?;
            study.material.file_names().try_for_each(|name| File::create(folder.join(name)).map(drop))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pipeline_needs_is_made_once() {
        let place = tempfile::tempdir().expect("a folder");
        let mut study = study::comp517();
        (study.material.lines, study.material.files) = (1000, 30);
        for needs in [Runs::Nothing, Runs::Lines, Runs::Files, Runs::Lines, Runs::Files] {
            make(&study, needs, place.path()).expect("made");
        }
        let text = std::fs::read_to_string(place.path().join(FILE_NAME)).expect("there");
        assert_eq!(text.lines().count(), 1000);
        assert_eq!(std::fs::read_dir(place.path().join(FOLDER_NAME)).expect("there").count(), 30);
    }

    #[test]
    fn each_is_a_pipeline() {
        for pipeline in &study::comp517().pipelines {
            let text = pipeline.text_at(Path::new("/tmp/it's"));
            let read = std::process::Command::new("bash").args(["-n", "-c", &text]).status();
            assert!(read.is_ok_and(|status| status.success()) && text.contains(" | "), "{text}");
        }
    }
}
