//! The streams of a part: from the lists in `study.toml` to cases of the engine.

use std::collections::BTreeSet;

use model::{Amount, Case, Check, Cpu, DataLevel, Placement, Tasks};
use serde::Deserialize;

use crate::Scale;
use crate::parameters::{PartText, RowText};
use crate::run::stream;
use crate::scale::Size;

/// Cases: each spec with each block and each data level.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Streams {
    /// If empty, the specs of the part's rows.
    #[serde(default)]
    specs: Vec<String>,
    /// If empty, the blocks of the part's rows.
    #[serde(default)]
    blocks: Vec<Size>,
    tasks: Tasks,
    #[serde(default = "no_data")]
    data: Vec<DataLevel>,
    check: Option<Check>,
    /// Pins the ends to two cores, if there are two: the scheduler would put the ends on one core in some runs and on two in others,
    /// and the median of such a mixture has no meaning.
    #[serde(default)]
    across_cores: bool,
    /// Blocks in a trial, at full size. If both `count` and `bytes` are absent, the engine chooses the amount.
    count: Option<Size>,
    /// Bytes in a trial, at full size; together with `count`, the largest number of bytes.
    bytes: Option<Size>,
    /// Whether the size of the block is scaled and not the number of blocks.
    #[serde(default)]
    scales_block: bool,
}

fn no_data() -> Vec<DataLevel> {
    vec![DataLevel::None]
}

impl PartText {
    /// Its streams at a scale, on a machine with these CPUs.
    pub(crate) fn cases(&self, scale: Scale, cpus: &[Cpu]) -> anyhow::Result<Vec<Case>> {
        let cases = self.streams.iter().map(|streams| streams.cases(&self.rows, scale, cpus));
        Ok(cases.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

impl Streams {
    fn cases(&self, rows: &[RowText], scale: Scale, cpus: &[Cpu]) -> anyhow::Result<Vec<Case>> {
        let mut specs: Vec<&String> = self.specs.iter().collect();
        if specs.is_empty() {
            specs = rows.iter().filter_map(|row| row.spec.as_ref()).collect();
        }
        let mut blocks = self.blocks.clone();
        if blocks.is_empty() {
            blocks = rows.iter().filter_map(|row| row.block).collect();
        }
        let cores: BTreeSet<(u32, u32)> = cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
        let crosses = self.across_cores && cores.len() > 1;
        let mut cases = Vec::new();
        for spec in specs {
            for full in &blocks {
                let block_bytes = if self.scales_block { scale.amount(full.value) } else { full.value };
                let case = Case {
                    tasks: self.tasks,
                    placement: if crosses { Placement::Cross } else { Placement::Any },
                    check: self.check.unwrap_or(Check::Xxh3),
                    ..stream(spec, block_bytes, self.amount(full.value, scale))?
                };
                cases.extend(self.data.iter().map(|data| Case { data: *data, ..case.clone() }));
            }
        }
        Ok(cases)
    }

    fn amount(&self, block_bytes: u64, scale: Scale) -> Amount {
        let most = self.bytes.map_or(u64::MAX, |bytes| bytes.value);
        match (self.count, self.bytes) {
            (Some(count), _) if self.scales_block => Amount::Blocks(count.value),
            (Some(count), _) => Amount::Blocks(scale.amount(count.value.min(most / block_bytes).max(1))),
            (None, Some(bytes)) => Amount::Bytes(scale.bytes(bytes.value, block_bytes)),
            (None, None) => Amount::Adaptive,
        }
    }
}
