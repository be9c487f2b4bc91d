//! `comp517`: the study's pipelines over its five links and over ours, on material that is made for the part and
//! removed with it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::{Comp517, FILE_NAME, FOLDER_NAME, Material, Needs, comp517};
use mechanism::Folder;
use model::StudyPart;

use crate::part::{Part, ReproduceError, Run, Stage};
use crate::pipelines::{Contest, run};
use crate::scale::Scale;

/// A part for each pipeline: what was finished is kept when a run of many minutes is stopped.
const NAMES: [(&str, &str); 4] = [
    ("ps", "the processes there are, over eight links"),
    ("sort", "a file of many lines, over eight links"),
    ("ls-h", "a folder of many files, names, over eight links"),
    ("ls-l", "the same folder, with inodes, over eight links"),
];

pub(crate) fn parts() -> Vec<Part> {
    let minutes = comp517().minutes();
    let runs: [Run; 4] =
        [|stage| part(stage, 0), |stage| part(stage, 1), |stage| part(stage, 2), |stage| part(stage, 3)];
    // The first has next to nothing to do; the others share what there is.
    let share = [0.1, 0.3, 0.3, 0.3];
    let named = NAMES.into_iter().zip(runs).zip(share);
    named.map(|(((name, title), run), share)| Part { name, title, minutes: minutes * share, run }).collect()
}

/// The material at a scale.
pub(crate) fn scaled(material: Material, scale: Scale) -> Material {
    let amount = |full: u32| u32::try_from(scale.amount(u64::from(full))).unwrap_or(u32::MAX);
    Material { lines: amount(material.lines), files: amount(material.files) }
}

fn part(stage: &mut Stage<'_>, index: usize) -> Result<StudyPart, ReproduceError> {
    let study = comp517();
    let pipeline = &study.pipelines[index];
    let mut part = stage.blank(stage.job.scale.trials(study.trials()));
    let place = Folder::private();
    let place = place.path()?;
    let material = scaled(study.material, stage.job.scale);
    make(pipeline.needs(), &material, stage, place)?;
    describe(&mut part, pipeline.needs(), &material, &study);
    let contest = Contest {
        text: &pipeline.text_at(place),
        shown: &pipeline.shown(),
        vias: study.links.iter().map(|link| link.via.clone()).collect(),
        trials: part.series,
        warmup: study.warmup(),
    };
    part.results = run(stage, &contest)?;
    part.complete = !(stage.job.stop)();
    let fewest = part.results.iter().map(|result| result.times_s.len()).min().unwrap_or(0);
    if part.complete && fewest < part.series as usize && part.results.iter().all(|one| one.error.is_none()) {
        let minutes = stage.part.minutes;
        part.remarks.push(format!("The part's time of {minutes:.1} min was over after {fewest} rounds."));
    }
    Ok(part)
}

fn describe(part: &mut StudyPart, needs: Needs, material: &Material, study: &Comp517) {
    let what = match needs {
        Needs::Nothing => "the processes there are".to_owned(),
        Needs::Lines => format!("a file of {} lines", material.lines),
        Needs::Files => format!("a folder of {} empty files", material.files),
    };
    part.settings.insert("material".to_owned(), what);
    part.settings.insert("warm-up".to_owned(), format!("{} untimed round", study.warmup()));
}

/// Makes what a pipeline runs on.
fn make(
    needs: Needs,
    material: &Material,
    stage: &mut Stage<'_>,
    place: &Path,
) -> Result<(), ReproduceError> {
    match needs {
        Needs::Nothing => Ok(()),
        Needs::Lines => {
            stage.watcher.progress("making the file of lines", None);
            let make = || {
                let mut file = BufWriter::new(File::create(place.join(FILE_NAME))?);
                material.write_lines(&mut file)?;
                file.flush()
            };
            make().map_err(ReproduceError::system("the file of lines"))
        }
        Needs::Files => {
            let folder = place.join(FOLDER_NAME);
            fs::create_dir(&folder).map_err(ReproduceError::system("the folder of files"))?;
            for (number, name) in material.file_names().enumerate() {
                if number % 4096 == 0 {
                    stage.watcher.progress("making the folder of files", None);
                    if (stage.job.stop)() {
                        break;
                    }
                }
                File::create(folder.join(name)).map_err(ReproduceError::system("a file of the folder"))?;
            }
            Ok(())
        }
    }
}
