//! The columns of a ranked list: one entry each, with how much it matters when there is little room.

use model::CaseRecord;
use stats::{Group, bound_of, estimate, figure};

use crate::granted;
use crate::layout;
use crate::noise;
use crate::numbers;
use crate::view::{Row, Section};

/// What stands for a figure that is not there.
pub const ABSENT: &str = "–";
/// Width of the longest bar.
const BAR_COLUMNS: usize = 12;

/// On which side a column is flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// One column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// The title where room is short.
    pub(crate) short: &'static str,
    pub(crate) align: Align,
    /// The higher, the sooner it is left out; 0 always stays.
    pub(crate) drop: u8,
    /// True for a picture of a figure that stands beside it; only terminals show it.
    pub(crate) picture: bool,
    pub(crate) cell: fn(&Row, &Section) -> Option<String>,
}

const fn column(title: &'static str, drop: u8, cell: fn(&Row, &Section) -> Option<String>) -> Column {
    Column { title, short: title, align: Align::Right, drop, picture: false, cell }
}

/// The columns of a section with streams. Figures without another word are those of the placement that ranks.
const STREAM: &[Column] = &[
    column("throughput", 0, |row, _| marked_speed(row.stream?)),
    Column { align: Align::Left, picture: true, ..column("", 13, bar) },
    column("binary", 16, |row, _| Some(numbers::throughput_binary(row.throughput()?.median_bytes_per_s))),
    column("±95 %", 9, |row, section| spread_of_stream(row.stream?).filter(|_| !section.few_trials)),
    column("± range", 9, |row, section| spread_of_stream(row.stream?).filter(|_| section.few_trials)),
    column("on one CPU", 7, |row, _| Some(group(row.stream_seats()?.one_cpu?, numbers::throughput))),
    column("on two", 7, |row, _| Some(group(row.stream_seats()?.two_cpus?, numbers::throughput))),
    column("pinned", 2, |row, _| marked_speed(row.pinned_stream?)),
    Column { align: Align::Left, ..column("bound by", 8, |row, _| bound(row.pinned_stream?)) },
    column("× pipe", 6, times_pipe),
    Column { short: "round trip", ..column("round trip p50", 1, |row, _| marked_p50(row.round_trip?)) },
    column("p99", 10, |row, _| p99(row.round_trip?)),
    column("trip on one CPU", 12, |row, _| Some(group(row.trip_seats()?.one_cpu?, numbers::time))),
    column("trip on two", 12, |row, _| Some(group(row.trip_seats()?.two_cpus?, numbers::time))),
    Column { short: "pinned", ..column("trip pinned", 3, |row, _| marked_p50(row.pinned_round_trip?)) },
    Column { short: "CPU/block", ..column("CPU per block", 4, |row, _| cpu_per_block(row.stream?)) },
    Column { short: "CPU/trip", ..column("CPU per trip", 5, |row, _| cpu_per_block(row.round_trip?)) },
    column("per block", 15, |row, _| elapsed_per_block(row.stream?)),
    Column {
        align: Align::Left,
        ..column("bound by", 8, |row, section| bound(row.stream?).filter(|_| section.pinned.is_none()))
    },
    Column { align: Align::Left, ..column("granted", 14, |row, _| granted_text(row.stream?)) },
];

/// The columns of a section that has round trips only.
const ROUND_TRIPS: &[Column] = &[
    Column { short: "round trip", ..column("round trip p50", 0, |row, _| marked_p50(row.round_trip?)) },
    column("±95 %", 3, |row, section| spread_of_trips(row.round_trip?).filter(|_| !section.few_trials)),
    column("± range", 3, |row, section| spread_of_trips(row.round_trip?).filter(|_| section.few_trials)),
    column("on one CPU", 5, |row, _| Some(group(row.trip_seats()?.one_cpu?, numbers::time))),
    column("on two", 5, |row, _| Some(group(row.trip_seats()?.two_cpus?, numbers::time))),
    column("pinned", 2, |row, _| marked_p50(row.pinned_round_trip?)),
    column("× pipe", 4, times_pipe),
    column("p90", 8, |row, _| Some(numbers::time(row.latency()?.p90 as f64))),
    column("p99", 1, |row, _| p99(row.round_trip?)),
    column("p99.9", 7, |row, _| Some(numbers::time(row.latency()?.p999 as f64))),
    column("max", 9, |row, _| Some(numbers::time(row.latency()?.max as f64))),
    Column { short: "CPU/trip", ..column("CPU per trip", 6, |row, _| cpu_per_block(row.round_trip?)) },
    Column { align: Align::Left, ..column("granted", 10, |row, _| granted_text(row.round_trip?)) },
];

/// The columns that have something to say in a section, in their order on the page.
pub(crate) fn columns(section: &Section) -> Vec<&'static Column> {
    let all = if section.rows.iter().any(|row| row.stream.is_some()) { STREAM } else { ROUND_TRIPS };
    let speaks = |column: &&Column| section.rows.iter().any(|row| (column.cell)(row, section).is_some());
    all.iter().filter(|column| column.drop == 0 || speaks(column)).collect()
}

/// The mark beside a figure that should not be trusted to its last digit.
pub fn noise_mark(case: &CaseRecord) -> &'static str {
    noise::mark(case.noise)
}

fn bar(row: &Row, section: &Section) -> Option<String> {
    let speed = |row: &Row| row.throughput().map(|throughput| throughput.median_bytes_per_s);
    // The rows are ranked. One bar alone compares nothing.
    let (best, _) = (speed(section.rows.first()?)?, speed(section.rows.get(1)?)?);
    speed(row).map(|speed| layout::bar(speed / best, BAR_COLUMNS))
}

/// With nothing but the pipe itself the column would hold a lone 1.0.
fn times_pipe(row: &Row, section: &Section) -> Option<String> {
    row.times_pipe.filter(|_| section.against_pipe).map(numbers::ratio)
}

fn marked_p50(case: &CaseRecord) -> Option<String> {
    Some(format!("{}{}", numbers::time(case.latency_ns.as_ref()?.p50 as f64), noise_mark(case)))
}

fn p99(case: &CaseRecord) -> Option<String> {
    Some(numbers::time(case.latency_ns.as_ref()?.p99 as f64))
}

/// The median of a stream, marked where it is noisy.
pub(crate) fn marked_speed(case: &CaseRecord) -> Option<String> {
    let speed = numbers::throughput(case.throughput.as_ref()?.median_bytes_per_s);
    Some(format!("{speed}{}", noise_mark(case)))
}

fn bound(case: &CaseRecord) -> Option<String> {
    Some(bound_of(case)?.to_string())
}

/// The median of some trials and how many they are: "4.90 GB/s ×7".
pub(crate) fn group(group: Group, text: fn(f64) -> String) -> String {
    format!("{} ×{}", text(group.median), group.trials)
}

/// The longer arm of a stream's interval, as a share of its median.
pub(crate) fn spread_of_stream(case: &CaseRecord) -> Option<String> {
    let throughput = case.throughput.as_ref()?;
    spread(case, throughput.median_bytes_per_s, throughput.low, throughput.high)
}

fn spread_of_trips(case: &CaseRecord) -> Option<String> {
    let latency = case.latency_ns.as_ref()?;
    spread(case, latency.p50 as f64, latency.p50_low as f64, latency.p50_high as f64)
}

fn spread(case: &CaseRecord, point: f64, low: f64, high: f64) -> Option<String> {
    let share = estimate::relative_half_width(point, low, high).filter(|_| case.samples.len() > 1)?;
    Some(numbers::percent(share))
}

fn elapsed_per_block(case: &CaseRecord) -> Option<String> {
    figure::median_of(case, figure::elapsed_per_block_ns).map(numbers::time)
}

fn cpu_per_block(case: &CaseRecord) -> Option<String> {
    figure::median_of(case, figure::cpu_per_block_ns).map(numbers::time)
}

fn granted_text(case: &CaseRecord) -> Option<String> {
    let sizes = granted::text(case);
    let asked = granted::asked_otherwise(case).map(|size| format!(" (asked {size})"));
    (!sizes.is_empty()).then(|| format!("{sizes}{}", asked.unwrap_or_default()))
}
