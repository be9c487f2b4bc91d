//! `kernel-pipe`: the workload language by language, and the study's beliefs about pipes, measured one by one.

use std::collections::BTreeSet;

use super::{KernelPipe, kernel_pipe};
use model::{Amount, ByteSize, Case, Check, DataLevel, PayloadKind, Placement, StudyPart, Tasks};

use crate::part::{Part, ReproduceError, Stage};
use crate::streams::{Stream, case_of, measure};

pub(crate) fn parts() -> Vec<Part> {
    let study = kernel_pipe();
    let (_, alternatives_minutes) = study.alternative_trials();
    let part = |name, title, minutes, run| Part { name, title, minutes, run };
    vec![
        part(
            "languages",
            "the workload, language by language",
            study.minutes_languages(),
            super::languages::run,
        ),
        part("buffers", "buffer size against throughput, calls counted", 2.0, buffers),
        part("calls", "the cost of a system call", 0.5, super::calls::run),
        part("copies", "what looking at the bytes costs", 1.0, copies),
        part("atomicity", "writers at once, below and above PIPE_BUF", 1.0, super::atomicity::run),
        part("room", "what a pipe holds", 0.5, super::room::run),
        part("alternatives", "the ways to avoid copying that it names", alternatives_minutes, alternatives),
    ]
}

/// The study's stream between two processes: its pattern, its check. They sit on two cores where there are two: the
/// scheduler would put them on one core in some runs and on two in others, and a median between the two kinds says
/// nothing about a buffer size.
fn stream(stage: &Stage<'_>, study: &KernelPipe, block_bytes: u64, bytes: u64) -> Stream {
    let cores: BTreeSet<(u32, u32)> = stage.job.cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
    Stream {
        spec: "pipe",
        tasks: Tasks::Processes,
        placement: if cores.len() > 1 { Placement::Cross } else { Placement::Any },
        data: DataLevel::Verify,
        check: Check::Xor,
        payload: PayloadKind::Sequence,
        block_bytes,
        amount: Amount::Bytes(bytes.min(study.bytes())),
    }
}

fn describe(part: &mut StudyPart, bytes: u64) {
    part.settings.insert("bytes".to_owned(), ByteSize(bytes).to_string());
    part.settings.insert("placement".to_owned(), "two cores, where there are two".to_owned());
}

fn buffers(stage: &mut Stage<'_>) -> Result<StudyPart, ReproduceError> {
    let study = kernel_pipe();
    let (bytes, trials) = study.buffer_trials();
    let scale = stage.job.scale;
    let mut part = stage.blank(scale.trials(trials));
    let mut cases = Vec::new();
    for buffer in &study.buffers {
        let block_bytes = buffer.block.value;
        cases.push(stream(stage, &study, block_bytes, scale.bytes(bytes, block_bytes)).case()?);
    }
    describe(&mut part, scale.amount(bytes));
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
        cases.push(Stream { data, ..stream(stage, &study, study.block_bytes(), amount) }.case()?);
    }
    let untouched = Stream {
        data: DataLevel::None,
        amount: Amount::Adaptive,
        ..stream(stage, &study, study.block_bytes(), amount)
    };
    cases.push(case_of(&untouched, "memcpy")?);
    cases.push(case_of(&untouched, "null")?);
    describe(&mut part, amount);
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
            let checked =
                Stream { data, check: Check::Xxh3, ..stream(stage, &study, study.block_bytes(), amount) };
            let case = case_of(&checked, &alternative.spec)?;
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
    }
    describe(&mut part, amount);
    measure(stage, &mut part, cases)?;
    Ok(part)
}
