//! Which of several cases costs least, decided while they are measured: best-arm identification by successive elimination
//! (Even-Dar, Mannor and Mansour, *JMLR* 7, 2006) over costs that are compared within rounds.
//!
//! In each round an entrant is compared with the one that led the others in the rounds before. If the entrant is the cheapest one, it
//! wins more than half of all rounds against any other, so that a bet on its defeats gains nothing: a bet spread evenly over chances
//! from 1/2 to 1 ever reaches a gain of `g` with a probability of at most 1/`g` (Ville, 1939; for quantiles and best arms: Howard and
//! Ramdas, *Bernoulli* 28, 2022). This holds for any number of looks and any number of entrants, since only one is the cheapest. The only
//! assumption about the noise is that it does not depend on the order within a round, which is drawn at random: of two that cost
//! the same, either is equally likely to meet a busy machine. Heavy tails, mixtures of one CPU and two, and lasting loads only make
//! more rounds necessary.

use std::collections::BTreeMap;

use model::Ratio;

use crate::changes::ERRORS;
use crate::estimate::median;

/// Costs that surely differ by at most this factor count as the same.
pub const SAME_TIMES: f64 = 1.1;
/// Largest logarithm of a cost, relative to the round's median, in a score: a factor of 20.
const SCORE_MAX: f64 = 3.0;
/// More rounds than this are not suggested.
const ROUNDS_MAX: usize = 5_000;

/// The cost of an entrant in each round, by the round's number; less is better.
pub type RoundCosts = BTreeMap<u32, f64>;

/// The result of the rounds so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// The entrants that may be the cheapest, in the order of their median costs, with their costs as multiples of the first one's: that of the
    /// median round, and bounds, the upper one infinite with too few rounds. Empty only if no entrant has a cost.
    pub first: Vec<(usize, Ratio)>,
    /// The same of all others, which are surely beaten.
    pub beaten: Vec<(usize, Ratio)>,
    /// Lower bound of the costs of all beaten entrants, as a multiple of the cheapest one's.
    pub lead: f64,
    /// Estimated number of rounds until only one is left; `None` if it cannot be estimated.
    pub rounds_needed: Option<usize>,
}

impl Standing {
    /// Whether further rounds are useless: one entrant is left, or those left cost the same ([`SAME_TIMES`]).
    pub fn is_decided(&self) -> bool {
        self.first.iter().all(|(_, factor)| is_same(factor))
    }
}

/// Compares entrants within the rounds that they have in common.
///
/// With a probability of at least 95 % the cheapest one is in [`Standing::first`], however often this is called, and [`Standing::lead`]
/// holds.
pub fn race(entrants: &[RoundCosts]) -> Standing {
    let median_of = |costs: &RoundCosts| median(&costs.values().copied().collect::<Vec<f64>>());
    let medians = entrants.iter().enumerate().filter_map(|(at, costs)| Some((at, median_of(costs)?)));
    let mut ranked: Vec<(usize, f64)> = medians.collect();
    model::sort_by(&mut ranked, |one, other| one.1.total_cmp(&other.1));
    let against = against_leaders(entrants);
    let (mut first, mut out): (Vec<usize>, Vec<usize>) =
        ranked.iter().map(|(at, _)| *at).partition(|at| least(&against[*at]) < 1.0);
    if first.is_empty() {
        // In a cycle, each of three may beat the next one in most rounds.
        first = std::mem::take(&mut out);
    }
    let Some(&leader) = first.first() else { return Standing::default() };
    // Two bounds for each pair (Bonferroni).
    let sure = 2.0 * (ranked.len() as f64 - 1.0).max(1.0) / ERRORS;
    let factor = |at: usize| match at == leader {
        true => Ratio { median: 1.0, low: 1.0, high: 1.0 },
        false => factor(ratios(&entrants[at], &entrants[leader]), sure),
    };
    let needed = first[1..].iter().map(|at| {
        let wins = against[*at].iter().filter(|ratio| **ratio > 1.0).count();
        rounds_for(wins as f64 / against[*at].len().max(1) as f64)
    });
    Standing {
        rounds_needed: needed.max().unwrap_or(Some(0)),
        lead: out.iter().map(|at| least(&against[*at])).fold(f64::INFINITY, f64::min),
        first: first.iter().map(|at| (*at, factor(*at))).collect(),
        beaten: out.iter().map(|at| (*at, factor(*at))).collect(),
    }
}

/// Whether costs with this factor between them surely count as the same.
pub(crate) fn is_same(factor: &Ratio) -> bool {
    factor.high <= SAME_TIMES
}

/// For each entrant and round: its cost divided by that of the one that led the others before the round.
fn against_leaders(entrants: &[RoundCosts]) -> Vec<Vec<f64>> {
    let mut rounds: BTreeMap<u32, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, costs) in entrants.iter().enumerate() {
        for (round, cost) in costs {
            rounds.entry(*round).or_default().push((at, *cost));
        }
    }
    let mut scores = vec![Score::default(); entrants.len()];
    let mut found = vec![Vec::new(); entrants.len()];
    for costs in rounds.values() {
        let mut order: Vec<&(usize, f64)> = costs.iter().collect();
        model::sort_by(&mut order, |one, other| scores[one.0].mean().total_cmp(&scores[other.0].mean()));
        // In the first round, with more than two entrants, none leads yet.
        let is_known = costs.len() == 2 || costs.iter().any(|(at, _)| scores[*at].rounds > 0);
        for (at, cost) in costs.iter().filter(|_| is_known) {
            let rival = order.iter().find(|(other, _)| other != at);
            found[*at].extend(rival.map(|(_, other)| cost / other).filter(|ratio| ratio.is_finite()));
        }
        let middle = median(&costs.iter().map(|(_, cost)| *cost).collect::<Vec<f64>>());
        for (at, cost) in costs {
            scores[*at].add(middle.map_or(0.0, |middle| cost / middle));
        }
    }
    found
}

/// The cost of an entrant in the rounds so far: the mean logarithm of its cost relative to the round's median, limited to
/// [`SCORE_MAX`].
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    sum: f64,
    rounds: u32,
}

impl Score {
    fn add(&mut self, share: f64) {
        self.sum += share.ln().clamp(-SCORE_MAX, SCORE_MAX);
        self.rounds += 1;
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.rounds.max(1))
    }
}

/// One cost divided by the other, in each round that has both.
fn ratios(numerator: &RoundCosts, denominator: &RoundCosts) -> Vec<f64> {
    let both = numerator.iter().filter_map(|(round, cost)| Some((cost, denominator.get(round)?)));
    both.map(|(cost, other)| cost / other).filter(|ratio| ratio.is_finite()).collect()
}

/// A lower bound of the ratio in most rounds: at least 1 if the ratios were surely larger than 1 after any of the rounds, else 0.
fn least(ratios: &[f64]) -> f64 {
    let mut wins = 0;
    let sure = (1..).zip(ratios).any(|(count, ratio)| {
        wins += usize::from(*ratio > 1.0);
        gain(wins, count) >= 1.0 / ERRORS
    });
    if sure { factor(ratios.to_vec(), 1.0 / ERRORS).low.max(1.0) } else { 0.0 }
}

/// The median of ratios, and the bounds outside of which a bet would have gained at least `sure`, which is more than 1.
fn factor(mut ratios: Vec<f64>, sure: f64) -> Ratio {
    ratios.sort_unstable_by(f64::total_cmp);
    let count = ratios.len();
    let wins = (count.div_ceil(2)..=count).find(|wins| gain(*wins, count) >= sure);
    Ratio {
        median: median(&ratios).unwrap_or(f64::NAN),
        low: wins.map_or(0.0, |wins| ratios[count - wins]),
        high: wins.map_or(f64::INFINITY, |wins| ratios[wins - 1]),
    }
}

/// The gain of a stake of 1 on one side of a coin that won `wins` of `count` throws: 2^`count` times the mean of
/// p^`wins` (1 - p)^(`count` - `wins`) over p from 1/2 to 1, which is a sum of binomial coefficients.
fn gain(wins: usize, count: usize) -> f64 {
    // C(count + 1, k) / C(count, wins) / (count + 1), summed over k up to `wins`, from the largest k down.
    let (n, w) = (count as f64, wins as f64);
    let mut term = 1.0 / (n - w + 1.0);
    let mut sum = 0.0;
    for k in (0..=wins).rev() {
        sum += term;
        term *= k as f64 / (n + 2.0 - k as f64);
        if term < sum * 1e-12 {
            break;
        }
    }
    sum
}

/// The number of rounds after which a side that wins this share of them has surely won; `None` beyond [`ROUNDS_MAX`].
fn rounds_for(share: f64) -> Option<usize> {
    let wins = |count: usize| (share * count as f64).round() as usize;
    (1..=ROUNDS_MAX).find(|count| share > 0.5 && gain(wins(*count), *count) >= 1.0 / ERRORS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::normal;
    use fastrand::Rng;

    #[test]
    fn a_fair_bet_gains_by_what_it_wins() {
        // All of n won: (2^(n+1) - 1) / (n + 1).
        for (wins, count, expected) in [(0, 0, 1.0), (1, 1, 1.5), (9, 9, 102.3), (11, 11, 341.25)] {
            assert!((gain(wins, count) - expected).abs() < 1e-9, "{wins} of {count}: {}", gain(wins, count));
        }
        // The mean over a fair coin's next throw is what one had.
        for (wins, count) in [(0, 3), (5, 7), (40, 50), (150, 200)] {
            let next = (gain(wins + 1, count + 1) + gain(wins, count + 1)) / 2.0;
            assert!((next / gain(wins, count) - 1.0).abs() < 1e-9, "{wins} of {count}");
        }
    }

    fn entrants(costs: &[&[f64]]) -> Vec<RoundCosts> {
        costs.iter().map(|costs| (0..).zip(costs.iter().copied()).collect()).collect()
    }

    #[test]
    fn the_cheapest_of_most_rounds_is_first_and_the_factor_is_bounded() {
        let (one, other): (Vec<f64>, Vec<f64>) =
            (0..12).map(|round| (1.0 + f64::from(round), 2.0 * (1.0 + f64::from(round)))).unzip();
        let standing = race(&entrants(&[&other, &one, &[]]));
        let factor = |all: f64| Ratio { median: all, low: all, high: all };
        assert_eq!((&standing.first, standing.is_decided()), (&vec![(1, factor(1.0))], true));
        assert_eq!((&standing.beaten, standing.lead), (&vec![(0, factor(2.0))], 2.0), "by 12 of 12");
        let few = race(&entrants(&[&other[..5], &one[..5]]));
        assert_eq!((few.first.len(), few.first[1].0, few.is_decided()), (2, 0, false));
        assert_eq!((few.first[1].1.low, few.first[1].1.high), (0.0, f64::INFINITY));
        assert_eq!(few.rounds_needed, Some(7), "all rounds won: 2^8 / 8 > 20");
        assert_eq!(race(&[]), Standing::default());
    }

    #[test]
    fn what_costs_the_same_is_decided_without_a_winner() {
        let costs: Vec<f64> = (0..40).map(|round| 1.0 + 0.01 * f64::from(round % 7)).collect();
        let others: Vec<f64> = (0..40).map(|round| 1.0 + 0.01 * f64::from(round % 5)).collect();
        let standing = race(&entrants(&[&costs, &others]));
        assert_eq!((standing.first.len(), standing.is_decided()), (2, true));
    }

    #[test]
    fn three_that_beat_each_other_in_turn_stay() {
        let cycle =
            |shift: usize| (0..60).map(|round| ((round + shift) % 3) as f64 + 1.0).collect::<Vec<f64>>();
        let turns = [cycle(0), cycle(1), cycle(2)];
        let standing = race(&entrants(&[&turns[0], &turns[1], &turns[2]]));
        assert_eq!(standing.first.len(), 3);
    }

    #[test]
    fn bounds_need_the_more_rounds_the_more_entrants_there_are() {
        // All of n rounds won gain (2ⁿ⁺¹ - 1) / (n + 1): 32 of 7, 57 of 8, 102 of 9, 186 of 10; needed are 40 for each rival.
        for (count, rounds, bounded) in
            [(2, 7, false), (2, 8, true), (3, 8, false), (3, 9, true), (4, 9, false), (4, 10, true)]
        {
            let costs: Vec<Vec<f64>> = (1..=count).map(|cost| vec![f64::from(cost); rounds]).collect();
            let standing = race(&entrants(&costs.iter().map(Vec::as_slice).collect::<Vec<_>>()));
            let all: Vec<&(usize, Ratio)> = standing.first.iter().chain(&standing.beaten).collect();
            let found: Vec<(usize, f64)> = all.iter().map(|(at, factor)| (*at, factor.median)).collect();
            let expected: Vec<(usize, f64)> =
                (1..=count).map(|cost| (cost as usize - 1, f64::from(cost))).collect();
            assert_eq!(found, expected);
            let others = &all[1..];
            assert!(others.iter().all(|(_, factor)| factor.high.is_finite() == bounded), "{standing:?}");
            assert!(others.iter().all(|(_, factor)| (factor.low > 1.0) == bounded), "{standing:?}");
        }
    }

    #[test]
    fn the_bounds_of_a_factor_are_order_statistics() {
        let ratios = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<f64>>();
        let of = |median, low, high| Ratio { median, low, high };
        assert_eq!(factor(ratios(9), 20.0), of(5.0, 1.0, 9.0));
        // 11 of 12 gain 52, 10 of 12 gain 9.
        assert_eq!(factor(ratios(12), 20.0), of(6.5, 2.0, 11.0));
        assert_eq!(factor(ratios(12), 60.0), of(6.5, 1.0, 12.0));
        assert_eq!(factor(ratios(6), 20.0), of(3.5, 0.0, f64::INFINITY));
        let none = factor(Vec::new(), 20.0);
        assert!(none.median.is_nan() && none.low == 0.0 && none.high == f64::INFINITY);
        assert!(is_same(&of(1.0, 0.5, 1.1)) && !is_same(&of(1.0, 1.0, 1.101)));
    }

    #[test]
    fn a_ratio_is_surely_more_than_one_after_seven_wins_in_a_row() {
        let then = |wins: usize, more: &[f64]| [&vec![2.0; wins][..], more].concat();
        for (ratios, expected) in [
            (then(6, &[]), 0.0),
            (then(7, &[]), 2.0),
            (then(7, &[0.5]), 1.0),
            (then(7, &[3.0]), 2.0),
            (then(6, &[1.0]), 0.0),
            (vec![1.0; 20], 0.0),
            (vec![0.5; 20], 0.0),
            (Vec::new(), 0.0),
        ] {
            assert_eq!(least(&ratios), expected, "{ratios:?}");
        }
    }

    #[test]
    fn the_rounds_until_a_side_has_won_depend_on_its_share() {
        for (share, expected) in
            [(1.0, Some(7)), (0.9, Some(11)), (0.8, Some(17)), (0.7, Some(48)), (0.5, None), (0.0, None)]
        {
            assert_eq!(rounds_for(share), expected, "{share}");
        }
        let costs = [[1.0, 1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0, 1.0], [9.0, 9.0, 9.0, 9.0, 9.0]];
        let of = |costs: &[[f64; 5]]| race(&entrants(&costs.iter().map(|one| &one[..]).collect::<Vec<_>>()));
        assert_eq!(of(&costs[..2]).rounds_needed, Some(17), "four of five, as a tie is no win");
        assert_eq!(of(&costs[..1]).rounds_needed, Some(0));
        assert_eq!(of(&[costs[0], costs[0]]).rounds_needed, None);
        assert_eq!(of(&[costs[0], costs[2]]).rounds_needed, Some(7));
    }

    #[test]
    fn entrants_are_compared_with_the_leader_of_the_rounds_before() {
        let close = |found: &[Vec<f64>], expected: &[&[f64]]| {
            let same = |(one, other): (&Vec<f64>, &&[f64])| {
                one.len() == other.len()
                    && one.iter().zip(*other).all(|(one, other)| (one - other).abs() < 1e-12)
            };
            found.len() == expected.len() && found.iter().zip(expected).all(same)
        };
        let of = |costs: &[&[f64]]| against_leaders(&entrants(costs));
        // In the first round none leads; in the second the first one does, and the second follows; then it is the third.
        let three: [&[f64]; 3] = [&[1.0, 100.0, 2.0], &[2.0, 5.0, 4.0], &[4.0, 1.0, 8.0]];
        assert!(close(&of(&three), &[&[20.0, 0.25], &[0.05, 0.5], &[0.01, 2.0]]), "{:?}", of(&three));
        assert!(close(&of(&three[..2]), &[&[0.5, 20.0, 0.5], &[2.0, 0.05, 2.0]]), "two need no leader");
        assert!(close(&of(&[&[1.0], &[0.0]]), &[&[], &[0.0]]), "no multiple of zero");
        assert!(close(&of(&three[..1]), &[&[]]));
        // One that joins in the second round has cost as much as the median so far: more than the first, less than the second.
        let joined = [&[(0, 1.0), (1, 1.0)][..], &[(0, 2.0), (1, 2.0)], &[(1, 4.0)]]
            .map(|costs| costs.iter().copied().collect::<RoundCosts>());
        assert!(close(&against_leaders(&joined), &[&[0.5, 0.25], &[2.0, 2.0], &[4.0]]));
        let ratios = ratios(
            &RoundCosts::from([(1, 6.0), (2, 8.0), (3, 1.0)]),
            &RoundCosts::from([(0, 1.0), (1, 2.0), (3, 0.0)]),
        );
        assert_eq!(ratios, [3.0], "one common round");
    }

    /// Seven rounds won in a row are enough, although the eighth was lost, and it cost at least as much.
    #[test]
    fn what_was_surely_beaten_once_stays_beaten() {
        let other = [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.5];
        let standing = race(&entrants(&[&other, &[1.0; 8]]));
        let order = |all: &[(usize, Ratio)]| all.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        assert_eq!((order(&standing.first), order(&standing.beaten), standing.lead), (vec![1], vec![0], 1.0));
    }

    #[test]
    fn a_score_is_the_mean_of_limited_logarithms() {
        let of = |shares: &[f64]| {
            let mut score = Score::default();
            shares.iter().for_each(|share| score.add(*share));
            score.mean()
        };
        assert_eq!([of(&[]), of(&[1e9]), of(&[0.0]), of(&[1e9, 1.0, 1.0])], [0.0, 3.0, -3.0, 1.0]);
        assert!((of(&[2.0, 4.0]) - 8f64.ln() / 2.0).abs() < 1e-12);
    }

    /// The noise that was seen on virtual machines: each trial on one CPU or on two, with other costs; tails; a machine that
    /// becomes slower and faster for some rounds.
    struct Noise {
        /// The chance of a trial on one CPU, and what it costs there.
        one_cpu: (f64, f64),
        spread: f64,
        /// The chance of a trial that is disturbed.
        tail: f64,
        drift: bool,
        /// Whether trials depend on those before, as beside busy loops: a load that wanders ([`Load`]).
        serial: bool,
    }

    /// What other programs cost a trial, in logarithms: a process that forgets a twentieth with each trial, and phases of some six
    /// trials in which a CPU is taken.
    #[derive(Default)]
    struct Load {
        wander: f64,
        phase: u32,
    }

    impl Load {
        const STAYS: f64 = 0.95;

        fn next(&mut self, random: &mut Rng) -> f64 {
            self.wander =
                Self::STAYS * self.wander + 0.3 * (1.0 - Self::STAYS.powi(2)).sqrt() * normal(random);
            self.phase = match self.phase {
                0 if random.f64() < 0.05 => random.u32(2..12),
                left => left.saturating_sub(1),
            };
            self.wander + if self.phase > 0 { 3f64.ln() } else { 0.0 }
        }
    }

    impl Noise {
        fn cost(&self, random: &mut Rng, round: u32, load: &mut Load) -> f64 {
            let seat = if random.f64() < self.one_cpu.0 { self.one_cpu.1 } else { 1.0 };
            let tail = if random.f64() < self.tail { 1.0 + 1.0 / random.f64().max(0.02) } else { 1.0 };
            let drift = if self.drift { 1.0 + 0.5 * (f64::from(round) / 4.0).sin() } else { 1.0 };
            let load = if self.serial { load.next(random).exp() } else { 1.0 };
            seat * tail * drift * load * (self.spread * normal(random)).exp()
        }
    }

    const QUIET: Noise = Noise { one_cpu: (0.0, 1.0), spread: 0.08, tail: 0.0, drift: false, serial: false };
    /// And the most rounds: a mixture takes more.
    const NOISES: [(Noise, u32); 6] = [
        (QUIET, 15),
        (Noise { spread: 0.15, tail: 0.1, drift: true, ..QUIET }, 40),
        (Noise { one_cpu: (0.3, 0.25), spread: 0.1, tail: 0.05, ..QUIET }, 80),
        (Noise { one_cpu: (0.2, 3.0), spread: 0.15, tail: 0.1, drift: true, ..QUIET }, 80),
        (Noise { serial: true, ..QUIET }, 40),
        (Noise { one_cpu: (0.2, 3.0), spread: 0.15, tail: 0.1, serial: true, ..QUIET }, 120),
    ];

    /// The first rounds have all entrants, the others those that may still be the cheapest; ended when decided or after `most`.
    fn run(random: &mut Rng, true_costs: &[f64], noise: &Noise, most: u32) -> Standing {
        const ALL: u32 = 9;
        let mut entrants = vec![RoundCosts::new(); true_costs.len()];
        let mut standing = Standing::default();
        let mut load = Load::default();
        for round in 0..most {
            let may_lead = |at: &usize| round < ALL || standing.first.iter().any(|(one, _)| one == at);
            let mut order: Vec<usize> = (0..entrants.len()).filter(may_lead).collect();
            // In each round anew: in a fixed order the one that comes after a slow one would lose to the one that does not.
            random.shuffle(&mut order);
            for at in order {
                entrants[at].insert(round, true_costs[at] * noise.cost(random, round, &mut load));
            }
            // Every third round, which takes a third of the time.
            if round + 1 >= ALL && round % 3 == 2 {
                standing = race(&entrants);
                if standing.is_decided() {
                    break;
                }
            }
        }
        race(&entrants)
    }

    /// Of 200 runs the shares with a wrong winner, with none, and with a next one that costs less than at least.
    fn outcomes(gap: f64, noise: &Noise, most: u32) -> [f64; 3] {
        const RUNS: usize = 200;
        let mut random = Rng::with_seed(28);
        let others = [1.0, 1.3, 1.5, 1.6, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0].map(|cost| cost * gap);
        let costs = [&[1.0], &others[..]].concat();
        let mut counts = [0; 3];
        for _ in 0..RUNS {
            let standing = run(&mut random, &costs, noise, most);
            let winner = if let [(winner, _)] = standing.first.as_slice() { Some(*winner) } else { None };
            counts[0] += usize::from(winner.is_some_and(|winner| winner != 0));
            counts[1] += usize::from(winner.is_none());
            counts[2] += usize::from(winner == Some(0) && standing.lead > gap);
        }
        counts.map(|count| f64::from(count as u32) / RUNS as f64)
    }

    #[test]
    fn a_wrong_winner_is_rare_and_a_true_gap_is_found() {
        for (noise, most) in &NOISES {
            let [wrong, none, bound] = outcomes(1.3, noise, *most);
            assert!(wrong <= 0.05, "{wrong} of the runs named a wrong winner");
            assert!(none <= 0.25, "{none} of the runs could not tell");
            assert!(bound <= 0.05, "{bound} of the runs promised too much");
            // One of two that are all but the same.
            let [wrong, _, bound] = outcomes(1.0 + 1e-9, noise, *most);
            assert!(
                wrong <= 0.05 && bound <= 0.05,
                "{wrong} named a wrong winner, {bound} promised too much"
            );
        }
    }
}
