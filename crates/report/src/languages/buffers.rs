//! Where in a page the buffers of workers begin, and which of them are slow because of that.

use model::{BenchRecord, CaseRecord, Sample, SlowOffsets};

use super::{title, worker};
use crate::lists::distinct;

/// The end of a page.
const PAGE_BYTES: u64 = 4096;

/// A sentence for each worker with a buffer where the record's machine copies slowly; none on a machine without such places.
pub(super) fn slow(record: &BenchRecord) -> Vec<String> {
    let Some(slow) = record.head.host.slow_copies else { return Vec::new() };
    distinct(record.cases.iter().flat_map(|case| of_case(case, &slow)))
}

fn of_case(case: &CaseRecord, slow: &SlowOffsets) -> Vec<String> {
    let Some(worker) = worker(case) else { return Vec::new() };
    let is_slow = |ahead: u64| (slow.first..=slow.last).contains(&ahead);
    let read = read_offset(case).filter(|offset| is_slow(*offset));
    let write = write_offset(case).filter(|offset| is_slow(PAGE_BYTES - offset));
    let why = format!("this CPU copies there at {:.2} of its speed (docs/ALIGNMENT.md).", slow.pipe_read);
    let reads = read.map(|offset| {
        format!("{} reads into a buffer {offset} bytes past a page's start: {why}", title(worker))
    });
    let writes = write.map(|offset| {
        format!(
            "{} writes from a buffer {} bytes before a page's end: {why}",
            title(worker),
            PAGE_BYTES - offset
        )
    });
    reads.into_iter().chain(writes).collect()
}

/// "Page offsets of buffers, writer's and reader's: C tuned 0 and 0; Fortran idiomatic 16 and 16."
pub(super) fn places(record: &BenchRecord) -> Option<String> {
    let place =
        |offset: Option<u64>| offset.map_or_else(|| "not seen".to_owned(), |offset| offset.to_string());
    let of_case = |case: &CaseRecord| {
        let (write, read) = (write_offset(case), read_offset(case));
        write.or(read)?;
        Some(format!("{} {} and {}", title(worker(case)?), place(write), place(read)))
    };
    let places = distinct(record.cases.iter().filter_map(of_case));
    (!places.is_empty())
        .then(|| format!("Page offsets of buffers, writer's and reader's: {}.", places.join("; ")))
}

/// The offset on which all trials that saw one agree.
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
