//! Pairs of programs as rows of a run, with the machine's memory copy as one more row.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use model::{Amount, NoSample, Row, Sample, Sizing, Spec, Speed, TrialMaker, Turn};

use crate::ceiling::Ceiling;
use crate::launcher::Launcher;
use crate::pair::WorkerPair;
use crate::trial_size::TrialSize;

/// Limits of a row's first launch, in bytes and in blocks: small, because the worker may be slow.
const SIZING_BYTES_FIRST: u64 = 1 << 20;
const SIZING_BLOCKS_FIRST: u64 = 1 << 12;
/// Largest factor between a sizing launch and the next one: a program with a just-in-time compiler is slow at first.
const SIZING_GROWTH_MAX: f64 = 8.0;
/// Most bytes of a sizing launch.
const SIZING_BYTES_MAX: u64 = 256 << 20;
/// A sizing launch that takes 1/4 of a trial's time is long enough.
const SIZING_PART: u32 = 4;
/// Most bytes of a trial. A trial has at least the bytes of the first launch.
const TRIAL_BYTES_MAX: u64 = 64 << 30;
/// The warm-up has at most 1/2 of a trial's bytes.
const WARMUP_PART: u64 = 2;

/// What the rows of a run share.
struct Shared {
    launcher: Launcher,
    ceiling: Ceiling,
    /// Decides how many additional bytes each launch moves.
    residues: fastrand::Rng,
}

/// How much the trials of all rows move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerAmount {
    /// The timed stream. Up to 255 more bytes are added, so that the right XOR is not 0, and cannot be known in advance.
    pub stream: Amount,
    /// Most bytes before the clock starts; at most half of those of the stream.
    pub warmup_bytes_max: u64,
}

/// One row for each pair, and behind them that of the memory copy: a row that claims to be faster fails.
///
/// # Errors
/// No folder for results, or no process, can be made.
pub fn worker_rows(pairs: Vec<WorkerPair>, amount: WorkerAmount, seed: u64) -> io::Result<Vec<Row<'static>>> {
    let (launcher, residues) = (Launcher::new()?, fastrand::Rng::with_seed(seed));
    let shared = Rc::new(RefCell::new(Shared { launcher, ceiling: Ceiling::new(), residues }));
    let row = |pair: WorkerPair| {
        let (name, record, shared) = (pair.name(), pair.case_record(), Rc::clone(&shared));
        Row { name, record, maker: Box::new(PairTrials { pair, amount, shared }) }
    };
    let mut rows: Vec<Row<'static>> = pairs.into_iter().map(row).collect();
    let record = Ceiling::record();
    rows.push(Row { name: record.mechanism.clone(), record, maker: Box::new(CeilingTrials(shared)) });
    Ok(rows)
}

/// Launches a pair of programs.
struct PairTrials {
    pair: WorkerPair,
    amount: WorkerAmount,
    shared: Rc<RefCell<Shared>>,
}

impl PairTrials {
    /// The bytes of every trial; `None` if the row's speed decides.
    fn fixed_bytes(&self) -> Option<u64> {
        match self.amount.stream {
            Amount::Adaptive => None,
            Amount::Bytes(bytes) => Some(bytes),
            Amount::Blocks(blocks) => Some(blocks.saturating_mul(self.pair.case.block_bytes)),
        }
    }

    /// The bytes of the first launch.
    fn first_bytes(&self) -> u64 {
        SIZING_BYTES_FIRST.min(self.pair.case.block_bytes.saturating_mul(SIZING_BLOCKS_FIRST))
    }

    /// A launch of this many bytes. One that finds the speed has as many before the clock starts: the program may be slow at first.
    fn size(&self, bytes: u64, finds_speed: bool) -> TrialSize {
        let warmup_bytes = match finds_speed && self.fixed_bytes().is_none() {
            true => bytes,
            false => self.amount.warmup_bytes_max.min(bytes / WARMUP_PART),
        };
        TrialSize { bytes, block_bytes: self.pair.case.block_bytes, warmup_bytes }
    }
}

impl TrialMaker for PairTrials {
    fn sizing(&self, trial_max: Duration) -> Option<Sizing> {
        let fixed = self.fixed_bytes();
        Some(Sizing {
            first: fixed.unwrap_or_else(|| self.first_bytes()),
            most: fixed.unwrap_or(SIZING_BYTES_MAX),
            growth_max: SIZING_GROWTH_MAX,
            enough: trial_max / SIZING_PART,
            trials: 2,
            alone: trial_max,
        })
    }

    fn amount(&mut self, speed: &Speed, time: Duration) -> u64 {
        self.fixed_bytes().unwrap_or_else(|| {
            let least = self.first_bytes();
            let bytes = (speed.amount_in(time) as u64).clamp(least, TRIAL_BYTES_MAX);
            // Whole MiB (less for blocks below 256 bytes) are easy to read, and are whole blocks of all common sizes.
            bytes.next_multiple_of(least)
        })
    }

    fn trial(&mut self, turn: &mut Turn<'_>) -> Result<Sample, NoSample> {
        // A row without its programs has an error, and no trial is asked for.
        let Some(launch) = self.pair.launch() else { return Err(NoSample::Stopped) };
        let asked = self.size(turn.amount, turn.round.is_none());
        let Shared { launcher, ceiling, residues } = &mut *self.shared.borrow_mut();
        let size = asked.with_residue(residues);
        let run = launcher.run(&launch, &size, size.limit(), turn.stop)?;
        ceiling.check(&self.pair.name(), &size, &run.sample)?;
        let record = &mut turn.record;
        if let Some(worker) = &mut record.worker {
            worker.warmup_bytes = asked.warmup_bytes;
        }
        if let Some(bytes) = run.pipe_bytes {
            record.granted.insert("pipe_bytes".to_owned(), bytes);
        }
        // Node connects its children by pairs of sockets.
        if run.through_socket == Some(true) {
            record.spec = Spec::plain("socketpair");
            record.mechanism = "socketpair".to_owned();
        }
        Ok(run.sample)
    }
}

/// Copies memory.
struct CeilingTrials(Rc<RefCell<Shared>>);

impl TrialMaker for CeilingTrials {
    fn trial(&mut self, _turn: &mut Turn<'_>) -> Result<Sample, NoSample> {
        Ok(self.0.borrow_mut().ceiling.measure())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::program::{Program, Worker};

    const SECOND: Duration = Duration::from_secs(1);

    fn row(stream: Amount, block_bytes: u64) -> PairTrials {
        let pair = WorkerPair::with_itself(Worker::from(Program::of_path(Path::new("true"))), block_bytes);
        let (launcher, residues) = (Launcher::new().expect("a launcher"), fastrand::Rng::with_seed(1));
        let shared = Rc::new(RefCell::new(Shared { launcher, ceiling: Ceiling::new(), residues }));
        let amount = WorkerAmount { stream, warmup_bytes_max: 512 << 20 };
        PairTrials { pair, amount, shared }
    }

    #[test]
    fn a_slow_worker_moves_fewer_bytes() {
        let mut row = row(Amount::Adaptive, 4096);
        let mut of = |elapsed| {
            let bytes = row.amount(&Speed::new(SIZING_BYTES_FIRST, elapsed), SECOND);
            (bytes >> 20, row.size(bytes, false).warmup_bytes)
        };
        assert_eq!(of(Duration::from_micros(500)), (2000, 512 << 20));
        assert_eq!(of(4 * SECOND), (1, SIZING_BYTES_FIRST / 2));
    }

    /// The launches of a worker that needs `takes` for a size, and the trial of half a second that they predict.
    fn launches(row: &mut PairTrials, takes: impl Fn(&TrialSize) -> Duration) -> (Vec<TrialSize>, TrialSize) {
        let (mut launches, sizing) = (Vec::new(), row.sizing(SECOND / 2).expect("it is launched"));
        let speed = sizing.find(|bytes| {
            let size = row.size(bytes, true);
            launches.push(size);
            Ok::<_, ()>(Some((takes(&size), false)))
        });
        let bytes = row.amount(&speed.expect("no error").expect("no failure"), SECOND / 2);
        (launches, row.size(bytes, false))
    }

    #[test]
    fn a_worker_that_starts_slowly_is_sized_by_its_warm_speed() {
        let mut row = row(Amount::Adaptive, 4096);
        // The first `cold_bytes` cost a hundred times as much each, as in Java on a busy machine.
        for cold_bytes in [1 << 20, 4 << 20, 40 << 20] {
            let takes = |size: &TrialSize| {
                let cold = size.total_bytes().min(cold_bytes).saturating_sub(size.warmup_bytes);
                Duration::from_secs_f64(cold as f64 * 50e-9 + (size.bytes - cold) as f64 * 0.5e-9)
            };
            let (_, trial) = launches(&mut row, takes);
            let lasts = takes(&trial);
            assert!(lasts > SECOND / 4, "{cold_bytes}: {lasts:?} for {trial:?}");
        }
        let (all, _) = launches(&mut row, |size| Duration::from_nanos(size.total_bytes()));
        assert!(all.len() < 8 && all.windows(2).all(|two| two[1].bytes <= 8 * two[0].bytes), "{all:?}");
    }

    #[test]
    fn a_fixed_amount_is_launched_once_and_does_not_change() {
        let mut row = row(Amount::Bytes(100), 7);
        let expected = TrialSize { bytes: 100, block_bytes: 7, warmup_bytes: 50 };
        let (all, trial) = launches(&mut row, |_| Duration::ZERO);
        assert_eq!((all, trial), (vec![expected], expected));
    }
}
