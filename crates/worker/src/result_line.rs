//! Parses the result lines of workers (docs/WORKERS.md).

/// What a sender reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendLine {
    /// Bytes written, including the warm-up.
    pub bytes: u64,
    /// Just before the first write, in nanoseconds of CLOCK_MONOTONIC, like every time here.
    pub ready_ns: u64,
    /// Just before the first write of the timed stream.
    pub began_ns: u64,
}

/// What a receiver reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecvLine {
    /// Bytes read, including the warm-up.
    pub bytes: u64,
    /// XOR of all bytes.
    pub xor: u8,
    /// Just before the first read.
    pub ready_ns: u64,
    /// Just after the last byte was received.
    pub ended_ns: u64,
}

/// The lines of a result file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultLines {
    /// The sender's line.
    pub send: Option<SendLine>,
    /// The receiver's line.
    pub recv: Option<RecvLine>,
}

/// Characters shown of a wrong line.
const SHOWN_MAX: usize = 120;

impl ResultLines {
    /// Reads a result file.
    ///
    /// # Errors
    /// What is wrong with the first wrong line, and the line, shortened.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = Self::default();
        for line in text.split_inclusive('\n') {
            let shown: String = line.trim_end_matches('\n').chars().take(SHOWN_MAX).collect();
            let wrong = |why| format!("{why}: `{shown}`");
            let whole = line.strip_suffix('\n').ok_or_else(|| wrong("a result line without a newline"))?;
            let other = || wrong("a line that is not a result line");
            let twice = match whole.split_once(' ').ok_or_else(other)? {
                ("send", fields) => lines.send.replace(send_line(fields).ok_or_else(other)?).is_some(),
                ("recv", fields) => lines.recv.replace(recv_line(fields).ok_or_else(other)?).is_some(),
                _ => return Err(other()),
            };
            if twice {
                return Err(wrong("a second result line of one end"));
            }
        }
        Ok(lines)
    }
}

fn send_line(fields: &str) -> Option<SendLine> {
    let [bytes, ready_ns, began_ns] = numbers(fields, ["bytes", "ready_ns", "began_ns"])?;
    Some(SendLine { bytes, ready_ns, began_ns })
}

fn recv_line(fields: &str) -> Option<RecvLine> {
    let [bytes, xor, ready_ns, ended_ns] = numbers(fields, ["bytes", "xor", "ready_ns", "ended_ns"])?;
    Some(RecvLine { bytes, xor: u8::try_from(xor).ok()?, ready_ns, ended_ns })
}

/// The values of exactly these fields in this order.
fn numbers<const N: usize>(fields: &str, names: [&str; N]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut words = fields.split(' ');
    for (number, name) in numbers.iter_mut().zip(names) {
        let digits = words.next()?.strip_prefix(name)?.strip_prefix('=')?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = digits.parse().ok()?;
    }
    words.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: &str = "send bytes=10 ready_ns=1 began_ns=2\n";
    const RECV: &str = "recv bytes=10 xor=9 ready_ns=3 ended_ns=4\n";

    #[test]
    fn lines_read_in_either_order() {
        let send = Some(SendLine { bytes: 10, ready_ns: 1, began_ns: 2 });
        let recv = Some(RecvLine { bytes: 10, xor: 9, ready_ns: 3, ended_ns: 4 });
        assert_eq!(ResultLines::parse(&format!("{SEND}{RECV}")), Ok(ResultLines { send, recv }));
        assert_eq!(ResultLines::parse(&format!("{RECV}{SEND}")), Ok(ResultLines { send, recv }));
        assert_eq!(ResultLines::parse(RECV), Ok(ResultLines { send: None, recv }));
        assert_eq!(ResultLines::parse(""), Ok(ResultLines::default()));
    }

    #[test]
    fn everything_else_is_wrong() {
        for text in [
            "rubbish\n",
            "\n",
            "send bytes=1\n",
            "send bytes=1 began_ns=1 ready_ns=1\n",
            "send bytes=+1 ready_ns=1 began_ns=2\n",
            "send bytes= ready_ns=1 began_ns=2\n",
            "send bytes=1.0 ready_ns=1 began_ns=2\n",
            "send bytes=10 ready_ns=1 began_ns=2 more=3\n",
            "send bytes=10  ready_ns=1 began_ns=2\n",
            "recv bytes=10 xor=256 ready_ns=3 ended_ns=4\n",
            "send bytes=10 ready_ns=1 began_ns=2",
        ] {
            assert!(ResultLines::parse(text).is_err(), "{text:?}");
        }
        let twice = ResultLines::parse(&format!("{SEND}{SEND}")).unwrap_err();
        assert!(twice.starts_with("a second result line of one end: `send bytes"), "{twice}");
    }
}
