//! `bradford`: a pipe in one thread and in two, over block sizes.

mod equivalence;
mod view;

use serde::Deserialize;

use crate::Study;
use crate::view::Texts;

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "bradford",
    run: |run| run.run_streams(),
    show: view::show,
    elsewhere: Some(view::elsewhere),
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct Bradford {
    choice: BradfordChoice,
    published: Vec<PublishedSystem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BradfordChoice {
    equivalence_percent: f64,
}

#[derive(Deserialize)]
struct PublishedSystem {
    /// The peak with two threads, in 10^6 bytes per second.
    peak_mb_per_s: f64,
    /// With very large blocks, in 10^6 bytes per second.
    steady_mb_per_s: Option<f64>,
    /// The texts of its row, as published.
    #[serde(flatten)]
    texts: Texts,
}

#[cfg(test)]
mod tests {
    use model::{Amount, Case};

    use super::*;
    use crate::Scale;

    fn cases(name: &str) -> Vec<Case> {
        let part = STUDY.parts().into_iter().find(|part| part.name == name).expect(name);
        part.cases(Scale::FULL, &[]).expect("cases")
    }

    #[test]
    fn the_sweep_is_the_published_one() {
        let single = cases("single");
        let sizes: Vec<u64> = single.iter().map(|case| case.block_bytes).collect();
        assert_eq!((sizes.len(), sizes[0], sizes[sizes.len() - 1]), (62, 1, 4096));
        assert!(sizes.is_sorted());
        for case in single {
            // Sizes that the study writes with one to three digits have one COUNT, and all others, from 1024 on, another.
            let blocks = if case.block_bytes < 1000 { 500 << 10 } else { 100 << 10 };
            assert_eq!(case.amount, Amount::Blocks(blocks), "{}", case.block_bytes);
        }
    }

    #[test]
    fn two_threads_move_no_more_than_was_chosen() {
        let pipe: Vec<Case> =
            cases("threads").into_iter().filter(|case| case.spec.to_string() == "pipe").collect();
        let amounts: Vec<(u64, Amount)> = pipe.iter().map(|case| (case.block_bytes, case.amount)).collect();
        assert_eq!(amounts.len(), 25);
        assert_eq!(amounts[0], (1, Amount::Blocks(100 << 10)));
        assert_eq!(amounts[24], (16 << 20, Amount::Blocks(16)));
    }
}
