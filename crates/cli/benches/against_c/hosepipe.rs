//! Our side: the hosepipe binary that cargo has just built, run as a user would, its record read back.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use model::{BenchRecord, CaseRecord, Sample, Spec, Workload};
use serde::de::DeserializeOwned;

use crate::target::skip;

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hosepipe");

/// `hosepipe bench` with the given words, as a command that is still to be started.
pub(crate) fn bench_command(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("bench").args(arguments.split_whitespace()).args(["--json", "-"]);
    command
}

/// Runs `hosepipe bench` with the given words, and reads the record it prints.
///
/// # Errors
/// As [`record`].
pub(crate) fn bench(arguments: &str) -> Result<BenchRecord> {
    record(bench_command(arguments))
}

/// Runs a hosepipe, and reads the record it prints.
///
/// # Errors
/// It does not start, or prints no record; its standard error is quoted.
pub(crate) fn record<R: DeserializeOwned>(mut command: Command) -> Result<R> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("{command:?} does not start"))?;
    // A failed case makes the exit status 1, and is in the record with its reason: therefore the record is read first.
    serde_json::from_slice(&output.stdout).with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{command:?} ({}) printed no record: {}", output.status, said.trim())
    })
}

/// The case of a spec in a record (or of a mechanism, whatever its options), with at least one sample.
///
/// # Errors
/// [`Skipped`](crate::target::Skipped) where this machine cannot do it (one CPU, a mechanism missing); otherwise what went wrong.
pub(crate) fn case<'r>(record: &'r BenchRecord, wanted: &str, workload: Workload) -> Result<&'r CaseRecord> {
    let spec = wanted.parse::<Spec>()?;
    let is_wanted = |case: &&CaseRecord| {
        spec.options.is_empty() && case.mechanism == spec.mechanism && case.workload == workload
    };
    let asked = record.head.arguments.join(" ");
    let exact = record.cases.iter().find(|case| case.spec == spec && case.workload == workload);
    let found = exact.or_else(|| record.cases.iter().find(is_wanted));
    let case = found.with_context(|| format!("`hosepipe {asked}` has no case {wanted} {workload}"))?;
    with_samples(case, &format!("`hosepipe {asked}`: {wanted} {workload}"))
}

/// The case, which must have a sample; `what` names it in errors.
///
/// # Errors
/// As [`case`].
pub(crate) fn with_samples<'r>(case: &'r CaseRecord, what: &str) -> Result<&'r CaseRecord> {
    match &case.error {
        Some(error) if error.expected => return skip(error.message.clone()),
        Some(error) => bail!("{what}: {}", error.message),
        None => {}
    }
    ensure!(!case.samples.is_empty(), "{what} has no samples");
    Ok(case)
}

/// The CPUs of a case: the sender's, then the receiver's.
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
