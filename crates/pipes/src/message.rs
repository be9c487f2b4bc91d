//! What is said to the server of a shell's links by the library, by commands that are typed in the shell and by hosepipe itself, and what it answers.
//! Each message is a packet on a connection of its own to the server's socket, and the answer, if there is one, a packet on the same connection.
//! A message that was sent before another one was begun is taken first. Both programs are of one build on one machine, so heads are sent as their
//! bytes in memory.

use crate::protocol::Plain;

/// Longest text of a message; longer texts are truncated.
pub const TEXT_BYTES_MAX: usize = 2048;
/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = size_of::<Head>() + TEXT_BYTES_MAX;

/// What has happened, or is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// The shell was started. Hosepipe says this, and how it ended, on a connection that both have from the beginning.
    Shell,
    /// A request for a link: the answer is [`Answer::Link`] or [`Answer::Refused`].
    Link,
    /// The process has put an end of this link onto its descriptor 0, 1 or 2. A reader that `waits` for its writers is answered by
    /// [`Answer::Written`]; any other process sends a descriptor of its /proc/self/io, if usage is recorded. The usage is that of the process,
    /// without children, until now.
    Took { link: u64, fd: i32, waits: bool },
    /// The process has replaced its descriptor, which was an end of this link; usage as for [`Message::Took`].
    Left { link: u64, fd: i32 },
    /// The process writes to this link, and has this file size limit (getrlimit(2), RLIMIT_FSIZE).
    Limit { link: u64, bytes: u64 },
    /// The process calls execve(2). The text is the PIDs of its children, with spaces between and a zero at the end, and then the arguments,
    /// each followed by a zero. The usage is that of the process and its children until now.
    Exec { parent: i32, text: &'a [u8] },
    /// The process is about to execute a program: its path and its arguments, each followed by a zero. The answer is [`Answer::Changes`].
    Changes(&'a [u8]),
    /// The process has ended and is about to be reaped: until then its /proc/PID/io has what it read and wrote. When the server has read that
    /// file, it closes the connection.
    Ended,
    /// The process was reaped; status and usage are those of wait4(2).
    Reaped { status: i32 },
    /// A command of hosepipe: its words, each followed by a zero. The answer is [`Answer::Done`] or [`Answer::NotDone`].
    Command(&'a [u8]),
}

/// Which process a message is about, and when that happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sender {
    /// Its PID.
    pub pid: i32,
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// See [`Message`].
    pub usage: Usage,
}

/// A process's resource usage, from getrusage(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// CPU time in user mode, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
    /// Largest resident set size, in KiB.
    pub max_rss_kib: u64,
}

/// The head of every message, followed by a text.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Head {
    kind: u32,
    pid: i32,
    at_ns: u64,
    usage: Usage,
    link: u64,
    value: i64,
}

// SAFETY: integers, and a `repr(C)` struct of integers, without padding.
unsafe impl Plain for Head {}

/// Bytes of a head, which are a whole message if that has no text.
pub const HEAD_BYTES: usize = size_of::<Head>();
/// Marks a [`Message::Took`] whose reader waits, beside the descriptor.
const WAITS: i64 = 1 << 8;

impl<'a> Message<'a> {
    /// The head to be sent, and the text behind it.
    pub fn packet(self, sender: Sender) -> (Head, &'a [u8]) {
        let none: &[u8] = b"";
        let (kind, link, value, text) = match self {
            Self::Shell => (0, 0, 0, none),
            Self::Link => (1, 0, 0, none),
            Self::Took { link, fd, waits } => (2, link, i64::from(fd) | if waits { WAITS } else { 0 }, none),
            Self::Left { link, fd } => (3, link, i64::from(fd), none),
            Self::Limit { link, bytes } => (4, link, bytes as i64, none),
            Self::Exec { parent, text } => (5, 0, i64::from(parent), text),
            Self::Changes(text) => (6, 0, 0, text),
            Self::Ended => (7, 0, 0, none),
            Self::Reaped { status } => (8, 0, i64::from(status), none),
            Self::Command(text) => (9, 0, 0, text),
        };
        let Sender { pid, at_ns, usage } = sender;
        (Head { kind, pid, at_ns, usage, link, value }, text)
    }

    /// Reads a packet; `None` if it is no message.
    pub fn read(packet: &'a [u8]) -> Option<(Sender, Self)> {
        let Head { kind, pid, at_ns, usage, link, value } = Head::from_bytes(packet)?;
        let text = &packet[HEAD_BYTES..];
        let message = match kind {
            0 => Self::Shell,
            1 => Self::Link,
            2 => Self::Took { link, fd: (value & !WAITS) as i32, waits: value & WAITS != 0 },
            3 => Self::Left { link, fd: value as i32 },
            4 => Self::Limit { link, bytes: value as u64 },
            5 => Self::Exec { parent: value as i32, text },
            6 => Self::Changes(text),
            7 => Self::Ended,
            8 => Self::Reaped { status: value as i32 },
            9 => Self::Command(text),
            _ => return None,
        };
        Some((Sender { pid, at_ns, usage }, message))
    }
}

/// What the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// A link, with its two ends, the reader's first: its number in later messages, and whether a process that takes the reading end waits until the
    /// writers are done.
    Link { id: u64, waits: bool },
    /// Why there is no link (errno(3)).
    Refused { error: u32 },
    /// The writers of a link are done.
    Written,
    /// How a program is started: entries of [`change`](crate::protocol::change), each followed by a zero, and a descriptor if it gets another
    /// standard output.
    Changes(&'a [u8]),
    /// What a command has to say.
    Done(&'a [u8]),
    /// Why a command was refused.
    NotDone(&'a [u8]),
}

/// The head of every answer, followed by a text.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct AnswerHead {
    kind: u32,
    value: u32,
    id: u64,
}

// SAFETY: integers without padding.
unsafe impl Plain for AnswerHead {}

/// Bytes of the head of an answer.
pub const ANSWER_HEAD_BYTES: usize = size_of::<AnswerHead>();

impl<'a> Answer<'a> {
    /// The head to be sent, and the text behind it.
    pub fn packet(self) -> (AnswerHead, &'a [u8]) {
        let none: &[u8] = b"";
        let (kind, value, id, text) = match self {
            Self::Link { id, waits } => (0, u32::from(waits), id, none),
            Self::Refused { error } => (1, error, 0, none),
            Self::Written => (2, 0, 0, none),
            Self::Changes(text) => (3, 0, 0, text),
            Self::Done(text) => (4, 0, 0, text),
            Self::NotDone(text) => (5, 0, 0, text),
        };
        (AnswerHead { kind, value, id }, text)
    }

    /// Reads a packet; `None` if it is no answer.
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let AnswerHead { kind, value, id } = AnswerHead::from_bytes(packet)?;
        let text = &packet[ANSWER_HEAD_BYTES..];
        Some(match kind {
            0 => Self::Link { id, waits: value != 0 },
            1 => Self::Refused { error: value },
            2 => Self::Written,
            3 => Self::Changes(text),
            4 => Self::Done(text),
            5 => Self::NotDone(text),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    fn packet(head: &impl Plain, text: &[u8]) -> Vec<u8> {
        [head.as_bytes(), text].concat()
    }

    #[test]
    fn messages_and_answers_read_back() {
        let sender =
            Sender { pid: 5, at_ns: 1 << 60, usage: Usage { user_us: 1, system_us: 2, max_rss_kib: 3 } };
        for message in [
            Message::Shell,
            Message::Link,
            Message::Took { link: u64::MAX - 3, fd: 0, waits: true },
            Message::Took { link: 1, fd: 2, waits: false },
            Message::Left { link: 7, fd: 1 },
            Message::Limit { link: 7, bytes: u64::MAX - 1 },
            Message::Exec { parent: 9, text: b"12 13 \0seq\09\0" },
            Message::Changes(b"/bin/cat\0cat\0"),
            Message::Ended,
            Message::Reaped { status: -77 },
            Message::Command(b"via\0"),
        ] {
            let (head, text) = message.packet(sender);
            assert_eq!(Message::read(&packet(&head, text)), Some((sender, message)));
            assert_eq!(Message::read(&head.as_bytes()[1..]), None);
        }
        for answer in [
            Answer::Link { id: 9, waits: true },
            Answer::Refused { error: 28 },
            Answer::Written,
            Answer::Changes(b"=A=b\0"),
            Answer::Done(b"pipe\n"),
            Answer::NotDone(b""),
        ] {
            let (head, text) = answer.packet();
            assert_eq!(Answer::read(&packet(&head, text)), Some(answer));
        }
        assert_eq!((Message::read(b"noise"), Answer::read(b"noise")), (None, None));
    }
}
