//! `bradford`: a pipe in one thread and in two, over block sizes; beside it a named pipe, sockets, and a block that no
//! pipe holds.

use super::{Bradford, bradford};
use crate::size::Size;
use model::{ByteSize, Case, StudyPart};

use crate::part::{Part, ReproduceError, Stage};
use crate::streams::{Stream, measure};

pub(crate) fn parts() -> Vec<Part> {
    vec![
        Part { name: "single", title: "one thread, the study's sweep", minutes: 3.5, run: single },
        Part { name: "threads", title: "two threads, 1 B to 16 MiB; sockets", minutes: 3.5, run: threads },
        Part { name: "named", title: "a named pipe beside an unnamed one", minutes: 1.5, run: named },
        Part { name: "huge", title: "a block that no pipe holds", minutes: 0.5, run: huge },
    ]
}

fn single(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = bradford();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(study.single.series));
    let case =
        |size: &Size| Stream::single("pipe", size.value, scale.amount(study.single.count(size))).case();
    let cases = study.single.blocks.iter().map(case).collect::<Result<Vec<Case>, _>>()?;
    let counts: Vec<u64> =
        ["1", "1024"].map(|text| scale.amount(count_of(&study, text))).into_iter().collect();
    let text = format!("{} of each size up to 960 bytes, {} of the larger ones", counts[0], counts[1]);
    part.settings.insert("blocks".to_owned(), text);
    common(&mut part);
    measure(stage, &mut part, cases)?;
    Ok(part)
}

fn count_of(study: &Bradford, text: &str) -> u64 {
    let size = study.single.blocks.iter().find(|size| size.text == text);
    size.map_or(0, |size| study.single.count(size))
}

fn threads(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = bradford();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(study.threads.series));
    let mut cases = Vec::new();
    for spec in ["pipe", "unix-stream", "tcp"] {
        for block_bytes in study.threads_blocks() {
            let blocks = scale.amount(study.threads_count(block_bytes));
            cases.push(Stream::threads(spec, block_bytes, blocks).case()?);
        }
    }
    let (most, least) = (study.threads_count(1), study.threads_count(16 << 20));
    let text = format!("{} of the smaller sizes, down to {}", scale.amount(most), scale.amount(least));
    part.settings.insert("blocks".to_owned(), text);
    common(&mut part);
    measure(stage, &mut part, cases)?;
    Ok(part)
}

fn named(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = bradford();
    let named = study.named();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(named.rounds));
    let mut cases = Vec::new();
    for spec in ["pipe", "fifo"] {
        let blocks = |block_bytes: &u64| scale.amount(study.named_count(*block_bytes));
        for block_bytes in &named.single_blocks {
            cases.push(Stream::single(spec, *block_bytes, blocks(block_bytes)).case()?);
        }
        for block_bytes in &named.threads_blocks {
            cases.push(Stream::threads(spec, *block_bytes, blocks(block_bytes)).case()?);
        }
    }
    common(&mut part);
    measure(stage, &mut part, cases)?;
    Ok(part)
}

fn huge(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = bradford();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(study.threads.series));
    let block_bytes = scale.amount(study.huge.block.value);
    let blocks = study.huge_count();
    let cases = [
        Stream::single("pipe", block_bytes, blocks).case()?,
        Stream::threads("pipe", block_bytes, blocks).case()?,
        Stream::threads("pipe:size=1MiB", block_bytes, blocks).case()?,
    ];
    part.settings.insert("block".to_owned(), ByteSize(block_bytes).to_string());
    part.settings.insert("blocks".to_owned(), blocks.to_string());
    common(&mut part);
    measure(stage, &mut part, cases.to_vec())?;
    Ok(part)
}

/// What holds for every part: the study's programs look at nothing and sit nowhere in particular.
fn common(part: &mut StudyPart) {
    part.settings
        .insert("data".to_owned(), "written and read back, not looked at, as in the study".to_owned());
    part.settings.insert("placement".to_owned(), "the scheduler's choice, as in the study".to_owned());
}
