//! The rounds of every run in which rows take turns: cases of a benchmark, programs in other languages, pipelines, programs that are
//! recommended. In each round the rows that are still wanted run once, in a seeded random order.

use std::time::Instant;

/// How many rounds are made, and until when.
#[derive(Debug, Clone, Copy)]
pub struct RoundLimits {
    /// Most rounds.
    pub most: u32,
    /// The first rounds, which are made even if the time is over.
    pub least: u32,
    /// No other round begins later.
    pub until: Option<Instant>,
    /// The first rounds, whose rows run in the order in which they are given: those of a warm-up.
    pub unshuffled: u32,
}

/// One round.
#[derive(Debug, PartialEq, Eq)]
pub struct Round<R> {
    /// Its number, counted from 0.
    pub number: u32,
    /// The rows, in the order in which they run.
    pub rows: Vec<R>,
}

/// The rounds of a run, one after another.
#[derive(Debug)]
pub struct Rounds {
    limits: RoundLimits,
    random: fastrand::Rng,
    made: u32,
    is_late: bool,
}

impl Rounds {
    /// The rounds of a run; `seed` decides their orders.
    pub fn new(seed: u64, limits: RoundLimits) -> Self {
        Self { limits, random: fastrand::Rng::with_seed(seed), made: 0, is_late: false }
    }

    /// The next round of these rows, the ones that have not failed and that need more trials; `None` if the run is over.
    pub fn next<R>(&mut self, mut rows: Vec<R>) -> Option<Round<R>> {
        let RoundLimits { most, least, until, unshuffled } = self.limits;
        if rows.is_empty() || self.made == most {
            return None;
        }
        self.is_late = self.made >= least && until.is_some_and(|until| Instant::now() >= until);
        if self.is_late {
            return None;
        }
        let number = self.made;
        self.made += 1;
        if number >= unshuffled {
            self.random.shuffle(&mut rows);
        }
        Some(Round { number, rows })
    }

    /// Rounds that were begun.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// Whether the time ended the run, and not the number of rounds or the lack of rows.
    pub fn is_late(&self) -> bool {
        self.is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: RoundLimits = RoundLimits { most: 4, least: 1, until: None, unshuffled: 0 };

    fn rounds(seed: u64, limits: RoundLimits) -> Vec<Vec<usize>> {
        let mut rounds = Rounds::new(seed, limits);
        std::iter::from_fn(|| rounds.next(Vec::from_iter(0..6)).map(|round| round.rows)).collect()
    }

    #[test]
    fn a_seed_decides_the_order_within_each_round() {
        let made = rounds(7, FOUR);
        assert_eq!((made.len(), &made), (4, &rounds(7, FOUR)));
        assert_ne!(made, rounds(8, FOUR));
        assert!(made.windows(2).any(|pair| pair[0] != pair[1]));
        let sorted = |mut round: Vec<usize>| {
            round.sort_unstable();
            round
        };
        assert!(made.into_iter().all(|round| sorted(round) == [0, 1, 2, 3, 4, 5]), "each row once");
    }

    #[test]
    fn a_warm_up_has_the_given_order_and_does_not_change_the_others() {
        let made = rounds(7, RoundLimits { most: 5, unshuffled: 1, ..FOUR });
        assert_eq!((&made[0][..], &made[1..]), (&[0, 1, 2, 3, 4, 5][..], &rounds(7, FOUR)[..]));
    }

    #[test]
    fn rounds_end_by_their_number_by_the_time_or_without_rows() {
        let over = RoundLimits { least: 2, until: Some(Instant::now()), ..FOUR };
        let mut late = Rounds::new(1, over);
        let made: Vec<u32> = std::iter::from_fn(|| late.next(vec![0]).map(|round| round.number)).collect();
        assert_eq!((made, late.made(), late.is_late()), (vec![0, 1], 2, true));
        let mut all = Rounds::new(1, FOUR);
        while all.next(vec![0]).is_some() {}
        assert_eq!((all.made(), all.is_late()), (4, false));
        let mut without_rows = Rounds::new(1, over);
        assert!(without_rows.next(vec![0]).is_some() && without_rows.next(Vec::<u8>::new()).is_none());
        assert!(!without_rows.is_late());
    }
}
