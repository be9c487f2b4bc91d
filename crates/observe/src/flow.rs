//! The bytes that flow through a link, computed from the counters of the processes at its ends. These counters cover all files of a process.
//!
//! The counters of proc_pid_io(5) are per process, not per descriptor, and do not include bytes that splice(2), vmsplice(2) or io_uring move.
//! So a figure is given as exact only if the counters of both ends agree, and as a lower bound if the processes of one end have no other
//! file from which the bytes could come.

use std::cell::Cell;

use model::Certainty;

/// Bytes that a process has read and written by system calls, from and to any file (proc_pid_io(5), `rchar` and `wchar`), including those of
/// children that it has waited for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Moved {
    /// Parses the content of /proc/PID/io, or of the same file of a thread.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self { read: counter(bytes, "rchar:")?, written: counter(bytes, "wchar:")? })
    }
}

/// Bytes of a call, in the mean, from which on a program does not read byte by byte.
const BYTE_READS_MAX: u64 = 2;

/// Calls that read and write, and their bytes (proc_pid_io(5), `syscr` and `syscw`), as of [`Moved`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) written_bytes: u64,
}

impl Calls {
    /// Of a process since its start; `None` if this user may not read them.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let bytes = process::proc::read_short_file(&format!("/proc/{pid}/io"))?;
        let Moved { read: read_bytes, written: written_bytes } = Moved::parse(&bytes)?;
        let (reads, writes) = (counter(&bytes, "syscr:")?, counter(&bytes, "syscw:")?);
        Some(Self { reads, read_bytes, writes, written_bytes })
    }

    /// Whether it reads byte by byte, in the mean.
    pub(crate) fn are_of_bytes(self) -> bool {
        self.reads > 0 && self.read_bytes / self.reads < BYTE_READS_MAX
    }

    /// What was added since. Another process with the same number may have fewer.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

/// The value of a line of /proc/PID/io.
fn counter(bytes: &[u8], name: &str) -> Option<u64> {
    str::from_utf8(bytes).ok()?.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

impl std::iter::Sum for Moved {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            read: sum.read + one.read,
            written: sum.written + one.written,
        })
    }
}

/// The counters of both ends agree if they differ by at most `SAME_SHARE`. Because they are not read at the same time, they may differ by
/// `SAME_BYTES` in addition. For small numbers this addition is at most `SAME_SHARE_OF_FEW`, because tee(1) writes every byte twice.
const SAME_SHARE: f64 = 0.05;
const SAME_BYTES: f64 = 1024.0;
const SAME_SHARE_OF_FEW: f64 = 0.2;

/// What is known of one end of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SideFlow {
    /// Bytes that the processes there moved in the direction of the link; `None` if that is not known.
    pub(crate) bytes: Option<f64>,
    /// Whether `bytes` is an upper bound, because it includes all bytes of ended children.
    pub(crate) at_most: bool,
    /// Whether they have no other file for this direction.
    pub(crate) only_here: bool,
    /// Whether none of them ran since the last sample.
    pub(crate) slept: bool,
}

/// Bytes that went through, and whether that is a lower bound. `more_bytes` is the growth of the bytes in the link.
pub(crate) fn flow(writers: SideFlow, readers: SideFlow, more_bytes: f64) -> Option<(f64, bool)> {
    if writers.slept || (readers.slept && more_bytes == 0.0) {
        return Some((0.0, false));
    }
    if let (Some(written), Some(read)) = (writers.bytes, readers.bytes)
        && agree(written, read, more_bytes)
    {
        return Some((written, false));
    }
    let bound = |end: SideFlow| end.bytes.filter(|bytes| *bytes > 0.0 && end.only_here && !end.at_most);
    bound(writers).into_iter().chain(bound(readers)).reduce(f64::max).map(|bytes| (bytes, true))
}

fn agree(written: f64, read: f64, more_bytes: f64) -> bool {
    let most = written.max(read);
    let same = SAME_SHARE * most + SAME_BYTES.min(SAME_SHARE_OF_FEW * most);
    written > 0.0 && read > 0.0 && (written - read - more_bytes).abs() <= same
}

/// A writer that has written by write(2) less than one part in this many of what the reader has read may have moved the rest by splice(2).
const READ_PARTS: u64 = 4;

/// The counters of the processes at both ends of a link, since it was made.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LinkCounters {
    /// All bytes that its writers wrote, to any file; `None` if unknown.
    pub written: Option<u64>,
    /// All bytes that its readers read, from any file.
    pub read: Option<u64>,
    /// Those that were certainly read from this link.
    pub seen_read: u64,
    /// Bytes that its reader may have left in it; 0 before the reader has ended.
    pub room: u64,
}

impl LinkCounters {
    /// Whether the total of its writers is an upper bound of what went through: its reader has read them all, except those that it can hold, and
    /// did not read so much more that the writers must have used other calls than write(2). A reader reads other files, too: sort(1) reads its
    /// temporary ones.
    fn writers_count(&self) -> bool {
        let (Some(written), Some(read)) = (self.written, self.read) else { return false };
        let all_read =
            written <= read || written <= read.saturating_add(self.room) && self.seen_read < read / 2;
        all_read && written > 0 && written >= self.seen_read && written >= read / READ_PARTS
    }

    /// Bytes that went through. A reader also reads other files, at least its libraries, so a number on which both ends agree is an upper bound.
    /// `writers_counted`: whether [`Self::writers_count`] was true at some time.
    fn total(&self, writers_counted: bool) -> Option<(u64, Certainty)> {
        if let (Some(written), Some(read)) = (self.written, self.read)
            && agree(written as f64, read as f64, 0.0)
        {
            return Some((written.max(read), Certainty::AtMost));
        }
        let counted = self.written.filter(|written| writers_counted && *written >= self.seen_read);
        let most = counted.map(|written| (written, Certainty::AtMost));
        most.or_else(|| (self.seen_read > 0).then_some((self.seen_read, Certainty::AtLeast)))
    }
}

/// How many bytes went through a link since it was made, estimated again and again from its counters.
#[derive(Debug, Default)]
pub struct LinkTotal {
    /// Whether the total of its writers was an upper bound at some time.
    writers_counted: Cell<bool>,
    /// The largest upper bound so far: a larger one that was true is true still.
    most_bytes: Cell<u64>,
}

impl LinkTotal {
    /// The bytes, and how certain the number is. `has_ended`: no more will come. Before that an upper bound is not given up because some
    /// counters cannot be read now.
    pub fn estimate(&self, counters: &LinkCounters, has_ended: bool) -> Option<(u64, Certainty)> {
        self.writers_counted.set(self.writers_counted.get() || counters.writers_count());
        let total = counters.total(self.writers_counted.get());
        let most_bytes = self.most_bytes.get();
        match total {
            Some((bytes, Certainty::AtMost)) => {
                self.most_bytes.set(most_bytes.max(bytes));
                Some((most_bytes.max(bytes), Certainty::AtMost))
            }
            Some((bytes, _)) if bytes >= most_bytes => total,
            _ if most_bytes > 0 && !has_ended => Some((most_bytes, Certainty::AtMost)),
            _ => total,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: SideFlow = SideFlow { bytes: Some(0.0), at_most: false, only_here: true, slept: false };

    fn end(bytes: f64) -> SideFlow {
        SideFlow { bytes: Some(bytes), ..END }
    }

    #[test]
    fn a_total_is_a_bound() {
        let (most, least, room) = (Certainty::AtMost, Certainty::AtLeast, 65_536);
        for (written, read, seen_read, expected) in [
            // The reader has read its libraries, too.
            (Some(1_000_000), Some(1_006_976), 900_000, Some((1_006_976, most))),
            // It left early, or its writer has written messages, too.
            (Some(1_040_000), Some(1_000_000), 0, Some((1_040_000, most))),
            // sort has read its temporary files, too. Happened: the little that it was seen to read.
            (Some(1_000_000), Some(2_006_976), 30_000, Some((1_000_000, most))),
            // The reader left, and the link holds the rest. Happened: not known.
            (Some(60_000), Some(15_000), 0, Some((60_000, most))),
            // tee: only one end counts what went through; pages that splice(2) moved are counted by neither end.
            (Some(2_000_000), Some(1_006_976), 900_000, Some((900_000, least))),
            (Some(0), Some(6976), 0, None),
            // A header by write(2) before what was spliced.
            (Some(7), Some(6983), 0, None),
            (Some(400_000), Some(1_006_976), 900_000, Some((900_000, least))),
            (None, Some(1_006_976), 0, None),
            (None, None, 5, Some((5, least))),
        ] {
            let counters = LinkCounters { written, read, seen_read, room };
            assert_eq!(counters.total(counters.writers_count()), expected, "{counters:?}");
        }
    }

    #[test]
    fn an_upper_bound_stays_until_the_end() {
        let total = LinkTotal::default();
        let known = LinkCounters { written: Some(1000), read: Some(2000), ..LinkCounters::default() };
        let less = LinkCounters { read: None, seen_read: 900, ..known };
        for (counters, has_ended, expected) in [
            (less, false, Some((900, Certainty::AtLeast))),
            (known, false, Some((1000, Certainty::AtMost))),
            (
                LinkCounters { written: Some(10), read: Some(10), ..known },
                false,
                Some((1000, Certainty::AtMost)),
            ),
            (LinkCounters::default(), false, Some((1000, Certainty::AtMost))),
            (LinkCounters::default(), true, None),
            // The writers were counted once, so their total counts where the reader's is not known.
            (less, true, Some((1000, Certainty::AtMost))),
        ] {
            assert_eq!(total.estimate(&counters, has_ended), expected, "{counters:?}");
        }
    }

    #[test]
    fn counters_of_a_process_are_read() {
        let text = b"rchar: 191740\nwchar: 151445\nsyscr: 12\n";
        assert_eq!(Moved::parse(text), Some(Moved { read: 191_740, written: 151_445 }));
        assert_eq!(Moved::parse(&text[..20]), None);
        let own = process::proc::read_short_file("/proc/self/io").and_then(|bytes| Moved::parse(&bytes));
        assert!(own.is_some_and(|moved| moved.read > 0));
    }

    #[test]
    fn a_figure_is_what_both_ends_say_or_a_bound() {
        let elsewhere = |bytes| SideFlow { only_here: false, ..end(bytes) };
        let unknown = SideFlow { bytes: None, ..END };
        let asleep = SideFlow { slept: true, ..END };
        for (writers, readers, more, expected) in [
            (end(1e9), end(1.01e9), 0.0, Some((1e9, false))),
            // tee writes twice what it hands on.
            (elsewhere(2e9), end(1e9), 0.0, Some((1e9, true))),
            (elsewhere(992.0), end(496.0), 0.0, Some((496.0, true))),
            // yes moves pages that no counter sees.
            (end(0.0), end(1e9), 0.0, Some((1e9, true))),
            (elsewhere(5e6), elsewhere(1e6), 0.0, None),
            // Both splice.
            (end(0.0), end(0.0), 0.0, None),
            (end(0.0), asleep, 0.0, Some((0.0, false))),
            (asleep, elsewhere(7e6), 0.0, Some((0.0, false))),
            // What was written is still there.
            (end(65536.0), SideFlow { slept: true, ..end(0.0) }, 65536.0, Some((65536.0, true))),
            (end(80_000.0), end(14_464.0), 65536.0, Some((80_000.0, false))),
            (unknown, end(1e6), 0.0, Some((1e6, true))),
            (SideFlow { at_most: true, ..end(3e9) }, elsewhere(1e6), 0.0, None),
            (SideFlow { at_most: true, ..end(1e9) }, elsewhere(1e9), 0.0, Some((1e9, false))),
        ] {
            assert_eq!(flow(writers, readers, more), expected, "{writers:?} {readers:?}");
        }
    }

    proptest! {
        #[test]
        fn no_figure_is_more_than_what_was_counted(written in 0.0..1e12f64, read in 0.0..1e12f64, more in -1e6..1e6f64) {
            if let Some((bytes, _)) = flow(end(written), end(read), more) {
                prop_assert!(bytes <= written.max(read));
            }
        }
    }
}
