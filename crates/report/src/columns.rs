//! A ranking as a table: its columns, and which of them a narrow terminal leaves out first.

use model::{CaseRecord, Workload};
use stats::tail::Tail;
use stats::{TrialGroup, TrialsByCpus, bound_of, figure};

use crate::case_figure::{FigureText, common_unit, estimated, quantity};
use crate::layout;
use crate::lists::grouped;
use crate::reason::reason;
use crate::table::{Column, Fit, Table};
use crate::verdict::cpu_per_block_ns;
use crate::view::{RankedRow, Ranking};
use crate::{granted, numbers, tail};

/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;

/// The ranking, the best row first. Columns without `pinned` or `on …` in their headings are of the placement that ranks.
pub(crate) fn table(ranking: &Ranking, interrupted: bool) -> Table {
    let mut table = Table::default();
    let mut add = |column: Column, cell: &dyn Fn(&RankedRow) -> Option<String>| {
        table.add(column, ranking.rows.iter().map(cell));
    };
    let (left, right) = (|title: &str| Column::left(title), |title: &str| Column::right(title));
    // If only the pipe has a value, 1.0, the column is left out.
    let times_pipe = |row: &RankedRow| row.times_pipe.filter(|_| ranking.against_pipe).map(numbers::ratio);
    let streams = Figures::new(ranking, Workload::Stream);
    let trips = Figures::new(ranking, Workload::PingPong);
    let round_trip = || trips.heading("round trip").short(trips.heading("trip").title);
    let [one, two]: [fn(TrialsByCpus) -> Option<TrialGroup>; 2] =
        [|by_cpus| by_cpus.one_cpu, |by_cpus| by_cpus.two_cpus];
    add(left("mechanism").fit(Fit::Spec), &|row| Some(row.label.clone()));
    if ranking.rows.iter().any(|row| row.stream().is_some()) {
        add(streams.heading("throughput").short(&streams.unit.1), &|row| streams.cell(row, false));
        add(Column::picture().drop(13), &|row| bar(row, ranking));
        add(right("binary").drop(16), &|row| {
            Some(numbers::throughput_binary(row.throughput()?.median_bytes_per_s))
        });
        add(right("on one CPU").drop(7), &|row| streams.on_cpus(row, one));
        add(right("on two").drop(7), &|row| streams.on_cpus(row, two));
        add(right("pinned").drop(4), &|row| streams.cell(row, true));
        if ranking.pinned.is_some() {
            add(left("bound by").drop(8), &|row| bound(row.case(Workload::Stream, true)?));
        }
        add(right("× pipe").drop(6), &times_pipe);
        add(round_trip().drop(1), &|row| trips.cell(row, false));
        add(right("p99").drop(10), &|row| tail::cell(row.latency(), Tail::P99));
        add(right("trip on one CPU").drop(12), &|row| trips.on_cpus(row, one));
        add(right("trip on two").drop(12), &|row| trips.on_cpus(row, two));
        add(right("trip pinned").short("pinned").drop(5), &|row| trips.cell(row, true));
        // CPU time is shown wherever time is: both together decide which mechanism is recommended.
        add(right("CPU/block").drop(2), &|row| cpu_per_block_ns(row.stream()?).map(numbers::time));
        add(right("CPU/trip").drop(3), &|row| cpu_per_block_ns(row.round_trip()?).map(numbers::time));
        add(right("per block").drop(15), &|row| {
            figure::median_of(row.stream()?, figure::elapsed_per_block_ns).map(numbers::time)
        });
        if ranking.pinned.is_none() {
            add(left("bound by").drop(8), &|row| bound(row.stream()?));
        }
        add(right("retransmits").drop(9), &|row| retransmits(row.stream()?));
        add(left("granted").drop(14), &|row| granted::with_request(row.stream()?));
    } else {
        add(round_trip(), &|row| trips.cell(row, false));
        add(right("on one CPU").drop(5), &|row| trips.on_cpus(row, one));
        add(right("on two").drop(5), &|row| trips.on_cpus(row, two));
        add(right("pinned").drop(3), &|row| trips.cell(row, true));
        add(right("× pipe").drop(4), &times_pipe);
        add(right("p90").drop(8), &|row| tail::cell(row.latency(), Tail::P90));
        add(right("p99").drop(1), &|row| tail::cell(row.latency(), Tail::P99));
        add(right("p99.9").drop(7), &|row| tail::cell(row.latency(), Tail::P999));
        add(right("max").drop(9), &|row| Some(numbers::time(row.latency()?.max as f64)));
        add(right("CPU/trip").drop(2), &|row| cpu_per_block_ns(row.round_trip()?).map(numbers::time));
        add(right("retransmits").drop(7), &|row| retransmits(row.round_trip()?));
        add(left("granted").drop(10), &|row| granted::with_request(row.round_trip()?));
    }
    for (row, ranked) in table.rows.iter_mut().zip(&ranking.rows) {
        row.reasons = reasons(ranked, interrupted);
    }
    let has_figure = |row: &&RankedRow| row.cases().any(|case| estimated(case).is_some());
    table.embolden((ranking.rows.iter().filter(has_figure).count() > 1).then_some(0));
    table
}

/// The figures of a workload in a ranking, with their intervals and in one unit.
struct Figures {
    workload: Workload,
    /// What values are divided by, and the unit's name; empty if there are no figures.
    unit: (f64, String),
}

impl Figures {
    fn new(ranking: &Ranking, workload: Workload) -> Self {
        let texts =
            |row| [false, true].into_iter().filter_map(move |pinned| figure_of(row, workload, pinned));
        Self { workload, unit: common_unit(ranking.rows.iter().flat_map(texts)).unwrap_or_default() }
    }

    /// A heading that names the unit.
    fn heading(&self, title: &str) -> Column {
        let unit = &self.unit.1;
        Column::right(if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") })
    }

    fn cell(&self, row: &RankedRow, pinned: bool) -> Option<String> {
        Some(figure_of(row, self.workload, pinned)?.in_unit(&self.unit))
    }

    /// The figure of the trials on one CPU, or of those on two.
    fn on_cpus(&self, row: &RankedRow, group: fn(TrialsByCpus) -> Option<TrialGroup>) -> Option<String> {
        Some(group_text(group(row.by_cpus(self.workload)?)?, self.workload))
    }
}

fn figure_of(row: &RankedRow, workload: Workload, pinned: bool) -> Option<FigureText> {
    FigureText::new(row.case(workload, pinned)?, if pinned { None } else { row.by_cpus(workload) })
}

fn bar(row: &RankedRow, ranking: &Ranking) -> Option<String> {
    let speed = |row: &RankedRow| Some(row.throughput()?.median_bytes_per_s);
    // The rows are ranked. One bar alone compares nothing.
    let (best, _) = (speed(ranking.rows.first()?)?, speed(ranking.rows.get(1)?)?);
    speed(row).map(|speed| layout::bar(speed / best, BAR_COLUMNS))
}

fn bound(case: &CaseRecord) -> Option<String> {
    Some(bound_of(case)?.to_string())
}

/// The median of some trials and their number: "4.90 GB/s ×7".
pub(crate) fn group_text(group: TrialGroup, workload: Workload) -> String {
    format!("{} ×{}", quantity(workload).unit.text(group.median), group.trials)
}

/// Segments that the sender sent again in the median trial, on the way to another host.
fn retransmits(case: &CaseRecord) -> Option<String> {
    figure::median_of(case, |sample| Some(sample.retransmits? as f64)).map(numbers::amount)
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
