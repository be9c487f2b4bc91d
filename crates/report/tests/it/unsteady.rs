//! What is said of trials without a steady state.

use crate::golden::plain;
use crate::mock::{Mock, Work, record};

fn said(change: impl Fn(&mut model::CaseRecord)) -> String {
    let mut record = record([Mock::stream("shm-ring").gb_per_s(10.0, 0.1, Work::Waking)]);
    // Twelve trials.
    let case = record.cases.iter_mut().find(|case| case.spec.to_string() == "shm-ring").expect("it");
    case.samples = case.samples.iter().cycle().take(12).cloned().collect();
    change(case);
    plain(&record, 200)
}

#[test]
fn trials_that_fall_into_two_states_are_named_with_both() {
    assert!(!said(|_| {}).contains("two states"));
    let text = said(|case| case.samples.iter_mut().step_by(3).for_each(|sample| sample.elapsed_ns *= 2));
    let at = "`shm-ring` (streams of 64 KiB, on CPUs 0,1) has two states: 5.0";
    assert!(text.contains(at) && text.contains(" in 4 of 12 trials, 10"), "{text}");
}

#[test]
fn a_second_half_that_takes_longer_is_named() {
    let with_halves = |first: f64| {
        said(|case| {
            for sample in &mut case.samples {
                let first_ns = sample.elapsed_ns as f64 * first;
                sample.sixteenths_ns = (1..=15).map(|at| (first_ns * f64::from(at) / 8.0) as u64).collect();
            }
        })
    };
    assert!(!with_halves(0.5).contains("second half"));
    let text = with_halves(0.4);
    assert!(text.contains("the second half of a trial takes 1.5 times as long as the first"), "{text}");
}
