//! A case of a plan as a row of a run, and what all its cases share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use mechanism::{Folder, PacedClient};
use model::{
    Amount, Case, CaseRecord, Check, Cpu, DataLevel, NoSample, PayloadKind, Row, Sample, Sizing, Speed,
    TrialMaker, Turn,
};
use payload::expected_checksum;

use crate::amount::{
    TRIAL_MIN, blocks_with_nonzero_sum, first_blocks, fixed_blocks, is_far_behind, paced_blocks,
    scaled_blocks, sizing_blocks_max,
};
use crate::peer_endpoint::PeerConnection;
use crate::plan::Plan;
use crate::prepare::{Ready, prepare};
use crate::round::RoundProcess;
use crate::tiles::{Tiles, tile};
use crate::trial::{TrialOutcome, TrialSetup, run_trial};

/// A warm-up trial that takes at least this multiple of [`TRIAL_MIN`] is long enough, even if another program had the CPU for a part of
/// it.
const LONG_ENOUGH: u32 = 10;

/// Largest factor between the blocks of two warm-up trials, and most blocks of one.
const GROWTH_MAX: f64 = 64.0;
const SIZING_BLOCKS_MAX: u64 = 1 << 40;

/// What the cases of a run share: the payloads and their checksums, the process of the round, the other host.
pub(crate) struct Lab<'p> {
    far: Option<&'p mut (dyn PeerConnection + 'p)>,
    stop: &'p dyn Fn() -> bool,
    seed: u64,
    paced_client: PacedClient,
    round_program: Option<&'p Path>,
    process: Option<RoundProcess>,
    folder: Folder,
    tiles: Tiles,
    checksums: HashMap<(PayloadKind, Check, u64), String>,
}

impl<'p> Lab<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        far: Option<&'p mut (dyn PeerConnection + 'p)>,
        stop: &'p dyn Fn() -> bool,
    ) -> Self {
        Self {
            far,
            stop,
            seed: plan.seed,
            paced_client: plan.paced_client,
            round_program: plan.round_program.as_deref(),
            process: None,
            folder: Folder::private(),
            tiles: Tiles::new(),
            checksums: HashMap::new(),
        }
    }

    /// Runs a trial where the case and the plan say: with an end on the other host, in the process of the round, or in this process.
    fn trial(&mut self, case: &Case, ready: &Ready, turn: &mut Turn<'_>) -> Result<TrialOutcome, NoSample> {
        let tile = tile(&mut self.tiles, case, self.seed)?;
        let (checksums, stop) = (&mut self.checksums, turn.stop);
        let mut expected = |bytes: u64| {
            let key = (case.payload.clone(), case.check, bytes);
            if let Some(known) = checksums.get(&key) {
                return Some(known.clone());
            }
            let computed = expected_checksum(&tile, case.check, bytes, stop)?;
            checksums.insert(key, computed.clone());
            Some(computed)
        };
        let setup = TrialSetup {
            case,
            ready,
            tile: &tile,
            folder: &self.folder,
            blocks: turn.amount,
            round: turn.round.unwrap_or(0),
            seed: self.seed,
            paced_client: self.paced_client,
        };
        match (self.far.as_deref_mut(), self.round_program) {
            (Some(far), _) if case.direction.is_some() => {
                run_trial(&setup, Some(far), &mut expected, turn.progress, stop)
            }
            (_, Some(program)) => of_round(&mut self.process, program, turn.round)
                .and_then(|process| process.run_trial(&setup, &mut expected, turn.progress, stop)),
            _ => run_trial(&setup, None, &mut expected, turn.progress, stop),
        }
    }

    /// The number of blocks, or a few more, so that their XOR is not 0: zeros have the XOR 0, too.
    fn blocks_with_nonzero_sum(&mut self, case: &Case, blocks: u64) -> u64 {
        if (case.data, case.check, case.amount) != (DataLevel::Verify, Check::Xor, Amount::Adaptive) {
            return blocks;
        }
        // The trials of the case report a payload that cannot be made.
        let Ok(tile) = tile(&mut self.tiles, case, self.seed) else { return blocks };
        blocks_with_nonzero_sum(case, blocks, |bytes| expected_checksum(&tile, case.check, bytes, self.stop))
    }
}

/// The process of this round; started if there is none, or one of another round.
fn of_round<'p>(
    process: &'p mut Option<RoundProcess>,
    program: &Path,
    round: Option<u32>,
) -> Result<&'p mut RoundProcess, NoSample> {
    // The process of another round ends before the next one is started.
    if process.as_ref().is_some_and(|process| process.round != round || !process.is_usable()) {
        *process = None;
    }
    match process {
        Some(process) => Ok(process),
        none => Ok(none.insert(RoundProcess::start(program, round)?)),
    }
}

/// Makes the trials of a case.
struct CaseTrials<'l, 'p> {
    case: Case,
    ready: Ready,
    lab: &'l RefCell<Lab<'p>>,
}

/// A case that cannot be run has an error, and no trial is asked for.
struct NoTrials;

impl TrialMaker for NoTrials {
    fn trial(&mut self, _turn: &mut Turn<'_>) -> Result<Sample, NoSample> {
        Err(NoSample::Stopped)
    }
}

/// The cases of a plan.
pub(crate) fn case_rows<'l, 'p: 'l>(plan: &Plan, cpus: &[Cpu], lab: &'l RefCell<Lab<'p>>) -> Vec<Row<'l>> {
    let row = |case: &Case| {
        let (name, mut record) =
            (format!("{} ({})", case.spec, case.workload), CaseRecord::from(case.clone()));
        let maker: Box<dyn TrialMaker + 'l> = match prepare(case, cpus) {
            Ok(ready) => {
                record.cpus.clone_from(&ready.cpus);
                let shares = case.load.has_several_at_an_end();
                record.atomic_bytes = shares.then(|| ready.mechanism.atomic_bytes.min(case.block_bytes));
                record.zero_copy = (ready.mechanism.zero_copy)(&ready.options);
                Box::new(CaseTrials { case: case.clone(), ready, lab })
            }
            Err(error) => {
                record.error = Some(error);
                Box::new(NoTrials)
            }
        };
        Row { name, record, maker }
    };
    plan.cases.iter().map(row).collect()
}

impl TrialMaker for CaseTrials<'_, '_> {
    fn sizing(&self, _trial_max: Duration) -> Option<Sizing> {
        Some(Sizing {
            first: first_blocks(&self.case),
            most: sizing_blocks_max(&self.case).unwrap_or(SIZING_BLOCKS_MAX),
            growth_max: GROWTH_MAX,
            enough: TRIAL_MIN,
            trials: 2,
            alone: TRIAL_MIN * LONG_ENOUGH,
        })
    }

    /// A short paced trial is far behind its rate where another program had the CPU, too.
    fn is_disturbed(&self, amount: u64, elapsed: Duration) -> bool {
        sizing_blocks_max(&self.case) == Some(amount) && is_far_behind(&self.case, amount, elapsed)
    }

    fn amount(&mut self, speed: &Speed, time: Duration) -> u64 {
        let case = &self.case;
        if let Some(fixed) = fixed_blocks(case) {
            return fixed;
        }
        let stores = self.ready.stores_data();
        let scaled = |elapsed, time| scaled_blocks(case, stores, speed.amount, elapsed, time);
        let blocks = paced_blocks(case, stores, speed.amount, speed.fastest, time)
            .unwrap_or_else(|| scaled(speed.slowest, time).max(scaled(speed.fastest, TRIAL_MIN)));
        self.lab.borrow_mut().blocks_with_nonzero_sum(case, blocks)
    }

    fn trial(&mut self, turn: &mut Turn<'_>) -> Result<Sample, NoSample> {
        let trial = self.lab.borrow_mut().trial(&self.case, &self.ready, turn)?;
        turn.record.granted = trial.granted;
        turn.record.congestion_control = trial.congestion_control;
        Ok(trial.sample)
    }
}
