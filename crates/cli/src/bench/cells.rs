//! What the arguments of `bench` ask for, whether it can be measured, and at which placements.

use engine::{Ask, AskedSpecs};
use mechanism::Capabilities;
use model::{Amount, Case, Cpu, PayloadKind, Placement, Spec, Tasks, Workload};
use payload::{Period, Tile};

use super::args::{BenchArgs, PlaceArgument};
use super::peer_args::Target;
use crate::terminal::{self, UsageError, refuse, usage};

impl BenchArgs {
    /// What the arguments ask for, without placements.
    pub(super) fn ask(&self) -> Ask {
        let is_between_hosts = self.peer.target.is_some();
        let specs = match (self.all, self.specs.is_empty()) {
            (_, true) if is_between_hosts => AskedSpecs::Named(vec![Spec::plain("tcp")]),
            (true, _) => AskedSpecs::All,
            (_, true) => AskedSpecs::Usual,
            _ => AskedSpecs::Named(self.specs.clone()),
        };
        let blocks = match self.sweep {
            true => (0..=20).map(|power| 1 << power).collect(),
            false => self.block.iter().map(|size| size.0).collect(),
        };
        Ask {
            specs,
            blocks,
            workload: self.workload,
            tasks: self.tasks,
            wait: self.wait,
            placements: Vec::new(),
            data: self.data.clone(),
            check: Some(self.check),
            payload: Some(self.payload.clone()),
            relays: self.relays,
            offsets: self.align.as_ref().map_or_else(Vec::new, |asked| asked.0.clone()),
            pairs: self.pairs.clone(),
            senders: self.senders.clone(),
            receivers: self.receivers.clone(),
            rates_per_s: self.rate.clone(),
            is_between_hosts,
            bytes: self.bytes.map(|bytes| bytes.0),
            count: self.count,
            trials: self.trials,
            time: self.time,
            precision: self.precision,
            seed: self.seed,
        }
    }
}

/// The cases that the arguments ask for, at these placements.
///
/// # Errors
/// A [`UsageError`]: the payload cannot be read, or the amount, the load or the other host does not fit the other arguments.
pub(super) fn cells(args: &BenchArgs, placements: &[Placement]) -> anyhow::Result<Vec<Case>> {
    Tile::make(&args.payload, args.seed, Period::Bench).map_err(UsageError::new)?;
    check_load(args)?;
    check_peer(args)?;
    let cases = Ask { placements: placements.to_vec(), ..args.ask() }.cases();
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

/// The placements of `--place`. One that is named must exist on this machine; `all` are those that exist. Default: the scheduler's choice,
/// which is what programs get, and beside it ends pinned to two CPUs, whose figures repeat better.
pub(super) fn placements(args: &BenchArgs, cpus: &[Cpu]) -> anyhow::Result<Vec<Placement>> {
    match args.place {
        None if args.peer.target.is_some() => Ok(vec![Placement::Any]),
        place => placements_of(place, args.tasks, cpus),
    }
}

/// The same for ends on this host.
pub(super) fn placements_of(
    place: Option<PlaceArgument>,
    tasks: Option<Tasks>,
    cpus: &[Cpu],
) -> anyhow::Result<Vec<Placement>> {
    let resolved = |placement: Placement| host::resolve(placement, cpus);
    match place {
        // One task does both ends.
        None if tasks == Some(Tasks::Single) => Ok(vec![Placement::Same]),
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
