//! The cases that the arguments ask for, and the floor and the ceiling that are measured beside them.

use mechanism::{Capabilities, Mechanism, Options};
use model::{
    Alignment, Amount, Case, Cpu, DataLevel, Load, PayloadKind, Placement, Role, Spec, Tasks, Wait, Workload,
};
use payload::{Period, Tile};

use super::args::{BenchArgs, PlaceArgument};
use super::peer_args::Target;
use crate::terminal::{self, UsageError, refuse, usage};

/// Bytes in a block of a stream when `--block` is not given.
const STREAM_BLOCK_BYTES: u64 = 64 << 10;

/// Bytes in a message of a round trip when `--block` is not given: few, to measure how fast the other end answers.
const PINGPONG_BLOCK_BYTES: u64 = 1;

/// The cases that the arguments ask for, at these placements.
///
/// # Errors
/// A [`UsageError`]: the payload cannot be read, or the amount, the load or the other host does not fit the other arguments.
pub(super) fn cells(args: &BenchArgs, placements: &[Placement]) -> anyhow::Result<Vec<Case>> {
    Tile::make(&args.payload, args.seed, Period::Bench).map_err(UsageError::new)?;
    check_load(args)?;
    check_peer(args)?;
    let mut levels: Vec<Option<DataLevel>> = args.data.iter().copied().map(Some).collect();
    levels.sort_unstable();
    if levels.is_empty() {
        levels.push(None);
    }
    let mut cases = Vec::new();
    for spec in specs(args) {
        let Ok((mechanism, options)) = mechanism::resolve(&spec) else { continue };
        let mut levels: Vec<_> = levels.iter().map(|level| data(*level, mechanism, &options)).collect();
        // The same level may be typed twice, or be the best that the mechanism has for several.
        levels.dedup();
        // A mechanism of one task has the same figures at every placement.
        let placements = if mechanism.tasks == [Tasks::Single] { &placements[..1] } else { placements };
        for placement in placements {
            let workloads = [Workload::Stream, Workload::PingPong].into_iter();
            for workload in workloads.filter(|workload| is_wanted(args, mechanism, *workload)) {
                for block_bytes in blocks(args, workload) {
                    let case = |data: &DataLevel| Case {
                        spec: spec.clone(),
                        role: mechanism.role,
                        workload,
                        tasks: tasks(args, mechanism),
                        placement: *placement,
                        wait: wait(args, mechanism, &options),
                        data: *data,
                        check: args.check,
                        payload: args.payload.clone(),
                        block_bytes,
                        align: Alignment::default(),
                        relays: if mechanism.role == Role::Ranked { args.chain } else { 0 },
                        toward: None,
                        load: Load::default(),
                        amount: amount(args, workload),
                    };
                    let cells = levels.iter().map(case).flat_map(|cell| args.peer.both_ways(cell));
                    cases.extend(
                        cells.flat_map(|cell| loads(args, &cell)).flat_map(|cell| aligned(args, cell)),
                    );
                }
            }
        }
    }
    check_amounts(&cases)?;
    Ok(cases)
}

/// Most bytes in a trial: more would take years, and sums of them would overflow.
const TRIAL_BYTES_MAX: u64 = 1 << 60;

/// Refuses trials that would never end.
pub(super) fn check_amounts(cases: &[Case]) -> anyhow::Result<()> {
    let too_much = |case: &Case| match case.amount {
        Amount::Adaptive => false,
        Amount::Bytes(bytes) => bytes > TRIAL_BYTES_MAX,
        Amount::Blocks(blocks) => {
            blocks.checked_mul(case.block_bytes).is_none_or(|bytes| bytes > TRIAL_BYTES_MAX)
        }
    };
    let problem = "a trial of more than 1 EiB would never end: use a smaller --bytes or --count";
    refuse([(cases.iter().any(too_much), problem)])
}

/// Refuses a load that the workload cannot have.
fn check_load(args: &BenchArgs) -> anyhow::Result<()> {
    let round_trips = args.workload == Some(Workload::PingPong);
    refuse([
        (
            round_trips && !args.senders.is_empty(),
            "many senders send a stream to one receiver: --workload stream",
        ),
        (
            round_trips && !args.receivers.is_empty(),
            "many receivers take a stream from one sender: --workload stream",
        ),
    ])
}

/// Refuses what has no meaning between two hosts.
fn check_peer(args: &BenchArgs) -> anyhow::Result<()> {
    let peer = &args.peer;
    let Some(target) = &peer.target else { return Ok(()) };
    let crosses = |spec: &&Spec| {
        let found = mechanism::resolve(spec);
        found.is_ok_and(|(found, _)| found.capabilities.contains(Capabilities::CROSSES_HOSTS))
    };
    if let Some(spec) = args.specs.iter().find(|spec| !crosses(spec)) {
        return usage(if spec.mechanism == "udp" {
            format!(
                "`{spec}` is measured on one machine: for UDP between two hosts take `iperf3 -u`, or tcp with --peer"
            )
        } else {
            format!("`{spec}` does not leave this machine: use tcp with --peer")
        });
    }
    let over_tcp = matches!(target, Target::Tcp(_));
    let is_placed = !matches!(args.place, None | Some(PlaceArgument::One(Placement::Any)));
    refuse([
        (is_placed, "the ends are on two hosts: use --place any, or leave out --place"),
        (
            matches!(args.payload, PayloadKind::File(_)),
            "a file is not there on the other host: use --payload random, printable, sequence or zero",
        ),
        (
            over_tcp && peer.token_file.is_none(),
            "tcp://ADDR:PORT needs the token of `hosepipe peer` there: --token-file F",
        ),
        (
            !over_tcp && peer.token_file.is_some(),
            "ssh needs no token: --token-file goes with tcp://ADDR:PORT",
        ),
        (
            over_tcp && (peer.send_binary || peer.peer_address.is_some()),
            "--send-binary and --peer-address go with ssh, not with tcp://ADDR:PORT",
        ),
    ])
}

fn specs(args: &BenchArgs) -> Vec<Spec> {
    match (args.all, args.specs.is_empty()) {
        (_, true) if args.peer.target.is_some() => vec![Spec::plain("tcp")],
        (true, _) => mechanism::all_specs(),
        (_, true) => mechanism::default_specs(),
        _ => args.specs.clone(),
    }
}

/// The block sizes of a workload.
fn blocks(args: &BenchArgs, workload: Workload) -> Vec<u64> {
    match (args.sweep, args.block.is_empty(), workload) {
        (true, ..) => (0..=20).map(|power| 1 << power).collect(),
        (_, false, _) => args.block.iter().map(|size| size.0).collect(),
        (_, _, Workload::Stream) => vec![STREAM_BLOCK_BYTES],
        (_, _, Workload::PingPong) => vec![PINGPONG_BLOCK_BYTES],
    }
}

/// The placements of `--place`. One that is named must exist on this machine; `all` are those that exist. Default: the scheduler's choice,
/// which is what programs get, and beside it ends pinned to two CPUs, whose figures repeat better.
pub(super) fn placements(args: &BenchArgs, cpus: &[Cpu]) -> anyhow::Result<Vec<Placement>> {
    let resolved = |placement: Placement| host::resolve(placement, cpus);
    match args.place {
        // One task does both ends.
        None if args.tasks == Some(Tasks::Single) => Ok(vec![Placement::Same]),
        None if args.peer.target.is_some() => Ok(vec![Placement::Any]),
        None => match [Placement::Cross, Placement::Smt]
            .into_iter()
            .find(|placement| resolved(*placement).is_ok())
        {
            Some(apart) => Ok(vec![Placement::Any, apart]),
            None => {
                terminal::remark("hosepipe: this process may use one CPU: both ends share it (--place same)");
                Ok(vec![Placement::Same])
            }
        },
        Some(PlaceArgument::One(placement)) => {
            resolved(placement).map_err(UsageError::new)?;
            Ok(vec![placement])
        }
        Some(PlaceArgument::All) => {
            let mut found = Vec::new();
            for placement in Placement::NAMED {
                match resolved(*placement) {
                    Ok(_) => found.push(*placement),
                    Err(problem) => {
                        terminal::remark(&format!("hosepipe: no rows for --place {placement}: {problem}"));
                    }
                }
            }
            Ok(found)
        }
    }
}

/// Whether a workload is measured: if it was asked for and goes with the other options, and if the mechanism runs it.
fn is_wanted(args: &BenchArgs, mechanism: &Mechanism, workload: Workload) -> bool {
    let is_one_way = args.chain > 0 || !args.senders.is_empty() || !args.receivers.is_empty();
    let is_asked = match args.workload {
        Some(asked) => asked == workload,
        // A chain, and many senders or receivers, have no way back; --rate alone is for round trips.
        None if workload == Workload::PingPong => !is_one_way,
        None => args.rate.is_empty(),
    };
    // A mechanism that was named gets a row, which says that it does not run the workload that was named.
    let both_are_named = args.workload.is_some() && !args.specs.is_empty();
    is_asked && (mechanism.workloads.contains(&workload) || both_are_named)
}

/// The case once for each offset of its buffers.
fn aligned(args: &BenchArgs, case: Case) -> Vec<Case> {
    let places = args.align.as_ref().map_or_else(|| vec![case.align], |asked| asked.0.clone());
    places.into_iter().map(|align| Case { align, ..case.clone() }).collect()
}

/// The case once for each load that was asked for; a floor or ceiling only once, as it is.
fn loads(args: &BenchArgs, case: &Case) -> Vec<Case> {
    if case.role != Role::Ranked {
        return vec![case.clone()];
    }
    let choices = |asked: &[u32]| -> Vec<Option<u32>> {
        if asked.is_empty() { vec![None] } else { asked.iter().copied().map(Some).collect() }
    };
    let mut cases = Vec::new();
    for pairs in choices(&args.pairs) {
        for senders in choices(&args.senders) {
            for receivers in choices(&args.receivers) {
                for rate_per_s in choices(&args.rate) {
                    let load = Load { pairs, senders, receivers, rate_per_s };
                    let case = Case { load, ..case.clone() };
                    // The same load may be typed twice.
                    if !cases.contains(&case) {
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

/// The amount of a trial. `--bytes` is for streams, unless round trips alone are asked for: the gigabytes of a stream would be days of
/// round trips of a byte.
fn amount(args: &BenchArgs, workload: Workload) -> Amount {
    let has_bytes = workload == Workload::Stream || args.workload == Some(Workload::PingPong);
    match (args.bytes, args.count) {
        (Some(bytes), _) if has_bytes => Amount::Bytes(bytes.0),
        (_, Some(blocks)) => Amount::Blocks(blocks),
        _ => Amount::Adaptive,
    }
}

/// `--tasks`. By default, and for a floor or ceiling, processes if the mechanism has them.
fn tasks(args: &BenchArgs, mechanism: &Mechanism) -> Tasks {
    let asked = args.tasks.unwrap_or(Tasks::Processes);
    let is_required = mechanism.role == Role::Ranked && args.tasks.is_some();
    if is_required || mechanism.tasks.contains(&asked) {
        return asked;
    }
    mechanism.tasks.first().copied().unwrap_or(asked)
}

/// The option `wait` of the spec, else `--wait`, else the mechanism's default.
fn wait(args: &BenchArgs, mechanism: &Mechanism, options: &Options) -> Wait {
    let own = mechanism.wait(options);
    if options.word("wait").is_some() || mechanism.role != Role::Ranked {
        own
    } else {
        args.wait.unwrap_or(own)
    }
}

/// `--data`. By default, and for a floor or ceiling, the highest level up to it that the mechanism has: tables separate the levels.
fn data(level: Option<DataLevel>, mechanism: &Mechanism, options: &Options) -> DataLevel {
    let role = mechanism.role;
    let asked = match (role, level) {
        // The ceiling is copying without a check, unless --data asks for one.
        (Role::Ceiling, None) => DataLevel::None,
        (_, asked) => asked.unwrap_or(DataLevel::Verify),
    };
    if role == Role::Ranked && level.is_some() {
        return asked;
    }
    let possible = mechanism.data(options).iter().copied().filter(|level| *level <= asked);
    possible.max().unwrap_or(DataLevel::None)
}

/// A floor and a ceiling for each block size, if they are not among the cases already.
pub(super) fn references(workload: Option<Workload>, cases: &[Case]) -> Vec<Case> {
    let mut references: Vec<Case> = Vec::new();
    for mechanism in mechanism::all() {
        let is_reference = matches!(mechanism.role, Role::Floor | Role::Ceiling);
        if !is_reference || cases.iter().any(|case| case.spec.mechanism == mechanism.name) {
            continue;
        }
        let tasks = mechanism.tasks.first().copied().unwrap_or(Tasks::Single);
        // A single task has the same figures at every placement.
        let alone = tasks == Tasks::Single;
        for measured in cases.iter().filter(|case| case.role == Role::Ranked) {
            let reference = Case {
                spec: Spec::plain(mechanism.name),
                role: mechanism.role,
                tasks,
                placement: if alone { cases[0].placement } else { measured.placement },
                wait: mechanism.waits.first().copied().unwrap_or(Wait::Block),
                data: DataLevel::None,
                relays: 0,
                align: Alignment::default(),
                load: Load::default(),
                amount: Amount::Adaptive,
                ..measured.clone()
            };
            // Two tasks that spin on one CPU measure the scheduler's clock tick, and two tasks are not a floor for a case of one task.
            let may_share = matches!(reference.placement, Placement::Same | Placement::Any);
            let is_meaningless =
                mechanism.waits == [Wait::Spin] && may_share || measured.tasks == Tasks::Single && !alone;
            let wanted = workload.is_none_or(|asked| asked == measured.workload) && !is_meaningless;
            if wanted && mechanism.workloads.contains(&measured.workload) && !references.contains(&reference)
            {
                references.push(reference);
            }
        }
    }
    references
}
