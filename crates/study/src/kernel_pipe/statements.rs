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
    let stated_bytes = study.workload.block.value;
    let buffers = cases(record, "buffers");
    let best = fastest(buffers);
    let stated = buffers.iter().find(|case| case.block_bytes == stated_bytes);
    let ends = |case: &CaseRecord| case.throughput.as_ref().map(|one| (one.low, one.high));
    let overlap = best.and_then(ends).zip(stated.and_then(ends));
    let too_few = |case: &CaseRecord| case.samples.len() < SPREAD_FROM;
    let is_close = overlap.is_some_and(|((low, _), (_, high))| low <= high) || best.is_some_and(too_few);
    let verdict =
        |holds: &dyn Fn(&CaseRecord) -> bool| best.filter(|case| holds(case)).map(|_| String::new());
    let is_other = |case: &CaseRecord| case.block_bytes != stated_bytes;

    let calls = part(record, "calls").map(|part| part.measures.as_slice()).unwrap_or_default();
    let medians = calls.iter().filter_map(|one| stats::estimate::median(&one.samples));
    let call_and_both =
        if let [call, both] = medians.collect::<Vec<f64>>()[..] { Some((call, both)) } else { None };
    let stated_ns = study.stated.call_us * 1000.0;
    let compared = |(call, _)| if call < stated_ns { "less than" } else { "no less than" }.to_owned();

    let sizes = study.choice.message_sizes.iter().map(|size| size.value);
    let short = sizes.filter(|bytes| *bytes <= study.stated.pipe_buf_bytes);
    let torn_in = |part: &StudyPart| -> f64 {
        short.filter_map(|bytes| value(part, &format!("{bytes} bytes: torn"))).sum()
    };
    let torn = part(record, "atomicity").map(torn_in);
    texts([
        ("best buffer", best.map(|case| size(case.block_bytes))),
        ("best speed", best.and_then(median).map(throughput)),
        ("best as stated", verdict(&|case| !is_other(case))),
        ("best in doubt", verdict(&|case| is_other(case) && is_close)),
        ("best is another", verdict(&|case| is_other(case) && !is_close)),
        ("best is smaller", verdict(&|case| case.block_bytes < stated_bytes && !is_close)),
        ("call", call_and_both.map(|(call, _)| time(call))),
        ("compared", call_and_both.map(compared)),
        ("byte through", call_and_both.map(|(_, both)| time(both))),
        ("none torn", torn.filter(|torn| *torn == 0.0).map(|_| String::new())),
        ("torn", torn.filter(|torn| *torn > 0.0).map(|torn| fixed(torn, 0))),
    ])
}
