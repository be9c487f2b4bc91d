//! A ranking as a table: its columns, and which of them a narrow terminal leaves out first.

use model::{CaseRecord, Workload};
use stats::tail::Tail;
use stats::{TrialGroup, TrialsByCpus, bound_of, figure};

use crate::estimate::{estimated, median_value, quantity, shown};
use crate::granted;
use crate::interval::{Estimated, common_unit};
use crate::limits::BAR_COLUMNS;
use crate::lists::grouped;
use crate::reason::reason;
use crate::sheet::{Sheet, col};
use crate::table::{Column, Fit, Table};
use crate::tail;
use crate::unit::{ShownUnit, Unit};
use crate::value::Value;
use crate::verdict::cpu_per_block;
use crate::view::{RankedRow, Ranking};

/// The ranking, the best row first. Columns without `pinned` or `on …` in their headings are of the placement that ranks.
pub(crate) fn table(ranking: &Ranking, interrupted: bool) -> Table {
    let mut sheet = Sheet::new(&ranking.rows);
    // If only the pipe has a value, 1.0, the column is left out.
    let times_pipe = |row: &RankedRow| Some(Unit::Times.of(row.times_pipe.filter(|_| ranking.against_pipe)?));
    let streams = Estimates::new(ranking, Workload::Stream);
    let trips = Estimates::new(ranking, Workload::PingPong);
    let round_trip = || trips.head("round trip").short(trips.head("trip").head);
    let [one, two]: [fn(TrialsByCpus) -> Option<TrialGroup>; 2] =
        [|by_cpus| by_cpus.one_cpu, |by_cpus| by_cpus.two_cpus];
    sheet.add(col("mechanism").fit(Fit::Spec), |row| Some((&row.label).into()));
    if ranking.rows.iter().any(|row| row.stream().is_some()) {
        sheet.add(streams.head("throughput").short(&streams.unit.name), |row| streams.cell(row, false));
        sheet.bars(13, BAR_COLUMNS, |row| share_of_best(row, ranking));
        sheet.add(col("on one CPU").drop(7), |row| streams.on_cpus(row, one));
        sheet.add(col("on two").drop(7), |row| streams.on_cpus(row, two));
        sheet.add(col("pinned").drop(4), |row| streams.cell(row, true));
        if ranking.pinned.is_some() {
            sheet.add(col("bound by").drop(8), |row| bound(row.case(Workload::Stream, true)?));
        }
        sheet.add(col("× pipe").drop(6), times_pipe);
        sheet.add(round_trip().drop(1), |row| trips.cell(row, false));
        sheet.add(col("p99").drop(10), |row| tail::cell(row.latency(), Tail::P99));
        sheet.add(col("trip on one CPU").drop(12), |row| trips.on_cpus(row, one));
        sheet.add(col("trip on two").drop(12), |row| trips.on_cpus(row, two));
        sheet.add(col("trip pinned").short("pinned").drop(5), |row| trips.cell(row, true));
        // CPU time is shown wherever time is: both together decide which mechanism is recommended.
        sheet.add(col("CPU/block").drop(2), |row| cpu_per_block(row.stream()?));
        sheet.add(col("CPU/trip").drop(3), |row| cpu_per_block(row.round_trip()?));
        sheet.add(col("per block").drop(15), |row| {
            median_value(row.stream()?, figure::elapsed_per_block_ns, Unit::Ns)
        });
        if ranking.pinned.is_none() {
            sheet.add(col("bound by").drop(8), |row| bound(row.stream()?));
        }
        sheet.add(col("retransmits").drop(9), |row| retransmits(row.stream()?));
        sheet.add(col("granted").left().drop(14), |row| granted::with_request(row.stream()?));
    } else {
        sheet.add(round_trip(), |row| trips.cell(row, false));
        sheet.add(col("on one CPU").drop(5), |row| trips.on_cpus(row, one));
        sheet.add(col("on two").drop(5), |row| trips.on_cpus(row, two));
        sheet.add(col("pinned").drop(3), |row| trips.cell(row, true));
        sheet.add(col("× pipe").drop(4), times_pipe);
        sheet.add(col("p90").drop(8), |row| tail::cell(row.latency(), Tail::P90));
        sheet.add(col("p99").drop(1), |row| tail::cell(row.latency(), Tail::P99));
        sheet.add(col("p99.9").drop(7), |row| tail::cell(row.latency(), Tail::P999));
        sheet.add(col("max").drop(9), |row| Some(Unit::Ns.of(row.latency()?.max as f64)));
        sheet.add(col("CPU/trip").drop(2), |row| cpu_per_block(row.round_trip()?));
        sheet.add(col("retransmits").drop(7), |row| retransmits(row.round_trip()?));
        sheet.add(col("granted").left().drop(10), |row| granted::with_request(row.round_trip()?));
    }
    let mut table = sheet.table();
    for (row, ranked) in table.rows.iter_mut().zip(&ranking.rows) {
        row.reasons = reasons(ranked, interrupted);
    }
    let is_measured = |row: &&RankedRow| row.cases().any(|case| estimated(case).is_some());
    table.embolden((ranking.rows.iter().filter(is_measured).count() > 1).then_some(0));
    table
}

/// The estimates of a workload in a ranking, in one unit, which the heading names.
struct Estimates {
    workload: Workload,
    /// Without a name if there are no estimates.
    unit: ShownUnit,
}

impl Estimates {
    fn new(ranking: &Ranking, workload: Workload) -> Self {
        let all = |row| [false, true].into_iter().filter_map(move |pinned| estimate(row, workload, pinned));
        Self { workload, unit: common_unit(ranking.rows.iter().flat_map(all)).unwrap_or_default() }
    }

    fn head(&self, title: &str) -> Column {
        let unit = &self.unit.name;
        col(if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") })
    }

    fn cell(&self, row: &RankedRow, pinned: bool) -> Option<Value> {
        Some(Value::Estimate(estimate(row, self.workload, pinned)?.without_unit(self.unit.factor)))
    }

    /// The median of the trials on one CPU, or of those on two.
    fn on_cpus(&self, row: &RankedRow, group: fn(TrialsByCpus) -> Option<TrialGroup>) -> Option<Value> {
        Some(group_value(group(row.by_cpus(self.workload)?)?, self.workload))
    }
}

fn estimate(row: &RankedRow, workload: Workload, pinned: bool) -> Option<Estimated> {
    shown(row.case(workload, pinned)?, if pinned { None } else { row.by_cpus(workload) })
}

/// The throughput as a share of that of the first row.
fn share_of_best(row: &RankedRow, ranking: &Ranking) -> Option<f64> {
    let speed = |row: &RankedRow| Some(row.throughput()?.median_bytes_per_s);
    // The rows are ranked. One bar alone compares nothing.
    let (best, _) = (speed(ranking.rows.first()?)?, speed(ranking.rows.get(1)?)?);
    Some(speed(row)? / best)
}

fn bound(case: &CaseRecord) -> Option<Value> {
    Some(bound_of(case)?.to_string().into())
}

/// The median of some trials and their number: "4.90 GB/s ×7".
pub(crate) fn group_value(group: TrialGroup, workload: Workload) -> Value {
    quantity(workload).unit.of(group.median).then(format!(" ×{}", group.trials))
}

/// Segments that the sender sent again in the median trial, on the way to another host.
fn retransmits(case: &CaseRecord) -> Option<Value> {
    median_value(case, |sample| Some(sample.retransmits? as f64), Unit::Many)
}

/// The failure and its remedy, once for each different reason of a row. Names the cases if others of the row did not fail.
fn reasons(row: &RankedRow, interrupted: bool) -> Vec<String> {
    let reasons = grouped(row.cases().filter_map(|case| Some((reason(case, interrupted)?, case))));
    let all = row.cases().count();
    let sentence = |(reason, cases): (String, Vec<&CaseRecord>)| {
        if cases.len() == all { reason } else { format!("{}: {reason}", names(&cases, row)) }
    };
    reasons.into_iter().map(sentence).collect()
}

/// Some of a row's cases in words: "stream", "round trips", "stream placed `cross`".
fn names(cases: &[&CaseRecord], row: &RankedRow) -> String {
    let name = |(workload, word): (Workload, &str)| {
        let all = row.cases().filter(|case| case.workload == workload).count();
        let named: Vec<_> = cases.iter().filter(|case| case.workload == workload).collect();
        let first = named.first()?;
        Some(if named.len() == all {
            word.to_owned()
        } else {
            format!("{word} placed `{}`", first.placement)
        })
    };
    let names = [(Workload::Stream, "stream"), (Workload::PingPong, "round trips")];
    names.into_iter().filter_map(name).collect::<Vec<String>>().join(" and ")
}
