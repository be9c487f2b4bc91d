//! How much a trial moves: enough for the clock's resolution, and not too much for the budget.

use std::time::Duration;

use model::{Amount, Case};

/// Shortest trial: a shorter one measures the barrier and the clock more than the mechanism.
pub(crate) const TRIAL_MIN: Duration = Duration::from_millis(10);

/// Longest trial: in the same time two shorter trials give more information.
pub(crate) const TRIAL_MAX: Duration = Duration::from_millis(300);

/// A trial of paced messages, unless the plan has another time: long enough for a stall of a few hundred milliseconds, and for the round
/// trips that a 99th percentile needs.
pub(crate) const TRIAL_PACED: Duration = Duration::from_secs(2);

/// The planned part of the budget: a noisy machine may be slower than in its warm-up.
pub(crate) const PLANNED_PART: f64 = 0.85;

/// Bytes of the first sizing trial of a case.
const FIRST_BYTES: u64 = 1 << 20;
/// Most bytes of the first sizing trial: if blocks are large, it has fewer than four blocks.
const FIRST_BYTES_MAX: u64 = 256 << 20;

/// Most bytes that a trial stores unless `--bytes` requests more: with more, the kernel begins to write back and throttles the
/// writer during the trial, and the figure depends on the disk's current load.
const STORED_BYTES_MAX: u64 = 128 << 20;

/// Blocks of a fixed amount; `None` if sizing trials have to find it.
pub(crate) fn fixed_blocks(case: &Case) -> Option<u64> {
    match case.amount {
        Amount::Adaptive => None,
        Amount::Bytes(bytes) => Some(bytes.div_ceil(case.block_bytes).max(1)),
        Amount::Blocks(blocks) => Some(blocks.max(1)),
    }
}

/// Blocks of the first sizing trial: few, as the mechanism's speed is unknown.
pub(crate) fn first_blocks(case: &Case) -> u64 {
    // The rate determines how long paced messages take.
    let most = case.load.rate_per_s.map_or(256, |rate| (u64::from(rate) / 100).clamp(1, 256));
    let least = (FIRST_BYTES_MAX / case.block_bytes).clamp(1, 4);
    (FIRST_BYTES / case.block_bytes).clamp(least, 256).min(most)
}

/// Most blocks of a sizing trial; `None` without a limit. Paced messages that keep up take no longer with more of them.
pub(crate) fn sizing_blocks_max(case: &Case) -> Option<u64> {
    let paced = |rate: u32| (f64::from(rate) * TRIAL_MIN.as_secs_f64() * 1.5).ceil() as u64;
    fixed_blocks(case).or(case.load.rate_per_s.map(paced))
}

/// Blocks for a trial of about `target`, predicted by a trial of `blocks` that took `elapsed`.
pub(crate) fn scaled_blocks(
    case: &Case,
    stores_data: bool,
    blocks: u64,
    elapsed: Duration,
    target: Duration,
) -> u64 {
    let factor = target.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    let scaled = ((blocks as f64) * factor).clamp(1.0, 1e15) as u64;
    scaled.min(blocks_max(case, stores_data))
}

/// Blocks of paced messages for a trial that takes `length` or a little longer: as many as are due in that time, or as can be sent, if a
/// trial of `blocks` that took `elapsed` shows that less than half of the rate is reached. `None` if messages are not paced.
pub(crate) fn paced_blocks(
    case: &Case,
    stores_data: bool,
    blocks: u64,
    elapsed: Duration,
    length: Duration,
) -> Option<u64> {
    let rate = f64::from(case.load.rate_per_s?);
    let per_s = if is_far_behind(case, blocks, elapsed) {
        blocks as f64 / elapsed.as_secs_f64().max(1e-9)
    } else {
        rate
    };
    // The first one is due at once.
    let due = (per_s * length.as_secs_f64()).ceil() as u64 + 1;
    Some(due.min(blocks_max(case, stores_data)))
}

/// Whether a trial of paced messages took more than twice as long as its rate says.
pub(crate) fn is_far_behind(case: &Case, blocks: u64, elapsed: Duration) -> bool {
    case.load.rate_per_s.is_some_and(|rate| elapsed.as_secs_f64() * f64::from(rate) > 2.0 * blocks as f64)
}

/// Most blocks of a trial that hosepipe sizes.
fn blocks_max(case: &Case, stores_data: bool) -> u64 {
    let at_once = u64::from(case.load.pairs()) * u64::from(case.load.senders());
    if stores_data { (STORED_BYTES_MAX / case.block_bytes / at_once).max(1) } else { u64::MAX }
}

/// Most blocks that are added to get a checksum that is not 0.
const MORE_BLOCKS_MAX: u64 = 8;

/// The smallest number of blocks, at least `blocks`, whose checksum is not 0: zeros that arrive instead of the payload have the checksum
/// 0. `sum` gives the checksum of a number of bytes. If blocks are whole periods with an even number of each byte, every checksum is
/// 0; then `blocks` is returned.
pub(crate) fn blocks_with_nonzero_sum(
    case: &Case,
    blocks: u64,
    mut sum: impl FnMut(u64) -> Option<String>,
) -> u64 {
    let is_zero = |sum: String| sum.bytes().all(|digit| digit == b'0');
    (blocks..=blocks.saturating_add(MORE_BLOCKS_MAX))
        .find(|blocks| !sum(blocks.saturating_mul(case.block_bytes)).is_some_and(is_zero))
        .unwrap_or(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Check, Load, PayloadKind, Spec};
    use payload::{Period, Tile, expected_checksum};

    fn case(amount: Amount) -> Case {
        Case { amount, ..Case::stream(Spec::plain("pipe")) }
    }

    #[test]
    fn the_first_trial_is_small_also_with_large_blocks() {
        let blocks = |block_bytes| first_blocks(&Case { block_bytes, ..case(Amount::Adaptive) });
        assert_eq!([1, 64 << 10, 1 << 20, 64 << 20].map(blocks), [256, 16, 4, 4]);
        assert_eq!([128 << 20, 2_000_000_000].map(blocks), [2, 1], "not 8 GB before anything is known");
    }

    #[test]
    fn bytes_are_rounded_up_to_blocks() {
        assert_eq!(fixed_blocks(&case(Amount::Bytes(65537))), Some(2));
        assert_eq!(fixed_blocks(&case(Amount::Bytes(0))), Some(1));
        assert_eq!(fixed_blocks(&case(Amount::Adaptive)), None);
    }

    #[test]
    fn the_sum_of_a_trial_is_not_that_of_zeros() {
        let tile = Tile::make(&PayloadKind::Sequence, 0, Period::Bench).expect("no file involved");
        let of_blocks = |block_bytes, blocks| {
            let case = Case { block_bytes, ..case(Amount::Adaptive) };
            blocks_with_nonzero_sum(&case, blocks, |bytes| {
                expected_checksum(&tile, Check::Xor, bytes, &|| false)
            })
        };
        assert_eq!((of_blocks(99, 7), of_blocks(99, 8), of_blocks(1, 4)), (7, 9, 5));
        assert_eq!(of_blocks(65536, 5), 5, "no number of these blocks has another sum");
    }

    /// Expected: a trial of paced messages lasts as long as asked, also where the rate is far too high. Happened: 46 requests.
    #[test]
    fn a_paced_trial_has_the_messages_that_are_due_in_its_time() {
        let at = |rate| {
            let load = Load { rate_per_s: Some(rate), ..Load::default() };
            Case { load, block_bytes: 200, ..case(Amount::Adaptive) }
        };
        let (ms, two) = (Duration::from_millis(1), Duration::from_secs(2));
        let blocks = |rate, blocks, took: Duration| paced_blocks(&at(rate), false, blocks, took, two);
        assert_eq!(blocks(1000, 15, 14 * ms), Some(2001));
        assert_eq!(blocks(1000, 15, 29 * ms), Some(2001), "on a busy machine");
        assert_eq!(blocks(1, 1, ms / 100), Some(3), "one is due at once");
        assert_eq!(blocks(10_000_000, 1500, 15 * ms), Some(200_001), "a hundred in a millisecond");
        assert_eq!(paced_blocks(&at(10_000_000), true, 150_000, 15 * ms, two), Some((128 << 20) / 200));
        assert_eq!(paced_blocks(&case(Amount::Adaptive), false, 1, ms, two), None);
        assert_eq!([1, 1000, 100_000].map(|rate| sizing_blocks_max(&at(rate))), [1, 15, 1500].map(Some));
        assert_eq!(sizing_blocks_max(&case(Amount::Adaptive)), None);
    }

    #[test]
    fn a_trial_is_scaled_to_its_target() {
        let second = Duration::from_secs(1);
        assert_eq!(scaled_blocks(&case(Amount::Adaptive), false, 100, second / 10, second), 1000);
        assert_eq!(scaled_blocks(&case(Amount::Adaptive), true, 100_000, second / 10, second), 2048);
        assert_eq!(scaled_blocks(&case(Amount::Adaptive), false, 1, second * 60, second), 1);
    }
}
