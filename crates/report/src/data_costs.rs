//! What it costs to produce and to check the payload: a row for cases that differ in nothing else.

use model::{BenchRecord, CaseRecord, DataLevel, Workload};

use crate::case_figure::estimated;
use crate::lists::grouped;
use crate::numbers;
use crate::table::{Column, Fit, Table};
use crate::view::{Axes, Labels, transports};

/// The cases of a row, which differ in their data level.
type Levels<'a> = [&'a CaseRecord];

/// A table if at least one mechanism was measured with several levels of data.
pub(crate) fn table(record: &BenchRecord) -> Option<Table> {
    let labels = Labels::from_record(record);
    let key = |case: &CaseRecord| {
        let axes = Axes { data: DataLevel::None, ..Axes::from_case(case) };
        (labels.label(case), axes, case.block_bytes, case.load())
    };
    let mut rows = grouped(transports(record).map(|case| (key(case), case)));
    rows.retain(|(_, cases)| cases.windows(2).any(|pair| pair[0].data != pair[1].data));
    let title =
        "What the payload costs: time of a block or a round trip (three kinds of work: not a ranking)";
    let mut table = Table { title: title.to_owned(), ..Table::default() };
    table.add(Column::left("spec").fit(Fit::Spec), rows.iter().map(|((label, ..), _)| Some(label.clone())));
    let mut add = |title: &str, cell: &dyn Fn(&Levels) -> Option<String>| {
        table.add(Column::right(title), rows.iter().map(|(_, cases)| cell(cases)));
    };
    add("moved", &|cases| {
        let size = numbers::size(cases[0].block_bytes);
        Some(if cases[0].workload == Workload::Stream { size } else { format!("{size} trip") })
    });
    add("placed", &|cases| Some(cases[0].placement.to_string()));
    add("untouched", &|cases| time_ns(cases, DataLevel::None).map(numbers::time));
    add("written", &|cases| time_ns(cases, DataLevel::Write).map(numbers::time));
    add("and checked", &|cases| time_ns(cases, DataLevel::Verify).map(numbers::time));
    add("writing costs", &|cases| difference(cases, DataLevel::None, DataLevel::Write));
    add("checking costs", &|cases| difference(cases, DataLevel::Write, DataLevel::Verify));
    (!rows.is_empty()).then_some(table)
}

/// The time of a block or a round trip at a level of data, in nanoseconds.
fn time_ns(cases: &Levels, level: DataLevel) -> Option<f64> {
    let case = cases.iter().find(|case| case.data == level)?;
    let [median, ..] = estimated(case)?;
    let ns = match case.workload {
        Workload::Stream => case.block_bytes as f64 * 1e9 / median,
        Workload::PingPong => median,
    };
    Some(ns).filter(|ns| ns.is_finite())
}

/// The additional time of a level of data. The two ends of a stream work at the same time, so more work of one may cost nothing.
fn difference(cases: &Levels, from: DataLevel, to: DataLevel) -> Option<String> {
    Some(numbers::time((time_ns(cases, to)? - time_ns(cases, from)?).max(0.0)))
}
