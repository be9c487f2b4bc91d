//! `kernel-pipe`: the workload language by language, and the study's beliefs about pipes, measured one by one.

use std::collections::BTreeSet;

use model::{Amount, ByteSize, Case, Check, DataLevel, Placement, Tasks};

use super::KernelPipe;
use crate::run::{PartRun, stream};

/// The study's stream between two processes: its pattern, its check. They sit on two cores where there are two: the
/// scheduler would put them on one core in some runs and on two in others, and a median between the two kinds says
/// nothing about a buffer size.
fn checked(run: &PartRun<'_>, study: &KernelPipe, spec: &str, block_bytes: u64) -> anyhow::Result<Case> {
    let cores: BTreeSet<(u32, u32)> = run.job.cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
    let bytes = run.job.scale.bytes(study.choice.buffer_bytes.value, block_bytes);
    Ok(Case {
        tasks: Tasks::Processes,
        placement: if cores.len() > 1 { Placement::Cross } else { Placement::Any },
        data: DataLevel::Verify,
        check: Check::Xor,
        ..stream(spec, block_bytes, Amount::Bytes(bytes.min(study.workload.bytes.value)))?
    })
}

fn measure(run: &mut PartRun<'_>, trials: u32, bytes: u64, cases: Vec<Case>) -> anyhow::Result<()> {
    run.repeat(trials);
    run.set("bytes", ByteSize(bytes));
    run.set("placement", "two cores, where there are two");
    run.measure(cases)
}

pub(super) fn buffers(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = KernelPipe::read();
    let cases = study.buffers.iter().map(|buffer| checked(run, &study, "pipe", buffer.block.value));
    let cases = cases.collect::<Result<Vec<Case>, _>>()?;
    let bytes = run.amount(study.choice.buffer_bytes.value);
    measure(run, study.choice.buffer_trials, bytes, cases)
}

/// The same stream, looked at less and less, and the memory's own copying beside it.
pub(super) fn copies(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = KernelPipe::read();
    let block_bytes = study.workload.block.value;
    let pipe = checked(run, &study, "pipe", block_bytes)?;
    let levels = [DataLevel::None, DataLevel::Write, DataLevel::Verify];
    let mut cases = levels.map(|data| Case { data, ..pipe.clone() }).to_vec();
    for spec in ["memcpy", "null"] {
        let case = checked(run, &study, spec, block_bytes)?;
        cases.push(Case { data: DataLevel::None, amount: Amount::Adaptive, ..case });
    }
    let bytes = run.job.scale.bytes(study.choice.buffer_bytes.value, block_bytes);
    measure(run, study.choice.buffer_trials, bytes, cases)
}

pub(super) fn alternatives(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = KernelPipe::read();
    let block_bytes = study.workload.block.value;
    let mut cases: Vec<Case> = Vec::new();
    for alternative in &study.alternatives {
        for data in [DataLevel::None, DataLevel::Verify] {
            // Under XXH3 a page that was handed over too early or twice would show; under XOR it might not.
            let case = checked(run, &study, &alternative.spec, block_bytes)?;
            cases.push(Case { data, check: Check::Xxh3, ..case });
        }
    }
    let bytes = run.job.scale.bytes(study.choice.buffer_bytes.value, block_bytes);
    measure(run, study.choice.alternative_trials, bytes, cases)
}
