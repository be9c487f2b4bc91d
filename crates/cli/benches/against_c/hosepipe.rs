//! Our side: the hosepipe binary that cargo has just built, run as a user would, its record read back.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use model::{BenchRecord, CaseRecord, Sample, Spec, Workload};

use crate::target::Skipped;

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hosepipe");

/// `hosepipe bench` with the given words, as a command that is still to be started.
pub(crate) fn bench_command(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("bench").args(arguments.split_whitespace()).args(["--json", "-"]).stdin(Stdio::null());
    command
}

/// Runs `hosepipe bench` with the given words, and reads the record it prints.
///
/// # Errors
/// The binary does not start, or prints no record; its standard error is quoted.
pub(crate) fn bench(arguments: &str) -> Result<BenchRecord> {
    let output = bench_command(arguments).output().with_context(|| format!("{PROGRAM} does not start"))?;
    // A failed case makes the exit status 1, and stands in the record with its reason: so the record comes first.
    serde_json::from_slice(&output.stdout).with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("`hosepipe bench {arguments}` ({}) printed no record: {}", output.status, said.trim())
    })
}

/// The case of a spec in a record (or of a mechanism, whatever its options), with at least one sample.
///
/// # Errors
/// [`Skipped`] where this machine cannot do it (one CPU, a mechanism missing); otherwise what went wrong.
pub(crate) fn case<'r>(record: &'r BenchRecord, wanted: &str, workload: Workload) -> Result<&'r CaseRecord> {
    let spec = wanted.parse::<Spec>()?;
    let is_wanted = |case: &&CaseRecord| {
        spec.options.is_empty() && case.mechanism == spec.mechanism && case.workload == workload
    };
    let asked = record.head.arguments.join(" ");
    let exact = record.cases.iter().find(|case| case.spec == spec && case.workload == workload);
    let found = exact.or_else(|| record.cases.iter().find(is_wanted));
    let case = found.with_context(|| format!("`hosepipe {asked}` has no case {wanted} {workload}"))?;
    match &case.error {
        Some(error) if error.expected => return Err(Skipped(error.message.clone()).into()),
        Some(error) => bail!("`hosepipe {asked}`: {wanted} {workload}: {}", error.message),
        None => {}
    }
    ensure!(!case.samples.is_empty(), "`hosepipe {asked}`: {wanted} {workload} has no samples");
    Ok(case)
}

/// The CPUs a case sat on: the sender's, then the receiver's.
pub(crate) fn cpus(case: &CaseRecord) -> Result<[u32; 2]> {
    let pair = <[u32; 2]>::try_from(case.cpus.as_slice()).ok();
    pair.with_context(|| format!("{} does not say on which two CPUs it ran: {:?}", case.mechanism, case.cpus))
}

/// Bytes per second of one trial.
pub(crate) fn bytes_per_s(sample: &Sample) -> f64 {
    sample.bytes as f64 * 1e9 / sample.elapsed_ns as f64
}

/// Nanoseconds per block, or per round trip.
pub(crate) fn ns_per_message(sample: &Sample) -> f64 {
    sample.elapsed_ns as f64 / sample.messages as f64
}
