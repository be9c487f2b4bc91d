//! `kernel-pipe`: compares the study's statements about pipes with the measured figures.

use model::{CaseRecord, StudyPart, StudyRecord};
use report::document::Block;
use report::interval::SPREAD_FROM;
use report::numbers::{fixed, grouped, percent, size, throughput, time};

use super::KernelPipe;
use crate::scale::Size;
use crate::view::{PartView, Texts, cases, fastest, measure, median, part, texts};

/// A measure's only value.
fn value(part: &StudyPart, name: &str) -> Option<f64> {
    measure(part, name)?.samples.first().copied()
}

pub(super) fn atomicity(study: &KernelPipe, view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let limit = study.stated.pipe_buf_bytes;
    let counts = |size: &Size| {
        let bytes = size.value;
        let count = |what: &str| value(part, &format!("{bytes} bytes: {what}"));
        Some((bytes, count("sent")?, count("torn")?))
    };
    let row = |(bytes, sent, torn): (u64, f64, f64)| {
        let (stated, verdict) = match (bytes <= limit, torn > 0.0) {
            (true, false) => ("never torn", "as stated"),
            (true, true) => ("never torn", "NOT as stated"),
            (false, true) => ("may be torn", "as stated"),
            (false, false) => ("may be torn", "none torn in this run"),
        };
        texts([
            ("message", Some(size(bytes))),
            ("stated", Some(stated.to_owned())),
            ("sent", Some(grouped(sent, 0))),
            ("torn", Some(grouped(torn, 0))),
            ("share", (sent > 0.0).then(|| percent(torn / sent))),
            ("verdict", Some(verdict.to_owned())),
        ])
    };
    vec![view.table(study.choice.message_sizes.iter().filter_map(counts).map(row).collect())]
}

/// The facts about the statements: the fastest buffer, the cost of calls, torn messages. A fact with an empty text only decides
/// whether a sentence is shown.
pub(super) fn facts_of(study: &KernelPipe, record: &StudyRecord) -> Texts {
    let mut facts = buffer_facts(study.workload.block.value, cases(record, "buffers"));
    let calls = part(record, "calls").map(|part| part.measures.as_slice()).unwrap_or_default();
    let medians = calls.iter().filter_map(|one| stats::estimate::median(&one.samples));
    if let [call, both] = medians.collect::<Vec<f64>>()[..] {
        let is_less = call < study.stated.call_us * 1000.0;
        facts.extend(texts([
            ("call", Some(time(call))),
            ("compared", Some(if is_less { "less than" } else { "no less than" }.to_owned())),
            ("byte through", Some(time(both))),
        ]));
    }
    if let Some(part) = part(record, "atomicity") {
        let sizes = study.choice.message_sizes.iter().map(|size| size.value);
        let short = sizes.filter(|bytes| *bytes <= study.stated.pipe_buf_bytes);
        let torn: f64 = short.filter_map(|bytes| value(part, &format!("{bytes} bytes: torn"))).sum();
        facts.extend(texts([if torn > 0.0 {
            ("torn", Some(fixed(torn, 0)))
        } else {
            ("none torn", Some(String::new()))
        }]));
    }
    facts
}

/// Which buffer is the best one, and whether it is surely another than the stated one.
fn buffer_facts(stated_bytes: u64, buffers: &[CaseRecord]) -> Texts {
    let Some(best) = fastest(buffers) else { return Texts::new() };
    let bounds = |case: &CaseRecord| case.throughput.as_ref().map(|one| (one.low, one.high));
    let stated = buffers.iter().find(|case| case.block_bytes == stated_bytes);
    let overlap = bounds(best).zip(stated.and_then(bounds));
    let is_close =
        overlap.is_some_and(|((low, _), (_, high))| low <= high) || best.samples.len() < SPREAD_FROM;
    let is_other = best.block_bytes != stated_bytes;
    let holds = |it: bool| it.then(String::new);
    texts([
        ("best buffer", Some(size(best.block_bytes))),
        ("best speed", median(best).map(throughput)),
        ("best as stated", holds(!is_other)),
        ("best in doubt", holds(is_other && is_close)),
        ("best is another", holds(is_other && !is_close)),
        ("best is smaller", holds(best.block_bytes < stated_bytes && !is_close)),
    ])
}
