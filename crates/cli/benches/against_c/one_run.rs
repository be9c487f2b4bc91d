//! Two cases of one `hosepipe bench`, compared round by round.

use anyhow::{Result, ensure};
use model::{Sample, Workload};

use crate::hosepipe::{self, bytes_per_s, ns_per_message};
use crate::table::{BenchRow, Unit, Wanted};
use crate::target::Laboratory;

/// Runs both specs in one `hosepipe bench`, which interleaves their trials and numbers the rounds. Compares the throughput of streams, or the
/// time of round trips.
pub(crate) fn one_run(
    name: &str,
    lab: &Laboratory,
    specs: [&str; 2],
    options: &str,
    workload: Workload,
    wanted: Wanted,
) -> Result<BenchRow> {
    let (unit, figure): (_, fn(&Sample) -> f64) = match workload {
        Workload::Stream => (Unit::BytesPerSecond, bytes_per_s),
        Workload::PingPong => (Unit::Nanoseconds, ns_per_message),
    };
    let [ours, reference] = specs;
    // Without being asked for, memcpy is in every record, as the ceiling.
    let asked = if reference == "memcpy" { ours.to_owned() } else { specs.join(" ") };
    let rounds = lab.rounds_or(11);
    let record =
        hosepipe::bench(&format!("{asked} --workload {workload} --place cross --trials {rounds} {options}"))?;
    let ours = hosepipe::case(&record, ours, workload)?;
    let reference = hosepipe::case(&record, reference, workload)?;
    let partner = |round| reference.samples.iter().find(|sample| sample.round == round);
    let pairs =
        ours.samples.iter().filter_map(|sample| Some((figure(sample), figure(partner(sample.round)?))));
    let (ours, reference): (Vec<f64>, Vec<f64>) = pairs.unzip();
    ensure!(!ours.is_empty(), "the two have no round in common");
    Ok(BenchRow::beside(name, unit, [ours, reference], wanted))
}
