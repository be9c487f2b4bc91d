//! Copies of messages in few instructions, and hints to the CPU's caches: in a round trip of a hundred nanoseconds both count.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use super::protocol::{SHORT_BYTES, Slot};

/// Copies of up to this length are made here: a call of memcpy(3) for so few bytes took a tenth of a round trip.
const STEPS_BYTES_MAX: usize = 2 * SHORT_BYTES;

/// Copies of at most this length use no `rep movsb` in glibc, which uses it from 2 KiB on.
const PLAIN_BYTES_MAX: usize = 1 << 10;

/// Whether `rep movsb` would be slow on AMD Zen 3 and related CPUs: the destination is 1 to 31 bytes ahead of the source modulo 4096.
#[inline(always)]
fn is_slow_distance(to: &[u8], from: &[u8]) -> bool {
    let distance = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr()) % 4096;
    (1..32).contains(&distance)
}

/// Copies between slices of equal length: short ones in steps of one size, the last of which may overlap the one before, and the most
/// frequent lengths in one step: a few instructions more made a round trip longer by half (`docs/BOUNDS.md`, "What a spinning ring costs").
#[inline(always)]
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    #[inline(always)]
    fn step<const STEP: usize>(to: &mut [u8], from: &[u8], at: usize) {
        to[at..at + STEP].copy_from_slice(&from[at..at + STEP]);
    }
    /// Of one to two steps.
    #[inline(always)]
    fn two_steps<const STEP: usize>(to: &mut [u8], from: &[u8]) {
        step::<STEP>(to, from, 0);
        step::<STEP>(to, from, from.len() - STEP);
    }
    assert_eq!(to.len(), from.len());
    match from.len() {
        0 => {}
        1 => to[0] = from[0],
        2 => step::<2>(to, from, 0),
        3 => two_steps::<2>(to, from),
        4 => step::<4>(to, from, 0),
        5..=7 => two_steps::<4>(to, from),
        8 => step::<8>(to, from, 0),
        9..=15 => two_steps::<8>(to, from),
        16 => step::<16>(to, from, 0),
        64 => step::<64>(to, from, 0),
        17..=STEPS_BYTES_MAX => {
            let last = from.len() - 16;
            (0..last).step_by(16).for_each(|at| step::<16>(to, from, at));
            step::<16>(to, from, last);
        }
        PLAIN_BYTES_MAX.. if is_slow_distance(to, from) => {
            let pieces = to.chunks_mut(PLAIN_BYTES_MAX).zip(from.chunks(PLAIN_BYTES_MAX));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
        }
        _ => to.copy_from_slice(from),
    }
}

/// Copies messages of `len` bytes one by one. The compiler must not make one copy of several, as a program makes and uses each message by
/// itself: a fence for the compiler, which costs no instruction, is between two.
#[inline(always)]
pub(super) fn copy_each(to: &mut [u8], from: &[u8], len: usize) {
    for (place, message) in to.chunks_exact_mut(len).zip(from.chunks_exact(len)) {
        copy(place, message);
        compiler_fence(SeqCst);
    }
}

/// Fetches the cache line of the next message while its announcement is awaited: otherwise it would be a second cache miss after
/// that of the announcement.
#[inline]
pub(super) fn prefetch(line: *const u8) {
    // SAFETY: a hint; it reads nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Asks for the cache line of a slot that is about to be written. The CPU does that while it still waits for the message before, if this
/// instruction is near enough: some 100 instructions after the one that waits.
#[inline]
pub(super) fn prefetch_for_write(slot: &Slot) {
    // SAFETY: a hint; it reads and writes nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) slot, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of an odd length are at every offset of a ring in turn, also at those that are slow for glibc's `rep movsb`.
    #[test]
    fn copies_are_right_at_every_distance_and_slow_distances_are_recognised() {
        let from: Vec<u8> = (0..20_000u32).map(|byte| (byte % 251) as u8).collect();
        for (distance, len) in (0..70).chain([2048, 4064, 4095]).flat_map(|far| [(far, 1024), (far, 9_001)]) {
            let mut to = vec![0; 20_000];
            let ahead = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr());
            let start = (distance + 4096 - ahead % 4096) % 4096;
            assert_eq!(is_slow_distance(&to[start..], &from), (1..32).contains(&distance), "{distance}");
            copy(&mut to[start..start + len], &from[..len]);
            assert!(to[start..start + len] == from[..len] && to[start + len..].iter().all(|byte| *byte == 0));
        }
    }
}
