//! What producing and checking the payload cost: cases that differ in nothing but what their ends did with it, in one row.

use model::{BenchRecord, CaseRecord, DataLevel, Workload};

use crate::case_figure::estimated;
use crate::lists::grouped;
use crate::numbers;
use crate::table::{Column, Fit, Table};
use crate::view::{Axes, Labels, transports};

/// The time of a block or a round trip in nanoseconds.
fn time_ns(case: &CaseRecord) -> Option<f64> {
    let [median, ..] = estimated(case)?;
    let ns = match case.workload {
        Workload::Stream => case.block_bytes as f64 * 1e9 / median,
        Workload::PingPong => median,
    };
    Some(ns).filter(|ns| ns.is_finite())
}

/// A table where at least one mechanism was measured with several levels of data; `None` where none was.
pub(crate) fn table(record: &BenchRecord) -> Option<Table> {
    let labels = Labels::of(record);
    let key = |case: &CaseRecord| {
        let axes = Axes { data: DataLevel::None, ..Axes::of(case) };
        (labels.of_case(case), axes, case.block_bytes, case.load())
    };
    let mut rows = grouped(transports(record).map(|case| (key(case), case)));
    rows.retain(|(_, cases)| cases.windows(2).any(|pair| pair[0].data != pair[1].data));
    if rows.is_empty() {
        return None;
    }
    let level =
        |cases: &[&CaseRecord], level: DataLevel| time_ns(cases.iter().find(|case| case.data == level)?);
    // A stream's two ends work at once: what one of them does more may cost the stream nothing.
    let more = |cases: &[&CaseRecord], than: DataLevel, with: DataLevel| {
        Some((level(cases, with)? - level(cases, than)?).max(0.0))
    };
    let mut table = Table {
        title: "What the payload costs: time of a block or a round trip (three kinds of work: not a ranking)"
            .to_owned(),
        ..Table::default()
    };
    let column = |title: &str| Column::right(title);
    table.add(Column::left("spec").fit(Fit::Spec), rows.iter().map(|((label, ..), _)| Some(label.clone())));
    table.add(
        column("moved"),
        rows.iter().map(|((_, axes, bytes, _), _)| match axes.workload {
            Workload::Stream => Some(numbers::size(*bytes)),
            Workload::PingPong => Some(format!("{} trip", numbers::size(*bytes))),
        }),
    );
    table.add(column("placed"), rows.iter().map(|((_, axes, ..), _)| Some(axes.placement.to_string())));
    for (title, wanted) in
        [("untouched", DataLevel::None), ("written", DataLevel::Write), ("and checked", DataLevel::Verify)]
    {
        table.add(column(title), rows.iter().map(|(_, cases)| level(cases, wanted).map(numbers::time)));
    }
    for (title, than, with) in [
        ("writing costs", DataLevel::None, DataLevel::Write),
        ("checking costs", DataLevel::Write, DataLevel::Verify),
    ] {
        table.add(column(title), rows.iter().map(|(_, cases)| more(cases, than, with).map(numbers::time)));
    }
    Some(table)
}
