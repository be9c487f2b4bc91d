//! What `kernel-pipe` states about pipes, each statement beside a measurement.

use super::{Alternative, BufferSize, KernelPipe};
use model::{CaseRecord, DataLevel, Measure, Role, Spec, StudyPart, StudyRecord};

use crate::view::{
    bar, case_of, half_width, median, or_absent, part, section, speed, speed_axis, spread, table,
};
use report::figure::{BarGroup, Bars, Chart, Figure, Scale};
use report::noise::{level, mark};
use report::numbers::{fixed, grouped, percent, ratio, size, throughput, time};
use report::page::{Block, Section};
use report::words;

pub(super) fn sections(study: &KernelPipe, record: &StudyRecord) -> Vec<Section> {
    let of = |name: &str| part(record, name);
    let made = [
        of("buffers").map(|part| buffers(study, part)),
        of("calls").map(|part| calls(study, part)),
        of("copies").map(|part| copies(study, part)),
        of("atomicity").map(|part| atomicity(study, part)),
        of("room").map(|part| room(study, part)),
        of("alternatives").map(|part| alternatives(study, part)),
    ];
    made.into_iter().flatten().collect()
}

fn buffers(study: &KernelPipe, part: &StudyPart) -> Section {
    let at = |block_bytes: u64| case_of(part, move |case| case.block_bytes == block_bytes);
    let reference = at(study.block_bytes()).and_then(median);
    let row = |buffer: &BufferSize| {
        let case = at(buffer.block.value);
        let counted = case.and_then(|case| calls_of_the_writer(case, study.bytes()));
        vec![
            size(buffer.block.value),
            buffer.said.clone(),
            grouped(buffer.calls as f64, 0),
            or_absent(counted.map(|calls| grouped(calls, 0))),
            speed(case),
            case.map(spread).unwrap_or_default(),
            case.and_then(median).zip(reference).map(|(one, other)| ratio(one / other)).unwrap_or_default(),
        ]
    };
    let rows = study.buffers.iter().map(row).collect();
    let columns =
        ["buffer", "said to be", "calls said for 10 GB", "write calls counted", "here", "±95 %", "× 64 KiB"];
    let lead = vec![
        "Two processes, every byte checked by XOR. The calls are the writer's, counted where they are made and \
         extended to the study's 10 GB."
            .to_owned(),
    ];
    let bars = study
        .buffers
        .iter()
        .filter_map(|buffer| Some(bar(&size(buffer.block.value), at(buffer.block.value)?)));
    let figure = Figure {
        id: "kernel-pipe-buffers".to_owned(),
        title: "Buffer size against throughput".to_owned(),
        caption: "A pipe as it comes, two processes.".to_owned(),
        chart: Chart::Bars(Bars {
            axis: speed_axis(Scale::Linear),
            groups: vec![BarGroup { name: String::new(), bars: bars.collect() }],
            references: Vec::new(),
        }),
    };
    let blocks = vec![Block::Table(table("Stated, and here", &columns, rows)), Block::Figure(figure)];
    section(part, "Buffer size", lead, blocks)
}

/// Calls of the sending end for so many bytes, from the median of the samples.
fn calls_of_the_writer(case: &CaseRecord, bytes: u64) -> Option<f64> {
    let per_byte = |sample: &model::Sample| Some(sample.ends.first()?.syscalls? as f64 / sample.bytes as f64);
    stats::figure::median_of(case, per_byte).map(|calls| (calls * bytes as f64).round())
}

fn calls(study: &KernelPipe, part: &StudyPart) -> Section {
    let [from, to] = study.stated.call_us;
    let row = |measure: &Measure| {
        let estimate = stats::Estimate::of(&measure.samples);
        let spread = estimate.as_ref().and_then(stats::Estimate::relative_half_width);
        vec![
            measure.name.clone(),
            format!("{from} to {to} µs a call"),
            or_absent(estimate.map(|one| format!("{}{}", time(one.median), mark(level(&measure.samples))))),
            spread.map(|share| half_width(share, measure.samples.len())).unwrap_or_default(),
        ]
    };
    let rows = part.measures.iter().map(row).collect();
    let lead = vec![
        "One thread, in a tight loop: the shortest call there is, and two calls that move a byte.".to_owned(),
    ];
    let table = table("Stated, and here", &["what", "stated", "here", "±95 %"], rows);
    section(part, "The cost of a system call", lead, vec![Block::Table(table)])
}

fn copies(study: &KernelPipe, part: &StudyPart) -> Section {
    let level = |data: DataLevel| case_of(part, move |case| case.role == Role::Ranked && case.data == data);
    let named = [
        ("handed over and received, not looked at", level(DataLevel::None)),
        ("and every byte written by the sender", level(DataLevel::Write)),
        ("and every byte checked by the receiver", level(DataLevel::Verify)),
        ("memory copied once, no pipe", case_of(part, |case| case.role == Role::Ceiling)),
    ];
    let base = named[0].1.and_then(median);
    let row = |(name, case): &(&str, Option<&CaseRecord>)| {
        let times = case.and_then(median).zip(base).map(|(one, other)| ratio(one / other));
        vec![
            (*name).to_owned(),
            speed(*case),
            case.map(spread).unwrap_or_default(),
            times.unwrap_or_default(),
        ]
    };
    let rows = named.iter().map(row).collect();
    let lead = vec![format!(
        "The study counts {} copies of each byte, into the pipe and out of it. What its pattern and its XOR add to \
         them is the difference between these rows.",
        study.stated.copies
    )];
    let columns = ["what is done with each byte", "here", "±95 %", "× the first"];
    section(part, "Copies", lead, vec![Block::Table(table("Here", &columns, rows))])
}

/// A measure's only value.
fn value(part: &StudyPart, name: &str) -> Option<f64> {
    part.measures.iter().find(|measure| measure.name == name)?.samples.first().copied()
}

fn atomicity(study: &KernelPipe, part: &StudyPart) -> Section {
    let limit = study.stated.pipe_buf_bytes;
    let row = |bytes: u64| {
        let (sent, torn) =
            (value(part, &format!("{bytes} bytes: sent"))?, value(part, &format!("{bytes} bytes: torn"))?);
        let stated = if bytes <= limit { "never torn" } else { "may be torn" };
        let verdict = match (bytes <= limit, torn > 0.0) {
            (true, false) => "as stated",
            (true, true) => "NOT as stated",
            (false, true) => "torn indeed",
            (false, false) => "not torn this time",
        };
        let share = if sent > 0.0 { percent(torn / sent) } else { String::new() };
        let cells =
            [size(bytes), stated.to_owned(), grouped(sent, 0), grouped(torn, 0), share, verdict.to_owned()];
        Some(cells.to_vec())
    };
    let rows = study.atomicity().message_bytes.iter().filter_map(|bytes| row(*bytes)).collect();
    let columns = ["message", "stated", "sent", "torn", "share", "verdict"];
    let lead = vec![format!(
        "Several writers at once, one write for each message; the reader looks at every byte. Up to PIPE_BUF, {limit} \
         bytes, a message must arrive whole."
    )];
    section(part, "Writers at once", lead, vec![Block::Table(table("Stated, and here", &columns, rows))])
}

fn room(study: &KernelPipe, part: &StudyPart) -> Section {
    let stated = |name: &str| match name {
        "as it comes" => size(study.stated.pipe_bytes_linux.value),
        "PIPE_BUF" => size(study.stated.pipe_buf_bytes),
        _ => String::new(),
    };
    let row = |measure: &Measure| {
        let bytes = measure.samples.first().map(|bytes| size(*bytes as u64));
        vec![measure.name.clone(), stated(&measure.name), or_absent(bytes)]
    };
    let rows = part.measures.iter().map(row).collect();
    let lead = vec![format!(
        "Read back from the kernel, and tried: a pipe is a row of pages, and a write that does not fit what is left of \
         a page begins a new one. Other systems as stated and not measured here: {}.",
        study.stated.pipe_bytes_elsewhere
    )];
    section(
        part,
        "What a pipe holds",
        lead,
        vec![Block::Table(table("Stated, and here", &["pipe", "stated", "here"], rows))],
    )
}

fn alternatives(study: &KernelPipe, part: &StudyPart) -> Section {
    let case = |text: &str, data: DataLevel| {
        let spec: Spec = text.parse().ok()?;
        part.cases.iter().find(|case| case.spec == spec && case.data == data)
    };
    let plain = |data| case("pipe", data).and_then(median);
    let times = |one: Option<&CaseRecord>, data| {
        one.and_then(median).zip(plain(data)).map(|(one, plain)| ratio(one / plain)).unwrap_or_default()
    };
    let row = |alternative: &Alternative| {
        let (none, verify) =
            (case(&alternative.spec, DataLevel::None), case(&alternative.spec, DataLevel::Verify));
        let evidence = none.or(verify).and_then(|case| case.zero_copy.as_ref());
        let proof = evidence.map(words::by_reference).unwrap_or_default();
        vec![
            alternative.name.clone(),
            alternative.spec.clone(),
            speed(none),
            times(none, DataLevel::None),
            speed(verify),
            times(verify, DataLevel::Verify),
            proof,
        ]
    };
    let rows = study.alternatives.iter().map(row).collect();
    let columns = [
        "alternative",
        "here as",
        "not looked at",
        "× plain",
        "every byte checked",
        "× plain",
        "by reference",
    ];
    let group = |name: &str, data: DataLevel| BarGroup {
        name: name.to_owned(),
        bars: study
            .alternatives
            .iter()
            .filter_map(|one| Some(bar(&one.name, case(&one.spec, data)?)))
            .collect(),
    };
    let figure = Figure {
        id: "kernel-pipe-alternatives".to_owned(),
        title: "The ways to avoid copying".to_owned(),
        caption: "Two processes, blocks of 64 KiB. The two groups are not to be compared with each other: bytes that \
                  nobody looks at need not be anywhere near."
            .to_owned(),
        chart: Chart::Bars(Bars {
            axis: speed_axis(Scale::Log),
            groups: vec![group("not looked at", DataLevel::None), group("every byte checked", DataLevel::Verify)],
            references: Vec::new(),
        }),
    };
    let lead = vec!["The study lists these and measures none of them.".to_owned()];
    let blocks = vec![Block::Table(table("Here", &columns, rows)), Block::Figure(figure)];
    section(part, "Ways to avoid copying", lead, blocks)
}

/// What is said where another size is clearly faster.
const AGAINST: &str = "where 64 KiB is said to be best";

/// Which buffer size was the fastest, and whether that can be told from the one that is said to be.
fn fastest_buffer(study: &KernelPipe, buffers: &StudyPart) -> Option<String> {
    let ends = |case: &CaseRecord| case.throughput.as_ref().map(|one| (one.low, one.high));
    let said = buffers.cases.iter().find(|case| case.block_bytes == study.block_bytes());
    let cases = buffers.cases.iter().filter_map(|case| Some((median(case)?, case)));
    let (speed, best) = cases.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let against = match (ends(best), said.and_then(ends)) {
        _ if best.block_bytes == study.block_bytes() => "as stated",
        (Some((low, _)), Some((_, high))) if low <= high => {
            "but the runs differ by more than it is ahead of 64 KiB, which is said to be best"
        }
        _ => AGAINST,
    };
    // With blocks as large as the pipe, one write fills it and one read empties it.
    let why = if against == AGAINST && best.block_bytes < study.block_bytes() {
        " A block of 64 KiB fills the pipe as it comes, so that writer and reader wait for each other in turn; with \
         smaller ones both work at once."
    } else {
        ""
    };
    let (block, speed) = (size(best.block_bytes), throughput(speed));
    Some(format!("Of the buffer sizes {block} is the fastest here, {speed}, {against}.{why}"))
}

/// What came of the beliefs, in a paragraph.
pub(super) fn summary(study: &KernelPipe, record: &StudyRecord) -> String {
    let mut sentences = Vec::new();
    sentences.extend(part(record, "buffers").and_then(|buffers| fastest_buffer(study, buffers)));
    if let Some(calls) = part(record, "calls") {
        let medians: Vec<f64> =
            calls.measures.iter().filter_map(|one| stats::estimate::median(&one.samples)).collect();
        if let [trivial, both] = medians[..] {
            let [from, _] = study.stated.call_us;
            let than =
                if trivial < from * 1000.0 { "less than the stated" } else { "no less than the stated" };
            sentences.push(format!(
                "A system call that does nothing takes {}, {than} {from} µs; a byte written and read back takes {}.",
                time(trivial),
                time(both)
            ));
        }
    }
    if let Some(atomicity) = part(record, "atomicity") {
        let limit = study.stated.pipe_buf_bytes;
        let short = study.atomicity().message_bytes.into_iter().filter(|bytes| *bytes <= limit);
        let torn: f64 = short.filter_map(|bytes| value(atomicity, &format!("{bytes} bytes: torn"))).sum();
        sentences.push(if torn == 0.0 {
            "No message of up to PIPE_BUF was torn.".to_owned()
        } else {
            format!("{} messages of up to PIPE_BUF were torn, which pipe(7) rules out.", fixed(torn, 0))
        });
    }
    sentences.join(" ")
}
