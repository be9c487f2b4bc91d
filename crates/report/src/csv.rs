//! CSV: one row for each case with its summary, for spreadsheets and data frames. Raw figures in base units,
//! empty where there is none; the raw samples are in the JSON.

use model::{BenchRecord, CaseRecord, Ratio};
use stats::{bound_of, figure};

use crate::against_pipe::Pipes;
use crate::format::{Format, FormatError};

/// The registry entry.
pub const FORMAT: Format =
    Format { name: "CSV", flag: "csv", summary: "one row per case with its summary", render };

/// A column: its name, and its value in a case that is so many times as fast as the pipe.
type Column = (&'static str, fn(Option<Ratio>, &CaseRecord) -> Option<String>);

const COLUMNS: &[Column] = &[
    ("mechanism", |_, case| Some(case.mechanism.clone())),
    ("spec", |_, case| Some(case.spec.to_string())),
    ("role", |_, case| word(&case.role)),
    ("writer", |_, case| Some(case.worker.as_ref()?.writer.label())),
    ("reader", |_, case| Some(case.worker.as_ref()?.reader.label())),
    ("workload", |_, case| Some(case.workload.to_string())),
    ("tasks", |_, case| Some(case.tasks.to_string())),
    ("placement", |_, case| Some(case.placement.to_string())),
    ("cpus", |_, case| Some(case.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))),
    ("wait", |_, case| Some(case.wait.to_string())),
    ("data", |_, case| Some(case.data.to_string())),
    ("check", |_, case| case.check.map(|check| check.to_string())),
    ("payload", |_, case| Some(case.payload.to_string())),
    ("block_bytes", |_, case| Some(case.block_bytes.to_string())),
    ("granted", |_, case| Some(granted(case))),
    ("samples", |_, case| Some(case.samples.len().to_string())),
    ("throughput_median_bytes_per_s", |_, case| Some(whole(case.throughput.as_ref()?.median_bytes_per_s))),
    ("throughput_low_bytes_per_s", |_, case| Some(whole(case.throughput.as_ref()?.low))),
    ("throughput_high_bytes_per_s", |_, case| Some(whole(case.throughput.as_ref()?.high))),
    ("throughput_mean_bytes_per_s", |_, case| Some(whole(case.throughput.as_ref()?.mean))),
    ("throughput_stddev_bytes_per_s", |_, case| Some(whole(case.throughput.as_ref()?.stddev))),
    ("round_trip_p50_ns", |_, case| Some(case.latency_ns.as_ref()?.p50.to_string())),
    ("round_trip_p50_low_ns", |_, case| Some(case.latency_ns.as_ref()?.p50_low.to_string())),
    ("round_trip_p50_high_ns", |_, case| Some(case.latency_ns.as_ref()?.p50_high.to_string())),
    ("round_trip_p90_ns", |_, case| Some(case.latency_ns.as_ref()?.p90.to_string())),
    ("round_trip_p99_ns", |_, case| Some(case.latency_ns.as_ref()?.p99.to_string())),
    ("round_trip_p999_ns", |_, case| Some(case.latency_ns.as_ref()?.p999.to_string())),
    ("round_trip_max_ns", |_, case| Some(case.latency_ns.as_ref()?.max.to_string())),
    ("round_trips", |_, case| Some(case.latency_ns.as_ref()?.count.to_string())),
    ("times_pipe", |times_pipe, _| Some(digits(times_pipe?.median))),
    ("times_pipe_low", |times_pipe, _| Some(digits(times_pipe?.low))),
    ("times_pipe_high", |times_pipe, _| Some(digits(times_pipe?.high))),
    ("elapsed_per_block_ns", |_, case| median(case, figure::elapsed_per_block_ns)),
    ("cpu_per_block_ns", |_, case| median(between_the_clocks(case)?, figure::cpu_per_block_ns)),
    ("syscalls_per_block", |_, case| median(case, figure::syscalls_per_block)),
    ("syscalls_per_mib", |_, case| Some(digits(case.worker.as_ref()?.system_calls.as_ref()?.per_mib))),
    ("set_up_ns", |_, case| median(case, |sample| Some(sample.setup_ns as f64))),
    ("voluntary_switches_per_block", |_, case| {
        median(between_the_clocks(case)?, figure::voluntary_switches_per_block)
    }),
    ("bound_by", |_, case| bound_of(between_the_clocks(case)?).map(|bound| bound.to_string())),
    ("noise", |_, case| word(&case.noise?)),
    ("outliers", |_, case| Some(case.outliers.to_string())),
    ("error_kind", |_, case| word(&case.error.as_ref()?.kind)),
    ("error", |_, case| Some(case.error.as_ref()?.message.clone())),
    ("remedy", |_, case| case.error.as_ref()?.remedy.clone()),
];

fn render(record: &BenchRecord) -> Result<String, FormatError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let refused = |error: ::csv::Error| FormatError::Csv(error.to_string());
    writer.write_record(COLUMNS.iter().map(|(name, _)| *name)).map_err(refused)?;
    let pipes = Pipes::of(record);
    for case in &record.cases {
        let times_pipe = pipes.against(case);
        let cells = COLUMNS.iter().map(|(_, value)| value(times_pipe, case).unwrap_or_default());
        writer.write_record(cells).map_err(refused)?;
    }
    let bytes = writer.into_inner().map_err(|error| FormatError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| FormatError::Csv(error.to_string()))
}

/// The word that stands for a value in records.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// `name=bytes` pairs with blanks between them.
fn granted(case: &CaseRecord) -> String {
    case.granted.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// A case whose CPU time and switches are those of its blocks alone: workers' are of whole processes, start-up and warm-up
/// included.
fn between_the_clocks(case: &CaseRecord) -> Option<&CaseRecord> {
    case.worker.is_none().then_some(case)
}

fn median(case: &CaseRecord, of: impl Fn(&model::Sample) -> Option<f64>) -> Option<String> {
    figure::median_of(case, of).map(digits)
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Digits enough for any of these figures, and never `1e-7`.
fn digits(value: f64) -> String {
    format!("{value:.4}")
}
