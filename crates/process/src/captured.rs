//! The output of a program, however long: its beginning and its end are kept.

/// The first and the last bytes of an output.
#[derive(Debug, Clone)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    head_max: usize,
    tail_max: usize,
    left_out: bool,
}

impl Captured {
    /// Keeps at most this many bytes of the beginning and of the end.
    pub fn keeping(head_max: usize, tail_max: usize) -> Self {
        Self { head: Vec::new(), tail: Vec::new(), head_max, tail_max, left_out: false }
    }

    /// Keeps everything.
    pub fn all() -> Self {
        Self::keeping(usize::MAX, 0)
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = (self.head_max - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        if self.tail.len() > self.tail_max {
            let too_many = self.tail.len() - self.tail_max;
            self.tail.drain(..too_many);
            self.left_out = true;
        }
    }

    /// What was kept, as text, with `[…]` where something was left out.
    pub fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out {
            bytes.extend_from_slice("[…]".as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut said = Captured::keeping(4, 3);
        assert_eq!(said.text(), "");
        said.push(b"abc");
        said.push(b"defg");
        assert_eq!(said.text(), "abcdefg");
        said.push(b"hi");
        assert_eq!(said.text(), "abcd[…]ghi");
        let mut last = Captured::keeping(0, 2);
        last.push(b"xyz\n");
        assert_eq!(last.text(), "[…]z");
    }
}
