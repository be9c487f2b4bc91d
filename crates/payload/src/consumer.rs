//! The receiver's side of the payload.

use model::{Check, DataLevel};

use crate::{Block, Checker};

/// Gives the receiver room, and checks every byte at level `verify`.
pub struct Consumer {
    room: Block,
    checker: Option<Checker>,
}

impl Consumer {
    /// A consumer with room for one block of `block_bytes`.
    pub fn new(level: DataLevel, check: Check, block_bytes: usize) -> Self {
        let checker = (level == DataLevel::Verify).then(|| Checker::new(check));
        Self { room: Block::new(block_bytes), checker }
    }

    /// Where received bytes go.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Takes the first `len` bytes of the room as received.
    #[inline]
    pub fn accept(&mut self, len: usize) {
        if let Some(checker) = &mut self.checker {
            checker.update(&self.room[..len]);
        }
    }

    /// Takes bytes as received that lie elsewhere (in shared memory).
    #[inline]
    pub fn inspect(&mut self, bytes: &[u8]) {
        if let Some(checker) = &mut self.checker {
            checker.update(bytes);
        }
    }

    /// The checksum over all that was received, in hexadecimal; `None` below `verify`.
    pub fn checksum(&self) -> Option<String> {
        self.checker.as_ref().map(Checker::hex)
    }
}
