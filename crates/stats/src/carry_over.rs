//! What a trial leaves to the next one: whether the trials of a case differ by the case that ran before them in their round.

use std::collections::{BTreeSet, HashMap};

use model::{CaseRecord, Sample};

use crate::changes::{BothSides, Shift, shifts};

/// Fewest trials after one case, and after the others.
const TRIALS_MIN: usize = 6;
/// Smallest factor that is named.
const FACTOR_MIN: f64 = 1.1;

/// A case whose trials right after another case differ from those after the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct CarryOver {
    /// Its index.
    pub case: usize,
    /// The index of the case before.
    pub after: usize,
    /// Its figure after that case, as a multiple of the figure after the others, with the bounds of both sides.
    pub shift: Shift,
}

/// A case, the index of one that ran right before it in some rounds, and the figures of its trials in those rounds and in the others.
struct Pair {
    case: usize,
    after: usize,
    others: Vec<f64>,
    right_after: Vec<f64>,
}

/// All that are surely found (95 % for all together) and differ by a tenth or more. `figure` is positive.
pub fn carry_over(
    cases: &[&CaseRecord],
    figure: impl Fn(&CaseRecord, &Sample) -> Option<f64>,
) -> Vec<CarryOver> {
    let mut case_at: HashMap<(u32, u32), usize> = HashMap::new();
    for (case, record) in cases.iter().enumerate() {
        let places = record.samples.iter().filter_map(|sample| Some((sample.round, sample.place?)));
        case_at.extend(places.map(|round_and_place| (round_and_place, case)));
    }
    // The case whose trial ran right before this sample's, in the same round.
    let before = |sample: &Sample| case_at.get(&(sample.round, sample.place?.checked_sub(1)?)).copied();
    let mut pairs = Vec::new();
    for (case, record) in cases.iter().enumerate() {
        let predecessors: BTreeSet<usize> = record.samples.iter().filter_map(before).collect();
        for after in predecessors {
            let (right_after, others): (Vec<&Sample>, Vec<&Sample>) =
                record.samples.iter().partition(|sample| before(sample) == Some(after));
            if right_after.len().min(others.len()) < TRIALS_MIN {
                continue;
            }
            let figures = |samples: Vec<&Sample>| -> Vec<f64> {
                let all = samples.into_iter().filter_map(|sample| figure(record, sample));
                all.filter(|value| *value > 0.0).collect()
            };
            pairs.push(Pair { case, after, others: figures(others), right_after: figures(right_after) });
        }
    }
    let sides: Vec<BothSides<'_>> = pairs
        .iter()
        .map(|pair| BothSides { old: &pair.others, new: &pair.right_after, paired: false })
        .collect();
    let found = shifts(&sides, 1);
    let is_large = |shift: &Shift| shift.is_found() && shift.ratio.max(1.0 / shift.ratio) >= FACTOR_MIN;
    let large = pairs.iter().zip(found).filter_map(|(pair, shift)| {
        Some(CarryOver { case: pair.case, after: pair.after, shift: shift.filter(is_large)? })
    });
    large.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{self, normal};
    use fastrand::Rng;
    use model::Workload;

    /// Three cases in a random order; the first is as many `times` as slow right after the second.
    fn run(random: &mut Rng, times: f64) -> Vec<CaseRecord> {
        let mut cases = vec![mock::case(Workload::Stream, Vec::new()); 3];
        for round in 0..40 {
            let mut order = [0, 1, 2];
            random.shuffle(&mut order);
            for (place, at) in order.into_iter().enumerate() {
                let is_slow = at == 0 && place > 0 && order[place - 1] == 1;
                let elapsed_ns = 1e9 * (0.1 * normal(random)).exp() * if is_slow { times } else { 1.0 };
                let place = Some(place as u32);
                let sample = Sample { place, elapsed_ns: elapsed_ns as u64, ..mock::stream(round, 1 << 30) };
                cases[at].samples.push(sample);
            }
        }
        cases
    }

    fn found(cases: &[CaseRecord]) -> Vec<CarryOver> {
        carry_over(&cases.iter().collect::<Vec<_>>(), |_, sample| Some(sample.elapsed_ns as f64))
    }

    #[test]
    fn a_case_that_disturbs_the_next_one_is_found() {
        let mut random = Rng::with_seed(6);
        let found = found(&run(&mut random, 1.5));
        assert_eq!(found.iter().map(|one| (one.case, one.after)).collect::<Vec<_>>(), [(0, 1)]);
        assert!((1.35..1.65).contains(&found[0].shift.ratio), "{found:?}");
    }

    #[test]
    fn chance_alone_is_seldom_found() {
        let mut random = Rng::with_seed(7);
        let alarms = (0..200).filter(|_| !found(&run(&mut random, 1.0)).is_empty()).count();
        assert!(alarms <= 10, "{alarms} of 200");
        let mut without = run(&mut random, 2.0);
        without.iter_mut().flat_map(|case| &mut case.samples).for_each(|sample| sample.place = None);
        assert!(found(&without).is_empty(), "a record of an earlier version");
    }
}
