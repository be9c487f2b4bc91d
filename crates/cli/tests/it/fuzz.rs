//! Damaged inputs to everything that reads what another program or a person wrote: words, records, suites, results of workers, messages of
//! other hosts, the variable of the preloaded library, the file of a shell. Each input is a file of `fuzz/corpus` (or a record, or a suite, of
//! the repository) with a few changes. Promised: an answer or an error; no panic, no crash, no hang.
//!
//! Each test makes inputs for two seconds, or for `HOSEPIPE_FUZZ_SECONDS`, in an order that `HOSEPIPE_FUZZ_SEED` decides:
//! `cargo test -p hosepipe --test it fuzz:: -- --nocapture` prints how many. An input that fails is made
//! smaller, kept in the folder for temporary files, and named; a copy of it belongs into the corpus.

mod input;
mod library;
mod programs;
mod records;
mod remote;
mod words;

use std::time::{Duration, Instant};

use input::{Seed, damaged};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// Inputs between two looks at the clock.
const CASES: u32 = 16;
/// Longer than any answer takes on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(20);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// Checks each seed as it is, and then damaged ones until the time is over. `check` says what is wrong with the answer.
fn fuzz(name: &str, seeds: &[Seed], check: impl Fn(&[u8]) -> Result<(), String>) {
    for seed in seeds {
        check(&seed.bytes).unwrap_or_else(|problem| panic!("{}: {problem}", seed.name));
    }
    let (began, mut tried) = (Instant::now(), 0u64);
    let limit = Duration::from_secs(number("HOSEPIPE_FUZZ_SECONDS").unwrap_or(2));
    let first_seed = number("HOSEPIPE_FUZZ_SEED").unwrap_or(1) << 32;
    while began.elapsed() < limit {
        // A runner ends after its cases.
        let rng_seed = RngSeed::Fixed(first_seed + tried);
        let config = Config { cases: CASES, rng_seed, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let outcome = runner.run(&damaged(seeds.len()), |damage| {
            let input = damage.apply(seeds);
            let asked = Instant::now();
            check(&input).map_err(TestCaseError::fail)?;
            if asked.elapsed() > ANSWER_MAX {
                return Err(TestCaseError::fail(format!("an answer after {:?}", asked.elapsed())));
            }
            Ok(())
        });
        if let Err(TestError::Fail(reason, damage)) = outcome {
            let file = std::env::temp_dir().join(format!("fuzz-{name}-{}", std::process::id()));
            std::fs::write(&file, damage.apply(seeds)).expect("room for the input");
            panic!("{name}: {reason}: the input is {}", file.display());
        }
        tried += u64::from(CASES);
    }
    println!("{name}: {tried} damaged inputs in {:.0} s", began.elapsed().as_secs_f64());
}
