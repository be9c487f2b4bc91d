//! The block sizes at which two mechanisms of a sweep cross.

use model::CaseRecord;
use stats::estimate::median;
use stats::{Crossing, SizeSweep, crossing, rounds_to_cross};

use crate::lists::{first_lines, grouped};
use crate::view::SWEEP_FROM;
use crate::{numbers, words};

/// Most sentences.
const SENTENCES_MAX: usize = 5;
/// Most mechanisms that are compared with each other, those with the shortest time for a small block: the number of pairs grows with the square.
const MECHANISMS_MAX: usize = 12;

/// Where two of the streams among these labelled cases cross, if they are a sweep; if there are only two, also that they do not.
pub(crate) fn crossings<'a>(cases: impl Iterator<Item = (String, &'a CaseRecord)>) -> Vec<String> {
    let sweeps = grouped(cases).into_iter().map(|(label, cases)| (label, SizeSweep::of(cases)));
    let mut sweeps: Vec<(String, SizeSweep)> =
        sweeps.filter(|(_, sweep)| sweep.blocks().next().is_some()).collect();
    if !sweeps.iter().any(|(_, sweep)| sweep.blocks().count() >= SWEEP_FROM) {
        return Vec::new();
    }
    model::sort_by(&mut sweeps, |(_, one), (_, other)| smallest(one).total_cmp(&smallest(other)));
    sweeps.truncate(MECHANISMS_MAX);
    let pair_count = sweeps.len() * (sweeps.len() - 1) / 2;
    let needed = rounds_to_cross(pair_count);
    let made = sweeps.iter().map(|(_, sweep)| sweep.rounds()).max().unwrap_or(0);
    let pairs = (0..sweeps.len()).flat_map(|at| sweeps[at + 1..].iter().map(move |other| (at, other)));
    let found: Vec<(&String, &String, Crossing)> = pairs
        .map(|(at, (other, second))| (&sweeps[at].0, other, crossing(&sweeps[at].1, second, pair_count)))
        .collect();
    let crossed = found.iter().filter_map(|(one, other, found)| crosses(one, other, found));
    let mut cross = first_lines(crossed.collect(), SENTENCES_MAX);
    match found.as_slice() {
        [] => {}
        [(one, other, Crossing::Never { first_ahead, sizes_ahead, sizes })] => {
            let (ahead, behind) = if *first_ahead { (one, other) } else { (other, one) };
            let rest = if sizes_ahead == sizes { "" } else { "; at the others neither surely is" };
            let of_sizes = words::count(*sizes, "size");
            cross.push(format!(
                "`{ahead}` and `{behind}` never cross in the measured range: `{ahead}` is faster at {sizes_ahead} of {of_sizes}{rest}."
            ));
        }
        [(one, other, Crossing::Unclear)] if made >= needed => cross.push(format!(
            "By time alone neither `{one}` nor `{other}` surely is faster at any size."
        )),
        _ if made < needed => cross.push(format!(
            "To decide {} takes {needed} rounds, and there were {made}: --trials {needed}, or fewer mechanisms.",
            if pair_count == 1 { "whether they cross".to_owned() } else { format!("which of {pair_count} pairs cross") },
        )),
        _ if cross.is_empty() => cross.push("No two of them surely cross in the measured range.".to_owned()),
        _ => {}
    }
    cross
}

/// The logarithm of the median time of a block of the smallest size.
fn smallest(sweep: &SizeSweep) -> f64 {
    let times = sweep.blocks().next().map_or(&[][..], |block| sweep.of_block(block));
    median(&times.iter().map(|(_, ln_ns)| *ln_ns).collect::<Vec<_>>()).unwrap_or(f64::MAX)
}

/// "`shm-ring` is faster than `pipe` up to 1 KiB, and slower from 4 KiB on."
fn crosses(one: &str, other: &str, found: &Crossing) -> Option<String> {
    match *found {
        Crossing::At { first_ahead_below, low, high } => {
            let (below, above) = if first_ahead_below { (one, other) } else { (other, one) };
            let (low, high) = (numbers::size(low), numbers::size(high));
            Some(format!("`{below}` is faster than `{above}` up to {low}, and slower from {high} on."))
        }
        Crossing::Often => Some(format!("`{one}` and `{other}` cross more than once.")),
        Crossing::Never { .. } | Crossing::Unclear => None,
    }
}
