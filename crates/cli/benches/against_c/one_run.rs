//! Two cases of one `hosepipe bench`, compared round by round.

use anyhow::{Result, ensure};
use model::{Sample, Workload};

use crate::hosepipe::{self, bytes_per_s, ns_per_message};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::Laboratory;

/// What is compared of two cases of one run.
pub(crate) struct Comparison {
    workload: Workload,
    unit: Unit,
    figure: fn(&Sample) -> f64,
    wanted: Wanted,
}

pub(crate) fn throughput(wanted: Wanted) -> Comparison {
    Comparison { workload: Workload::Stream, unit: Unit::BytesPerSecond, figure: bytes_per_s, wanted }
}

pub(crate) fn round_trip(wanted: Wanted) -> Comparison {
    Comparison { workload: Workload::PingPong, unit: Unit::Nanoseconds, figure: ns_per_message, wanted }
}

/// Runs both specs in one `hosepipe bench`, which interleaves their trials and numbers the rounds.
pub(crate) fn one_run(
    name: &str,
    lab: &Laboratory,
    specs: [&str; 2],
    options: &str,
    compared: Comparison,
) -> Result<Vec<BenchRow>> {
    let Comparison { workload, unit, figure, wanted } = compared;
    let [ours, reference] = specs;
    // Without being asked for, memcpy is in every record, as the ceiling.
    let asked = if reference == "memcpy" { ours.to_owned() } else { specs.join(" ") };
    let record = hosepipe::bench(&format!(
        "{asked} --workload {workload} --place cross --trials {} {options}",
        lab.rounds_or(11)
    ))?;
    let ours = hosepipe::case(&record, ours, workload)?;
    let reference = hosepipe::case(&record, reference, workload)?;
    let partner = |round| reference.samples.iter().find(|sample| sample.round == round);
    let pairs =
        ours.samples.iter().filter_map(|sample| Some((figure(sample), figure(partner(sample.round)?))));
    let (ours, reference): (Vec<f64>, Vec<f64>) = pairs.unzip();
    ensure!(!ours.is_empty(), "the two have no round in common");
    Ok(vec![BenchRow { name: name.to_owned(), unit, ours, reference, wanted }])
}
