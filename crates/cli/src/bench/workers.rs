//! `bench --workers` and `bench --worker`: programs in other languages at the two ends of a pipe.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use model::{
    Amount, Case, Check, Host, Observer, PayloadKind, Placement, Settings, Silent, Spec, Tasks, Workload,
};
use worker::{
    BuildCache, LanguageVariant, Program, Registry, RowsBeside, TrialSize, Worker, WorkerPair, WorkerPlan,
};

use super::args::BenchArgs;
use super::plan;
use super::progress::{BenchProgress, Until};
use crate::record;
use crate::signals::StopRequest;
use crate::terminal::{self, UsageError};

/// Bytes in a block when `--block` is not given: the study's.
const BLOCK_BYTES: u64 = 64 << 10;
/// Sent before the clock, so that just-in-time compilers have done their work.
const WARMUP_BYTES: u64 = 512 << 20;
/// What a trial lasts when `--bytes` is not given: long enough for a start to be forgotten.
const TRIAL: Duration = Duration::from_millis(500);
/// The same for a cell of a matrix, of which there are a hundred.
const CELL: Duration = Duration::from_millis(150);
/// Bytes in a block of peers when `--block` is not given.
const PEER_BLOCKS_BYTES: [u64; 4] = [4, 64, 1 << 10, 64 << 10];
/// What of hosepipe's stands beside peers.
const OWN: [(&str, Tasks); 5] = [
    ("shm-ring:wait=spin", Tasks::Processes),
    ("shm-ring:wait=spin", Tasks::Threads),
    ("shm-ring:wait=futex", Tasks::Processes),
    ("unix-seqpacket", Tasks::Processes),
    ("pipe", Tasks::Processes),
];
/// Enough for a 95 % interval of the median; a cell has its range.
const TRIALS: u32 = 6;
const TRIALS_OF_A_CELL: u32 = 3;

/// Builds what is to be built, measures, and shows the table.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    check(args)?;
    let registry = Registry::open()?;
    let choices = match &args.workers.workers {
        Some(text) => registry.select(text).map_err(|error| UsageError(error.to_string()))?,
        None => Vec::new(),
    };
    let typed = args.workers.workers.as_deref().unwrap_or_default();
    let own_transport = choices.iter().find(|choice| choice.language.transport.is_some());
    if let (true, Some(choice)) = (args.workers.matrix, own_transport) {
        let name = &choice.language.name;
        let message =
            format!("the ends of {name} meet over no pipe, and no other program's: without --matrix");
        return Err(UsageError(message).into());
    }
    let choices = if args.workers.matrix { one_of_each(&choices, typed) } else { choices };
    let over_pipes =
        !args.workers.worker.is_empty() || choices.iter().any(|choice| choice.language.transport.is_none());
    check_sizes(args, over_pipes)?;
    let peers = typed.split(',').any(|word| word.trim() == worker::PEERS);
    let places = places(args, peers)?;
    let messages = messages(args, peers);
    if args.dry_run {
        terminal::print(&dry_run(args, &choices, &places, &messages))?;
        return Ok(ExitCode::SUCCESS);
    }
    args.outputs.check()?;

    let slow_copies = host::copy_costs().ok().and_then(|costs| costs.slow_offsets());
    let host = Host { slow_copies, ..host::facts() };
    let started = std::time::SystemTime::now();
    let stop = StopRequest::listen()?;
    let cache = BuildCache::open(registry.clone())?;
    let mut progress = BenchProgress::new(Until::Planned);
    let mut workers = cache.workers(&choices, &mut progress, &|| stop.is_set());
    workers.extend(args.workers.worker.iter().map(|path| Worker::from(Program::of_path(path))));
    let plan = plan(args, &workers, &places, &messages);
    let own = if peers { own_rows(&plan, &places, &messages)? } else { Vec::new() };
    let own = own_plan(&plan, own);
    let cleaner = peers.then(mechanism::start_cleaner).transpose();
    let _cleaner = cleaner.context("cannot start the process that cleans up after us")?;
    progress.progress("warming up hosepipe's own rows", None);
    let (mut silent, stopped) = (Silent, || stop.is_set());
    let mut own_session = engine::Session::start(&own, &host::cpus(), &mut silent, &stopped);
    let mut trial = |row, round| own_session.take_trial(row, round);
    let beside = RowsBeside { count: own.cases.len(), trial: &mut trial };
    let mut outcome = worker::measure_beside(&plan, beside, &mut progress, &stopped)?;
    progress.finish();
    outcome.cases.extend(own_session.into_cases());
    outcome.cases.push(outcome.ceiling);

    let settings = Settings {
        seed: plan.seed,
        trials: plan.trials,
        interrupted: outcome.interrupted,
        suite: None,
        repeated_rounds: None,
        precision_percent: None,
        took_s: None,
    };
    let record = record::bench(settings, outcome.cases, host, started)?;
    super::show(args, record, &stop)
}

/// For a matrix a language stands once, with its tuned variant where it has one; one that was named with its
/// variant stands as named.
fn one_of_each<'a>(choices: &[LanguageVariant<'a>], typed: &str) -> Vec<LanguageVariant<'a>> {
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

/// A placement as asked, and the CPUs it comes to.
type Placed = (Placement, Vec<u32>);

/// Where the ends are to sit: the scheduler's choice, which is what programs get, unless something else is asked for.
/// Transports that spin are measured with an end on each of two CPUs, if there are two.
fn places(args: &BenchArgs, peers: bool) -> anyhow::Result<Vec<Placed>> {
    let cpus = host::cpus();
    let asked = match args.place {
        None if peers && host::resolve(Placement::Cross, &cpus).is_ok() => vec![Placement::Cross],
        None => vec![Placement::Any],
        Some(_) => plan::placements(args, &cpus)?,
    };
    let seated = asked.into_iter().map(|placement| Ok((placement, host::resolve(placement, &cpus)?)));
    seated.collect()
}

/// What is moved: a workload and the bytes handed over in one call.
type Messages = (Workload, u64);

/// What was asked for; a stream of blocks of the study's size, and of peers more.
fn messages(args: &BenchArgs, peers: bool) -> Vec<Messages> {
    let asked: Vec<u64> = args.block.iter().map(|size| size.0).collect();
    let blocks = match asked.as_slice() {
        [] if peers => PEER_BLOCKS_BYTES.to_vec(),
        [] => vec![BLOCK_BYTES],
        _ => asked,
    };
    let workloads = match args.workload {
        Some(asked) => vec![asked],
        None if peers => vec![Workload::Stream, Workload::PingPong],
        None => vec![Workload::Stream],
    };
    workloads.iter().flat_map(|workload| blocks.iter().map(|bytes| (*workload, *bytes))).collect()
}

/// Hosepipe's own transports beside those of others: the same bytes, the same check, the same CPUs.
fn own_rows(plan: &WorkerPlan, places: &[Placed], messages: &[Messages]) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (spec, tasks) in OWN {
        let spec: Spec = spec.parse()?;
        let (mechanism, options) = mechanism::resolve(&spec)?;
        let base = Case {
            tasks,
            wait: mechanism.wait(&options),
            check: Check::Xor,
            payload: PayloadKind::Sequence,
            ..Case::stream(spec)
        };
        for (placement, _) in places {
            cases.extend(messages.iter().map(|(workload, block_bytes)| Case {
                placement: *placement,
                workload: *workload,
                block_bytes: *block_bytes,
                amount: match plan.amount {
                    TrialSize::Fixed { bytes, .. } => Amount::Bytes(bytes),
                    TrialSize::Lasting { .. } => Amount::Adaptive,
                },
                ..base.clone()
            }));
        }
    }
    Ok(cases)
}

/// Trials of the workers' number and length.
fn own_plan(plan: &WorkerPlan, cases: Vec<Case>) -> engine::Plan {
    let mut own = engine::Plan::new(cases, plan.trials, plan.seed, None);
    if let TrialSize::Lasting { trial, .. } = plan.amount {
        own.trial_max = trial;
    }
    own
}

fn plan(args: &BenchArgs, workers: &[Worker], places: &[Placed], messages: &[Messages]) -> WorkerPlan {
    let matrix = args.workers.matrix;
    let block_bytes = messages[0].1;
    let with_each = |writer: &Worker| -> Vec<WorkerPair> {
        let readers = workers.iter().cloned();
        readers.map(|reader| WorkerPair::between(writer.clone(), reader, block_bytes)).collect()
    };
    let rows: Vec<WorkerPair> = if matrix {
        workers.iter().flat_map(with_each).collect()
    } else {
        let of = |(workload, bytes): &Messages| -> Vec<WorkerPair> {
            let workers = workers.iter().cloned();
            workers.map(|worker| WorkerPair::with_itself(worker, *bytes).running(*workload)).collect()
        };
        messages.iter().flat_map(of).collect()
    };
    let on = |(placement, cpus): &Placed| -> Vec<WorkerPair> {
        rows.iter().map(|row| row.clone().on(*placement, cpus.clone())).collect()
    };
    let rows = places.iter().flat_map(on).collect();
    let bytes = args.bytes.map(|size| size.0).or(args.count.map(|count| count.saturating_mul(block_bytes)));
    WorkerPlan {
        rows,
        amount: match bytes {
            Some(bytes) => TrialSize::Fixed { bytes, warmup_bytes: WARMUP_BYTES.min(bytes / 4) },
            None => TrialSize::Lasting {
                trial: if matrix || messages.len() > 1 { CELL } else { TRIAL },
                warmup_bytes_max: WARMUP_BYTES,
            },
        },
        trials: args.trials.unwrap_or(if matrix { TRIALS_OF_A_CELL } else { TRIALS }),
        seed: args.seed,
        budget: args.time,
    }
}

/// What would be measured; builds nothing.
fn dry_run(
    args: &BenchArgs,
    choices: &[LanguageVariant<'_>],
    places: &[Placed],
    messages: &[Messages],
) -> String {
    let mut names: Vec<String> =
        choices.iter().map(|choice| format!("{} {}", choice.language.name, choice.variant.name)).collect();
    names.extend(args.workers.worker.iter().map(|path| path.display().to_string()));
    let plan = plan(args, &[], &[], messages);
    let amount = match plan.amount {
        TrialSize::Fixed { bytes, warmup_bytes } => format!("{bytes} bytes after {warmup_bytes} of warm-up"),
        TrialSize::Lasting { trial, .. } => {
            format!("as many bytes as take {}", humantime::format_duration(trial))
        }
    };
    let each = if args.workers.matrix { names.len() * names.len() } else { names.len() * messages.len() };
    let rows = each * places.len();
    let seated = |(placement, cpus): &Placed| match cpus.as_slice() {
        [] => placement.to_string(),
        cpus => format!("{placement} ({})", cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
    };
    let places: Vec<String> = places.iter().map(seated).collect();
    let mut blocks: Vec<String> =
        messages.iter().map(|(_, bytes)| model::ByteSize(*bytes).to_string()).collect();
    blocks.sort();
    blocks.dedup();
    format!(
        "{}\nplaced: {}\n\n{} x {} trials of {amount} in blocks of {}, fresh processes each, after the builds, each round in a \
         random order of seed {}\n",
        names.join("\n"),
        places.join(", "),
        if args.workers.matrix { format!("{rows} pairs") } else { format!("{rows} workers") },
        plan.trials,
        blocks.join(", "),
        plan.seed,
    )
}

/// Refuses what the parser cannot know to be in the way.
///
/// # Errors
/// Several block sizes, relays, or a matrix of nothing.
pub(super) fn check(args: &BenchArgs) -> Result<(), UsageError> {
    let wrong = |message: &str| Err(UsageError(message.to_owned()));
    match args {
        _ if args.workers.matrix && !args.workers.are_asked_for() => {
            wrong("--matrix needs programs to pair: --workers all --matrix")
        }
        _ if !args.workers.are_asked_for() => Ok(()),
        _ if args.workers.worker.iter().any(|path| names_no_file(path)) => {
            wrong("--worker names a program that is not there: a path, as in ./my-program, or a name in PATH")
        }
        _ if args.align.is_some() => {
            wrong("a worker's buffers are where its language puts them: without --align")
        }
        _ if args.chain > 0 => wrong("there are no relays between workers: without --chain"),
        _ => Ok(()),
    }
}

/// Refuses what only the ends of a transport of their own can do.
fn check_sizes(args: &BenchArgs, over_pipes: bool) -> Result<(), UsageError> {
    let message = match args.workload {
        _ if !over_pipes => return Ok(()),
        Some(Workload::PingPong) => {
            "round trips are of transports of others: --workers peers --workload pingpong"
        }
        _ if args.block.len() > 1 => "workers of a pipe take one block size at a time: --block 64KiB",
        _ => return Ok(()),
    };
    Err(UsageError(message.to_owned()))
}

/// A path that leads nowhere; a bare name may be found in PATH.
fn names_no_file(path: &Path) -> bool {
    path.components().count() > 1 && !path.is_file()
}
