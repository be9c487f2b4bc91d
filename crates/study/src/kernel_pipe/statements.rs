//! What `kernel-pipe` states about pipes, and what came of it.

use model::{CaseRecord, StudyPart, StudyRecord};
use report::document::Block;
use report::numbers::{fixed, grouped, percent, size, throughput, time};

use super::KernelPipe;
use crate::view::{PartView, Words, median, part, words};

/// A measure's only value.
fn value(part: &StudyPart, name: &str) -> Option<f64> {
    part.measures.iter().find(|measure| measure.name == name)?.samples.first().copied()
}

pub(super) fn atomicity(study: &KernelPipe, view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let limit = study.stated.pipe_buf_bytes;
    let found = |bytes: u64| {
        let of = |what: &str| value(part, &format!("{bytes} bytes: {what}"));
        Some((bytes, of("sent")?, of("torn")?))
    };
    let row = |(bytes, sent, torn): (u64, f64, f64)| {
        let (stated, verdict) = match (bytes <= limit, torn > 0.0) {
            (true, false) => ("never torn", "as stated"),
            (true, true) => ("never torn", "NOT as stated"),
            (false, true) => ("may be torn", "torn indeed"),
            (false, false) => ("may be torn", "not torn this time"),
        };
        words([
            ("message", Some(size(bytes))),
            ("stated", Some(stated.to_owned())),
            ("sent", Some(grouped(sent, 0))),
            ("torn", Some(grouped(torn, 0))),
            ("share", (sent > 0.0).then(|| percent(torn / sent))),
            ("verdict", Some(verdict.to_owned())),
        ])
    };
    vec![view.table(study.message_bytes().filter_map(found).map(row).collect())]
}

/// What came of the beliefs: the fastest buffer, the cost of calls, torn messages. A verdict is a fact without a text.
pub(super) fn facts_of(study: &KernelPipe, record: &StudyRecord) -> Words {
    let said_bytes = study.workload.block.value;
    let buffers = part(record, "buffers").map(|part| part.cases.as_slice()).unwrap_or_default();
    let known = buffers.iter().filter_map(|case| Some((median(case)?, case)));
    let best = known.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, case)| case);
    let said = buffers.iter().find(|case| case.block_bytes == said_bytes);
    let ends = |case: &CaseRecord| case.throughput.as_ref().map(|one| (one.low, one.high));
    let overlap = best.and_then(ends).zip(said.and_then(ends));
    let is_close = overlap.is_some_and(|((low, _), (_, high))| low <= high);
    let verdict =
        |holds: &dyn Fn(&CaseRecord) -> bool| best.filter(|case| holds(case)).map(|_| String::new());
    let is_other = |case: &CaseRecord| case.block_bytes != said_bytes;

    let calls = part(record, "calls").map(|part| part.measures.as_slice()).unwrap_or_default();
    let medians = calls.iter().filter_map(|one| stats::estimate::median(&one.samples));
    let calls = if let [call, both] = medians.collect::<Vec<f64>>()[..] { Some((call, both)) } else { None };
    let stated_ns = study.stated.call_us * 1000.0;
    let compared = |(call, _)| if call < stated_ns { "less than" } else { "no less than" }.to_owned();

    let short = study.message_bytes().filter(|bytes| *bytes <= study.stated.pipe_buf_bytes);
    let torn_of = |part: &StudyPart| -> f64 {
        short.filter_map(|bytes| value(part, &format!("{bytes} bytes: torn"))).sum()
    };
    let torn = part(record, "atomicity").map(torn_of);
    words([
        ("best buffer", best.map(|case| size(case.block_bytes))),
        ("best speed", best.and_then(median).map(throughput)),
        ("best as stated", verdict(&|case| !is_other(case))),
        ("best in doubt", verdict(&|case| is_other(case) && is_close)),
        ("best is another", verdict(&|case| is_other(case) && !is_close)),
        ("best is smaller", verdict(&|case| case.block_bytes < said_bytes && !is_close)),
        ("call", calls.map(|(call, _)| time(call))),
        ("compared", calls.map(compared)),
        ("byte through", calls.map(|(_, both)| time(both))),
        ("none torn", torn.filter(|torn| *torn == 0.0).map(|_| String::new())),
        ("torn", torn.filter(|torn| *torn > 0.0).map(|torn| fixed(torn, 0))),
    ])
}
