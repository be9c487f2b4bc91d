//! What `kernel-pipe` states about pipes, each statement beside a measurement.

use model::{CaseRecord, DataLevel, Measure, Role, Sample, Spec, StudyPart, StudyRecord};
use report::document::Block;
use report::figure::{BarGroup, Scale};
use report::noise::{level, mark};
use report::numbers::{fixed, grouped, percent, size, throughput, time};
use report::words;
use stats::Estimate;

use super::{Alternative, BufferSize, KernelPipe};
use crate::view::{
    Facts, PartView, bar, facts, half_width, median, or_absent, part, speed, speed_axis, spread, times,
};

pub(super) fn buffers(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let study = KernelPipe::read();
    let at = |block_bytes: u64| part.cases.iter().find(|case| case.block_bytes == block_bytes);
    let case = |buffer: &BufferSize| at(buffer.block.value);
    let reference = at(study.workload.block.value).and_then(median);
    let counted = |case: &CaseRecord| calls_of_the_writer(case, study.workload.bytes.value);
    let table = view.table(
        &study.buffers,
        &[
            ("buffer", &|buffer| size(buffer.block.value)),
            ("said", &|buffer| buffer.said.clone()),
            ("calls said", &|buffer| grouped(buffer.calls as f64, 0)),
            ("calls", &|buffer| or_absent(case(buffer).and_then(counted).map(|calls| grouped(calls, 0)))),
            ("here", &|buffer| speed(case(buffer))),
            ("spread", &|buffer| spread(case(buffer))),
            ("times", &|buffer| times(case(buffer), reference)),
        ],
    );
    let bar_of = |buffer: &BufferSize| Some(bar(&size(buffer.block.value), case(buffer)?));
    let group = BarGroup { name: String::new(), bars: study.buffers.iter().filter_map(bar_of).collect() };
    let figure = view.bars(speed_axis(Scale::Linear), vec![group], &Facts::new());
    vec![table, figure]
}

/// Calls of the sending end for `bytes`, from the median of the samples.
fn calls_of_the_writer(case: &CaseRecord, bytes: u64) -> Option<f64> {
    let per_byte = |sample: &Sample| Some(sample.ends.first()?.syscalls? as f64 / sample.bytes as f64);
    stats::figure::median_of(case, per_byte).map(|calls| (calls * bytes as f64).round())
}

pub(super) fn calls(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let study = KernelPipe::read();
    let [from, to] = study.stated.call_us;
    let median = |one: &Measure| {
        let median = Estimate::of(&one.samples)?.median;
        Some(format!("{}{}", time(median), mark(level(&one.samples))))
    };
    let spread = |one: &Measure| {
        let share = Estimate::of(&one.samples)?.relative_half_width()?;
        Some(half_width(share, one.samples.len()))
    };
    let table = view.table(
        &part.measures,
        &[
            ("what", &|one| one.name.clone()),
            ("stated", &|_| format!("{from} to {to} µs a call")),
            ("here", &|one| or_absent(median(one))),
            ("spread", &|one| spread(one).unwrap_or_default()),
        ],
    );
    vec![table]
}

pub(super) fn copies(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let level =
        |data: DataLevel| part.cases.iter().find(|case| case.role == Role::Ranked && case.data == data);
    let named = [
        ("handed over and received, not looked at", level(DataLevel::None)),
        ("and every byte written by the sender", level(DataLevel::Write)),
        ("and every byte checked by the receiver", level(DataLevel::Verify)),
        ("memory copied once, no pipe", part.cases.iter().find(|case| case.role == Role::Ceiling)),
    ];
    let first = named[0].1.and_then(median);
    let table = view.table(
        named,
        &[
            ("done", &|(name, _)| (*name).to_owned()),
            ("here", &|(_, case)| speed(*case)),
            ("spread", &|(_, case)| spread(*case)),
            ("times", &|(_, case)| times(*case, first)),
        ],
    );
    vec![table]
}

/// A measure's only value.
fn value(part: &StudyPart, name: &str) -> Option<f64> {
    part.measures.iter().find(|measure| measure.name == name)?.samples.first().copied()
}

pub(super) fn atomicity(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let study = KernelPipe::read();
    let limit = study.stated.pipe_buf_bytes;
    let found = |bytes: u64| {
        let of = |what: &str| value(part, &format!("{bytes} bytes: {what}"));
        Some((bytes, of("sent")?, of("torn")?))
    };
    let table = view.table(
        study.message_bytes().filter_map(found),
        &[
            ("message", &|(bytes, ..)| size(*bytes)),
            ("stated", &|(bytes, ..)| if *bytes <= limit { "never torn" } else { "may be torn" }.to_owned()),
            ("sent", &|(_, sent, _)| grouped(*sent, 0)),
            ("torn", &|(.., torn)| grouped(*torn, 0)),
            ("share", &|(_, sent, torn)| if *sent > 0.0 { percent(torn / sent) } else { String::new() }),
            ("verdict", &|(bytes, _, torn)| {
                let verdict = match (*bytes <= limit, *torn > 0.0) {
                    (true, false) => "as stated",
                    (true, true) => "NOT as stated",
                    (false, true) => "torn indeed",
                    (false, false) => "not torn this time",
                };
                verdict.to_owned()
            }),
        ],
    );
    vec![table]
}

pub(super) fn room(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let study = KernelPipe::read();
    let stated = |name: &str| match name {
        "as it comes" => size(study.stated.pipe_bytes_linux.value),
        "PIPE_BUF" => size(study.stated.pipe_buf_bytes),
        _ => String::new(),
    };
    let table = view.table(
        &part.measures,
        &[
            ("pipe", &|one| one.name.clone()),
            ("stated", &|one| stated(&one.name)),
            ("here", &|one| or_absent(one.samples.first().map(|bytes| size(*bytes as u64)))),
        ],
    );
    vec![table]
}

pub(super) fn alternatives(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let study = KernelPipe::read();
    let case = |text: &str, data: DataLevel| {
        let spec: Spec = text.parse().ok()?;
        part.cases.iter().find(|case| case.spec == spec && case.data == data)
    };
    let none = |one: &Alternative| case(&one.spec, DataLevel::None);
    let verify = |one: &Alternative| case(&one.spec, DataLevel::Verify);
    let plain = |data: DataLevel| case("pipe", data).and_then(median);
    let table = view.table(
        &study.alternatives,
        &[
            ("alternative", &|one| one.name.clone()),
            ("spec", &|one| one.spec.clone()),
            ("none", &|one| speed(none(one))),
            ("times none", &|one| times(none(one), plain(DataLevel::None))),
            ("verify", &|one| speed(verify(one))),
            ("times verify", &|one| times(verify(one), plain(DataLevel::Verify))),
            ("reference", &|one| {
                let evidence = none(one).or(verify(one)).and_then(|case| case.zero_copy.as_ref());
                evidence.map(words::by_reference).unwrap_or_default()
            }),
        ],
    );
    let group = |name: &str, data: DataLevel| {
        let bar_of = |one: &Alternative| Some(bar(&one.name, case(&one.spec, data)?));
        BarGroup { name: name.to_owned(), bars: study.alternatives.iter().filter_map(bar_of).collect() }
    };
    let groups =
        vec![group("not looked at", DataLevel::None), group("every byte checked", DataLevel::Verify)];
    let figure = view.bars(speed_axis(Scale::Log), groups, &Facts::new());
    vec![table, figure]
}

/// What is said where another size is clearly faster.
const AGAINST: &str = "where 64 KiB is said to be best";

/// Which buffer size was the fastest, and whether it differs clearly from the one that is said to be.
fn fastest_buffer(study: &KernelPipe, buffers: &StudyPart) -> Option<String> {
    let said_bytes = study.workload.block.value;
    let ends = |case: &CaseRecord| case.throughput.as_ref().map(|one| (one.low, one.high));
    let said = buffers.cases.iter().find(|case| case.block_bytes == said_bytes);
    let cases = buffers.cases.iter().filter_map(|case| Some((median(case)?, case)));
    let (speed, best) = cases.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let against = match (ends(best), said.and_then(ends)) {
        _ if best.block_bytes == said_bytes => "as stated",
        (Some((low, _)), Some((_, high))) if low <= high => {
            "but the runs differ by more than it is ahead of 64 KiB, which is said to be best"
        }
        _ => AGAINST,
    };
    // With blocks as large as the pipe, one write fills it and one read empties it.
    let why = if against == AGAINST && best.block_bytes < said_bytes {
        " A block of 64 KiB fills the pipe as it comes, so that writer and reader wait for each other in turn; with \
         smaller ones both work at once."
    } else {
        ""
    };
    let (block, speed) = (size(best.block_bytes), throughput(speed));
    Some(format!("Of the buffer sizes {block} is the fastest here, {speed}, {against}.{why}"))
}

/// What system calls cost, and whether that is less than stated.
fn cost_of_calls(study: &KernelPipe, calls: &StudyPart) -> Option<String> {
    let medians = calls.measures.iter().filter_map(|one| stats::estimate::median(&one.samples));
    let [trivial, both] = medians.collect::<Vec<f64>>()[..] else { return None };
    let [from_us, _] = study.stated.call_us;
    let than = if trivial < from_us * 1000.0 { "less than the stated" } else { "no less than the stated" };
    let (trivial, both) = (time(trivial), time(both));
    Some(format!(
        "A system call that does nothing takes {trivial}, {than} {from_us} µs; a byte written and read back takes {both}."
    ))
}

/// Whether a short message was torn.
fn torn(study: &KernelPipe, atomicity: &StudyPart) -> String {
    let short = study.message_bytes().filter(|bytes| *bytes <= study.stated.pipe_buf_bytes);
    let torn: f64 = short.filter_map(|bytes| value(atomicity, &format!("{bytes} bytes: torn"))).sum();
    if torn == 0.0 {
        "No message of up to PIPE_BUF was torn.".to_owned()
    } else {
        format!("{} messages of up to PIPE_BUF were torn, which pipe(7) rules out.", fixed(torn, 0))
    }
}

/// What came of the beliefs, a sentence of each.
pub(super) fn facts_of(study: &KernelPipe, record: &StudyRecord) -> Facts {
    let sentences = [
        part(record, "buffers").and_then(|buffers| fastest_buffer(study, buffers)),
        part(record, "calls").and_then(|calls| cost_of_calls(study, calls)),
        part(record, "atomicity").map(|atomicity| torn(study, atomicity)),
    ];
    facts([("beliefs", Some(sentences.into_iter().flatten().collect::<Vec<String>>().join(" ")))])
}
