//! Synthetic sweeps with known parameters, with several kinds of noise, and impossible sweeps.

use super::*;
use crate::mock::{self, normal};
use model::{CaseRecord, Sample, Workload};
use proptest::prelude::*;

/// Nanoseconds of overhead, nanoseconds per byte, nanoseconds per filling of a buffer of 64 KiB.
type Truth = [f64; 3];

const PIPE: Truth = [400.0, 0.3, 0.0];
const RING: Truth = [40.0, 0.1, 0.0];
const WAKING: Truth = [400.0, 0.2, 45_000.0];
const BUFFER_BYTES: u64 = 65_536;

/// Noise: the standard deviation of single samples and of whole rounds, in logarithms, and the share of samples that take two to
/// five times as long.
#[derive(Debug, Clone, Copy)]
struct Noise {
    sample: f64,
    round: f64,
    outliers: f64,
}

const KINDS: [Noise; 5] = [
    Noise { sample: 0.03, round: 0.0, outliers: 0.0 },
    Noise { sample: 0.10, round: 0.0, outliers: 0.0 },
    Noise { sample: 0.20, round: 0.0, outliers: 0.0 },
    Noise { sample: 0.10, round: 0.0, outliers: 0.08 },
    Noise { sample: 0.05, round: 0.15, outliers: 0.0 },
];

fn time_ns([overhead, byte, filling]: Truth, block: u64) -> f64 {
    let fillings = if block >= BUFFER_BYTES { block as f64 / BUFFER_BYTES as f64 } else { 0.0 };
    overhead + byte * block as f64 + filling * fillings
}

fn sample(round: u32, block: u64, ns: f64) -> Sample {
    const MESSAGES: u64 = 1_000_000;
    Sample {
        elapsed_ns: (ns * MESSAGES as f64) as u64,
        messages: MESSAGES,
        bytes: block * MESSAGES,
        ..mock::sample(round)
    }
}

fn case(block_bytes: u64, samples: Vec<Sample>) -> CaseRecord {
    let mut case = CaseRecord { block_bytes, ..mock::case(Workload::Stream, samples) };
    case.granted.insert("pipe_bytes".to_owned(), BUFFER_BYTES);
    case
}

/// A sweep from 1 B to 1 MiB.
fn sweep(time: impl Fn(u64) -> f64, noise: Noise, rounds: u32, random: &mut fastrand::Rng) -> Swept {
    let disturbances: Vec<f64> = (0..rounds).map(|_| noise.round * normal(random)).collect();
    let cases: Vec<CaseRecord> = (0..=20)
        .map(|power| {
            let block = 1 << power;
            let samples = (0..rounds).map(|round| {
                let slow = if random.f64() < noise.outliers { 2.0 + 3.0 * random.f64() } else { 1.0 };
                let spoilt = (noise.sample * normal(random) + disturbances[round as usize]).exp() * slow;
                sample(round, block, time(block) * spoilt)
            });
            case(block, samples.collect())
        })
        .collect();
    Swept::of(&cases)
}

fn holds(fitted: Fitted, truth: f64) -> bool {
    fitted.low <= truth && truth <= fitted.high
}

/// Number of runs in which each parameter is in its interval, and in which fillings are part of the model.
fn coverage(truth: Truth, noise: Noise, rounds: u32, runs: usize, seed: u64) -> ([usize; 4], usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut held, mut filled) = ([0; 4], 0);
    for _ in 0..runs {
        let swept = sweep(|block| time_ns(truth, block), noise, rounds, &mut random);
        let model = CostModel::of(&swept).expect("a sweep");
        let half = model.half_bytes.is_some_and(|half| holds(half, truth[0] / truth[1]));
        let filling = model.filling.map_or(truth[2] == 0.0, |filling| holds(filling.ns, truth[2]));
        let all = [holds(model.overhead_ns, truth[0]), holds(model.byte_ns, truth[1]), half, filling];
        held.iter_mut().zip(all).for_each(|(held, holds)| *held += usize::from(holds));
        filled += usize::from(model.filling.is_some());
    }
    (held, filled)
}

/// Expected: at least 95 % for each kind of noise and number of rounds. (With 400 runs of each kind it is 96 to 99 %, and 94 % for
/// the worst kind: disturbed rounds.)
#[test]
fn known_parameters_lie_in_their_intervals() {
    const RUNS: usize = 12;
    let (mut sum, mut all) = ([0; 4], 0);
    for rounds in [5, 9, 30] {
        for (kind, noise) in KINDS.into_iter().enumerate() {
            for truth in [PIPE, RING, WAKING] {
                all += RUNS;
                let seed = u64::from(rounds) << 8 | kind as u64;
                let (held, filled) = coverage(truth, noise, rounds, RUNS, seed);
                let expected = if truth[2] > 0.0 { RUNS } else { 0 };
                assert!(
                    filled.abs_diff(expected) <= 1,
                    "fillings found in {filled} of {RUNS}: {truth:?}, {noise:?}"
                );
                sum.iter_mut().zip(held).for_each(|(sum, held)| *sum += held);
            }
        }
    }
    for (held, what) in sum.iter().zip(["overhead", "bytes", "half-performance size", "fillings"]) {
        assert!(*held as f64 >= 0.95 * all as f64, "{what}: {held} of {all}");
    }
}

fn quiet() -> Noise {
    Noise { sample: 0.02, ..KINDS[0] }
}

fn random() -> fastrand::Rng {
    fastrand::Rng::with_seed(5)
}

#[test]
fn a_line_is_straight_and_a_bend_is_found() {
    let straight = sweep(|block| time_ns(PIPE, block), quiet(), 9, &mut random());
    let model = CostModel::of(&straight).expect("a sweep");
    assert!(matches!(model.straightness(), Straightness::Straight(share) if share < 0.05), "{model:?}");
    assert!((model.ns(1 << 20) / time_ns(PIPE, 1 << 20) - 1.0).abs() < 0.05);

    let bent = |block: u64| time_ns(PIPE, block) * if (4096..=16_384).contains(&block) { 2.0 } else { 1.0 };
    let model = CostModel::of(&sweep(bent, quiet(), 9, &mut random())).expect("a sweep");
    let off: Vec<u64> =
        model.deviations.iter().filter(|one| one.is_off()).map(|one| one.block_bytes).collect();
    assert_eq!((model.straightness(), off), (Straightness::Bent, vec![4096, 8192, 16_384]));

    let wild = Noise { sample: 0.5, ..KINDS[0] };
    let model = CostModel::of(&sweep(|block| time_ns(PIPE, block), wild, 5, &mut random())).expect("a sweep");
    assert_eq!(model.straightness(), Straightness::Unclear);
}

#[test]
fn fillings_need_a_buffer_that_some_sizes_fill_and_some_do_not() {
    let steps = |block: u64| time_ns(WAKING, block);
    let mut swept = sweep(steps, quiet(), 9, &mut random());
    let filling = CostModel::of(&swept).expect("a sweep").filling.expect("a jump of 45 µs");
    assert_eq!(filling.buffer_bytes, BUFFER_BYTES);
    swept = Swept::of(
        &[1, 8, 64, 512].map(|block| case(block, (0..9).map(|round| sample(round, block, 1e3)).collect())),
    );
    let flat = CostModel::of(&swept).expect("a sweep");
    assert_eq!((flat.filling, flat.half_bytes, flat.bandwidth_bytes_per_s()), (None, None, None));
    assert_eq!(flat.overhead_ns.value.round(), 1000.0);
}

#[test]
fn without_a_model_there_is_a_reason() {
    let of = |blocks: &[u64], rounds: u32| {
        let cases = blocks
            .iter()
            .map(|block| case(*block, (0..rounds).map(|round| sample(round, *block, 1e3)).collect()));
        CostModel::of(&Swept::of(&cases.collect::<Vec<_>>())).map(|_| ()).map_err(|why| why.to_string())
    };
    let said = |blocks: &[u64], rounds| of(blocks, rounds).expect_err("no model");
    assert!(said(&[], 9).ends_with("there are 0"));
    assert!(said(&[64], 9).ends_with("there is 1"));
    assert!(said(&[1, 2, 4, 8], 2).contains("needs 3 trials"));
    assert!(said(&[1, 2, 3, 4], 9).contains("not 8 times the smallest"));
    assert_eq!(of(&[1, 2, 4, 8], 3), Ok(()));
}

#[test]
fn mechanisms_cross_where_the_figures_do() {
    let noise = KINDS[1];
    let mut random = random();
    let mut sweep = |truth: Truth| sweep(|block| time_ns(truth, block), noise, 9, &mut random);
    let (small, large, always) =
        (sweep([50.0, 1.0, 0.0]), sweep([2000.0, 0.1, 0.0]), sweep([10.0, 0.05, 0.0]));
    let of = |one: &Swept, other: &Swept| {
        let models = [CostModel::of(one).ok(), CostModel::of(other).ok()];
        crossing((one, models[0].as_ref()), (other, models[1].as_ref()), 10)
    };
    // 50 + n = 2000 + 0.1 n at 2167 bytes.
    match of(&small, &large) {
        Crossing::At { first_ahead_below: true, bytes, low, high } => {
            assert!(low <= 2048 && high >= 2167 && low as f64 <= bytes && bytes <= high as f64);
            assert!((bytes / 2167.0 - 1.0).abs() < 0.3, "{bytes}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(of(&large, &small), Crossing::At { first_ahead_below: false, .. }));
    assert!(
        matches!(of(&always, &large), Crossing::Never { first_ahead: true, sizes: (sure, 21) } if sure > 15)
    );
    assert_eq!(of(&small, &small), Crossing::Unclear);
    assert_eq!(of(&small, &Swept::default()), Crossing::Unclear);
}

/// Expected: wrong in at most one of twenty pairs, also with few rounds. Happened: in 8 % of the pairs with 9 rounds, in 49 % with 6,
/// as no rank of so few rounds reaches the corrected level of each of 21 sizes.
#[test]
fn equal_mechanisms_rarely_have_a_crossing() {
    const RUNS: usize = 600;
    let mut random = random();
    let noises = [KINDS[2], KINDS[3], KINDS[4]];
    for (rounds, pairs) in [(6, 1), (7, 1), (8, 1), (9, 1), (9, 3), (10, 1), (12, 1), (15, 1)] {
        let found = (0..RUNS).filter(|run| {
            let noise = noises[run % noises.len()];
            let mut one = || sweep(|block| time_ns(PIPE, block), noise, rounds, &mut random);
            !matches!(crossing((&one(), None), (&one(), None), pairs), Crossing::Unclear)
        });
        let found = found.count() as f64 / RUNS as f64;
        let most = 0.05 / pairs as f64;
        // Three standard errors above.
        let most = most + 3.0 * (most * (1.0 - most) / RUNS as f64).sqrt();
        assert!(found <= most, "{found} of the pairs that do not differ, {rounds} rounds, {pairs} pairs");
    }
    let mut of = |rounds| sweep(|block| time_ns(RING, block), quiet(), rounds, &mut random);
    let (fast, slow) =
        (of(5), sweep(|block| time_ns(PIPE, block), quiet(), 5, &mut fastrand::Rng::with_seed(2)));
    assert_eq!(crossing((&fast, None), (&slow, None), 1), Crossing::Unclear, "five rounds tell nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn nothing_is_ever_infinite(
        trials in prop::collection::vec((0u32..23, 0u32..6, any::<u64>(), any::<u64>(), 0u32..3), 0..80),
        buffer: u64,
    ) {
        let cases: Vec<CaseRecord> = trials.iter().map(|(power, round, elapsed_ns, messages, ordinary)| {
            // Most trials are plausible; some have any values that a record may contain.
            let odd = Sample { elapsed_ns: *elapsed_ns, messages: *messages, bytes: 1, ..mock::sample(*round) };
            let block = 3u64.pow(*power);
            let sample = if *ordinary > 0 { sample(*round, block, 100.0 + block as f64) } else { odd };
            let mut case = case(block, vec![sample]);
            case.granted.insert("pipe_bytes".to_owned(), buffer);
            case
        }).collect();
        let swept = Swept::of(&cases);
        if let Ok(model) = CostModel::of(&swept) {
            let mut all = vec![model.overhead_ns, model.byte_ns];
            all.extend(model.half_bytes.into_iter().chain(model.bandwidth_bytes_per_s()));
            all.extend(model.filling.map(|filling| filling.ns));
            all.extend(model.deviations.iter().map(|deviation| deviation.times));
            for fitted in all {
                prop_assert!([fitted.value, fitted.low, fitted.high].iter().all(|one| one.is_finite()), "{:?}", fitted);
                prop_assert!(0.0 <= fitted.low && fitted.low <= fitted.value && fitted.value <= fitted.high, "{:?}", fitted);
            }
            prop_assert!(model.deviations.iter().all(|one| model.ns(one.block_bytes).is_finite()));
            let _ = model.straightness();
            let _ = crossing((&swept, Some(&model)), (&swept, None), 1);
        }
    }
}
