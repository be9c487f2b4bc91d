//! The XOR of all bytes, with AVX2 if the CPU has it. AVX-512 would be only a tenth faster for blocks in the L2 cache, and
//! requires a later compiler than the rest of the workspace.
#![allow(unsafe_code)]

/// For fewer bytes the call, which cannot be inlined, takes longer than it saves.
#[cfg(target_arch = "x86_64")]
const WIDE_FROM_BYTES: usize = 256;

/// The XOR of all bytes; 0 if there are none.
#[inline]
pub(crate) fn xor(bytes: &[u8]) -> u8 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= WIDE_FROM_BYTES && is_x86_feature_detected!("avx2") {
        // SAFETY: this CPU has what the function is compiled for.
        return unsafe { xor_avx2(bytes) };
    }
    fold(bytes)
}

/// The same source, compiled for 32-byte registers. The CPU is examined once; later tests are a load and a branch.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn xor_avx2(bytes: &[u8]) -> u8 {
    fold(bytes)
}

/// Always inlined, so that each caller compiles it for its own instructions.
#[inline(always)]
fn fold(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum ^ byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_by_one(bytes: &[u8]) -> u8 {
        let mut sum = 0;
        for byte in bytes {
            // The optimiser cannot change this loop.
            sum = std::hint::black_box(sum) ^ byte;
        }
        sum
    }

    /// Lengths around the width of each register and of each unrolled loop, from every alignment.
    #[test]
    fn every_length_and_alignment() {
        let bytes: Vec<u8> = (0..700u32).map(|at| (at.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect();
        for start in 0..64 {
            for len in 0..=bytes.len() - start {
                let part = &bytes[start..start + len];
                assert_eq!(xor(part), one_by_one(part), "{len} bytes from {start}");
            }
        }
    }

    proptest! {
        #[test]
        fn is_the_plain_fold(bytes in prop::collection::vec(any::<u8>(), 0..5000), start in 0usize..64) {
            let part = &bytes[start.min(bytes.len())..];
            prop_assert_eq!(xor(part), one_by_one(part));
        }
    }
}
