//! Every peer that is here: each job as a stream and as round trips, checked.

use std::cell::RefCell;

use model::{Observer, Workload};
use worker::{Job, Launch, Launcher, RowsBeside, TrialSize, Worker, WorkerPair, WorkerPlan, measure_beside};

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
            let job = Job { bytes, block_bytes, warmup_bytes };
            for workload in [Workload::Stream, Workload::PingPong] {
                let launch = Launch { workload, ..Launch::pair(program, program) };
                let run = launcher.run(&launch, &job, job.limit(), &|| false);
                let run = run.unwrap_or_else(|error| {
                    panic!("{}, {}: {error:?}", name(program, &job), launch.workload)
                });
                assert_eq!(run.sample.bytes, job.bytes);
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
fn rows_beside_workers_take_their_turns_within_each_round() {
    let Some(program) = peers().first() else { return };
    let rows = vec![WorkerPair::with_itself(Worker::from(program.clone()), 64)];
    let amount = TrialSize::Fixed { bytes: 1000, warmup_bytes: 0 };
    let plan = WorkerPlan { rows, amount, trials: 6, seed: 1, budget: None };
    let order = RefCell::new(Vec::new());
    let mut trial = |row: usize, round: u32| {
        assert_eq!(order.borrow().len() / 3, round as usize);
        order.borrow_mut().push(1 + row);
    };
    let beside = RowsBeside { count: 2, trial: &mut trial };
    let measured =
        measure_beside(&plan, beside, &mut Noted(&order), &|| false).expect("a folder for results");
    assert_eq!((measured.cases[0].samples.len(), measured.interrupted), (6, false));
    let order = order.into_inner();
    let rounds: Vec<&[usize]> = order.chunks(3).collect();
    assert!(rounds.iter().all(|round| (0..3).all(|row| round.contains(&row))), "{rounds:?}");
    let places: Vec<_> = rounds.iter().map(|round| round.iter().position(|row| *row == 0)).collect();
    assert!(places.iter().any(|place| *place != places[0]), "{rounds:?}");
}
