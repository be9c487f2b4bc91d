//! The sizes of the trials that every worker makes.

use worker::TrialSize;

/// Sizes around every boundary that matters: nothing, one byte, the period of the sequence, the default pipe.
const BYTES: [u64; 9] = [0, 1, 255, 256, 257, 65535, 65536, 65537, (1 << 20) + 3];
const BLOCKS: [u64; 4] = [1, 7, 4096, 65536];
const WARMUPS: [u64; 2] = [0, 4099];

/// Every size, every block and both warm-ups, not each with each; with HOSEPIPE_TEST_FULL=1 each with each.
pub(crate) fn trial_sizes() -> Vec<TrialSize> {
    let all = BYTES.iter().flat_map(|bytes| BLOCKS.map(|block| (*bytes, block)));
    let all: Vec<TrialSize> = all
        .flat_map(|(bytes, block_bytes)| {
            WARMUPS.map(|warmup_bytes| TrialSize { bytes, block_bytes, warmup_bytes })
        })
        .collect();
    if crate::common::full() {
        return all;
    }
    let some = [
        (0, 65536, 0),
        (0, 7, 4099),
        (1, 1, 4099),
        (255, 4096, 0),
        (256, 7, 0),
        (257, 65536, 4099),
        (65535, 4096, 4099),
        (65536, 7, 0),
        (65537, 1, 0),
        ((1 << 20) + 3, 65536, 4099),
    ];
    some.map(|(bytes, block_bytes, warmup_bytes)| TrialSize { bytes, block_bytes, warmup_bytes }).to_vec()
}

/// So many bytes of the stream.
pub(crate) fn sequence(len: u64) -> Vec<u8> {
    (0..len).map(|position| position as u8).collect()
}

/// XOR of bytes, one by one.
pub(crate) fn xor(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum ^ byte)
}

#[test]
fn some_jobs_cover_every_size_block_and_warm_up() {
    let all = trial_sizes();
    assert!(BYTES.iter().all(|bytes| all.iter().any(|size| size.bytes == *bytes)));
    assert!(BLOCKS.iter().all(|block| all.iter().any(|size| size.block_bytes == *block)));
    assert!(WARMUPS.iter().all(|warmup| all.iter().any(|size| size.warmup_bytes == *warmup)));
}
