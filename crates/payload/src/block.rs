//! A buffer that begins on a page boundary, so that alignment is the same in every case and trial.

use std::ops::{Deref, DerefMut};

/// Alignment of every block: a page of the machines this runs on, and a multiple of every cache line.
const ALIGNMENT: usize = 4096;

/// A page-aligned buffer of fixed length.
pub struct Block {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Block {
    /// A buffer of `len` bytes, every one of them written once so that no page fault waits in it.
    pub fn new(len: usize) -> Self {
        // 0xA5 and not 0: a fresh zero page would be mapped lazily and measure something else.
        let memory = vec![0xA5u8; len + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { memory, start, len }
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_on_a_page() {
        for len in [0, 1, 4095, 65537] {
            let block = Block::new(len);
            assert_eq!(block.len(), len);
            assert!(len == 0 || (block.as_ptr() as usize).is_multiple_of(ALIGNMENT));
        }
    }
}
