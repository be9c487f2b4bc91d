//! `hosepipe sink`: reads standard input to its end, and checks every byte with --verify.

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Args;
use filter::{SinkJob, SinkReport, Verify, sink};
use model::{ByteSize, PayloadKind};
use payload::Mismatch;

use crate::destination::{Destination, OUTPUTS};
use crate::{terminal, typed};

/// Least number of right bytes at the beginning of a damaged stream: with fewer, the payload is reported as unknown.
const RECOGNISED_BYTES: u64 = 64;

/// Read standard input to its end, and check every byte with --verify
#[derive(Debug, Args)]
#[command(after_help = include_str!("help/sink.txt"))]
pub(crate) struct SinkArgs {
    /// Check every byte against the payload of `hosepipe gen`
    #[arg(long)]
    verify: bool,

    /// The expected bytes: sequence, printable, random, zero, or file:PATH [default: any of them except file:PATH]
    #[arg(long, value_name = "PAYLOAD", requires = "verify", value_parser = typed::payload())]
    payload: Option<PayloadKind>,

    /// Seed of the printable or random payload
    #[arg(long, value_name = "N", default_value_t = 1, requires = "verify", value_parser = typed::seed)]
    seed: u64,

    /// Expected number of bytes: exit status 1 if it is less or more
    #[arg(long, value_name = "SIZE")]
    bytes: Option<ByteSize>,

    /// Write the number of bytes, their check and the rate as JSON to this file (- is standard output)
    #[arg(long, value_name = "F", help_heading = OUTPUTS, value_parser = Destination::parser())]
    json: Option<Destination>,
}

/// Reads to the end, and prints a summary to standard error.
pub(crate) fn run(args: SinkArgs) -> anyhow::Result<ExitCode> {
    let named = args.payload.is_some();
    let verify = args.verify.then_some(Verify { payload: args.payload, seed: args.seed });
    let job = SinkJob { verify, bytes: args.bytes.map(|size| size.0) };
    let report = sink(&job, io::stdin().as_fd())?;
    if let Some(json) = &args.json {
        json.write(&report::json::to_text(&report)?)?;
    }
    let wrong = match report.mismatch {
        Some(mismatch) => describe_mismatch(&report, mismatch, named, args.seed),
        None if report.is_complete() => {
            terminal::remark(&summary(&report));
            return Ok(ExitCode::SUCCESS);
        }
        None => describe_amount(&report),
    };
    terminal::remark(&format!("hosepipe sink: {wrong}"));
    Ok(ExitCode::FAILURE)
}

fn summary(report: &SinkReport) -> String {
    let bytes = report.bytes;
    let count = report::words::count(bytes as usize, "byte");
    if bytes == 0 {
        return "0 bytes: standard input was empty".into();
    }
    let what = match &report.payload {
        Some(payload) => format!("all as in the payload {payload}"),
        None => "not checked (use --verify)".into(),
    };
    let seconds = report.elapsed_ns as f64 / 1e9;
    let Some(speed) = report.throughput_bytes_per_s else {
        return format!("{count}, {what}; all of them came before the clock started, so there is no rate");
    };
    let summary = format!("{count}, {what}: {seconds:.3} s, {:.2} GB/s", speed / 1e9);
    // Bytes that had come before the clock started are mentioned only if they change the printed rate.
    let waiting = report.waiting_bytes;
    if waiting <= bytes / 100 {
        return summary;
    }
    format!("{summary} without the {waiting} that had come before the clock started")
}

fn describe_amount(report: &SinkReport) -> String {
    let (bytes, expected) = (report.bytes, report.expected_bytes.unwrap_or(0));
    match expected.checked_sub(bytes) {
        Some(missing) => format!("the end is missing: {bytes} of {expected} bytes came, {missing} too few"),
        None => format!("more than the {expected} bytes of --bytes came; the rest was not read"),
    }
}

fn describe_mismatch(report: &SinkReport, mismatch: Mismatch, named: bool, seed: u64) -> String {
    let Mismatch { offset, expected, found } = mismatch;
    let payload = report.payload.as_ref().map_or_else(String::new, ToString::to_string);
    let wrong = format!("byte {offset} is 0x{found:02x}, but 0x{expected:02x} in the payload {payload}");
    if named || offset >= RECOGNISED_BYTES {
        return format!("{wrong}; the {offset} bytes before it are right");
    }
    let names: Vec<String> = PayloadKind::NAMED.iter().map(ToString::to_string).collect();
    format!(
        "from byte {offset} on (0x{found:02x}) this is none of the payloads {} of --seed {seed}: give `sink` the --payload and \
         --seed of `gen`",
        names.join(", ")
    )
}
