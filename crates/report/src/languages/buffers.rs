//! The offsets in a page at which the buffers of workers begin, and which workers are slow because of them.

use model::{BenchRecord, CaseRecord, Sample, SlowOffsets};

use super::{title, worker};
use crate::lists::{distinct, joined_if_any};

const PAGE_BYTES: u64 = 4096;

/// A sentence for each worker with a buffer at an offset where the machine of the record copies slowly.
pub(super) fn slow(record: &BenchRecord) -> Vec<String> {
    let Some(slow) = record.head.host.slow_copies else { return Vec::new() };
    distinct(record.cases.iter().flat_map(|case| slow_buffers(case, &slow)))
}

fn slow_buffers(case: &CaseRecord, slow: &SlowOffsets) -> Vec<String> {
    let Some(worker) = worker(case) else { return Vec::new() };
    let is_slow = |bytes: u64| (slow.first..=slow.last).contains(&bytes);
    let (title, speed) = (title(worker), format!("{:.2}", slow.pipe_read));
    let why = format!("this CPU copies there at {speed} of its speed (docs/ALIGNMENT.md).");
    let read = read_offset(case).filter(|offset| is_slow(*offset));
    let before_end = write_offset(case).map(|offset| PAGE_BYTES - offset).filter(|bytes| is_slow(*bytes));
    let reads = |offset| format!("{title} reads into a buffer {offset} bytes past a page's start: {why}");
    let writes = |bytes| format!("{title} writes from a buffer {bytes} bytes before a page's end: {why}");
    read.map(reads).into_iter().chain(before_end.map(writes)).collect()
}

/// "Page offsets of buffers, writer's and reader's: C tuned 0 and 0; Fortran idiomatic 16 and 16."
pub(super) fn offsets(record: &BenchRecord) -> Option<String> {
    let text = |offset: Option<u64>| offset.map_or("not seen".to_owned(), |offset| offset.to_string());
    let both_ends = |case: &CaseRecord| {
        let (write, read) = (write_offset(case), read_offset(case));
        write.or(read)?;
        Some(format!("{} {} and {}", title(worker(case)?), text(write), text(read)))
    };
    let offsets = joined_if_any(distinct(record.cases.iter().filter_map(both_ends)), "; ")?;
    Some(format!("Page offsets of buffers, writer's and reader's: {offsets}."))
}

/// The offset, if it was the same in all trials in which it was seen.
fn common(case: &CaseRecord, offset: fn(&Sample) -> Option<u64>) -> Option<u64> {
    let mut offsets = case.samples.iter().filter_map(offset);
    let first = offsets.next()?;
    offsets.all(|offset| offset == first).then_some(first)
}

fn read_offset(case: &CaseRecord) -> Option<u64> {
    common(case, |sample| sample.read_buffer_offset)
}

fn write_offset(case: &CaseRecord) -> Option<u64> {
    common(case, |sample| sample.write_buffer_offset)
}
