//! How much a trial moves: enough for the clock, little enough for the budget.

use std::time::Duration;

use model::{Amount, Case};

/// A trial shorter than this says more about the barrier and the clock than about the mechanism.
pub(crate) const TRIAL_MIN: Duration = Duration::from_millis(10);

/// A trial longer than this teaches nothing that a second trial would not teach better.
pub(crate) const TRIAL_MAX: Duration = Duration::from_millis(300);

/// The part of the budget that is planned with: a noisy machine is slower than its warm-up said.
pub(crate) const PLANNED_PART: f64 = 0.85;

/// Bytes of the first, tentative trial of a case.
const FIRST_BYTES: u64 = 1 << 20;
/// Larger blocks are tried with fewer than four of them.
const FIRST_BYTES_MAX: u64 = 256 << 20;

/// The most a trial of chosen size stores. Beyond it the kernel begins to write back and to throttle the
/// writer in the midst of a trial, and the figure is the disk's load of that second (`--bytes` asks for it).
const STORED_BYTES_MAX: u64 = 128 << 20;

/// Blocks of a fixed amount; `None` where the amount is to be found by trying.
pub(crate) fn fixed_blocks(case: &Case) -> Option<u64> {
    match case.amount {
        Amount::Adaptive => None,
        Amount::Bytes(bytes) => Some(bytes.div_ceil(case.block_bytes).max(1)),
        Amount::Blocks(blocks) => Some(blocks.max(1)),
    }
}

/// Blocks of the first, tentative trial: few, since nothing is known of the mechanism's speed.
pub(crate) fn first_blocks(case: &Case) -> u64 {
    // Paced ones take as long as the rate says, whatever the mechanism is.
    let most = case.load.rate_per_s.map_or(256, |rate| (u64::from(rate) / 100).clamp(1, 256));
    let least = (FIRST_BYTES_MAX / case.block_bytes).clamp(1, 4);
    (FIRST_BYTES / case.block_bytes).clamp(least, 256).min(most)
}

/// Blocks for a trial of about `target`, judged by a trial of `blocks` that took `elapsed`.
pub(crate) fn scaled_blocks(
    case: &Case,
    stores_data: bool,
    blocks: u64,
    elapsed: Duration,
    target: Duration,
) -> u64 {
    let factor = target.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    let scaled = ((blocks as f64) * factor).clamp(1.0, 1e15) as u64;
    let at_once = u64::from(case.load.pairs()) * u64::from(case.load.senders());
    let most = if stores_data { (STORED_BYTES_MAX / case.block_bytes / at_once).max(1) } else { u64::MAX };
    scaled.min(most)
}

/// Blocks more that are tried for a sum that is not 0.
const MORE_BLOCKS_MAX: u64 = 8;

/// So many blocks, or a few more, whose checksum `sum` tells of a number of bytes is not 0, as that of zeros would be. There
/// are none where whole blocks hold whole periods, an even number of each byte.
pub(crate) fn blocks_with_a_sum(case: &Case, blocks: u64, mut sum: impl FnMut(u64) -> Option<String>) -> u64 {
    let is_zero = |sum: String| sum.bytes().all(|digit| digit == b'0');
    (blocks..=blocks.saturating_add(MORE_BLOCKS_MAX))
        .find(|blocks| !sum(blocks.saturating_mul(case.block_bytes)).is_some_and(is_zero))
        .unwrap_or(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Check, PayloadKind, Spec};
    use payload::{Period, Tile, expected_checksum};

    fn case(amount: Amount) -> Case {
        Case { amount, ..Case::stream(Spec::plain("pipe")) }
    }

    #[test]
    fn the_first_trial_is_small_however_large_a_block_is() {
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
    fn zeros_would_not_have_the_sum_of_a_trial() {
        let tile = Tile::make(&PayloadKind::Sequence, 0, Period::Bench).expect("no file involved");
        let of_blocks = |block_bytes, blocks| {
            let case = Case { block_bytes, ..case(Amount::Adaptive) };
            blocks_with_a_sum(&case, blocks, |bytes| expected_checksum(&tile, Check::Xor, bytes, &|| false))
        };
        assert_eq!((of_blocks(99, 7), of_blocks(99, 8), of_blocks(1, 4)), (7, 9, 5));
        assert_eq!(of_blocks(65536, 5), 5, "no number of these blocks has another sum");
    }

    #[test]
    fn a_trial_is_scaled_to_its_target() {
        let second = Duration::from_secs(1);
        assert_eq!(scaled_blocks(&case(Amount::Adaptive), false, 100, second / 10, second), 1000);
        assert_eq!(scaled_blocks(&case(Amount::Adaptive), true, 100_000, second / 10, second), 2048);
        assert_eq!(scaled_blocks(&case(Amount::Adaptive), false, 1, second * 60, second), 1);
    }
}
