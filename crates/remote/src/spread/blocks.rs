//! Divides standard input into blocks of whole lines while it is read. A block is a file in the folder of the work until its partition has
//! succeeded.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use process::{create_at, write_anew};
use rustix::fs::CWD;

use crate::spread::work::Work;

/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// An input that is divided into blocks.
pub struct Blocks<'a> {
    work: &'a Work,
    input: File,
    piece_bytes: usize,
    /// Bytes of the last read; the bytes from `taken` on are not in a block yet.
    read: Vec<u8>,
    taken: usize,
    /// The unfinished block, and its length.
    block: Option<(File, usize)>,
    count: usize,
    has_ended: bool,
}

impl<'a> Blocks<'a> {
    /// Blocks of whole lines of about this size.
    pub fn new(work: &'a Work, input: File, piece_bytes: u64) -> Self {
        let piece_bytes = usize::try_from(piece_bytes).unwrap_or(usize::MAX);
        let (read, block) = (Vec::new(), None);
        Self { work, input, piece_bytes, read, taken: 0, block, count: 0, has_ended: false }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The file descriptor that must be readable before the next [`Self::advance`]; `None` if that does not read.
    pub(crate) fn awaited(&self) -> Option<BorrowedFd<'_>> {
        (self.taken == self.read.len()).then(|| self.input.as_fd())
    }

    /// Reads if necessary, and writes the bytes into the block, up to its end. Returns the number of the block if it is finished.
    ///
    /// # Errors
    /// An error of read(2) or write(2): a full disk, for example.
    pub(crate) fn advance(&mut self) -> io::Result<Option<usize>> {
        if self.taken == self.read.len() {
            self.read.resize(READ_BYTES, 0);
            let read = self.input.read(&mut self.read);
            self.read.truncate(*read.as_ref().unwrap_or(&0));
            self.taken = 0;
            match read {
                Ok(0) => return self.end(),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let (file, written) = match &mut self.block {
            Some(block) => block,
            empty => empty.insert((create_at(CWD, &self.work.file(Some(self.count), "in"), 0o600, true)?, 0)),
        };
        let new = &self.read[self.taken..];
        // The block ends at the first line end from `piece_bytes` on.
        let from = self.piece_bytes.saturating_sub(*written + 1).min(new.len());
        let end = new[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at + 1);
        let bytes = end.unwrap_or(new.len());
        file.write_all(&new[..bytes])?;
        *written += bytes;
        self.taken += bytes;
        Ok(end.and_then(|_| self.finish_block()))
    }

    fn finish_block(&mut self) -> Option<usize> {
        self.block = None;
        self.count += 1;
        Some(self.count - 1)
    }

    /// Finishes the last block. An empty input has one empty block, so that `wc` prints 0.
    fn end(&mut self) -> io::Result<Option<usize>> {
        self.has_ended = true;
        if self.count == 0 && self.block.is_none() {
            self.block = Some((create_at(CWD, &self.work.file(Some(0), "in"), 0o600, true)?, 0));
        }
        let last = self.block.is_some().then(|| self.finish_block()).flatten();
        write_anew(&self.work.folder().join("blocks"), 0o666, self.count.to_string().as_bytes())?;
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, pipe};

    use super::*;

    fn cut(text: &str, piece_bytes: u64) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let mut input = tempfile::tempfile().expect("a file");
        input.write_all(text.as_bytes()).and_then(|()| input.rewind()).expect("written");
        let work = Work::open(folder.path());
        let mut blocks = Blocks::new(&work, input, piece_bytes);
        let mut cut = Vec::new();
        while !blocks.has_ended() {
            let block = blocks.advance().expect("cut");
            cut.extend(
                block.map(|number| std::fs::read_to_string(work.file(Some(number), "in")).expect("read")),
            );
        }
        assert_eq!(work.blocks(), Some(cut.len()));
        cut
    }

    #[test]
    fn blocks_are_whole_lines_and_all_of_them() {
        assert_eq!(cut("", 4), [""]);
        assert_eq!(cut("a", 4), ["a"]);
        assert_eq!(cut("abc\nd\ne\n", 4), ["abc\n", "d\ne\n"]);
        assert_eq!(cut("abcd\nefg\n\n", 4), ["abcd\n", "efg\n", "\n"]);
        assert_eq!(cut("abcdefgh\ni", 1), ["abcdefgh\n", "i"]);
        let long: String = (0..200_000).map(|number| format!("{number}\n")).collect();
        let blocks = cut(&long, 300_000);
        assert_eq!((blocks.concat() == long, blocks.len()), (true, 5));
        assert!(blocks.iter().all(|block| block.ends_with('\n')));
    }

    /// Expected: the first block is there while the input goes on, and no more is read than was asked for.
    #[test]
    fn a_block_is_there_before_the_input_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = Work::open(folder.path());
        let (reads, mut writes) = pipe().expect("a pipe");
        let mut blocks = Blocks::new(&work, File::from(std::os::fd::OwnedFd::from(reads)), 2);
        writes.write_all(b"a\nb\nc").expect("written");
        assert_eq!(blocks.advance().expect("cut"), Some(0));
        assert!(!work.file(Some(1), "in").exists());
        assert_eq!((blocks.awaited().is_none(), blocks.advance().expect("cut")), (true, Some(1)));
        assert_eq!((blocks.advance().expect("cut"), blocks.awaited().is_some()), (None, true));
        drop(writes);
        assert_eq!((blocks.advance().expect("cut"), work.blocks()), (Some(2), Some(3)));
    }
}
