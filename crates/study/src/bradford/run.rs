//! `bradford`: a pipe in one thread and in two, over block sizes; beside it a named pipe, sockets, and a block that no
//! pipe holds.

use model::{Amount, ByteSize, Case, Tasks};

use super::Bradford;
use crate::Scale;
use crate::run::{PartRun, stream};

/// The engine makes no blocks larger than this part of the memory.
const BLOCKS_IN_MEMORY: u64 = 8;

/// What the largest block needs.
pub(super) fn memory_bytes(scale: Scale) -> u64 {
    scale.amount(Bradford::read().huge.block.value).saturating_mul(BLOCKS_IN_MEMORY)
}

pub(super) fn single(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let single = Bradford::read().single;
    run.repeat(single.series);
    let mut cases = Vec::new();
    for size in &single.blocks {
        cases.push(one_thread("pipe", size.value, run.amount(single.count(size)))?);
    }
    let [small, large] = [&single.count_up_to_three_digits, &single.count_of_others];
    let (small, large) = (run.amount(small.value), run.amount(large.value));
    run.set("blocks", format!("{small} of each size up to 960 bytes, {large} of the larger ones"));
    measure(run, cases)
}

pub(super) fn threads(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = Bradford::read();
    run.repeat(study.threads.series);
    let mut cases = Vec::new();
    for spec in ["pipe", "unix-stream", "tcp"] {
        for block_bytes in study.threads_blocks() {
            cases.push(two_threads(spec, block_bytes, run.amount(study.threads_count(block_bytes)))?);
        }
    }
    let (most, least) = (study.threads_count(1), study.threads_count(16 << 20));
    run.set("blocks", format!("{} of the smaller sizes, down to {}", run.amount(most), run.amount(least)));
    measure(run, cases)
}

pub(super) fn named(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = Bradford::read();
    run.repeat(study.choice.named_rounds);
    let mut cases = Vec::new();
    for spec in ["pipe", "fifo"] {
        for size in &study.choice.named_single_blocks {
            cases.push(one_thread(spec, size.value, run.amount(study.named_count(size.value)))?);
        }
        for size in &study.choice.named_threads_blocks {
            cases.push(two_threads(spec, size.value, run.amount(study.named_count(size.value)))?);
        }
    }
    measure(run, cases)
}

pub(super) fn huge(run: &mut PartRun<'_>) -> anyhow::Result<()> {
    let study = Bradford::read();
    run.repeat(study.threads.series);
    let (block_bytes, blocks) = (run.amount(study.huge.block.value), study.choice.huge_count);
    run.set("block", ByteSize(block_bytes));
    run.set("blocks", blocks);
    let cases = vec![
        one_thread("pipe", block_bytes, blocks)?,
        two_threads("pipe", block_bytes, blocks)?,
        two_threads("pipe:size=1MiB", block_bytes, blocks)?,
    ];
    measure(run, cases)
}

fn two_threads(spec: &str, block_bytes: u64, blocks: u64) -> anyhow::Result<Case> {
    stream(spec, block_bytes, Amount::Blocks(blocks))
}

fn one_thread(spec: &str, block_bytes: u64, blocks: u64) -> anyhow::Result<Case> {
    Ok(Case { tasks: Tasks::Single, ..two_threads(spec, block_bytes, blocks)? })
}

/// In every part the study's programs look at nothing and sit nowhere in particular.
fn measure(run: &mut PartRun<'_>, cases: Vec<Case>) -> anyhow::Result<()> {
    run.set("data", "written and read back, not looked at, as in the study");
    run.set("placement", "the scheduler's choice, as in the study");
    run.measure(cases)
}
