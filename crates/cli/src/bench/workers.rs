//! `bench --workers`, `--worker` and `--matrix`: programs in other languages at the two ends of a pipe.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use engine::Plan;
use model::{Amount, BenchRecord, Case, Host, Placement, RecordHead, Settings, Spec, Tasks, Workload};
use report::words;
use worker::{BuildCache, LanguageVariant, Program, Registry, Worker, WorkerAmount, WorkerPair};

use super::args::BenchArgs;
use super::cells::placements;
use super::progress::{BenchProgress, Until};
use crate::record;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError, refuse, usage};

/// Default bytes in a block.
const BLOCK_BYTES: u64 = 64 << 10;
/// Bytes sent before the clock starts, so that just-in-time compilers have finished.
const WARMUP_BYTES: u64 = 512 << 20;
/// Default length of a trial: long compared with the start of two processes.
const TRIAL: Duration = Duration::from_millis(500);
/// The same for a cell of a matrix, which has about a hundred, and if there are several blocks or workloads.
const SHORT_TRIAL: Duration = Duration::from_millis(150);
/// Default block sizes of peers, the workers that use another transport than a pipe.
const PEER_BLOCKS_BYTES: [u64; 4] = [4, 64, 1 << 10, 64 << 10];
/// The mechanisms of hosepipe that are measured beside peers.
const OWN_MECHANISMS: [(&str, Tasks); 5] = [
    ("shm-ring:wait=spin", Tasks::Processes),
    ("shm-ring:wait=spin", Tasks::Threads),
    ("shm-ring:wait=futex", Tasks::Processes),
    ("unix-seqpacket", Tasks::Processes),
    ("pipe", Tasks::Processes),
];
/// Trials that are enough for a 95 % interval of the median; a cell of a matrix shows its range instead.
const TRIALS: u32 = 6;
const TRIALS_OF_CELL: u32 = 3;

/// Programs in other languages instead of mechanisms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Programs in other languages (docs/WORKERS.md)")]
pub(crate) struct WorkerChoiceArgs {
    /// Measure one workload in these languages: all, or LANG, LANG:idiomatic, LANG:tuned… with commas, placed by the
    /// scheduler unless --place says otherwise; peers: other projects' transports, ranked beside hosepipe's
    #[arg(long, value_name = "LANG", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) workers: Option<String>,

    /// Measure a program of your own, which follows docs/WORKERS.md; may be given several times
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = NOT_WITH_WORKERS)]
    pub(crate) worker: Vec<PathBuf>,

    /// Measure the writer of each language with the reader of every other over one pipe (each in its tuned variant)
    #[arg(long)]
    pub(crate) matrix: bool,
}

/// Options that a worker decides by itself, or that have no meaning for it.
const NOT_WITH_WORKERS: [&str; 12] = [
    "specs",
    "all",
    "sweep",
    "tasks",
    "wait",
    "data",
    "payload",
    "precision",
    "pairs",
    "senders",
    "receivers",
    "rate",
];

impl WorkerChoiceArgs {
    /// Whether workers are measured instead of mechanisms.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.workers.is_some() || !self.worker.is_empty()
    }
}

/// Builds the programs, and measures them; a dry run only prints what would be measured.
pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Option<(BenchRecord, StopRequest)>> {
    check(args)?;
    let registry = Registry::open()?;
    let choices = match &args.workers.workers {
        Some(text) => registry.select(text).map_err(UsageError::new)?,
        None => Vec::new(),
    };
    let typed = args.workers.workers.as_deref().unwrap_or_default();
    let own_transport = choices.iter().find(|choice| choice.language.transport.is_some());
    if let (true, Some(choice)) = (args.workers.matrix, own_transport) {
        return usage(format!(
            "--matrix connects programs by pipes, and {} uses another transport: measure it without --matrix",
            choice.language.name
        ));
    }
    let choices = if args.workers.matrix { matrix_variants(&choices, typed) } else { choices };
    let over_pipes =
        !args.workers.worker.is_empty() || choices.iter().any(|choice| choice.language.transport.is_none());
    check_sizes(args, over_pipes)?;
    let peers = typed.split(',').any(|word| word.trim() == worker::PEERS);
    let cells = cells(args, peers)?;
    let own_cells = if peers { &cells[..] } else { &[] };
    if args.dry_run {
        terminal::print(&dry_run(args, &choices, &cells)?)?;
        return Ok(None);
    }
    args.outputs.check()?;

    let slow_copies = host::copy_costs().ok().and_then(|costs| costs.slow_offsets());
    let head = record::begin(true);
    let head = RecordHead { host: Host { slow_copies, ..head.host }, ..head };
    let stop = StopRequest::listen()?;
    let cache = BuildCache::open(&registry)?;
    let mut progress = BenchProgress::new(Until::Planned);
    let mut workers = cache.workers(&choices, &mut progress, &|| stop.is_set());
    workers.extend(args.workers.worker.iter().map(|path| Worker::from(Program::of_path(path))));
    let plan = plan(args, own_cells, &cells)?;
    let rows = worker::worker_rows(pairs(args, &workers, &cells), amount(args, &cells), plan.seed)?;
    let cleaner = peers.then(mechanism::start_cleaner).transpose();
    let _cleaner = cleaner.context("cannot start the process that cleans up after us")?;
    let mut outcome = engine::run(&plan, rows, &host::cpus(), None, &mut progress, &|| stop.is_set());
    drop(progress);
    // The engine returns hosepipe's own cases, those of the workers, and the memory copy. In the record the workers come first.
    if let Some((_memory_copy, cases)) = outcome.cases.split_last_mut() {
        cases.rotate_left(plan.cases.len());
    }

    let settings = Settings {
        seed: plan.seed,
        trials: plan.trials,
        interrupted: outcome.interrupted,
        stopped_by: outcome.interrupted.then(|| stop.reason()),
        ..Settings::default()
    };
    Ok(Some((record::bench(head, settings, outcome.cases)?, stop)))
}

/// The variants of a matrix: of each language the tuned one if it has one, and those that were named with their variant.
fn matrix_variants<'a>(choices: &[LanguageVariant<'a>], typed: &str) -> Vec<LanguageVariant<'a>> {
    let named = |choice: &LanguageVariant<'_>| {
        let with_variant = format!("{}:{}", choice.language.key, choice.variant.name);
        let variants = format!("all:{}", choice.variant.name);
        typed.to_lowercase().split(',').any(|word| word.trim() == with_variant || word.trim() == variants)
    };
    let tuned = |choice: &LanguageVariant<'_>| {
        choice.variant.name == "tuned"
            || choice.language.variants.iter().all(|variant| variant.name != "tuned")
    };
    choices.iter().filter(|choice| named(choice) || tuned(choice)).copied().collect()
}

/// What the ends exchange, and where they are. Every worker is measured in every cell.
struct Cell {
    case: Case,
    /// The CPU of each end; empty if the scheduler chooses.
    cpus: Vec<u32>,
}

/// The cells of `--place`, `--workload` and `--block`. Default: a stream of one block size, placed by the scheduler, which is what programs
/// get. For peers: both workloads, several block sizes, and an end on each of two CPUs, if there are two, as some of them spin.
fn cells(args: &BenchArgs, peers: bool) -> anyhow::Result<Vec<Cell>> {
    let cpus = host::cpus();
    let placements = match args.place {
        None if peers && host::resolve(Placement::Cross, &cpus).is_ok() => vec![Placement::Cross],
        None => vec![Placement::Any],
        Some(_) => placements(args, &cpus)?,
    };
    let workloads = match args.workload {
        Some(asked) => vec![asked],
        None if peers => vec![Workload::Stream, Workload::PingPong],
        None => vec![Workload::Stream],
    };
    let blocks: Vec<u64> = match args.block.as_slice() {
        [] if peers => PEER_BLOCKS_BYTES.to_vec(),
        [] => vec![BLOCK_BYTES],
        asked => asked.iter().map(|size| size.0).collect(),
    };
    let mut cells = Vec::new();
    for placement in placements {
        let cpus = host::resolve(placement, &cpus)?;
        for &workload in &workloads {
            let of_block = |&block_bytes: &u64| Cell {
                case: Case { placement, workload, ..WorkerPair::over_a_pipe(block_bytes) },
                cpus: cpus.clone(),
            };
            cells.extend(blocks.iter().map(of_block));
        }
    }
    Ok(cells)
}

/// The rounds of the workers in `cells`, and in `own_cells` of hosepipe's own mechanisms, with the same bytes, check, CPUs, and number and
/// length of trials.
fn plan(args: &BenchArgs, own_cells: &[Cell], cells: &[Cell]) -> anyhow::Result<Plan> {
    let amount = amount(args, cells).stream;
    let mut cases = Vec::new();
    for (spec, tasks) in OWN_MECHANISMS {
        let spec: Spec = spec.parse()?;
        let (mechanism, options) = mechanism::resolve(&spec)?;
        let wait = mechanism.wait(&options);
        cases.extend(own_cells.iter().map(|cell| Case {
            spec: spec.clone(),
            tasks,
            wait,
            amount,
            ..cell.case.clone()
        }));
    }
    let matrix = args.workers.matrix;
    let trials = args.trials.unwrap_or(if matrix { TRIALS_OF_CELL } else { TRIALS });
    let exchanged = |cell: &Cell| (cell.case.workload, cell.case.block_bytes);
    let has_several = cells.iter().any(|cell| exchanged(cell) != exchanged(&cells[0]));
    let trial = if matrix || has_several { SHORT_TRIAL } else { TRIAL };
    Ok(Plan {
        // Programs start slowly: shorter trials say nothing of them.
        trial_min: trial,
        trial_max: trial,
        stops_late_trials: false,
        round_program: Some(engine::OWN_PROGRAM.into()),
        ..Plan::new(cases, trials, args.seed, args.time)
    })
}

/// The workers of each cell: each with itself, or for a matrix each writer with each reader.
fn pairs(args: &BenchArgs, workers: &[Worker], cells: &[Cell]) -> Vec<WorkerPair> {
    let mut rows = Vec::new();
    for Cell { case: Case { placement, workload, block_bytes, .. }, cpus } in cells {
        for writer in workers {
            let mut pairs = vec![WorkerPair::with_itself(writer.clone(), *block_bytes)];
            if args.workers.matrix {
                let between =
                    |reader: &Worker| WorkerPair::between(writer.clone(), reader.clone(), *block_bytes);
                pairs = workers.iter().map(between).collect();
            }
            for pair in &mut pairs {
                (pair.case.placement, pair.case.workload, pair.cpus) = (*placement, *workload, cpus.clone());
            }
            rows.append(&mut pairs);
        }
    }
    rows
}

/// How much each trial moves.
fn amount(args: &BenchArgs, cells: &[Cell]) -> WorkerAmount {
    let of_count = args.count.map(|count| count.saturating_mul(cells[0].case.block_bytes));
    match args.bytes.map(|size| size.0).or(of_count) {
        Some(bytes) => {
            WorkerAmount { stream: Amount::Bytes(bytes), warmup_bytes_max: WARMUP_BYTES.min(bytes / 4) }
        }
        None => WorkerAmount { stream: Amount::Adaptive, warmup_bytes_max: WARMUP_BYTES },
    }
}

/// The plan as text; nothing is built.
fn dry_run(args: &BenchArgs, choices: &[LanguageVariant<'_>], cells: &[Cell]) -> anyhow::Result<String> {
    let mut names: Vec<String> =
        choices.iter().map(|choice| format!("{} {}", choice.language.name, choice.variant.name)).collect();
    names.extend(args.workers.worker.iter().map(|path| path.display().to_string()));
    let (plan, amount) = (plan(args, &[], cells)?, amount(args, cells));
    let amount = match amount.stream {
        Amount::Bytes(bytes) => format!("{bytes} bytes after {} of warm-up", amount.warmup_bytes_max),
        _ => format!("as many bytes as take {}", humantime::format_duration(plan.trial_max)),
    };
    let rows = match args.workers.matrix {
        true => words::count(names.len() * names.len() * cells.len(), "pair"),
        false => words::count(names.len() * cells.len(), "worker"),
    };
    let place = |Cell { case, cpus }: &Cell| match cpus.as_slice() {
        [] => case.placement.to_string(),
        cpus => {
            let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
            format!("{} ({})", case.placement, numbers.join(","))
        }
    };
    let mut places: Vec<String> = cells.iter().map(place).collect();
    places.dedup();
    let mut blocks: Vec<String> =
        cells.iter().map(|cell| model::ByteSize(cell.case.block_bytes).to_string()).collect();
    blocks.sort();
    blocks.dedup();
    Ok(format!(
        "{}\nplaced: {}\n\n{rows} x {} of {amount} in blocks of {}, fresh processes each, after the builds, each round in a \
         random order of seed {}\n",
        names.join("\n"),
        places.join(", "),
        words::count(plan.trials as usize, "trial"),
        blocks.join(", "),
        plan.seed,
    ))
}

/// Refuses options that workers do not have.
fn check(args: &BenchArgs) -> anyhow::Result<()> {
    // A name without a slash is searched in PATH.
    let is_missing = |path: &PathBuf| path.components().count() > 1 && !path.is_file();
    refuse([
        (
            args.workers.worker.iter().any(is_missing),
            "--worker: there is no such program: give a path, as in ./my-program, or a name in PATH",
        ),
        (args.align.is_some(), "--align is not for workers: their languages place the buffers"),
        (args.relays > 0, "--chain is not for workers: there are no relays between them"),
    ])
}

/// Refuses what only peers can do.
fn check_sizes(args: &BenchArgs, over_pipes: bool) -> anyhow::Result<()> {
    refuse([
        (
            over_pipes && args.workload == Some(Workload::PingPong),
            "of workers only peers make round trips: --workers peers --workload pingpong",
        ),
        (
            over_pipes && args.block.len() > 1,
            "workers over a pipe are measured with one block size: --block 64KiB",
        ),
    ])
}
