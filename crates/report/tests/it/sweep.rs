//! What a sweep says of the sizes at which it does not know.

use crate::golden::plain;
use crate::mock::{Mock, Work, record};

/// A stream whose noise is that of so many rounds later.
fn later(spec: &str, block: u64, gb_per_s: f64, spread: f64, rounds: u32) -> Mock {
    let shift = |case: &mut model::CaseRecord| {
        case.samples.iter_mut().for_each(|sample| sample.round = (sample.round + rounds) % 9);
        case.samples.sort_by_key(|sample| sample.round);
    };
    Mock::stream(spec).block(block).gb_per_s(gb_per_s, spread, Work::Waking).with(shift)
}

/// Expected: a size at which the race is open is named as such, with those that may be as good.
/// Happened: the simplest was named at every size, as if that were known, and the table of costs said beside it that no difference can be
/// told.
#[test]
fn sizes_whose_rows_are_not_told_apart_are_named() {
    let sizes = [64, 256, 1024, 4096, 16384];
    let cases = sizes.iter().flat_map(|block| {
        let (speed, apart) = (*block as f64 / 1000.0, *block > 1024);
        let socket = if apart { 3.0 } else { 1.02 };
        [("pipe", 1.0, 0), ("unix-stream", socket, 4)]
            .map(|(spec, times, rounds)| later(spec, *block, speed * times, 15.0, rounds))
    });
    let text = plain(&record(cases), 300);
    let answer = text.lines().find(|line| line.starts_with("Streams")).unwrap_or_default();
    assert!(
        answer.starts_with(
            "Streams on CPUs 0,1, by time and CPU: take `pipe` from 64 B to 1 KiB, `unix-stream` from 4 KiB to 16 KiB. \
             Not told apart: `unix-stream` from 64 B to 1 KiB; of those that cost about the same the simplest is named; \
             to tell them apart: --trials "
        ),
        "{text}"
    );
    let sure = sizes.map(|block| {
        let pair = [("pipe", 1.0), ("unix-stream", 3.0)];
        pair.map(|(spec, times)| later(spec, block, block as f64 * times / 1000.0, 2.0, 0))
    });
    let text = plain(&record(sure.into_iter().flatten()), 300);
    let answer = "Streams on CPUs 0,1, by time and CPU: take `unix-stream` from 64 B to 16 KiB.\n";
    assert!(text.ends_with(answer) && !text.contains("told"), "{text}");
}

/// Expected: how many rounds it takes to say which of many pairs cross. Happened: "No two of them cross, as far as can be told", of
/// nine rounds and 45 pairs, of which nothing could be found.
#[test]
fn too_few_rounds_for_so_many_pairs_are_said() {
    let specs = [
        "pipe",
        "fifo",
        "tcp",
        "file",
        "tmpfile",
        "socketpair",
        "unix-stream",
        "unix-seqpacket",
        "posix-mq",
        "sysv-msgq",
    ];
    let of_size = |block: u64| {
        let specs = specs.iter().enumerate();
        specs.map(move |(at, spec)| later(spec, block, block as f64 / (100.0 + at as f64), 2.0, 0))
    };
    let text = plain(&record([64, 256, 1024, 4096, 16384].into_iter().flat_map(of_size)), 300);
    let sentence =
        "To decide which of 45 pairs cross takes 11 rounds, and there were 9: --trials 11, or fewer";
    assert!(text.contains(sentence), "{text}");
}
