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
fn sweep(time: impl Fn(u64) -> f64, noise: Noise, rounds: u32, random: &mut fastrand::Rng) -> SizeSweep {
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
    SizeSweep::of(&cases)
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
    assert_eq!((model.straightness(), off), (Straightness::NotLinear, vec![4096, 8192, 16_384]));

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
    swept = SizeSweep::of(
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
        CostModel::of(&SizeSweep::of(&cases.collect::<Vec<_>>())).map(|_| ()).map_err(|why| why.to_string())
    };
    let said = |blocks: &[u64], rounds| of(blocks, rounds).expect_err("no model");
    assert!(said(&[], 9).ends_with("there are 0"));
    assert!(said(&[64], 9).ends_with("there is 1"));
    assert_eq!(said(&[1, 2, 4], 9), "a line needs 4 block sizes that were measured, and there are 3");
    assert_eq!(said(&[1, 2, 4, 8], 2), "its interval needs 3 trials, and there are 2");
    assert_eq!(said(&[1, 2, 4, 8], 1), "its interval needs 3 trials, and there is 1");
    assert!(said(&[1, 2, 3, 4], 9).contains("not 8 times the smallest"));
    assert_eq!((of(&[1, 2, 4, 8], 3), of(&[2, 4, 8, 16], 3)), (Ok(()), Ok(())));
    assert!(said(&[2, 4, 8, 15], 3).contains("not 8 times the smallest"));
}

#[test]
fn mechanisms_cross_where_the_figures_do() {
    let noise = KINDS[1];
    let mut random = random();
    let mut sweep = |truth: Truth| sweep(|block| time_ns(truth, block), noise, 9, &mut random);
    let (small, large, always) =
        (sweep([50.0, 1.0, 0.0]), sweep([2000.0, 0.1, 0.0]), sweep([10.0, 0.05, 0.0]));
    let of = |one: &SizeSweep, other: &SizeSweep| {
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
    assert_eq!(of(&small, &SizeSweep::default()), Crossing::Unclear);
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

/// The model of an overhead of 100 ns and half a nanosecond for each byte.
fn invented(filling: Option<Filling>, times: &[(f64, f64, f64)]) -> CostModel {
    let fitted = |value, low, high| Fitted { value, low, high };
    let shape = LineShape { buffer_bytes: filling.map(|filling| filling.buffer_bytes) };
    let filling_ns = filling.map_or(0.0, |filling| filling.ns.value);
    let deviations = times.iter().zip(1..).map(|((value, low, high), block_bytes)| Deviation {
        block_bytes,
        times: fitted(*value, *low, *high),
    });
    CostModel {
        overhead_ns: fitted(100.0, 90.0, 110.0),
        byte_ns: fitted(0.5, 0.25, 1.0),
        filling,
        half_bytes: None,
        deviations: deviations.collect(),
        line: CostLine { shape, overhead_ns: 100.0, byte_ns: 0.5, filling_ns },
    }
}

#[test]
fn the_bandwidth_is_the_inverse_of_the_cost_of_a_byte() {
    let mut model = invented(None, &[]);
    assert_eq!(model.bandwidth_bytes_per_s(), Some(Fitted { value: 2e9, low: 1e9, high: 4e9 }));
    assert_eq!(model.large_blocks_bytes_per_s(), Some(2e9));
    model.byte_ns.low = 0.0;
    assert_eq!((model.bandwidth_bytes_per_s(), model.large_blocks_bytes_per_s()), (None, None));
    // A filling of 64 KiB costs another half nanosecond for each byte.
    let ns = Fitted { value: 32_768.0, low: 32_768.0, high: 32_768.0 };
    let filled = invented(Some(Filling { buffer_bytes: BUFFER_BYTES, ns }), &[]);
    assert_eq!(filled.large_blocks_bytes_per_s(), Some(1e9));
    assert_eq!((filled.ns(200), filled.ns(2 * BUFFER_BYTES)), (200.0, 131_172.0));
}

#[test]
fn a_size_is_off_the_line_if_its_whole_interval_is() {
    let off = |low: f64, high: f64| invented(None, &[(1.0, low, high)]).deviations[0].is_off();
    assert!(off(1.16, 2.0) && !off(1.15, 2.0) && !off(0.5, 2.0));
    assert!(off(0.5, 0.86) && !off(0.5, 1.15f64.recip()) && !off(0.9, 1.1));
    let of = |times: &[(f64, f64, f64)]| invented(None, times).straightness();
    let largest = |times: &[(f64, f64, f64)]| match of(times) {
        Straightness::Straight(share) => (share * 1e6).round(),
        other => panic!("{other:?}"),
    };
    assert_eq!(largest(&[(1.1, 1.0, 1.2), (1.05, 1.0, 1.1)]), 100_000.0);
    assert_eq!(largest(&[(1.1, 1.0, 1.2), (0.8, 0.78, 1.0)]), 250_000.0, "5/4 of it");
    assert_eq!(largest(&[(1.0, 0.77, 1.29)]), 0.0);
    assert_eq!(of(&[]), Straightness::Straight(0.0));
    // Uncertain by more than 30 %.
    assert_eq!(of(&[(1.0, 1.0, 1.0), (1.0, 0.76, 1.0)]), Straightness::Unclear);
    assert_eq!(of(&[(1.0, 1.0, 1.0), (1.0, 1.0, 1.31)]), Straightness::Unclear);
    assert_eq!(of(&[(1.0, 0.5, 2.0), (1.5, 1.16, 2.0)]), Straightness::NotLinear);
}

/// A sweep without noise from 1 B to 1 MiB.
fn exact_sweep(time: impl Fn(u64) -> f64) -> SizeSweep {
    sweep(time, Noise { sample: 0.0, round: 0.0, outliers: 0.0 }, 9, &mut random())
}

#[test]
fn times_without_noise_give_their_parameters() {
    let close = |fitted: Fitted, truth: f64| {
        [fitted.value, fitted.low, fitted.high].iter().all(|one| (one / truth - 1.0).abs() < 1e-4)
    };
    let model = CostModel::of(&exact_sweep(|block| time_ns(WAKING, block))).expect("a sweep");
    assert!(close(model.overhead_ns, 400.0) && close(model.byte_ns, 0.2), "{model:?}");
    assert!(model.filling.is_some_and(|filling| close(filling.ns, 45_000.0)), "{model:?}");
    assert!(model.half_bytes.is_some_and(|half| close(half, 2000.0)), "{model:?}");
    assert_eq!(model.deviations.len(), 21);
    assert!(model.deviations.iter().all(|one| close(one.times, 1.0)), "{model:?}");
}

/// A parameter that is positive in every round is multiplied and divided by the same factor, and so never contains zero.
#[test]
fn the_interval_of_a_positive_parameter_is_one_of_factors() {
    let model =
        CostModel::of(&sweep(|block| time_ns(PIPE, block), KINDS[2], 9, &mut random())).expect("a sweep");
    for Fitted { value, low, high } in
        [model.overhead_ns, model.byte_ns, model.half_bytes.expect("two parameters")]
    {
        assert!(low < 0.99 * value && high > 1.01 * value, "{model:?}");
        assert!((low * high / (value * value) - 1.0).abs() < 1e-9, "{model:?}");
    }
}

#[test]
fn fillings_that_hardly_improve_the_fit_are_no_part_of_the_model() {
    let uneven = |block: u64| if [1, 4, 16, 64, 256, 1024].contains(&block) { 1.2 } else { 1.0 };
    let filled = |filling: f64| {
        let time = |block| uneven(block) * time_ns([400.0, 0.2, filling], block);
        CostModel::of(&exact_sweep(time)).expect("a sweep").filling.map(|filling| filling.buffer_bytes)
    };
    assert_eq!(filled(45_000.0), Some(BUFFER_BYTES));
    assert_eq!(filled(1500.0), None, "a tenth of the time of a buffer");
}

/// In 38 of 75 rounds a filling takes time, in the others it takes none; without some of the 38 the mean of a size is one of
/// the others.
#[test]
fn a_filling_whose_interval_contains_zero_is_no_part_of_the_model() {
    let sizes = |filled: &dyn Fn(u32) -> bool| {
        let time = |block: u64, round| match filled(round) {
            true => time_ns(WAKING, block),
            false if block < BUFFER_BYTES => time_ns(WAKING, block),
            false => 0.9 * time_ns([400.0, 0.2, 0.0], block),
        };
        let of = |block| case(block, (0..75).map(|round| sample(round, block, time(block, round))).collect());
        let cases: Vec<CaseRecord> = (0..=20).map(|power| of(1 << power)).collect();
        CostModel::of(&SizeSweep::of(&cases)).expect("a sweep").filling.map(|filling| filling.buffer_bytes)
    };
    // The rounds of one of the 25 groups have the same remainder.
    assert_eq!(sizes(&|round| round % 25 < 12 || [12, 37].contains(&round)), None);
    assert_eq!(sizes(&|round| round % 25 < 20), Some(BUFFER_BYTES));
}

#[test]
fn a_buffer_needs_three_sizes_that_fill_it_and_four_that_do_not() {
    let cases = [1, 2, 4, 8, 16, 32, 64].map(|block| case(block, vec![sample(0, block, 1e3)]));
    let swept = SizeSweep::of(&cases);
    let about = [8, 9, 15, 16, 17, 32].map(|buffer_bytes| has_sizes_about(buffer_bytes, &swept));
    assert_eq!(about, [false, true, true, true, false, false]);
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
        let swept = SizeSweep::of(&cases);
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
