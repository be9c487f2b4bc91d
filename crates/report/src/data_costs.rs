//! What it costs to produce and to check the payload: a row for cases that differ in nothing else.

use model::{BenchRecord, CaseRecord, DataLevel, Workload};

use crate::estimate::estimated;
use crate::groups::{OF_ONE_LOAD, key};
use crate::lists::grouped;
use crate::row_labels::RowLabels;
use crate::sheet::{Sheet, col};
use crate::table::{Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::view::transports;

/// The cases of a row, which differ in their data level.
type Levels<'a> = [&'a CaseRecord];

/// A table if at least one mechanism was measured with several levels of data.
pub(crate) fn table(record: &BenchRecord) -> Option<Table> {
    let labels = RowLabels::from_record(record);
    let axes: Vec<&str> = OF_ONE_LOAD.iter().copied().filter(|axis| *axis != "data").collect();
    let key = |case: &CaseRecord| (labels.label(case), key(case, &axes));
    let mut rows = grouped(transports(record).map(|case| (key(case), case)));
    rows.retain(|(_, cases)| cases.windows(2).any(|pair| pair[0].data != pair[1].data));
    let mut sheet = Sheet::new(&rows);
    let time = |(_, cases): &(_, Vec<&CaseRecord>), level| Some(Unit::Ns.of(time_ns(cases, level)?));
    sheet.add(col("spec").fit(Fit::Spec), |((label, _), _)| Some(label.into()));
    sheet.add("moved", |(_, cases)| {
        let size = Unit::Bytes.of(cases[0].block_bytes as f64);
        Some(if cases[0].workload == Workload::Stream { size } else { size.then(" trip") })
    });
    sheet.add(col("placed").right(), |(_, cases)| Some(cases[0].placement.to_string().into()));
    sheet.add("untouched", |row| time(row, DataLevel::None));
    sheet.add("written", |row| time(row, DataLevel::Write));
    sheet.add("and checked", |row| time(row, DataLevel::Verify));
    sheet.add("writing costs", |(_, cases)| difference(cases, DataLevel::None, DataLevel::Write));
    sheet.add("checking costs", |(_, cases)| difference(cases, DataLevel::Write, DataLevel::Verify));
    let title =
        "What the payload costs: time of a block or a round trip (three kinds of work: not a ranking)";
    (!rows.is_empty()).then(|| Table { title: title.to_owned(), ..sheet.table() })
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
fn difference(cases: &Levels, from: DataLevel, to: DataLevel) -> Option<Value> {
    Some(Unit::Ns.of((time_ns(cases, to)? - time_ns(cases, from)?).max(0.0)))
}
