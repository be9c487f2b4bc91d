//! The rule, over cases whose figures are known.

use super::*;
use crate::mock;
use model::{Placement, Workload};
use proptest::prelude::*;

/// A stream that takes so long per message, and so much CPU, each with a spread of ±`spread` over nine trials.
fn case(spec: &str, time_ns: f64, cpu_ns: f64, spread: f64) -> CaseRecord {
    const MESSAGES: u64 = 1_000_000;
    let samples = (0..9).map(|round| {
        let factor = 1.0 + spread * (f64::from(round) - 4.0) / 4.0;
        Sample {
            elapsed_ns: (time_ns * factor * MESSAGES as f64) as u64,
            messages: MESSAGES,
            system_ns: (cpu_ns * factor * MESSAGES as f64) as u64,
            ..mock::sample(round)
        }
    });
    let spec: Spec = spec.parse().unwrap();
    let wait = if spec.to_string().contains("spin") { Wait::Spin } else { Wait::Block };
    CaseRecord {
        mechanism: spec.mechanism.clone(),
        spec,
        wait,
        ..mock::case(Workload::Stream, samples.collect())
    }
}

/// The same with the noise of later rounds, so that now this case is the cheaper one and now another.
fn later(mut case: CaseRecord, rounds: u32) -> CaseRecord {
    case.samples.iter_mut().for_each(|sample| sample.round = (sample.round + rounds) % 9);
    case
}

/// A stream of messages that are due at a rate, of which this one reaches as many as its time allows; the CPU time is that at the rate.
fn paced(spec: &str, rate_per_s: u32, time_ns: f64, cpu_ns: f64) -> CaseRecord {
    let interval_ns = time_ns.max(1e9 / f64::from(rate_per_s));
    let mut case = CaseRecord { rate_per_s: Some(rate_per_s), ..case(spec, interval_ns, cpu_ns, 0.0) };
    // One interval less than there are messages.
    case.samples.iter_mut().for_each(|sample| sample.elapsed_ns -= interval_ns as u64);
    case
}

fn taken(cases: &[CaseRecord], demand: Demand) -> Option<String> {
    let cases: Vec<&CaseRecord> = cases.iter().collect();
    choose(&cases, &demand).taken.map(|at| cases[at].spec.to_string())
}

fn may_be_taken(choice: &Choice) -> Vec<usize> {
    choice.ranked.iter().filter(|one| one.may_be_taken).map(|one| one.at).collect()
}

fn excluded(cases: &[CaseRecord], demand: Demand, at: usize) -> Option<Excluded> {
    choose(&cases.iter().collect::<Vec<_>>(), &demand).case(at).unwrap().excluded
}

const PLAIN: Demand = Demand { messages_per_s: None, cpus_max: None };

#[test]
fn the_least_time_and_cpu_wins() {
    let cases = [case("pipe", 900.0, 900.0, 0.01), case("shm-ring", 100.0, 150.0, 0.01)];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("shm-ring"));
    // Twice as fast for four times the CPU is no gain.
    let cases = [case("unix-stream", 500.0, 2400.0, 0.01), case("fifo", 1000.0, 600.0, 0.01)];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("fifo"));
}

#[test]
fn of_those_not_known_to_differ_the_simplest_is_taken() {
    let cases = [
        case("shm-ring", 100.0, 100.0, 0.10),
        later(case("tcp", 108.0, 108.0, 0.10), 4),
        case("pipe", 300.0, 300.0, 0.10),
    ];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("tcp"));
    let all: Vec<&CaseRecord> = cases.iter().collect();
    let choice = choose(&all, &PLAIN);
    assert_eq!(may_be_taken(&choice), [0, 1]);
    assert_eq!([0, 1].map(|at| choice.shares_first_place(at)), [true, false], "nothing was shown of tcp");
    let same = [case("pipe:size=1MiB", 100.0, 100.0, 0.1), case("pipe", 101.0, 101.0, 0.1)];
    assert_eq!(taken(&same, PLAIN).as_deref(), Some("pipe"), "without an option");
}

/// Expected: `fifo` costs more than `pipe` in every round, by 2 % in the median one: nobody would choose by that.
/// Happened: such a lead, once it was certain, counted as if it were of three times.
#[test]
fn a_certain_lead_of_two_percent_does_not_outweigh_simplicity() {
    let more = |by: [f64; 9]| {
        let mut case = case("pipe", 100.0, 100.0, 0.2);
        for (sample, by) in case.samples.iter_mut().zip(by) {
            sample.elapsed_ns = (sample.elapsed_ns as f64 * by) as u64;
            sample.system_ns = (sample.system_ns as f64 * by) as u64;
        }
        case
    };
    let cases = |by| [more(by), case("tcp", 100.0, 100.0, 0.2)];
    let slightly = cases([1.01, 1.02, 1.01, 1.3, 1.02, 1.02, 1.4, 1.01, 1.03]);
    let all: Vec<&CaseRecord> = slightly.iter().collect();
    let choice = choose(&all, &PLAIN);
    assert_eq!(
        (choice.standing.first.iter().map(|one| one.at).collect::<Vec<_>>(), choice.taken),
        (vec![1], Some(0))
    );
    let clearly = cases([1.05, 1.06, 1.04, 1.3, 1.05, 1.06, 1.4, 1.04, 1.05]);
    assert_eq!(taken(&clearly, PLAIN).as_deref(), Some("tcp"));
}

/// Expected: what failed half-way is no choice. Happened: its first trials were cheap, and it was taken.
#[test]
fn what_failed_is_not_taken() {
    let mut cases = [case("pipe", 100.0, 100.0, 0.01), case("tcp", 200.0, 200.0, 0.01)];
    cases[0].error = Some(model::CaseError::new(model::ErrorKind::Failed, "EPIPE"));
    assert_eq!(
        (taken(&cases, PLAIN).as_deref(), excluded(&cases, PLAIN, 0)),
        (Some("tcp"), Some(Excluded::NoFigures))
    );
}

/// Expected: where nothing is known to differ, what is likely to be the best.
/// Happened: a pipe that cost three times as much, since it is simpler and all intervals were wide.
#[test]
fn wide_intervals_alone_do_not_make_the_simplest_good() {
    let cases = [
        case("shm-ring", 100.0, 100.0, 0.9),
        later(case("tcp", 120.0, 120.0, 0.9), 4),
        later(case("pipe", 300.0, 300.0, 0.9), 6),
    ];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("tcp"));
}

#[test]
fn who_spins_is_taken_only_where_the_cpus_are_there_to_be_spent() {
    let cases = [case("pipe", 900.0, 900.0, 0.01), case("shm-ring:wait=spin", 50.0, 99.0, 0.01)];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("pipe"));
    assert_eq!(excluded(&cases, PLAIN, 1), Some(Excluded::Spins));
    let two = Demand { cpus_max: Some(2.0), ..PLAIN };
    assert_eq!(taken(&cases, two).as_deref(), Some("shm-ring:wait=spin"));
    // However seldom a message comes, its receiver burns a CPU.
    let seldom = Demand { messages_per_s: Some(1.0), cpus_max: Some(0.5) };
    let at_one = [paced("pipe", 1, 900.0, 20_000.0), paced("shm-ring:wait=spin", 1, 50.0, 1e9)];
    assert_eq!(taken(&at_one, seldom).as_deref(), Some("pipe"));
    assert_eq!(excluded(&at_one, seldom, 1), Some(Excluded::Spins));
    assert_eq!(taken(&at_one, Demand { messages_per_s: Some(1.0), cpus_max: None }).as_deref(), Some("pipe"));
    assert_eq!(taken(&cases[1..], PLAIN), None, "alone it is no plain answer, either");
}

/// Expected: ends that spin keep two CPUs busy, wherever they sat when they were measured.
/// Happened: where both shared one CPU the sum was one CPU, and a budget of 100 % let them pass.
#[test]
fn who_spins_takes_a_cpu_for_each_end() {
    let mut cases = [case("pipe", 900.0, 900.0, 0.01), case("shm-ring:wait=spin", 50.0, 50.0, 0.01)];
    let budget = |cpus_max| Demand { cpus_max: Some(cpus_max), ..PLAIN };
    assert_eq!(excluded(&cases, budget(1.5), 1), Some(Excluded::Spins));
    assert_eq!(excluded(&cases, budget(2.0), 1), None);
    cases[1].placement = Placement::Any;
    cases[1].samples.iter_mut().for_each(|sample| sample.same_cpu_share = Some(0.0));
    assert_eq!(excluded(&cases, budget(2.0), 1), None);
    cases[1].samples[3].same_cpu_share = Some(1.0);
    assert_eq!(excluded(&cases, budget(2.0), 1), Some(Excluded::SpinsOnOneCpu));
    assert_eq!(excluded(&cases, budget(1.5), 1), Some(Excluded::Spins));
    cases[1].tasks = Tasks::Single;
    cases[1].samples[3].same_cpu_share = None;
    assert_eq!(excluded(&cases, budget(1.0), 1), None, "one end");
}

#[test]
fn few_trials_prove_no_difference() {
    let mut cases = [case("shm-ring", 100.0, 100.0, 0.01), case("pipe", 120.0, 120.0, 0.01)];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("shm-ring"));
    cases[1].samples.truncate(5);
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("pipe"));
    let dear = [case("pipe", 300.0, 300.0, 0.01), cases[0].clone()];
    assert_eq!(taken(&dear, PLAIN).as_deref(), Some("shm-ring"));
}

#[test]
fn a_rate_must_be_reached_and_then_the_cpu_decides() {
    let rate = |messages_per_s| Demand { messages_per_s: Some(messages_per_s), ..PLAIN };
    let at = |rate| [paced("shm-ring", rate, 100.0, 190.0), paced("unix-stream", rate, 900.0, 150.0)];
    assert_eq!(taken(&at(1_000_000), rate(1e6)).as_deref(), Some("unix-stream"));
    assert_eq!(taken(&at(2_000_000), rate(2e6)).as_deref(), Some("shm-ring"));
    assert_eq!(excluded(&at(2_000_000), rate(2e6), 1), Some(Excluded::TooSlow));
    assert_eq!(taken(&at(10_000_000), rate(1e8)), None);
    assert_eq!(taken(&at(2_000_000), PLAIN).as_deref(), Some("shm-ring"), "in `bench --rate`, too");
    let nearly = |time_ns| excluded(&[paced("pipe", 1_000_000, time_ns, 1.0)], rate(1e6), 0);
    assert_eq!((nearly(1050.0), nearly(1060.0)), (None, Some(Excluded::TooSlow)), "from 95 % on");
}

/// Expected: at 1,000 a second the CPU time of trials at that rate decides.
/// Happened: that of full speed, at which a ring wakes nobody: its CPU time was 53 ns, and 14 µs at that rate, where a pipe's was 7.
#[test]
fn full_speed_says_nothing_of_a_rate() {
    let rate = Demand { messages_per_s: Some(1000.0), cpus_max: Some(0.01) };
    let full = [case("fifo", 900.0, 1044.0, 0.01), case("shm-ring", 50.0, 53.0, 0.01)];
    assert_eq!((taken(&full, rate), excluded(&full, rate, 1)), (None, Some(Excluded::NoFigures)));
    let at_rate = [paced("fifo", 1000, 900.0, 7000.0), paced("shm-ring", 1000, 50.0, 14_000.0)];
    assert_eq!(taken(&at_rate, rate).as_deref(), Some("fifo"));
    assert_eq!(excluded(&at_rate, rate, 1), Some(Excluded::TooMuchCpu), "1.4 % of a CPU");
}

/// Expected: the response time and the server's CPU time. Happened: 160 µs of the client's polling for each round trip, and ranks by it.
#[test]
fn the_client_of_paced_round_trips_costs_nothing() {
    let end = |system_ns| model::EndUsage { system_ns, ..model::EndUsage::default() };
    let trips = |spec: &str, response_ns: u64, [client_ns, server_ns]: [u64; 2]| {
        let sample = |round| Sample {
            round,
            elapsed_ns: 9_000_000,
            messages: 10,
            latency_histogram: mock::round_trips(round, &[response_ns; 10]).latency_histogram,
            ..Sample::of_ends(vec![end(10 * client_ns), end(10 * server_ns)])
        };
        let spec: Spec = spec.parse().unwrap();
        let case = mock::case(Workload::PingPong, (0..9).map(sample).collect());
        CaseRecord { rate_per_s: Some(1000), mechanism: spec.mechanism.clone(), spec, ..case }
    };
    let cases = [trips("pipe", 2000, [160_000, 7000]), trips("tcp", 1900, [90_000, 9000])];
    let costs = |demand: &Demand| {
        let choice = choose(&cases.iter().collect::<Vec<_>>(), demand);
        [0, 1].map(|at| choice.case(at).and_then(|one| one.cost).map(|cost| cost.ranking_ns.median as u64))
    };
    assert_eq!(costs(&PLAIN), [Some(9000), Some(10_900)]);
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("pipe"));
    // Of two programs the client is one.
    let both = Demand { messages_per_s: Some(1000.0), cpus_max: None };
    assert_eq!(costs(&both), [Some(167_000), Some(99_000)]);
}

#[test]
fn a_budget_is_kept() {
    let cases = [case("pipe", 1000.0, 1000.0, 0.01), case("fifo", 1500.0, 600.0, 0.01)];
    let budget = |cpus_max| Demand { cpus_max: Some(cpus_max), ..PLAIN };
    assert_eq!(taken(&cases, budget(0.5)).as_deref(), Some("fifo"));
    assert_eq!(excluded(&cases, budget(0.5), 0), Some(Excluded::TooMuchCpu));
    assert_eq!(taken(&cases, budget(0.1)), None);
    let slow = |cpus_max| Demand { messages_per_s: Some(1e5), cpus_max: Some(cpus_max) };
    let at_rate = [paced("pipe", 100_000, 1000.0, 4000.0)];
    assert_eq!(taken(&at_rate, slow(0.41)).as_deref(), Some("pipe"));
    assert_eq!(excluded(&at_rate, slow(0.39), 0), Some(Excluded::TooMuchCpu));
}

#[test]
fn untouched_data_win_nothing() {
    let mut cases = [case("pipe", 900.0, 900.0, 0.01), case("shm-ring", 1.0, 1.0, 0.01)];
    cases[1].data = DataLevel::None;
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("pipe"));
    cases[1].data = DataLevel::Write;
    assert_eq!(excluded(&cases, PLAIN, 1), Some(Excluded::LessData));
    cases[0].samples.clear();
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("shm-ring"), "one level only, and it is written");
}

#[test]
fn missing_figures_and_single_samples() {
    let mut cases = [case("pipe", 900.0, 900.0, 0.5), case("tcp", 890.0, 890.0, 0.5)];
    cases.iter_mut().for_each(|case| case.samples.truncate(1));
    let all: Vec<&CaseRecord> = cases.iter().collect();
    assert_eq!(choose(&all, &PLAIN).taken, Some(0), "single trials are not known to differ");
    cases[1].samples[0].system_ns = 0;
    assert_eq!(excluded(&cases, PLAIN, 1), Some(Excluded::NoFigures), "nothing costs no CPU");
    cases[0].samples.clear();
    assert_eq!(taken(&cases, PLAIN), None);
    assert_eq!(taken(&[], PLAIN), None);
}

#[test]
fn options_that_need_code_make_a_mechanism_complicated() {
    for (spec, expected) in [
        ("pipe", (0, 0, 0)),
        ("pipe:size=1MiB", (0, 0, 1)),
        ("pipe:send=vmsplice", (1, 0, 1)),
        ("tcp:nodelay,sndbuf=4096,rcvbuf=4096", (0, 7, 3)),
        ("shm-ring:wait=spin", (0, 11, 1)),
        ("other:a=1,b=2,size=3", (2, 13, 3)),
    ] {
        assert_eq!(effort(&spec.parse().unwrap()), expected, "{spec}");
    }
}

/// Nine trials of a message that takes 1000 ns and 500 ns of CPU.
#[test]
fn a_message_costs_its_time_and_its_cpu() {
    let rate = |messages_per_s| Demand { messages_per_s: Some(messages_per_s), ..PLAIN };
    let blocking = case("pipe", 1000.0, 500.0, 0.0);
    let [at_full, at_tenth] = [1_000_000, 100_000].map(|rate| paced("pipe", rate, 1000.0, 500.0));
    let spun = paced("shm-ring:wait=spin", 1_000_000, 1000.0, 500.0);
    let spinning = case("shm-ring:wait=spin", 1000.0, 500.0, 0.0);
    let single = CaseRecord { tasks: Tasks::Single, ..spinning.clone() };
    let three = case("shm-ring:wait=spin", 1000.0, 2600.0, 0.0);
    let mut trips = blocking.clone();
    for sample in &mut trips.samples {
        sample.latency_histogram = mock::round_trips(0, &[300, 300, 900]).latency_histogram;
    }
    for (case, demand, time_ns, cpus, ranking_ns) in [
        (&blocking, PLAIN, 1000.0, 0.5, 1500.0),
        (&at_full, rate(1e6), 1000.0, 0.5, 500.0),
        (&at_tenth, rate(1e5), 10_000.0, 0.05, 500.0),
        (&spinning, PLAIN, 1000.0, 2.0, 1500.0),
        (&spun, rate(1e6), 1000.0, 0.5, 500.0),
        (&single, PLAIN, 1000.0, 1.0, 1500.0),
        (&three, PLAIN, 1000.0, 3.0, 3600.0),
        (&trips, PLAIN, 500.0, 0.5, 1000.0),
    ] {
        let cost = choose(&[case], &demand).case(0).unwrap().cost.unwrap();
        let all = [cost.time_ns, cost.cpus, cost.ranking_ns].map(|one| one.median);
        assert_eq!(all, [time_ns, cpus, ranking_ns], "{demand:?}");
        assert_eq!(cost.cpu_ns.median, if case.samples == three.samples { 2600.0 } else { 500.0 });
    }
    let few = |count: usize| {
        let mut case = blocking.clone();
        case.samples.truncate(count);
        choose(&[&case], &PLAIN).case(0).unwrap().cost.unwrap().has_few_trials()
    };
    assert_eq!((few(5), few(6)), (true, false));
}

#[test]
fn a_rate_and_a_budget_may_be_met_exactly() {
    let cases = [case("pipe", 1000.0, 500.0, 0.0)];
    let at_rate = [paced("pipe", 1_000_000, 1000.0, 500.0)];
    let reached = |rate| excluded(&at_rate, Demand { messages_per_s: Some(rate), cpus_max: None }, 0);
    assert_eq!((reached(1e6 / 0.951), reached(1e6 / 0.949)), (None, Some(Excluded::TooSlow)));
    let of = |messages_per_s, cpus_max| excluded(&cases, Demand { messages_per_s, cpus_max }, 0);
    assert_eq!((of(None, Some(0.5)), of(None, Some(0.49))), (None, Some(Excluded::TooMuchCpu)));
}

/// The costs of `pipe` in nine rounds, as multiples of those of `tcp`.
fn against_tcp(multiples: [f64; 9]) -> [CaseRecord; 2] {
    let mut pipe = case("pipe", 100.0, 100.0, 0.0);
    for (sample, multiple) in pipe.samples.iter_mut().zip(multiples) {
        sample.elapsed_ns = (sample.elapsed_ns as f64 * multiple).round() as u64;
        sample.system_ns = (sample.system_ns as f64 * multiple).round() as u64;
    }
    [pipe, case("tcp", 100.0, 100.0, 0.0)]
}

#[test]
fn the_median_round_bounds_the_first_place() {
    // Surely beaten in nine rounds of nine: at most 3 % more.
    let beaten = |median| against_tcp([1.01, 1.01, 1.01, 1.01, median, 1.4, 1.4, 1.4, 1.4]);
    assert_eq!(taken(&beaten(1.03), PLAIN).as_deref(), Some("pipe"));
    assert_eq!(taken(&beaten(1.04), PLAIN).as_deref(), Some("tcp"));
    // Once the cheaper one, so not surely beaten: at most a quarter more.
    let open = |median| against_tcp([0.9, 1.1, 1.1, 1.1, median, 1.4, 1.4, 1.4, 1.4]);
    assert_eq!(taken(&open(1.25), PLAIN).as_deref(), Some("pipe"));
    assert_eq!(taken(&open(1.26), PLAIN).as_deref(), Some("tcp"));
    // Surely the same: within a tenth in all rounds.
    assert_eq!(taken(&against_tcp([1.1; 9]), PLAIN).as_deref(), Some("pipe"));
    assert_eq!(taken(&against_tcp([1.11; 9]), PLAIN).as_deref(), Some("tcp"));
    let mut apart = against_tcp([3.0; 9]);
    apart[0].samples.iter_mut().for_each(|sample| sample.round += 9);
    assert_eq!(taken(&apart, PLAIN).as_deref(), Some("pipe"), "without a common round nothing is known");
}

#[test]
fn the_cheapest_come_first_and_the_excluded_last() {
    let mut cases = [
        case("tcp", 300.0, 300.0, 0.0),
        case("shm-ring:wait=spin", 10.0, 10.0, 0.0),
        case("pipe", 100.0, 100.0, 0.0),
        case("fifo", 50.0, 50.0, 0.0),
        case("socketpair", 100.0, 100.0, 0.0),
    ];
    cases[3].samples.clear();
    let choice = choose(&cases.iter().collect::<Vec<_>>(), &PLAIN);
    let order: Vec<usize> = choice.ranked.iter().map(|one| one.at).collect();
    assert_eq!(order, [2, 4, 0, 1, 3]);
    assert_eq!(may_be_taken(&choice), [2, 4]);
    assert!(choice.shares_first_place(4) && !choice.shares_first_place(0) && !choice.shares_first_place(3));
    assert_eq!((choice.case(1).map(|one| one.at), choice.case(5)), (Some(1), None));
    let untouched = CaseRecord { data: DataLevel::None, ..cases[0].clone() };
    assert_eq!(excluded(&[untouched], PLAIN, 0), Some(Excluded::LessData), "also where it is the only level");
}

proptest! {
    #[test]
    fn what_is_taken_keeps_what_was_asked(
        figures in prop::collection::vec((0usize..15, 1u64..1 << 40, 0u64..1 << 40, 0u64..1 << 20, 0u32..4), 0..12),
        rate in prop::option::of(1f64..1e9), budget in prop::option::of(0.01f64..3.0),
    ) {
        let cases: Vec<CaseRecord> = figures.iter().map(|(name, elapsed_ns, cpu_ns, messages, wait)| {
            let sample = Sample { elapsed_ns: *elapsed_ns, messages: *messages, user_ns: *cpu_ns, ..mock::sample(0) };
            let text = SIMPLEST_FIRST.get(*name).copied().unwrap_or("other");
            let wait = if *wait == 0 { Wait::Spin } else { Wait::Block };
            let rate_per_s = rate.map(|rate| rate as u32);
            CaseRecord { wait, rate_per_s, spec: text.parse().unwrap(), ..mock::case(Workload::Stream, vec![sample; 1 + *messages as usize % 9]) }
        }).collect();
        let demand = Demand { messages_per_s: rate, cpus_max: budget };
        let all: Vec<&CaseRecord> = cases.iter().collect();
        let choice = choose(&all, &demand);
        prop_assert_eq!(choice.ranked.len(), cases.len());
        prop_assert_eq!(choice.taken.is_some(), choice.ranked.iter().any(|one| one.excluded.is_none()));
        if let Some(at) = choice.taken {
            let ranked = choice.case(at).unwrap();
            let cost = ranked.cost.unwrap();
            prop_assert!(ranked.may_be_taken && ranked.excluded.is_none());
            prop_assert!(rate.is_none_or(|rate| cost.elapsed_ns.median * rate * 0.95 <= 1.000001e9));
            prop_assert!(budget.is_none_or(|most| cost.cpus.high <= most));
            prop_assert!(cases[at].wait != Wait::Spin || budget.is_some());
        }
    }
}

#[test]
fn what_tears_blocks_is_excluded() {
    let shared = |spec, torn_blocks| {
        let mut case = CaseRecord { senders: Some(4), ..case(spec, 100.0, 100.0, 0.01) };
        case.samples.iter_mut().for_each(|sample| sample.torn_blocks = Some(torn_blocks));
        case
    };
    let cases =
        [shared("pipe", 1), CaseRecord { senders: Some(4), ..case("unix-dgram", 900.0, 900.0, 0.01) }];
    assert_eq!(taken(&cases, PLAIN).as_deref(), Some("unix-dgram"));
    assert_eq!(excluded(&cases, PLAIN, 0), Some(Excluded::TornBlocks));
    assert_eq!(excluded(&[shared("pipe", 0)], PLAIN, 0), None);
}

/// Expected: of 21 sizes at which two mechanisms cost the same none has a winner, in at least 95 % of the sweeps.
/// Happened: each size had errors of its own, and in half of the sweeps one of them had a "certain" winner.
#[test]
fn no_size_of_a_sweep_has_a_winner_by_chance_and_true_winners_stay() {
    const SWEEPS: usize = 200;
    let mut random = fastrand::Rng::with_seed(51);
    let mut sweep = |gap: f64, rounds: u32| -> usize {
        let mut row = |spec: &str, times: f64| {
            let samples = (0..rounds).map(|round| {
                let ns = (1e9 * times * (0.2 * mock::normal(&mut random)).exp()) as u64;
                Sample { elapsed_ns: ns, system_ns: ns, messages: 1000, ..mock::sample(round) }
            });
            let case = mock::case(Workload::Stream, samples.collect());
            CaseRecord { spec: spec.parse().unwrap(), ..case }
        };
        let sizes: Vec<[CaseRecord; 2]> = (0..21).map(|_| [row("pipe", gap), row("tcp", 1.0)]).collect();
        let groups: Vec<Vec<&CaseRecord>> = sizes.iter().map(|cases| cases.iter().collect()).collect();
        let choices = choose_each(&groups, &PLAIN);
        choices.iter().filter(|choice| choice.standing.first.len() == 1).count()
    };
    let wrong = (0..SWEEPS).filter(|_| sweep(1.0, 60) > 0).count();
    assert!(20 * wrong <= SWEEPS, "{wrong} of {SWEEPS} sweeps have a winner where all cost the same");
    assert_eq!(sweep(4.0, 8), 21, "eight rounds, one more than a single size needs");
}
