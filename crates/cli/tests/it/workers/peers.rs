//! Every peer that is here: each size as a stream and as round trips, checked.

use std::cell::RefCell;

use model::{Amount, Case, Observer, Role, Spec, Workload};
use worker::{Launch, Launcher, TrialSize, Worker, WorkerAmount, WorkerPair, worker_rows};

use super::fleet::peers;
use super::name;

/// Elements of fixed size and what is no multiple of them, a queue of bytes, a shorter last block.
const JOBS: [(u64, u64, u64); 4] =
    [(1, 1, 7), (4003, 4, 4000), (70_001, 64, 999), ((1 << 20) + 3, 65537, 4099)];

#[test]
fn peers_move_streams_and_round_trips() {
    let mut launcher = Launcher::new().expect("a launcher");
    for program in peers() {
        for (bytes, block_bytes, warmup_bytes) in JOBS {
            let size = TrialSize { bytes, block_bytes, warmup_bytes };
            for workload in [Workload::Stream, Workload::PingPong] {
                let launch = Launch { workload, ..Launch::pair(program, program) };
                let run = launcher.run(&launch, &size, size.limit(), &|| false);
                let run = run.unwrap_or_else(|error| {
                    panic!("{}, {}: {error:?}", name(program, &size), launch.workload)
                });
                assert_eq!(run.sample.bytes, size.bytes);
            }
        }
    }
}

/// Notes the rows whose trials are started.
struct Noted<'a>(&'a RefCell<Vec<usize>>);

impl Observer for Noted<'_> {
    fn trial_started(&mut self, index: usize) {
        self.0.borrow_mut().push(index);
    }
}

#[test]
fn rows_of_hosepipe_take_their_turns_with_workers_within_each_round() {
    let Some(program) = peers().first() else { return };
    let pairs = vec![WorkerPair::with_itself(Worker::from(program.clone()), 64)];
    let amount = WorkerAmount { stream: Amount::Bytes(1000), warmup_bytes_max: 0 };
    let rows = worker_rows(pairs, amount, 1).expect("a folder for results");
    let own = Case { amount: amount.stream, ..Case::stream(Spec::plain("no-such-mechanism")) };
    let plan = engine::Plan::new(vec![own], 6, 1, None);
    let order = RefCell::new(Vec::new());
    let outcome = engine::run(&plan, rows, &[], None, &mut Noted(&order), &|| false);
    let samples: Vec<usize> = outcome.cases.iter().map(|case| case.samples.len()).collect();
    assert_eq!((samples, outcome.interrupted), (vec![0, 6, 6], false), "one has failed before");
    assert_eq!(outcome.cases[2].role, Role::Ceiling);
    let order = order.into_inner();
    let rounds: Vec<&[usize]> = order.chunks(2).collect();
    assert!(rounds.iter().all(|round| round.contains(&1) && round.contains(&2)), "{rounds:?}");
    assert!(rounds.iter().any(|round| *round != rounds[0]), "{rounds:?}");
}
