//! What the counters of ended processes say of the bytes that a link carried last: which of them no reader took, and which a reader took after the
//! last sample.

use observe::flow::Moved;

use super::Ledger;

/// How little the bytes of a tee(1), divided by those of its reader, differ from a whole number.
const TEE_SHARE: f64 = 0.05;

impl Ledger {
    /// Bytes that the writers of a link have written and its readers have not read, where all writers ended with status 0; `None` if that is
    /// not known. The counters include the readers' libraries, and other files of the writers: what tee(1) writes twice is not counted.
    pub(crate) fn left_in(&self, link: u64) -> Option<u64> {
        let mut writers = self.processes.iter().filter(|process| process.writes == Some(link));
        let all_well = writers.all(|writer| writer.ended.is_some_and(|ended| ended.status == Some(0)));
        let [written, read] = [true, false].map(|writes| self.moved_at_end(link, writes, |_| None));
        let (written, read) = written.zip(read).filter(|_| all_well)?;
        let times = written as f64 / read.max(1) as f64;
        let is_tee = [2.0, 3.0].iter().any(|copies| (times / copies - 1.0).abs() < TEE_SHARE);
        written.checked_sub(read).filter(|_| !is_tee)
    }

    /// Bytes that the reader of a link has read in its whole life, after `last` was counted for this process: it was seen to read this link alone
    /// until then. 0 for a shell, which may have started programs since.
    pub(crate) fn moved_after(&self, link: u64, last: Option<(i32, Moved)>) -> u64 {
        let Some((pid, last)) = last else { return 0 };
        let reader = self.latest(pid).filter(|reader| reader.reads == Some(link) && reader.command.is_some());
        let moved = reader.and_then(|reader| reader.moved);
        moved.map_or(0, |moved| moved.read.saturating_sub(last.read))
    }
}
