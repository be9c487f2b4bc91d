//! A buffer that begins on a page boundary, as all buffers do into which this program copies bytes. Alignment is then the same in every
//! case and trial. Without it a copy's destination may lie a few bytes further within its page than the source, as malloc(3) puts
//! large buffers 16 bytes into a page: some CPUs (AMD Zen 3, `fsrm`) make such copies at a twentieth of their speed.

use std::io::{self, Read};
use std::ops::{Deref, DerefMut};

use rustix::param::page_size;

/// Smallest alignment of a block. Pages have this size on most machines, and up to 64 KiB on others (arm64, POWER).
const ALIGNMENT_MIN: usize = 4096;

/// Bytes of the first read from a source of unknown length.
const FIRST_BYTES: usize = 64 << 10;

/// A page-aligned buffer of fixed length.
pub struct Block {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Block {
    /// A buffer of `len` bytes. Each byte has been written, so that later accesses have no page faults.
    pub fn new(len: usize) -> Self {
        Self::at(0, len)
    }

    /// A buffer that begins `offset` bytes after the start of a page.
    pub fn at(offset: usize, len: usize) -> Self {
        Self::aligned(page_size().max(ALIGNMENT_MIN), offset, len)
    }

    fn aligned(alignment: usize, offset: usize, len: usize) -> Self {
        // Not 0: for zeros the allocator returns pages that are mapped at the first access, which a trial would then measure.
        let memory = vec![0xA5u8; len + alignment + offset];
        let start = memory.as_ptr().align_offset(alignment).min(alignment) + offset;
        Self { memory, start, len }
    }

    /// Reads to the end of a file or a pipe.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn read_to_end(mut source: impl Read) -> io::Result<Self> {
        let (mut room, mut filled) = (Self::new(FIRST_BYTES), 0);
        loop {
            if filled == room.len {
                let mut larger = Self::new(2 * room.len);
                larger[..filled].copy_from_slice(&room);
                room = larger;
            }
            match source.read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        room.len = filled;
        Ok(room)
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

/// Bytes of small blocks that are produced, or checked, together: half of a core's L1 data cache.
const BATCH_BYTES: usize = 16 << 10;

/// The buffer of an end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buffering {
    /// Where it begins, in bytes after the start of a page.
    pub offset: usize,
    /// Whether many small blocks are produced, or checked, together, as is possible for a stream.
    pub batches: bool,
}

impl Buffering {
    /// A buffer for one block, or for as many small blocks as are processed together.
    pub(crate) fn make(self, block_bytes: usize) -> Block {
        let batches = self.batches && (1..=BATCH_BYTES / 4).contains(&block_bytes);
        let len = if batches { BATCH_BYTES - BATCH_BYTES % block_bytes } else { block_bytes };
        Block::at(self.offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_begins_on_a_page_of_any_size() {
        for alignment in [4096, 16384, 65536] {
            let blocks: Vec<Block> = (0..5).map(|_| Block::aligned(alignment, 0, 100)).collect();
            assert!(blocks.iter().all(|block| (block.as_ptr() as usize).is_multiple_of(alignment)));
        }
    }

    #[test]
    fn blocks_begin_on_a_page_at_any_address_of_the_allocation() {
        for len in [1, 4095, 65537, 1 << 20] {
            // Buffers of growing length move the next allocation by 16 bytes each time.
            let (mut before, mut blocks) = (Vec::new(), Vec::new());
            for offset in 0..64 {
                before.push(vec![0u8; 16 * offset + 1]);
                blocks.push(Block::new(len));
            }
            assert!(blocks.iter().all(|block| block.len() == len));
            assert!(
                blocks.iter().all(|block| (block.as_ptr() as usize).is_multiple_of(ALIGNMENT_MIN)),
                "{len}"
            );
        }
        assert!(Block::new(0).is_empty());
        for offset in [0, 1, 16, 4095] {
            let block = Block::at(offset, 65536);
            assert_eq!((block.as_ptr() as usize % ALIGNMENT_MIN, block.len()), (offset, 65536));
        }
    }

    #[test]
    fn all_of_a_source_is_read() {
        for len in [0, 1, FIRST_BYTES - 1, FIRST_BYTES, 5 * FIRST_BYTES + 7] {
            let source: Vec<u8> = (0..=255).cycle().take(len).collect();
            let read = Block::read_to_end(source.as_slice()).expect("memory is no file");
            assert!(*read == *source, "{len}");
            assert!(len == 0 || (read.as_ptr() as usize).is_multiple_of(ALIGNMENT_MIN));
        }
    }

    /// Gives the kinds of its errors first, then its bytes.
    struct Faulty(Vec<io::ErrorKind>, &'static [u8]);

    impl Read for Faulty {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            match self.0.pop() {
                Some(kind) => Err(kind.into()),
                None => self.1.read(room),
            }
        }
    }

    #[test]
    fn an_interrupted_read_is_made_again_and_another_error_is_given() {
        let interrupted = Block::read_to_end(Faulty(vec![io::ErrorKind::Interrupted; 2], b"abc"));
        assert_eq!(*interrupted.expect("read again"), *b"abc");
        let broken = Block::read_to_end(Faulty(vec![io::ErrorKind::BrokenPipe], b"abc"));
        assert_eq!(broken.err().map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
    }
}
