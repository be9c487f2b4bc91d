//! The ranked list of a ranking as a table: its columns, and how much each matters when there is little room.

use model::{CaseRecord, Workload};
use stats::{TrialGroup, bound_of};

use crate::case_figure::{FigureText, common_unit};
use crate::layout::{self, Tone};
use crate::reason::reasons;
use crate::table::{Column, Fit, Table};
use crate::view::{RankedRow, Ranking};
use crate::{granted, numbers};

/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;

/// The list, the best row first. Figures without another word are those of the placement that ranks.
pub(crate) fn table(ranking: &Ranking, interrupted: bool) -> Table {
    let mut table = Table::default();
    let mut add = |column: Column, cell: &dyn Fn(&RankedRow) -> Option<String>| {
        table.add(column, ranking.rows.iter().map(cell));
    };
    let (left, right) = (|title: &str| Column::left(title), |title: &str| Column::right(title));
    // With nothing but the pipe itself the column would hold a lone 1.0.
    let times_pipe = |row: &RankedRow| row.times_pipe.filter(|_| ranking.against_pipe).map(numbers::ratio);
    let streams = Figures::new(ranking, Workload::Stream);
    let trips = Figures::new(ranking, Workload::PingPong);
    let round_trip = || trips.heading("round trip").short(trips.heading("trip").title);
    add(left("mechanism").fit(Fit::Spec), &|row| Some(row.label.clone()));
    if ranking.rows.iter().any(|row| row.stream.is_some()) {
        add(streams.heading("throughput").short(&streams.unit.1), &|row| streams.cell(row, false));
        add(Column::picture().drop(13), &|row| bar(row, ranking));
        add(right("binary").drop(16), &|row| {
            Some(numbers::throughput_binary(row.throughput()?.median_bytes_per_s))
        });
        add(right("on one CPU").drop(7), &|row| {
            Some(group(row.stream_seats()?.one_cpu?, numbers::throughput))
        });
        add(right("on two").drop(7), &|row| Some(group(row.stream_seats()?.two_cpus?, numbers::throughput)));
        add(right("pinned").drop(4), &|row| streams.cell(row, true));
        if ranking.pinned.is_some() {
            add(left("bound by").drop(8), &|row| bound(row.pinned_stream?));
        }
        add(right("× pipe").drop(6), &times_pipe);
        add(round_trip().drop(1), &|row| trips.cell(row, false));
        add(right("p99").drop(10), &|row| Some(numbers::time(row.latency()?.p99 as f64)));
        add(right("trip on one CPU").drop(12), &|row| Some(group(row.trip_seats()?.one_cpu?, numbers::time)));
        add(right("trip on two").drop(12), &|row| Some(group(row.trip_seats()?.two_cpus?, numbers::time)));
        add(right("trip pinned").short("pinned").drop(5), &|row| trips.cell(row, true));
        // What to take is decided by time and CPU: the one is not shown without the other.
        add(right("CPU/block").drop(2), &|row| cpu_per_block(row.stream?));
        add(right("CPU/trip").drop(3), &|row| cpu_per_block(row.round_trip?));
        add(right("per block").drop(15), &|row| elapsed_per_block(row.stream?));
        if ranking.pinned.is_none() {
            add(left("bound by").drop(8), &|row| bound(row.stream?));
        }
        add(right("retransmits").drop(9), &|row| retransmits(row.stream?));
        add(left("granted").drop(14), &|row| granted_text(row.stream?));
    } else {
        add(round_trip(), &|row| trips.cell(row, false));
        add(right("on one CPU").drop(5), &|row| Some(group(row.trip_seats()?.one_cpu?, numbers::time)));
        add(right("on two").drop(5), &|row| Some(group(row.trip_seats()?.two_cpus?, numbers::time)));
        add(right("pinned").drop(3), &|row| trips.cell(row, true));
        add(right("× pipe").drop(4), &times_pipe);
        add(right("p90").drop(8), &|row| Some(numbers::time(row.latency()?.p90 as f64)));
        add(right("p99").drop(1), &|row| Some(numbers::time(row.latency()?.p99 as f64)));
        add(right("p99.9").drop(7), &|row| Some(numbers::time(row.latency()?.p999 as f64)));
        add(right("max").drop(9), &|row| Some(numbers::time(row.latency()?.max as f64)));
        add(right("CPU/trip").drop(2), &|row| cpu_per_block(row.round_trip?));
        add(right("retransmits").drop(7), &|row| retransmits(row.round_trip?));
        add(left("granted").drop(10), &|row| granted_text(row.round_trip?));
    }
    for (row, of) in table.rows.iter_mut().zip(&ranking.rows) {
        row.reasons = reasons(of, interrupted);
    }
    let many = ranking.rows.iter().filter(|row| row.has_figures()).count() > 1;
    if let Some(best) = table.rows.first_mut().filter(|_| many) {
        best.tone = Tone::Bold;
    }
    table
}

/// The figures of a workload in a list, with their intervals and in one unit.
struct Figures {
    workload: Workload,
    /// What values are divided by, and the unit's name; empty where there are no figures.
    unit: (f64, String),
}

impl Figures {
    fn new(ranking: &Ranking, workload: Workload) -> Self {
        let texts = |row| [false, true].into_iter().filter_map(move |pinned| figure(row, workload, pinned));
        Self { workload, unit: common_unit(ranking.rows.iter().flat_map(texts)).unwrap_or_default() }
    }

    /// A heading that names the unit.
    fn heading(&self, title: &str) -> Column {
        let unit = &self.unit.1;
        Column::right(if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") })
    }

    fn cell(&self, row: &RankedRow, pinned: bool) -> Option<String> {
        Some(figure(row, self.workload, pinned)?.in_unit(&self.unit))
    }
}

fn figure(row: &RankedRow, workload: Workload, pinned: bool) -> Option<FigureText> {
    FigureText::new(row.case(workload, pinned)?, if pinned { None } else { row.seats(workload) })
}

fn bar(row: &RankedRow, ranking: &Ranking) -> Option<String> {
    let speed = |row: &RankedRow| row.throughput().map(|throughput| throughput.median_bytes_per_s);
    // The rows are ranked. One bar alone compares nothing.
    let (best, _) = (speed(ranking.rows.first()?)?, speed(ranking.rows.get(1)?)?);
    speed(row).map(|speed| layout::bar(speed / best, BAR_COLUMNS))
}

fn bound(case: &CaseRecord) -> Option<String> {
    Some(bound_of(case)?.to_string())
}

/// The median of some trials and how many they are: "4.90 GB/s ×7".
pub(crate) fn group(group: TrialGroup, text: fn(f64) -> String) -> String {
    format!("{} ×{}", text(group.median), group.trials)
}

fn elapsed_per_block(case: &CaseRecord) -> Option<String> {
    stats::figure::median_of(case, stats::figure::elapsed_per_block_ns).map(numbers::time)
}

fn cpu_per_block(case: &CaseRecord) -> Option<String> {
    crate::verdict::cpu_per_block_ns(case).map(numbers::time)
}

/// What the sender sent again in the median trial, on the way to another host; 0 where that is nothing.
fn retransmits(case: &CaseRecord) -> Option<String> {
    stats::figure::median_of(case, |sample| Some(sample.retransmits? as f64)).map(numbers::amount)
}

fn granted_text(case: &CaseRecord) -> Option<String> {
    let sizes = granted::text(case);
    let asked = granted::asked_otherwise(case).map(|size| format!(" (asked {size})"));
    (!sizes.is_empty()).then(|| format!("{sizes}{}", asked.unwrap_or_default()))
}
