//! `kernel-pipe`: the workload language by language, and the study's beliefs about pipes, measured one by one.

mod atomicity;
mod calls;
mod languages;
mod room;

use experiment::{KernelPipe, kernel_pipe};
use model::{Amount, ByteSize, Case, Check, DataLevel, PayloadKind, Placement, StudyPart, Tasks};

use crate::part::{Part, ReproduceError, Stage};
use crate::streams::{Stream, case_of, measure};

pub(crate) fn parts() -> Vec<Part> {
    let study = kernel_pipe();
    let (_, alternatives_minutes) = study.alternative_trials();
    let part = |name, title, minutes, run| Part { name, title, minutes, run };
    vec![
        part("languages", "the workload, language by language", study.minutes_languages(), languages::run),
        part("buffers", "buffer size against throughput, calls counted", 2.0, buffers),
        part("calls", "the cost of a system call", 0.5, calls::run),
        part("copies", "what looking at the bytes costs", 1.0, copies),
        part("atomicity", "writers at once, below and above PIPE_BUF", 1.0, atomicity::run),
        part("room", "what a pipe holds", 0.5, room::run),
        part("alternatives", "the ways to avoid copying that it names", alternatives_minutes, alternatives),
    ]
}

/// The study's stream between two processes: its pattern, its check.
fn stream(study: &KernelPipe, block_bytes: u64, bytes: u64) -> Stream {
    Stream {
        spec: "pipe",
        tasks: Tasks::Processes,
        placement: Placement::Any,
        data: DataLevel::Verify,
        check: Check::Xor,
        payload: PayloadKind::Sequence,
        block_bytes,
        amount: Amount::Bytes(bytes.min(study.bytes())),
    }
}

fn buffers(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = kernel_pipe();
    let (bytes, trials) = study.buffer_trials();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(trials));
    let mut cases = Vec::new();
    for buffer in &study.buffers {
        let block_bytes = buffer.block.value;
        cases.push(stream(&study, block_bytes, scale.bytes(bytes, block_bytes)).case()?);
    }
    part.settings.insert("bytes".to_owned(), ByteSize(scale.amount(bytes)).to_string());
    measure(stage, &mut part, cases)?;
    Ok(part)
}

/// The same stream, looked at less and less, and the memory's own copying beside it.
fn copies(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = kernel_pipe();
    let (bytes, trials) = study.buffer_trials();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(trials));
    let amount = scale.bytes(bytes, study.block_bytes());
    let mut cases: Vec<Case> = Vec::new();
    for data in [DataLevel::None, DataLevel::Write, DataLevel::Verify] {
        cases.push(Stream { data, ..stream(&study, study.block_bytes(), amount) }.case()?);
    }
    let untouched = Stream {
        data: DataLevel::None,
        amount: Amount::Adaptive,
        ..stream(&study, study.block_bytes(), amount)
    };
    cases.push(case_of(&untouched, "memcpy")?);
    cases.push(case_of(&untouched, "null")?);
    part.settings.insert("bytes".to_owned(), ByteSize(amount).to_string());
    measure(stage, &mut part, cases)?;
    Ok(part)
}

fn alternatives(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = kernel_pipe();
    let (trials, _) = study.alternative_trials();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(trials));
    let (bytes, _) = study.buffer_trials();
    let amount = scale.bytes(bytes, study.block_bytes());
    let mut cases: Vec<Case> = Vec::new();
    for alternative in &study.alternatives {
        for data in [DataLevel::None, DataLevel::Verify] {
            // Under XXH3 a page that was handed over too early or twice would show; under XOR it might not.
            let checked = Stream { data, check: Check::Xxh3, ..stream(&study, study.block_bytes(), amount) };
            let case = case_of(&checked, &alternative.spec)?;
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
    }
    part.settings.insert("bytes".to_owned(), ByteSize(amount).to_string());
    measure(stage, &mut part, cases)?;
    Ok(part)
}
