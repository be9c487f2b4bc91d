//! Which of several cases costs least, decided while they are measured: best-arm identification by successive elimination
//! (Even-Dar, Mannor and Mansour, *JMLR* 7, 2006) over costs that are compared within rounds.
//!
//! In each round an entrant is compared with the one that led the others in the rounds before. If the entrant is the cheapest one, it
//! wins more than half of all rounds against any other, so that a bet on its defeats gains nothing: a bet spread evenly over chances
//! from 1/2 to 1 ever reaches a gain of `g` with a probability of at most 1/`g` (Ville, 1939; for quantiles and best arms: Howard and
//! Ramdas, *Bernoulli* 28, 2022). This holds for any number of analyses and any number of entrants, since only one is the cheapest. The only
//! assumption about the noise is that it does not depend on the order within a round, which is drawn at random: of two that cost
//! the same, either is equally likely to meet a busy machine. Heavy tails, mixtures of one CPU and two, and lasting loads only make
//! more rounds necessary.

use std::collections::BTreeMap;

use model::Ratio;

use crate::estimate::median;

/// Costs that surely differ by at most this factor count as the same.
pub const SAME_TIMES: f64 = 1.1;
/// A lower bound of at least this share of the median says nearly what more rounds would.
const NEAR_BOUND: f64 = 0.9;
/// A sum of costs below this share of another is less.
const LESS_IN_TOTAL: f64 = 0.97;
/// Largest logarithm of a cost, relative to the round's median, in a score: a factor of 20.
const SCORE_MAX: f64 = 3.0;
/// More rounds than this are not suggested.
const ROUNDS_MAX: usize = 5_000;

/// The cost of an entrant in each round, by the round's number; less is better.
pub type RoundCosts = BTreeMap<u32, f64>;

/// What costs more in each round, and typically this many times as much, is said to be dearer in each round.
const CLEAR_TIMES: f64 = 2.0;

/// How the costs of an entrant compare with those of the leader, in the rounds that both have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Against {
    /// Its index.
    pub at: usize,
    /// Its cost as a multiple of the leader's: that of the median round, and bounds, the upper one infinite with too few rounds. NaN
    /// without a common round.
    pub factor: Ratio,
    /// The sum of its costs as a multiple of the sum of the leader's.
    pub totals: f64,
    /// Whether that sum is less than the leader's, also without the round in which the leader cost most: then rounds in which the leader
    /// costs more outweigh those in which it costs less.
    pub is_less_in_total: bool,
    /// The number of common rounds, and of those in which it cost more.
    pub rounds: usize,
    pub rounds_dearer: usize,
}

impl Against {
    /// Whether both surely count as costing the same.
    pub fn is_same(&self) -> bool {
        self.factor.high <= SAME_TIMES
    }

    /// Whether it cost more in each of several rounds, and in the median one twice as much or more. Few rounds do not make it certain.
    pub fn is_dearer_in_each(&self) -> bool {
        self.rounds > 1 && self.rounds_dearer == self.rounds && self.factor.median >= CLEAR_TIMES
    }

    /// Whether the lower bound is near enough to the median for more rounds to add little.
    fn is_bound_near(&self) -> bool {
        self.factor.low >= NEAR_BOUND * self.factor.median
    }
}

/// The result of the rounds so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Standing {
    /// The entrants that may be the cheapest, in the order of their median costs. The bounds hold for all of them at once. Empty only if no
    /// entrant has a cost.
    pub first: Vec<Against>,
    /// All others, which are surely beaten, in the order of their median factors. The lower bound is that of one of them (95 %).
    pub beaten: Vec<Against>,
    /// Estimated number of rounds until one of those that may be the cheapest has won, or they are shown to cost the same; `None` if
    /// it cannot be estimated.
    pub rounds_needed: Option<usize>,
}

impl Standing {
    /// Whether it is known which one is the cheapest: one entrant is left, or those left cost the same ([`SAME_TIMES`]).
    pub fn is_decided(&self) -> bool {
        self.first.iter().all(Against::is_same)
    }

    /// The one that is next to the only one that may be the cheapest.
    pub fn next(&self) -> Option<&Against> {
        self.beaten.first().filter(|_| self.first.len() == 1)
    }

    /// How an entrant compares with the leader; `None` without a cost.
    pub fn against(&self, at: usize) -> Option<&Against> {
        self.first.iter().chain(&self.beaten).find(|one| one.at == at)
    }

    /// Whether further rounds of an entrant can change which one is the cheapest.
    pub fn may_decide(&self, at: usize) -> bool {
        !self.is_decided() && self.first.iter().any(|one| one.at == at)
    }

    /// The same, or by how much the cheapest one leads: then it and the next one need rounds until the lower bound is near.
    pub fn may_decide_lead(&self, at: usize) -> bool {
        let is_leader = self.first.first().is_some_and(|one| one.at == at);
        let is_open = |next: &Against| (is_leader || next.at == at) && !next.is_bound_near();
        self.may_decide(at) || self.next().is_some_and(is_open)
    }
}

/// Compares entrants within the rounds that they have in common.
///
/// With a probability of at least 1 - `errors` the cheapest one is in [`Standing::first`], however often this is called.
pub fn race(entrants: &[RoundCosts], errors: f64) -> Standing {
    let sure = 1.0 / errors;
    let median_of = |costs: &RoundCosts| median(&costs.values().copied().collect::<Vec<f64>>());
    let medians = entrants.iter().enumerate().filter_map(|(at, costs)| Some((at, median_of(costs)?)));
    let mut ranked: Vec<(usize, f64)> = medians.collect();
    model::sort_by(&mut ranked, |one, other| one.1.total_cmp(&other.1));
    let against = against_leaders(entrants);
    let (mut first, mut beaten): (Vec<usize>, Vec<usize>) =
        ranked.iter().map(|(at, _)| *at).partition(|at| !is_more(&against[*at], sure));
    if first.is_empty() {
        // In a cycle, each of three may beat the next one in most rounds.
        first = std::mem::take(&mut beaten);
    }
    let Some(&leader) = first.first() else { return Standing::default() };
    // Two bounds for each pair (Bonferroni).
    let all_sure = 2.0 * (ranked.len() as f64 - 1.0).max(1.0) * sure;
    let compared =
        |at: usize, low_sure: f64| compare(at, &entrants[at], &entrants[leader], low_sure, all_sure);
    let open = first[1..].iter().map(|at| compared(*at, all_sure));
    let mut standing = Standing { first: open.collect(), ..Standing::default() };
    let needed =
        standing.first.iter().map(|one| rounds_to_tell(&entrants[one.at], &entrants[leader], sure, all_sure));
    standing.rounds_needed = needed.max_by_key(|needed| needed.unwrap_or(usize::MAX)).unwrap_or(Some(0));
    let itself = Ratio { median: 1.0, low: 1.0, high: 1.0 };
    standing.first.insert(0, Against { factor: itself, ..compared(leader, sure) });
    standing.beaten = beaten.iter().map(|at| compared(*at, sure)).collect();
    for one in &mut standing.beaten {
        one.factor.low = one.factor.low.max(1.0);
    }
    model::sort_by(&mut standing.beaten, |one, other| one.factor.median.total_cmp(&other.factor.median));
    standing
}

/// Compares an entrant with the leader. `low_sure` and `high_sure` are the gains of a bet that the lower and the upper bound need ([`factor`]).
fn compare(at: usize, costs: &RoundCosts, leader: &RoundCosts, low_sure: f64, high_sure: f64) -> Against {
    let dearest =
        in_common_rounds(costs, leader).max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or_default();
    let sums = |(own, others), (cost, other)| (own + cost, others + other);
    let (own, others) = in_common_rounds(costs, leader).fold((0.0, 0.0), sums);
    let ratios = ratios(costs, leader);
    Against {
        at,
        totals: own / others,
        is_less_in_total: own < LESS_IN_TOTAL * others
            && own - dearest.0 < LESS_IN_TOTAL * (others - dearest.1),
        rounds: ratios.len(),
        rounds_dearer: ratios.iter().filter(|ratio| **ratio > 1.0).count(),
        factor: Ratio { low: factor(ratios.clone(), low_sure).low, ..factor(ratios, high_sure) },
    }
}

/// Estimated number of rounds until it is certain which of two costs less, for which a bet must gain `sure`, or that the first costs the
/// same as the second, for which it must gain `all_sure`.
fn rounds_to_tell(costs: &RoundCosts, leader: &RoundCosts, sure: f64, all_sure: f64) -> Option<usize> {
    let ratios = ratios(costs, leader);
    let share = |is: fn(f64) -> bool| {
        ratios.iter().filter(|ratio| is(**ratio)).count() as f64 / ratios.len().max(1) as f64
    };
    let shares = [
        (share(|ratio| ratio > 1.0), sure),
        (share(|ratio| ratio < 1.0), sure),
        (share(|ratio| ratio <= SAME_TIMES), all_sure),
    ];
    shares.iter().filter_map(|(share, sure)| rounds_for(*share, *sure)).min()
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

/// Both costs in each round that has both, if one can be divided by the other.
fn in_common_rounds<'a>(one: &'a RoundCosts, other: &'a RoundCosts) -> impl Iterator<Item = (f64, f64)> + 'a {
    let both = one.iter().filter_map(|(round, cost)| Some((*cost, *other.get(round)?)));
    both.filter(|(cost, other)| (cost / other).is_finite())
}

/// One cost divided by the other, in each round that has both.
fn ratios(one: &RoundCosts, other: &RoundCosts) -> Vec<f64> {
    in_common_rounds(one, other).map(|(cost, other)| cost / other).collect()
}

/// Whether the ratios were surely larger than 1 in most rounds, after any of the rounds.
fn is_more(ratios: &[f64], sure: f64) -> bool {
    let mut wins = 0;
    (1..).zip(ratios).any(|(count, ratio)| {
        wins += usize::from(*ratio > 1.0);
        gain(wins, count) >= sure
    })
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
fn rounds_for(share: f64, sure: f64) -> Option<usize> {
    let wins = |count: usize| (share * count as f64).round() as usize;
    // Steps of two percent: an estimate needs no more.
    let counts = std::iter::successors(Some(1), |count| Some(count + 1 + count / 50));
    counts
        .take_while(|count| share > 0.5 && *count <= ROUNDS_MAX)
        .find(|count| gain(wins(*count), *count) >= sure)
}

#[cfg(test)]
mod simulations;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::ERRORS;

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

    fn raced(costs: &[&[f64]]) -> Standing {
        race(&entrants(costs), ERRORS)
    }

    #[test]
    fn the_cheapest_of_most_rounds_is_first_and_the_factor_is_bounded() {
        let (one, other): (Vec<f64>, Vec<f64>) =
            (0..12).map(|round| (1.0 + f64::from(round), 2.0 * (1.0 + f64::from(round)))).unzip();
        let standing = raced(&[&other, &one, &[]]);
        let always = |at, all: f64, rounds_dearer| Against {
            at,
            factor: Ratio { median: all, low: all, high: all },
            totals: all,
            is_less_in_total: false,
            rounds: 12,
            rounds_dearer,
        };
        assert_eq!((&standing.first[..], standing.is_decided()), (&[always(1, 1.0, 0)][..], true));
        assert_eq!((standing.next(), standing.against(0)), (Some(&always(0, 2.0, 12)), standing.next()));
        let few = raced(&[&other[..5], &one[..5]]);
        assert_eq!((few.first.len(), few.first[1].at, few.is_decided()), (2, 0, false));
        assert_eq!((few.first[1].factor.low, few.first[1].factor.high), (0.0, f64::INFINITY));
        assert_eq!(few.rounds_needed, Some(7), "all rounds won: 2^8 / 8 > 20");
        assert_eq!((few.next(), race(&[], ERRORS)), (None, Standing::default()));
    }

    #[test]
    fn what_costs_the_same_is_decided_without_a_winner() {
        let costs: Vec<f64> = (0..40).map(|round| 1.0 + 0.01 * f64::from(round % 7)).collect();
        let others: Vec<f64> = (0..40).map(|round| 1.0 + 0.01 * f64::from(round % 5)).collect();
        let standing = raced(&[&costs, &others]);
        assert_eq!((standing.first.len(), standing.is_decided()), (2, true));
    }

    #[test]
    fn three_that_beat_each_other_in_turn_stay() {
        let cycle =
            |shift: usize| (0..60).map(|round| ((round + shift) % 3) as f64 + 1.0).collect::<Vec<f64>>();
        let turns = [cycle(0), cycle(1), cycle(2)];
        let standing = raced(&[&turns[0], &turns[1], &turns[2]]);
        assert_eq!(standing.first.len(), 3);
    }

    #[test]
    fn bounds_need_the_more_rounds_the_more_entrants_there_are() {
        // All of n rounds won gain (2ⁿ⁺¹ - 1) / (n + 1): 32 of 7, 57 of 8, 102 of 9, 186 of 10; needed are 40 for each rival.
        for (count, rounds, bounded) in
            [(2, 7, false), (2, 8, true), (3, 8, false), (3, 9, true), (4, 9, false), (4, 10, true)]
        {
            let costs: Vec<Vec<f64>> = (1..=count).map(|cost| vec![f64::from(cost); rounds]).collect();
            let standing = raced(&costs.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let all: Vec<&Against> = standing.first.iter().chain(&standing.beaten).collect();
            let found: Vec<(usize, f64)> = all.iter().map(|one| (one.at, one.factor.median)).collect();
            let expected: Vec<(usize, f64)> =
                (1..=count).map(|cost| (cost as usize - 1, f64::from(cost))).collect();
            assert_eq!(found, expected);
            let others = &all[1..];
            assert!(others.iter().all(|one| one.factor.high.is_finite() == bounded), "{standing:?}");
            assert!(others.iter().all(|one| one.factor.low > 1.0), "{standing:?}");
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
        let of_factor = |factor| Against { factor, ..*raced(&[&[1.0]]).against(0).expect("the leader") };
        let is_same = |high| of_factor(of(1.0, 0.5, high)).is_same();
        assert!(is_same(1.1) && !is_same(1.101));
        let is_bound_near = |low| of_factor(of(2.0, low, 3.0)).is_bound_near();
        assert!(is_bound_near(1.8) && !is_bound_near(1.79));
    }

    #[test]
    fn a_ratio_is_surely_more_than_one_after_seven_wins_in_a_row() {
        let then = |wins: usize, more: &[f64]| [&vec![2.0; wins][..], more].concat();
        for (ratios, expected) in [
            (then(6, &[]), false),
            (then(7, &[]), true),
            (then(7, &[0.5]), true),
            (then(7, &[3.0]), true),
            (then(6, &[1.0]), false),
            (vec![1.0; 20], false),
            (vec![0.5; 20], false),
            (Vec::new(), false),
        ] {
            assert_eq!(is_more(&ratios, 1.0 / ERRORS), expected, "{ratios:?}");
        }
    }

    #[test]
    fn the_rounds_until_a_side_has_won_depend_on_its_share() {
        for (share, expected) in
            [(1.0, Some(7)), (0.9, Some(11)), (0.8, Some(17)), (0.7, Some(48)), (0.5, None), (0.0, None)]
        {
            assert_eq!(rounds_for(share, 1.0 / ERRORS), expected, "{share}");
        }
        let costs = [[1.0, 1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0, 1.0], [9.0, 9.0, 9.0, 9.0, 9.0]];
        let of = |costs: &[[f64; 5]]| raced(&costs.iter().map(|one| &one[..]).collect::<Vec<_>>());
        assert_eq!(of(&costs[..2]).rounds_needed, Some(17), "four of five, as a tie is no win");
        assert_eq!(of(&costs[..1]).rounds_needed, Some(0));
        assert_eq!(of(&[costs[0], costs[0]]).rounds_needed, Some(8), "always the same: 2^9 / 9 > 40");
        let turns = raced(&[&[1.0, 2.0, 1.0, 2.0], &[2.0, 1.0, 2.0, 1.0]]);
        assert_eq!(turns.rounds_needed, None, "neither wins, and they do not cost the same");
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
        let standing = raced(&[&other, &[1.0; 8]]);
        let order = |all: &[Against]| all.iter().map(|one| one.at).collect::<Vec<_>>();
        assert_eq!((order(&standing.first), order(&standing.beaten)), (vec![1], vec![0]));
        assert_eq!(standing.next().map(|next| next.factor.low), Some(1.0));
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
}
